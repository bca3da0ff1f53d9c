"""The library: known by its words, whole or not at all, found by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner, ReportDocument
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.reports.library import NotEditable

DEEP = ReportDocument(
    id="",
    title="贵州茅台深度报告：直营放量",
    date=datetime(2026, 4, 15, tzinfo=UTC),
    broker="东海证券",
    tickers=("600519.SH",),
    rating="买入",
    pages=("渠道库存处于近三年低位，批价企稳在2,600元。", "风险提示：动销不及预期。"),
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home") as memory:
        yield memory


def texts(memory: Memory, question: str = "茅台渠道库存", owner: Owner | None = None) -> list[str]:
    found = memory.recall(question, mode="explicit", owner=owner, limit=10).items
    return [item.text for item in found if item.layer == "report"]


def test_a_passage_is_found_and_cited_by_page(memory: Memory) -> None:
    memory.add_report(DEEP)
    for _ in ("journal", "ledger"):
        (item, *_) = memory.recall("茅台渠道库存", mode="explicit").items
        assert item.source == "东海证券《贵州茅台深度报告：直营放量》 2026-04-15 p.1"
        assert item.layer == "report" and "近三年低位" in item.text
        memory.flush()


def test_the_same_words_in_another_file_are_the_same_report(memory: Memory, tmp_path: Path) -> None:
    first, second = tmp_path / "a.md", tmp_path / "b.md"
    for path in (first, second):
        path.write_text("# 贵州茅台\n\n渠道库存处于低位。\n", encoding="utf-8")
    added = list(memory.library.add_files([first, second], workers=1))
    assert sorted(one.outcome for one in added) == ["added", "duplicate"]
    assert len({one.id for one in added}) == 1
    assert len(texts(memory)) == 1


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_replaces_its_report(
    memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "纪要 1.md"
    path.write_text("# 贵州茅台\n\n渠道库存处于低位。\n\n# 风险\n\n动销放缓。\n", encoding="utf-8")
    (first,) = memory.library.add_files([path])
    (again,) = memory.library.add_files([path])
    path.write_text("# 贵州茅台\n\n渠道库存回到高位。\n", encoding="utf-8")
    (changed,) = memory.library.add_files([path])
    assert [one.outcome for one in (first, again, changed)] == ["added", "unchanged", "replaced"]
    assert first.id == changed.id
    for _ in ("journal", "ledger"):
        assert [("高位" in text) for text in texts(memory)] == [True]
        memory.flush()


def test_a_file_that_moved_is_the_same_report_elsewhere(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# 贵州茅台\n\n渠道库存处于低位。\n", encoding="utf-8")
    (first,) = memory.library.add_files([path])
    moved = path.rename(tmp_path / "b.md")
    (again,) = memory.library.add_files([moved])
    assert (again.outcome, again.id) == ("moved", first.id)
    assert [row["path"] for row in memory.library.reports()] == [str(moved)]


def test_what_a_person_set_is_left_alone_by_the_next_reading(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("渠道库存处于低位。\n", encoding="utf-8")
    (added,) = memory.library.add_files([path])
    memory.library.edit(
        added.id, {"broker": "南山证券", "date": "2026-05-06", "tickers": "600519.SH、000858.SZ"}
    )
    path.write_text("渠道库存回到高位。\n", encoding="utf-8")
    list(memory.library.add_files([path]))
    (row,) = memory.library.reports()
    assert (row["broker"], row["date"], row["tickers"]) == (
        "南山证券",
        "2026-05-06",
        ["600519.SH", "000858.SZ"],
    )
    (item, *_) = memory.recall("渠道库存", mode="explicit").items
    assert item.source.startswith("南山证券") and item.source.endswith("2026-05-06 p.1")


@pytest.mark.parametrize(
    ("field", "value"), [("date", "2026-02-30"), ("target_price", "两千"), ("sha256", "0"), ("owner", "any")]
)
def test_a_field_that_cannot_be_is_refused_and_nothing_changed(
    memory: Memory, field: str, value: str
) -> None:
    id = memory.add_report(DEEP)
    before = memory.library.reports()
    with pytest.raises(NotEditable, match=field):
        memory.library.edit(id, {"broker": "南山证券", field: value})
    assert memory.library.reports() == before


def test_a_removed_report_is_found_no_more_and_can_be_added_again(memory: Memory) -> None:
    id = memory.add_report(DEEP)
    memory.library.remove(id)
    for _ in ("journal", "ledger"):
        assert texts(memory) == [] and memory.library.reports() == []
        memory.flush()
    assert memory.add_report(DEEP) == id
    for _ in ("journal", "ledger"):
        assert texts(memory)
        memory.flush()


def test_a_forgotten_passage_does_not_come_back_with_its_report(memory: Memory) -> None:
    id = memory.add_report(DEEP)
    memory.flush()
    (item, *_) = memory.recall("茅台渠道库存", mode="explicit").items
    memory.forget(item.id)
    memory.library.edit(id, {"broker": "南山证券"})
    for _ in ("journal", "ledger"):
        assert not [text for text in texts(memory) if "低位" in text]
        memory.flush()
    assert item.id not in [one["id"] for one in memory.library.document(id)[1]]


def test_a_report_of_one_owner_is_nobody_elses(memory: Memory) -> None:
    mine, yours = Owner("telegram", "1"), Owner("telegram", "2")
    memory.add_report(DEEP, owner=mine)
    memory.add_report(replace(DEEP, title="公开报告", pages=("茅台渠道库存见公开数据。",)))
    assert len(texts(memory, owner=mine)) >= 2
    assert texts(memory, owner=yours) == ["茅台渠道库存见公开数据。"]
    assert [row["title"] for row in memory.library.reports(yours)] == ["公开报告"]
    with pytest.raises(NotFound):
        memory.library.remove(DEEP.title, owner=yours)


def test_a_rebuilt_index_has_the_passages(memory: Memory) -> None:
    memory.add_report(DEEP)
    memory.flush()
    before = texts(memory)
    assert memory.reader.rebuild() and before
    assert texts(memory) == before
