"""How long a fact counts as current, and that it is out of automatic recall the moment it does not."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_hookspecs import Fact, ToolTrace, Turn, hookimpl
from hermes_memory_plugin import Memory
from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.settings import Lifetime, parse
from hermes_memory_plugin.upkeep import calendar, lifetime

DAY = timedelta(days=1)


def at(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def fact(metric: str = "", period: str = "", as_of: str = "2026-04-30", **more: Any) -> Fact:
    given_: dict[str, Any] = {"statement": "一句话", "origin": "tool", "created_at": at(as_of)}
    return Fact(**(given_ | {"metric": metric, "period": period, "as_of": at(as_of)} | more))


@pytest.mark.parametrize(
    ("metric", "period", "kind", "ends"),
    [
        (
            "close",
            "",
            "fact",
            "2026-05-06 07:00",
        ),  # Labour Day lies between: the next close is that of the 6th
        ("涨跌幅", "", "fact", "2026-05-06 07:00"),
        ("PE", "", "fact", "2026-05-30"),
        ("pe_ttm", "", "fact", "2026-05-30"),
        ("市盈率(TTM)", "", "fact", "2026-05-30"),
        ("total_mv", "", "fact", "2026-05-30"),
        ("毛利率", "2026Q1", "fact", "2026-08-28"),
        ("revenue", "2025H1", "fact", "2026-08-28"),
        ("净利润", "2025", "fact", "2027-06-04"),
        ("目标价", "", "fact", "2026-10-27"),
        ("", "", "conclusion", "2026-10-27"),
        ("PE", "2026E", "conclusion", "2026-10-27"),
    ],
)
def test_each_sort_of_fact_has_its_time(metric: str, period: str, kind: str, ends: str) -> None:
    found = lifetime.expiry(fact(metric, period, kind=kind), Lifetime())
    assert found == datetime.fromisoformat(ends).replace(tzinfo=UTC)


@pytest.mark.parametrize("kind", ["fact", "preference", "holding", "competence"])
def test_without_metric_and_period_nothing_but_an_opinion_ages(kind: str) -> None:
    assert lifetime.expiry(fact(kind=kind), Lifetime()) is None


@pytest.mark.parametrize("kind", ["preference", "holding", "competence"])
def test_preferences_holdings_and_competences_never_age(kind: str) -> None:
    assert lifetime.expiry(fact("PE", kind=kind), Lifetime()) is None


def test_a_figure_dated_by_its_period_counts_from_the_day_its_report_is_due() -> None:
    early = lifetime.expiry(fact("毛利率", "2026Q1", as_of="2026-03-31"), Lifetime())
    assert early == at("2026-04-30") + 120 * DAY


def test_what_the_user_says_of_a_day_long_past_is_not_out_of_date_before_he_asks() -> None:
    said = {"as_of": "2026-04-30", "created_at": at("2026-11-30")}
    assert lifetime.expiry(fact("PE", **said, origin="user"), Lifetime()) == at("2026-12-30")
    assert lifetime.expiry(fact("PE", **said, origin="tool"), Lifetime()) == at("2026-05-30")


def test_zero_days_stand_for_ever() -> None:
    limits = Lifetime(quote_days=0, multiple_days=0, quarterly_days=0, annual_days=0, opinion_days=0)
    every = [("close", ""), ("PE", ""), ("营收", "2026Q1"), ("营收", "2025"), ("目标价", "")]
    assert [lifetime.expiry(fact(*one), limits) for one in every] == [None] * 5


# -- the calendar ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("day", "open_"),
    [
        ("2026-11-27", True), ("2026-11-28", False), ("2026-02-16", False), ("2026-02-24", True), ("2026-10-07", False),
        ("2026-10-08", True), ("2025-01-28", False), ("2024-09-16", False), ("2031-01-01", True), ("2031-01-04", False),
    ],
)  # fmt: skip
def test_the_exchange_is_closed_on_weekends_and_on_the_days_the_table_knows(day: str, open_: bool) -> None:
    assert calendar.is_open(date.fromisoformat(day)) is open_


def test_every_closure_of_the_table_is_a_weekday_of_the_years_it_knows() -> None:
    days = calendar.closures()
    assert all(day.weekday() < 5 and calendar.FROM <= day <= calendar.UNTIL for day in days)
    # Shanghai's own counts of trading days.
    for year, trading in ((2024, 242), (2025, 243), (2026, 242)):
        every = (date(year, 1, 1) + timedelta(days=n) for n in range(366))
        assert sum(calendar.is_open(day) for day in every if day.year == year) == trading


def test_a_home_may_add_closures_and_the_table_says_how_far_it_knows(tmp_path: Path) -> None:
    (tmp_path / calendar.FILE).write_text("2027-01-01  # 元旦\nnonsense\n2027-02-31\n", encoding="utf-8")
    more = calendar.added(tmp_path)
    assert more == {date(2027, 1, 1)} and not calendar.is_open(date(2027, 1, 1), more)
    assert (calendar.known_until(), calendar.known_until(more)) == (date(2026, 12, 31), date(2027, 12, 31))


@given(st.dates(date(2023, 1, 1), date(2028, 1, 1)), st.integers(1, 5))
def test_a_quote_outlives_its_day_and_ends_at_a_close(day: date, days: int) -> None:
    moment = datetime(day.year, day.month, day.day, 20, tzinfo=UTC)
    end = calendar.close_after(moment, days)
    local = end.astimezone(calendar.SHANGHAI)
    assert calendar.is_open(local.date()) and local.time() == calendar.CLOSE
    assert local.date() > moment.astimezone(calendar.SHANGHAI).date()


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_metric_and_no_period_raises(metric: str, period: str) -> None:
    end = lifetime.expiry(fact(metric, period), Lifetime())
    assert end is None or end > at("2026-04-30")


# -- in the memory ---------------------------------------------------------------------------------------------------


def remember_pe(memory: Memory, **more: Any) -> str:
    base = {"subject": "600519.SH", "metric": "PE", "value": 28.1, "as_of": "2026-04-30", "created_at": "2026-04-30"}  # fmt: skip
    return memory.remember("贵州茅台 PE(TTM) 28.1 倍", **(base | more))


def test_an_outlived_multiple_is_never_recalled_by_itself_and_labelled_when_asked_for(memory: Memory) -> None:
    remember_pe(memory)
    assert len(memory.recall("茅台PE多少", now="2026-05-29").items) == 1
    assert memory.recall("茅台PE多少", now="2026-05-31").items == ()
    assert memory.recall("茅台PE", mode="explicit", now="2026-05-31").items[0].state == "expired"
    assert len(memory.recall("今年4月底茅台PE是多少", now="2026-11-30").items) == 1


def test_lifetimes_are_settings(home: Path) -> None:
    settings = {"lifetime": {"multiple_days": 90}}
    config = {"plugins": {"entries": {"hermes-memory": {"settings": settings}}}}
    (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    with Memory.open(home) as memory:
        remember_pe(memory)
        assert len(memory.recall("茅台PE多少", now="2026-07-20").items) == 1
        assert memory.recall("茅台PE多少", now="2026-07-31").items == ()


def test_logged_calls_and_talk_have_their_time(memory: Memory) -> None:
    day = at("2026-01-05")
    memory.log(ToolTrace(tool_call_id="c1", tool_name="get_quote", result="贵州茅台 1405.5", at=day))
    memory.log_turn(Turn(user="中芯国际的产能怎么看", assistant="偏紧", at=day, session_id="s"))
    memory.reader.refresh()
    rows = {row.kind: row for row in memory.reader.index.scan(None, now_us=0)}
    assert rows["call"].expires == int((day + 180 * DAY).timestamp() * 1e6)
    assert rows["turn"].expires == int((day + 365 * DAY).timestamp() * 1e6)
    assert memory.recall("上次get_quote调用的结果", now="2026-06-01").items
    assert not memory.recall("上次get_quote调用的结果", now="2026-08-01").items


class Long:
    @hookimpl
    def fact_lifetime(self, fact: Fact) -> timedelta | None:
        return {"PE": timedelta(days=365), "PB": timedelta.max}.get(fact.metric)


def test_a_plugin_s_lifetime_wins(home: Path) -> None:
    hooks = Hooks(lambda name, detail: None)
    hooks.register(Long(), "long")
    with Memory.open(home, hooks=hooks) as memory:
        for metric in ("PE", "PB", "PS"):
            remember_pe(memory, metric=metric)
        memory.reader.refresh()
        rows = {row.extra["metric"]: row.expires for row in memory.reader.index.scan(None, now_us=0)}
    year = int(at("2027-04-30").timestamp() * 1e6)
    assert (rows["PE"], rows["PB"], rows["PS"]) == (year, None, int(at("2026-05-30").timestamp() * 1e6))


@pytest.mark.parametrize("written", ["keep", {"policy": "keep"}])
def test_firms_say_retention_keep(written: object) -> None:
    settings, errors = parse({"retention": written})
    assert (settings.retention.policy, errors) == ("keep", [])


def test_another_word_is_refused_and_named() -> None:
    settings, errors = parse({"retention": "never"})
    assert settings.retention.policy == "purge" and "retention.policy" in str(errors[0])
