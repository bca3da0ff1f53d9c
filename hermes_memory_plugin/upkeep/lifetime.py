"""How long a fact counts as current: by its kind, its metric and its period.

Past its time a row is out of automatic recall at once, through the expiry of its index row; asked for outright it is still
shown, as expired. What has no metric and no period never ages, and neither do preferences, holdings and competences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from hermes_memory_plugin.layers.keys import metric_of, period_of
from hermes_memory_plugin.recall.metrics import canonical
from hermes_memory_plugin.upkeep import calendar

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Fact
    from hermes_memory_plugin.extensions import Hooks
    from hermes_memory_plugin.settings import Lifetime

Class = Literal["", "quote", "multiple", "quarterly", "annual", "opinion"]

_QUOTES = frozenset(
    [
        "price",
        "change_pct",
        "turnover",
        "volume",
        "northbound",
        "nav",
        "close",
        "open",
        "high",
        "low",
        "pre_close",
        "last",
        "pct_chg",
        "vol",
        "amount",
        "turnover_rate",
        "amplitude",
        "涨跌额",
        "振幅",
        "换手率",
        "成交量",
        "成交额",
        "涨跌幅",
        "最新价",
        "今开",
        "最高",
        "最低",
        "昨收",
    ]
)
_MULTIPLES = frozenset(
    [
        "pe",
        "pb",
        "ps",
        "peg",
        "ev_ebitda",
        "dividend_yield",
        "market_cap",
        "pe_ttm",
        "ps_ttm",
        "dv_ratio",
        "dv_ttm",
        "total_mv",
        "circ_mv",
        "pcf",
    ]
)
_OPINIONS = frozenset({"target_price", "rating"})
_AGELESS = frozenset({"preference", "holding", "competence"})
_PERIOD = re.compile(r"(\d{4})(?:Q([1-4])|H([12])|M(\d\d))?")


@lru_cache(8_192)
def class_of(kind: str, metric: str, period: str) -> Class:
    """What sort of statement it is, as far as ageing goes; "" for what never ages."""
    if kind in _AGELESS:
        return ""
    name = metric_of(metric)[0] if metric else ""
    names = {name, canonical(metric) if metric else ""}
    if kind == "conclusion" or names & _OPINIONS:
        return "opinion"
    if not metric:
        return ""
    span = _span(period)
    if span is not None:
        return "annual" if (span[1] - span[0]).days > 200 else "quarterly"
    if names & _QUOTES:
        return "quote"
    return "multiple" if names & _MULTIPLES else ""


def period_end(period: str) -> date | None:
    """The last day of a year, half, quarter or month; None for anything else, a day included."""
    span = _span(period)
    return span[1] if span else None


def expiry(
    fact: Fact, limits: Lifetime, closures: Callable[[], Collection[date]] = frozenset
) -> datetime | None:
    """When the fact stops being current by the defaults; None for never.

    It counts from the as-of date, for a figure of a period at the earliest from the day its report is due. What the user
    himself states of a day long past counts from when he said it: his words are not out of date before he asks.
    """
    sort = class_of(fact.kind, fact.metric, fact.period)
    if not sort:
        return None
    base = fact.as_of or fact.created_at
    end = _last(sort, base, fact.period, limits, closures)
    if end is not None and end <= fact.created_at and fact.origin == "user":
        end = _last(sort, fact.created_at, fact.period, limits, closures)
    return end


def dated(
    fact: Fact, limits: Lifetime, hooks: Hooks | None, closures: Callable[[], Collection[date]] = frozenset
) -> Fact:
    """The fact with its expiry: its own where it has one, else what a plugin says, else the default."""
    if fact.expires_at is not None:
        return fact
    if hooks is not None:
        for lifetime in hooks.call("fact_lifetime", fact=fact):
            try:
                return replace(fact, expires_at=(fact.as_of or fact.created_at) + lifetime)
            except OverflowError:  # timedelta.max says never
                return fact
    end = expiry(fact, limits, closures)
    return fact if end is None else replace(fact, expires_at=end)


def _last(
    sort: Class,
    base: datetime,
    period: str,
    limits: Lifetime,
    closures: Callable[[], Collection[date]],
) -> datetime | None:
    if sort == "quote":
        return calendar.close_after(base, limits.quote_days, closures()) if limits.quote_days else None
    days = {
        "multiple": limits.multiple_days,
        "quarterly": limits.quarterly_days,
        "annual": limits.annual_days,
        "opinion": limits.opinion_days,
    }[sort]
    if not days:
        return None
    if sort in ("quarterly", "annual"):
        base = max(base, _due(period, base))
    try:
        return base + timedelta(days=days)
    except OverflowError:
        return None


def _due(period: str, base: datetime) -> datetime:
    """The day by which a figure of that period must be published, when `base` is not behind the period already."""
    end = period_end(period)
    if end is None or base.date() > end + timedelta(days=5):
        return base
    month = end.month
    if month in (3, 12):
        day = date(end.year + (month == 12), 4, 30)
    elif month == 6:
        day = date(end.year, 8, 31)
    elif month == 9:
        day = date(end.year, 10, 31)
    else:  # a month's own figures come within the next
        day = end + timedelta(days=15)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _span(period: str) -> tuple[date, date] | None:
    match = _PERIOD.fullmatch(period_of(period).upper()) if period else None
    if match is None:
        return None
    year = int(match[1])
    if not 1900 <= year <= 2200:
        return None
    first, last = 1, 12
    if match[2]:
        first, last = 3 * int(match[2]) - 2, 3 * int(match[2])
    elif match[3]:
        first, last = 6 * int(match[3]) - 5, 6 * int(match[3])
    elif match[4]:
        first = last = int(match[4])
    if not 1 <= first <= last <= 12:
        return None
    after = date(year + (last == 12), last % 12 + 1, 1)
    return date(year, first, 1), after - timedelta(days=1)
