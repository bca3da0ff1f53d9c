"""A memory that Vibe-Trading wrote becomes notes: all of it, once, and without touching anything of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_plugin import Memory
from hermes_memory_plugin.upkeep.importing import NothingToImport, Report, vibe_trading


def entry(folder: Path, name: str, title: str, type_: str, body: str, *, listed: bool = True) -> Path:
    """An entry as Vibe-Trading writes it: `key: value` lines that are not always YAML."""
    path = folder / name
    path.write_text(
        f"---\nname: {title}\ndescription: {title}: kept\ntype: {type_}\n---\n\n{body}", encoding="utf-8"
    )
    if listed:
        with (folder / "MEMORY.md").open("a", encoding="utf-8") as index:
            index.write(f"- [{title}]({name}) — {title}: kept\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "vibe"
    found.mkdir()
    entry(found, "user_不碰银行股.md", "不碰银行股", "user", "任何推荐都不要银行股")
    entry(found, "project_btc.md", "BTC: backtest [v2]", "project", "Sharpe 1.8")
    return found


def became(report: Report) -> dict[str, str]:
    return {row.file: row.became for row in report.rows}


def test_entries_become_notes_with_title_type_and_body(memory: Memory, folder: Path) -> None:
    report = vibe_trading(memory, folder)
    assert set(became(report).values()) == {"note"} and report.missing == ()
    notes = {note.title: note for note in memory.notes}
    assert notes["BTC: backtest [v2]"].body == "Sharpe 1.8"
    assert notes["BTC: backtest [v2]"].description == "BTC: backtest [v2]: kept"
    assert (notes["不碰银行股"].type, notes["不碰银行股"].origin) == ("user", "import")
    assert memory.recall("BTC backtest Sharpe", mode="explicit").items[0].text.endswith("Sharpe 1.8")
    assert [one.text for one in memory.recall("推荐几只股票", session="s").standing] != []


def test_importing_again_changes_nothing(memory: Memory, folder: Path) -> None:
    vibe_trading(memory, folder)
    before = {path.name: path.read_bytes() for path in memory.notes.folder.glob("*.md")}
    assert set(became(vibe_trading(memory, folder)).values()) == {"unchanged"}
    assert {path.name: path.read_bytes() for path in memory.notes.folder.glob("*.md")} == before


def test_the_folder_itself_stays_as_it_is(memory: Memory, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    vibe_trading(memory, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_changed_there_is_updated_and_what_was_edited_here_is_kept(memory: Memory, folder: Path) -> None:
    vibe_trading(memory, folder)
    entry(folder, "project_btc.md", "BTC: backtest [v2]", "project", "Sharpe 2.1", listed=False)
    memory.remember("改过的", title="不碰银行股", type="user")
    entry(folder, "user_不碰银行股.md", "不碰银行股", "user", "另一种说法", listed=False)
    assert became(vibe_trading(memory, folder)) == {
        "project_btc.md": "updated",
        "user_不碰银行股.md": "kept yours",
    }
    assert {note.body for note in memory.notes} == {"Sharpe 2.1", "改过的"}


def test_what_was_forgotten_here_does_not_come_back(memory: Memory, folder: Path) -> None:
    vibe_trading(memory, folder)
    memory.forget("不碰银行股")
    assert became(vibe_trading(memory, folder))["user_不碰银行股.md"] == "forgotten here"
    assert [note.title for note in memory.notes] == ["BTC: backtest [v2]"]


def test_a_dry_run_only_tells(memory: Memory, folder: Path) -> None:
    assert set(became(vibe_trading(memory, folder, dry_run=True)).values()) == {"note"}
    assert list(memory.notes) == [] and not (memory.folder / "imports.json").exists()


def test_odd_entries_are_imported_and_named(memory: Memory, folder: Path, tmp_path: Path) -> None:
    (folder / "reference_裸文本.md").write_text("没有前言", encoding="utf-8")
    (folder / "broken.md").write_text("---\n: : :\n---\n坏的前言", encoding="utf-8")
    (folder / "latin.md").write_bytes("---\nname: caf\xe9\ntype: secret\n---\nx".encode("latin-1"))
    entry(folder, "user_long.md", "长", "user", "字" * 9_000)
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (folder / "user_link.md").symlink_to(tmp_path / "secret.md")
    with (folder / "MEMORY.md").open("a", encoding="utf-8") as index:
        index.write("- [没有的](user_missing.md) — x\n## a heading\n")
    report = vibe_trading(memory, folder)
    rows = {row.file: row for row in report.rows}
    assert report.missing == ("user_missing.md",)
    assert (
        "no front matter" in rows["reference_裸文本.md"].why
        and "not in MEMORY.md" in rows["reference_裸文本.md"].why
    )
    assert "cannot be read" in rows["broken.md"].why
    assert "not UTF-8" in rows["latin.md"].why and "secret" in rows["latin.md"].why
    assert "8,000" in rows["user_long.md"].why
    assert rows["user_link.md"].became == "refused"
    assert all(note.body != "secret" for note in memory.notes)
    assert len(list(memory.notes)) == 6


@pytest.mark.parametrize("make", ["missing", "empty", "file"])
def test_what_is_no_such_folder_is_said(memory: Memory, tmp_path: Path, make: str) -> None:
    path = tmp_path / "vibe"
    if make == "empty":
        path.mkdir()
    elif make == "file":
        path.write_text("x", encoding="utf-8")
    with pytest.raises(NothingToImport, match="vibe"):
        vibe_trading(memory, path)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1, max_size=20), st.text(max_size=60)), min_size=1, max_size=4))
def test_any_title_and_body_arrive_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str]]
) -> None:
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("vibe")
    for number, (title, body) in enumerate(entries):
        text = f"---\nname: {title}\ntype: user\n---\n\n{body}"
        (folder / f"user_{number}.md").write_bytes(text.encode("utf-8", "replace"))
    with Memory.open(home) as memory:
        report = vibe_trading(memory, folder)
        assert len(report.rows) == len(entries)
        titles = {row.title for row in report.rows if row.became in ("note", "updated")}
        assert {note.title for note in memory.notes} == titles
        again = vibe_trading(memory, folder)
        assert (not again.count("note") and not again.count("updated")) or len(titles) < len(entries)


def test_a_quoted_title_is_read_without_its_quotes(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "vt").mkdir()
    (tmp_path / "vt" / "user_q.md").write_text(
        '---\nname: "他说 \\"不买\\""\ntype: user\n---\n\n不买', encoding="utf-8"
    )
    (row,) = vibe_trading(memory, tmp_path / "vt").rows
    assert row.title == '他说 "不买"'
