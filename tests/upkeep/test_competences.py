"""Competences: read as data, taken in once, and never overwritten by a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.upkeep import competence_files
from hermes_memory_plugin.upkeep.competence_files import CompetencesUnreadable

YAML = """\
- id: batch-price
  statement: 飞天批价跌破 2,000 元时，渠道库存通常超过两个月
  source: 2024 渠道调研
  tickers: [600519.SH]
  topics: [白酒, 渠道]
- id: bank-nim
  statement: 净息差低于 1.5% 的银行，分红率难以提高
  source: 年报整理
  topics: 银行
"""
CSV = "id,statement,source,ticker,topics\nbatch-price,飞天批价跌破 2000 元时渠道库存超过两个月,调研,600519.SH,白酒;渠道\nnim,净息差低于 1.5% 时分红率难提高,年报,,银行\n"
PYTHON = """\
import os
from house import registry, Competence

SOURCE = "2024 渠道调研"
os.system("touch ran")
registry.register(Competence(id="batch-price", statement="飞天批价跌破 2,000 元时，"
    "渠道库存通常超过两个月", source=SOURCE, ticker="600519.SH", tags=["白酒"]))
registry.register(Competence("nim", "净息差低于 1.5% 时分红率难提高", "年报"))
"""


def write(folder: Path, text: str | bytes, name: str = "house.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def drifts(memory: Memory, path: Path) -> dict[str, str]:
    return {one.id: one.drift for one in memory.competences.diff(path)}


@pytest.mark.parametrize(("name", "text"), [("a.yaml", YAML), ("a.csv", CSV), ("a.py", PYTHON), ("b.csv", CSV.encode("gb18030")), ("c.csv", "\ufeff" + CSV.replace(",", ";"))])  # fmt: skip
def test_every_form_says_the_same(tmp_path: Path, name: str, text: str | bytes) -> None:
    if name == "c.csv":
        text = str(text).replace("白酒;渠道", "白酒|渠道")
    first, second = competence_files.read(write(tmp_path, text, name)).entries
    assert first.id == "batch-price" and "渠道库存" in first.statement and first.source
    assert first.tickers == ("600519.SH",) and first.topics[0] == "白酒"
    assert second.id and "净息差" in second.statement


def test_a_registry_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    competence_files.read(write(tmp_path, PYTHON, "registry.py"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.py", "x = 1\nregistry.register(Competence(id='a'", "a.py:2: not Python"),
        ("a.py", "register(Competence(id='a', statement='b'))\nregister(Competence(id='b', statement=f'{x}'))", "a.py:2: line 2: a value is computed"),
        ("a.py", "register(Competence(**entry))", "a.py:1: its fields are computed"),
        ("a.py", "register(Competence(id='a'))", "a.py:1: statement must be text"),
        ("a.py", "\x00", "a.py:1: not Python"),
        ("a.py", "x = 1", "holds no competence"),
        ("a.yaml", "- id: a\n  statement: [b", "a.yaml:2: not YAML"),
        ("a.yaml", "- id: a\n  statement: b\n- id: a\n  statement: c", "a.yaml:3: the id 'a' stands in line 1 too"),
        ("a.yaml", "- id: a\n  statement: b\n  as_of: 2026-02-30", "a.yaml:1: "),
        ("a.yaml", "- just text", "a.yaml:1: an entry has id and statement"),
        ("a.yaml", "- {id: a, statement: !!python/object:os.system b}", "a.yaml:1: "),
        ("a.yaml", "", "holds no competence"),
        ("a.csv", "name,what\na,b\n", "a.csv:1: the first line names the columns"),
        ("a.csv", "id,statement\na,b,c\n", "a.csv:2: more cells than columns"),
        ("a.csv", 'id,statement\na,"b\n', "not CSV"),
        ("a.txt", "id", "give a .yaml, .csv or .py file"),
        ("a.yaml", b"\xff\xfe\x80", "neither UTF-8 nor GB 18030"),
    ],
)  # fmt: skip
def test_a_file_with_an_error_names_its_line_and_stores_nothing(
    memory: Memory, tmp_path: Path, name: str, text: str | bytes, problem: str
) -> None:
    path = write(tmp_path, text, name)
    with pytest.raises(CompetencesUnreadable, match="Nothing was stored") as caught:
        memory.competences.take_in(path)
    assert problem in str(caught.value)
    assert memory.competences.rows(None) == []


def test_importing_again_changes_nothing(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path, YAML)
    assert drifts(memory, path) == {"batch-price": "new", "bank-nim": "new"}
    memory.competences.take_in(path)
    before = memory.competences.rows(None)
    assert [(row.origin, row.owner, row.kind) for row in before] == [("import", "shared", "competence")] * 2
    memory.competences.take_in(path)
    after = memory.competences.rows(None)
    assert [(row.id, row.created) for row in after] == [(row.id, row.created) for row in before]
    assert drifts(memory, path) == {"batch-price": "same", "bank-nim": "same"}


def test_a_changed_value_is_a_conflict_until_somebody_decides(memory: Memory, tmp_path: Path) -> None:
    memory.competences.take_in(write(tmp_path, YAML))
    path = write(tmp_path, YAML.replace("2,000", "1,800"))
    assert drifts(memory, path)["batch-price"] == "changed"
    memory.competences.take_in(path)
    memory.competences.take_in(path)
    (conflict,) = memory.competences.conflicts()
    assert any("1 competences differ" in notice for notice in memory.status()["notices"])
    assert "2,000" in conflict.stored and "1,800" in conflict.offered.statement
    assert all("1,800" not in row.text for row in memory.competences.rows(None))
    memory.competences.resolve("batch-price", take=True)
    assert memory.competences.conflicts() == [] and drifts(memory, path)["batch-price"] == "same"
    (row,) = memory.competences.rows(None, "600519")
    assert "1,800" in row.text
    history = memory.history("batch-price", owner=Owner.SHARED)
    assert [(one.state, one.change) for one in history] == [("superseded", "first"), ("live", "newer")]


def test_what_was_kept_is_not_asked_again(memory: Memory, tmp_path: Path) -> None:
    memory.competences.take_in(write(tmp_path, YAML))
    path = write(tmp_path, YAML.replace("2,000", "1,800"))
    memory.competences.take_in(path)
    memory.competences.resolve("batch-price", take=False)
    memory.competences.take_in(path)
    assert memory.competences.conflicts() == [] and drifts(memory, path)["batch-price"] == "kept yours"
    memory.competences.take_in(write(tmp_path, YAML.replace("2,000", "1,700")))
    assert [one.id for one in memory.competences.conflicts()] == ["batch-price"]
    memory.competences.take_in(write(tmp_path, YAML))  # the file says again what the memory has
    assert memory.competences.conflicts() == []
    with pytest.raises(NotFound):
        memory.competences.resolve("batch-price", take=True)


def test_diff_names_what_the_file_no_longer_has(memory: Memory, tmp_path: Path) -> None:
    memory.competences.take_in(write(tmp_path, YAML))
    assert drifts(memory, write(tmp_path, YAML.partition("- id: bank")[0])) == {
        "batch-price": "same",
        "bank-nim": "not in the file",
    }


def test_what_was_forgotten_here_does_not_come_back(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path, YAML)
    memory.competences.take_in(path)
    memory.forget("bank-nim")
    memory.competences.take_in(path)
    assert drifts(memory, path)["bank-nim"] == "forgotten here"
    assert [row.extra["title"] for row in memory.competences.rows(None)] == ["batch-price"]


@pytest.mark.parametrize("about", ["600519", "贵州茅台", "白酒", "渠道", "batch-price", "批价"])
def test_a_competence_is_found_by_topic_ticker_and_words(memory: Memory, tmp_path: Path, about: str) -> None:
    memory.competences.take_in(write(tmp_path, YAML))
    assert [row.extra["title"] for row in memory.competences.rows(None, about)] == ["batch-price"]


def test_a_competence_is_recalled_by_ticker_and_topic(memory: Memory, tmp_path: Path) -> None:
    memory.competences.take_in(write(tmp_path, YAML))
    for question in ("贵州茅台的渠道怎么看", "银行的净息差和分红"):
        assert memory.recall(question, mode="explicit").items[0].layer == "L1"
    assert "批价" in memory.recall("600519 渠道", mode="explicit").items[0].text


def test_owners_have_competences_of_their_own(memory: Memory, tmp_path: Path) -> None:
    bob = Owner(platform="telegram", user_id="102")
    memory.competences.take_in(write(tmp_path, YAML), owner=bob)
    assert memory.competences.rows(memory.keys(None)) == []
    assert drifts(memory, tmp_path / "house.yaml")["bank-nim"] == "new"


@given(st.text(max_size=200), st.sampled_from([".yaml", ".csv", ".py"]))
def test_any_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        assert all(one.id and one.statement for one in competence_files.read(path).entries)
    except CompetencesUnreadable as error:
        assert str(path) in str(error)
