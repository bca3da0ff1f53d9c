"""What became of a statement."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound


def pe(memory: Memory, value: float, day: str, origin: str = "tool", **typed: Any) -> str:
    given = {"subject": "600519.SH", "metric": "pe_ttm", "unit": "倍", "source": "tushare", **typed}
    return memory.remember(f"贵州茅台 PE(TTM) {value}", value=value, as_of=day, origin=origin, **given)


def test_the_chain_is_visible_from_each_of_its_rows(memory: Memory) -> None:
    april, november = pe(memory, 28.1, "2026-04-30"), pe(memory, 25.2, "2026-11-20")
    for one in (april, november):
        first, second = memory.history(one)
        assert (first.id, first.state, first.superseded_by) == (april, "superseded", november)
        assert (second.id, second.change, second.superseded_by) == (november, "newer", "")


def test_equal_dates_with_different_values_contradict_in_history_and_recall(memory: Memory) -> None:
    one, other = pe(memory, 28.1, "2026-11-20"), pe(memory, 27.4, "2026-11-20", source="wind")
    first, second = memory.history(one)
    assert second.change == "contradicts" and {*first.contradicts, *second.contradicts} == {one, other}
    assert "矛盾" in memory.recall("贵州茅台 PE(TTM) 多少", now="2026-11-21").block


def test_a_lower_source_retires_nothing_and_is_shown(memory: Memory) -> None:
    user = pe(memory, 28.1, "2026-11-01", origin="user")
    pe(memory, 25.0, "2026-11-20")
    first, second = memory.history(user)
    assert first.state == "live" and second.change == "contradicts" and second.contradicts == (user,)


@pytest.mark.parametrize(
    ("fields", "versions"),
    [
        ({"unit": "x"}, 2),  # one figure by another name of its unit
        ({"metric": "市盈率", "basis": "TTM"}, 2),
        ({"subject": "600519"}, 2),
        ({"basis": "LYR", "metric": "pe"}, 1),
        ({"currency": "USD"}, 1),
        ({"period": "2025"}, 1),
        ({"holder": "中信证券"}, 1),
        ({"metric": "pb"}, 1),
    ],
    ids=str,
)
def test_only_rows_of_one_figure_make_a_history(
    memory: Memory, fields: dict[str, str], versions: int
) -> None:
    pe(memory, 28.1, "2026-04-30")
    assert len(memory.history(pe(memory, 25.2, "2026-11-20", **fields))) == versions


def test_a_restated_figure_is_told_from_a_newer_one(memory: Memory) -> None:
    typed: dict[str, Any] = {
        "subject": "600519.SH",
        "metric": "营业收入",
        "period": "2025",
        "origin": "report",
    }
    memory.remember("茅台2025年营收 1741 亿元", value=1741, unit="亿元", as_of="2026-03-30", **typed)
    last = memory.remember(
        "茅台2025年营收 1735 亿元（追溯调整）", value=17_350_000, unit="万元", as_of="2026-08-30", **typed
    )
    again = memory.remember("茅台2025年营收 1735 亿元", value=1735, unit="亿元", as_of="2026-10-30", **typed)
    memory.remember(
        "茅台2025年四季度营收 500 亿元",
        value=500,
        unit="亿元",
        as_of="2026-11-30",
        **(typed | {"period": "2025Q4"}),
    )
    history = memory.history(last)
    assert [(one.change, one.value, one.unit) for one in history] == [
        ("first", 1741, "亿元"),
        ("restated", 17_350_000, "万元"),
        ("repeated", 1735, "亿元"),
    ]
    assert history[-1].id == again and [one.state for one in history] == ["superseded", "superseded", "live"]


def test_a_row_without_subject_has_a_history_of_one(memory: Memory) -> None:
    (one,) = memory.history(memory.remember("周三开会"))
    assert (one.change, one.state, one.origin) == ("first", "live", "user")


def test_nobody_sees_another_owners_history(memory: Memory) -> None:
    id = pe(memory, 28.1, "2026-04-30")
    with pytest.raises(NotFound):
        memory.history(id, owner=Owner(platform="telegram", user_id="102"))


def test_lifecycle_fields(memory: Memory) -> None:
    """user-reports 68: every row is dated, named by its source, correctable and forgettable."""
    wrong = pe(memory, 31.0, "2026-11-20")
    right = pe(memory, 28.1, "2026-11-20", origin="user")
    first, second = memory.history(wrong)
    assert first.stored and first.as_of and first.source == "tushare"
    assert (first.superseded_by, second.change) == (right, "corrected")
    memory.forget(right)
    (only,) = memory.history(wrong)
    assert only.state == "live"


def test_superseded_rows_are_no_candidates_and_are_labelled_when_asked_for(memory: Memory) -> None:
    """user-reports 69 and 70."""
    for month in range(1, 10):
        pe(memory, 30.0 - month, f"2026-{month:02d}-28")
    found = memory.recall("贵州茅台 PE(TTM)", now="2026-10-01")
    assert [item.text for item in found.items] == ["贵州茅台 PE(TTM) 21.0"]
    states = {
        item.text: item.state
        for item in memory.recall("贵州茅台 PE(TTM)", mode="explicit", limit=9, now="2026-10-01").items
    }
    assert states.pop("贵州茅台 PE(TTM) 21.0") == "live" and set(states.values()) == {"superseded"}
