"""scenes, notes, persona, trash, import: through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from tests.upkeep.research import end, hold

from .conftest import Command

pytestmark = pytest.mark.slow

TITLE = "贵州茅台 2026Q1"


@pytest.fixture
def drafted(home: Path) -> Path:
    """A home with one proposed scene."""
    with Memory.open(home) as memory:
        end(memory, hold(memory, "s1"))
    return home


@pytest.mark.parametrize("verb", ["scenes", "notes", "trash"])
def test_an_empty_layer_says_so(cli: Command, verb: str) -> None:
    assert cli(verb).code == 1 and "Traceback" not in cli(verb).err
    assert cli(verb, "list", "--json").json["ok"] is False


@pytest.mark.usefixtures("drafted")
def test_scenes_are_listed_shown_confirmed_and_forgotten(cli: Command) -> None:
    (listed,) = cli("scenes", "--json").json["scenes"]
    assert (listed["title"], listed["status"], listed["tickers"]) == (TITLE, "proposed", ["600519.SH"])
    assert "proposed" in cli("scenes").out
    shown = cli("scenes", "show", listed["handle"])
    assert "## 结论" in shown.out and "call-s1-0" in shown.out
    assert (
        cli("recall", "贵州茅台的估值", "--mode", "automatic", "--json").json["block"].count("scenarios/")
        == 0
    )
    assert cli("scenes", "confirm", TITLE).code == 0
    assert "scenarios/" in cli("recall", "贵州茅台的估值", "--mode", "automatic", "--json").json["block"]
    assert cli("scenes", "forget", TITLE).code == 0 and cli("scenes").code == 1
    assert cli("trash", "restore", TITLE).code == 0
    assert cli("scenes", "--json").json["scenes"][0]["status"] == "active"


@pytest.mark.usefixtures("drafted")
def test_a_confirmed_draft_still_grows(cli: Command, home: Path) -> None:
    cli("scenes", "confirm", TITLE)
    with Memory.open(home) as memory:
        end(memory, hold(memory, "s2", 26.1))
        (scene,) = memory.scenes
    assert "26.1" in scene.note.body and scene.status == "active"


def test_a_session_nobody_ended_is_drafted_on_request(cli: Command, home: Path) -> None:
    with Memory.open(home) as memory:
        hold(memory, "s1")
    assert "Nothing to draft" in cli("scenes", "draft").out
    assert TITLE in cli("scenes", "draft", "--idle", "0").out


def test_an_unknown_scene_is_said(cli: Command) -> None:
    ran = cli("scenes", "show", "没有")
    assert ran.code == 1 and "没有" in ran.err


def test_notes_show_their_dates_and_uses(cli: Command) -> None:
    cli("remember", "任何推荐都不碰银行股", "--title", "不碰银行股", "--type", "user")
    cli("recall", "不碰银行股")
    cli("recall", "不碰银行股")
    (note,) = cli("notes", "--json").json["notes"]
    assert (note["title"], note["type"], note["uses"]) == ("不碰银行股", "user", 2)
    assert note["created"] and note["updated"] and note["last_used"]
    assert "不碰银行股" in cli("notes").out


def test_a_forgotten_note_waits_in_the_trash_until_it_is_emptied(cli: Command, home: Path) -> None:
    cli("remember", "任何推荐都不碰银行股", "--title", "不碰银行股", "--type", "user")
    assert cli("forget", "不碰银行股").code == 0
    assert "不碰银行股" in cli("trash").out
    assert cli("trash", "empty").code == 0 and cli("trash").code == 1
    assert cli("trash", "restore", "不碰银行股").code == 1


def test_persona_is_shown_slimmed_restored_and_adopted(cli: Command, home: Path) -> None:
    path = home / "memories" / "MEMORY.md"
    path.parent.mkdir()
    text = "回答先结论后论据\n§\n贵州茅台 PE(TTM) 28.1 倍（2026-04-30）"
    path.write_text(text, encoding="utf-8")
    cli("remember", "任何推荐都不碰银行股", "--title", "不碰银行股", "--type", "user")
    shown = cli("persona").out
    assert "回答先结论后论据" in shown and "不碰银行股" in shown and "2,200" in shown
    plan = cli("persona", "slim", "--json").json
    assert (plan["moving"], plan["applied"]) == (1, False) and path.read_text(encoding="utf-8") == text
    applied = cli("persona", "slim", "--apply", "--json").json
    assert applied["backup"] and path.read_text(encoding="utf-8") == "回答先结论后论据"
    assert cli("persona", "restore").code == 0 and path.read_text(encoding="utf-8") == text
    assert cli("persona", "adopt", "不碰银行股").code == 0
    assert "不碰银行股" in path.read_text(encoding="utf-8") and cli("notes").code == 1


def test_status_says_that_a_file_is_nearly_full(cli: Command, home: Path) -> None:
    path = home / "memories" / "USER.md"
    path.parent.mkdir()
    path.write_text("\n§\n".join(f"{number:02}" + "字" * 95 for number in range(13)), encoding="utf-8")
    found = cli("status", "--json").json
    assert found["persona"]["USER.md"]["share"] > 0.9
    assert "persona slim" in found["notices"][0] and "persona slim" in cli("status").out
    assert "make room" in " ".join(cli("persona", "slim").out.split()), (
        "full, and nothing that clearly belongs elsewhere"
    )


def test_a_vibe_trading_folder_is_imported_with_a_report(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "vibe"
    folder.mkdir()
    (folder / "user_a.md").write_text("---\nname: 甲\ntype: user\n---\n\n内容", encoding="utf-8")
    assert "would be imported" in cli("import", "vibe-trading", str(folder), "--dry-run").out
    ran = cli("import", "vibe-trading", str(folder), "--json")
    assert [(row["file"], row["became"]) for row in ran.json["entries"]] == [("user_a.md", "note")]
    assert cli("import", "vibe-trading", str(tmp_path / "none")).code == 2


def test_a_layer_that_leads_out_of_the_memory_is_refused_and_named(
    cli: Command, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "别人的.md").write_text("外部的内容", encoding="utf-8")
    with Memory.open(home) as memory:
        memory.remember("长江电力 股息率 3.6%")
        memory.notes.folder.rmdir() if memory.notes.folder.exists() else None
        memory.notes.folder.symlink_to(tmp_path / "away", target_is_directory=True)
    ran = cli("remember", "正文", "--title", "标题")
    assert ran.code == 4 and "symbolic link" in ran.err
    assert [path.name for path in (tmp_path / "away").iterdir()] == ["别人的.md"]
    assert "外部的内容" not in cli("recall", "外部的内容").out
    assert any("notes is a symbolic link" in problem for problem in cli("status", "--json").json["problems"])


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("2026-04-30T00:00:00", "2026-04-30"),
        ("2026-04-30T17:00:00", "2026-05-01"),
        ("2026-04-30T09:00:00", "2026-04-30"),
    ],
)
def test_a_list_names_the_day_that_a_recall_names(cli: Command, home: Path, at: str, day: str) -> None:
    with Memory.open(home) as memory:
        memory.add_scene("白酒", "白酒库存仍高", as_of=f"{at}+00:00")
        assert day in memory.recall("白酒库存", mode="explicit").block
    assert cli("scenes", "--json").json["scenes"][0]["as_of"] == day
