"""Periods a text names, and what relative time means on a day."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.recall import periods, times
from hermes_memory_plugin.recall.normalise import normalise

NOW = datetime(2026, 10, 15, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("2025", ["2025"]),
        ("2025年报", ["2025"]),
        ("2024年度报告", ["2024"]),
        ("FY2024", ["2024"]),
        ("FY24", ["2024"]),
        ("24年报", ["2024"]),
        ("25年营收", ["2025"]),
        ("2026Q1", ["2026Q1"]),
        ("26Q1", ["2026Q1"]),
        ("1Q26", ["2026Q1"]),
        ("Q3 2025", ["2025Q3"]),
        ("third quarter of 2024", ["2024Q3"]),
        ("2025年一季报", ["2025Q1"]),
        ("2025年第三季度", ["2025Q3"]),
        ("2024年前三季度", ["2024Q3"]),
        ("25年三季报", ["2025Q3"]),
        ("2025中报", ["2025H1"]),
        ("2024年半年报", ["2024H1"]),
        ("2024年下半年", ["2024H2"]),
        ("1H24", ["2024H1"]),
        ("H1 2025", ["2025H1"]),
        ("2024年4月", ["2024M04"]),
        ("2024 年 4 月", ["2024M04"]),
        ("2024年十二月", ["2024M12"]),
        ("2024-04", ["2024M04"]),
        ("202404", ["2024M04"]),
        ("April 2024", ["2024M04"]),
        ("2024-04-30", ["2024-04-30"]),
        ("2024/4/30", ["2024-04-30"]),
        ("2024.04.30", ["2024-04-30"]),
        ("2024年4月30日", ["2024-04-30"]),
        ("20240430", ["2024-04-30"]),
        ("Apr 30, 2024", ["2024-04-30"]),
        ("30 April 2024", ["2024-04-30"]),
        ("2023-2025", ["2023", "2025"]),
        ("2019年报，2020-03-31披露", ["2019", "2020-03-31"]),
        # no periods
        ("20260230", []),
        ("2026年2月30日", []),
        ("收入2019万元", []),
        ("订单2024001", []),
        ("2,024", []),
        ("1.2024", []),
        ("600519", []),
        ("10年期国债", []),
        ("$2020", []),
    ],
)
def test_named_periods(text: str, ids: list[str]) -> None:
    assert [item.id for item in periods.named(normalise(text))] == ids


@pytest.mark.parametrize(
    ("period", "tokens"),
    [
        ("2019", ("~y2019",)),
        ("2024Q1", ("~2024q1", "~y2024")),
        ("2024H1", ("~2024h1", "~y2024")),
        ("2024M04", ("~m202404", "~y2024")),
        ("2024-04-30", ("~d20240430", "~m202404")),
    ],
)
def test_a_day_is_not_its_year(period: str, tokens: tuple[str, ...]) -> None:
    assert periods.tokens_of(period) == tokens


@pytest.mark.parametrize(
    ("text", "period", "first", "last"),
    [
        ("去年三季度", "2025Q3", "2025-07-01", "2025-09-30"),
        ("去年三季报", "2025Q3", "2025-07-01", "2025-09-30"),
        ("今年", "2026", "2026-01-01", "2026-12-31"),
        ("前年", "2024", "2024-01-01", "2024-12-31"),
        ("大前年", "2023", "2023-01-01", "2023-12-31"),
        ("去年4月", "2025M04", "2025-04-01", "2025-04-30"),
        ("去年4月30日", "2025-04-30", "2025-04-30", "2025-04-30"),
        ("去年底", "2025M12", "2025-12-01", "2025-12-31"),
        ("上个月", "2026M09", "2026-09-01", "2026-09-30"),
        ("本月", "2026M10", "2026-10-01", "2026-10-31"),
        ("上季度", "2026Q3", "2026-07-01", "2026-09-30"),
        ("last quarter", "2026Q3", "2026-07-01", "2026-09-30"),
        ("last year", "2025", "2025-01-01", "2025-12-31"),
        ("in March", "2026M03", "2026-03-01", "2026-03-31"),
        ("since March", "", "2026-03-01", "2026-10-15"),
        ("12月", "2025M12", "2025-12-01", "2025-12-31"),
        ("4月30日", "2026-04-30", "2026-04-30", "2026-04-30"),
        ("昨天", "2026-10-14", "2026-10-14", "2026-10-14"),
        ("上周五", "2026-10-09", "2026-10-09", "2026-10-09"),
        ("最近三个月", "", "2026-07-15", "2026-10-15"),
        ("近30天", "", "2026-09-15", "2026-10-15"),
        ("last 3 months", "", "2026-07-15", "2026-10-15"),
        ("3天前", "2026-10-12", "2026-10-12", "2026-10-12"),
        ("two months ago", "", "2026-07-31", "2026-08-30"),
        ("年初至今", "", "2026-01-01", "2026-10-15"),
        ("一季报", "2026Q1", "2026-01-01", "2026-03-31"),
        ("中报", "2026H1", "2026-01-01", "2026-06-30"),
        ("年报", "2025", "2025-01-01", "2025-12-31"),
        ("Q3毛利率", "2026Q3", "2026-07-01", "2026-09-30"),
    ],
)
def test_relative_time_is_seen_from_now(text: str, period: str, first: str, last: str) -> None:
    (moment,) = times.read(normalise(text), NOW)
    assert (moment.id, moment.start, moment.end) == (
        period,
        date.fromisoformat(first),
        date.fromisoformat(last),
    )


def test_the_day_is_that_of_shanghai() -> None:
    late = datetime(2026, 1, 31, 17, tzinfo=UTC)  # already February there
    assert times.read("本月", late)[0].id == "2026M02"


def test_a_report_that_is_not_over_yet_is_that_of_the_year_before() -> None:
    assert times.read("三季报", datetime(2026, 5, 1, tzinfo=UTC))[0].id == "2025Q3"


@pytest.mark.parametrize(
    "text", ["I may buy", "2月30日", "去年2月30日", "99个月前" * 3, "999年前", "13月", "第0季度"]
)
def test_what_is_no_date_never_raises(text: str) -> None:
    for moment in times.read(normalise(text), NOW):
        assert moment.start <= moment.end


_SCRAPS = st.lists(
    st.sampled_from(
        [
            *"0123456789年月日季度QqHh-/. 去上前今第半三报个",
            "20",
            "19",
            "fy",
            "last ",
            "month",
            "ago",
            "in may ",
        ]
    )
)


@settings(max_examples=200)
@given(st.one_of(st.text(max_size=60), _SCRAPS.map("".join)))
def test_any_text_reads_as_periods_that_exist(text: str) -> None:
    normal = normalise(text)
    for item in periods.named(normal):
        first, last = periods.bounds(item.id)
        assert first <= last
        assert 0 <= item.start < item.end <= len(normal)
    for moment in times.read(normal, NOW):
        assert moment.start <= moment.end
