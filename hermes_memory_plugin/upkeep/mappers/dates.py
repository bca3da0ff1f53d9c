"""Days and report periods as the cells of tables write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from hermes_memory_plugin.recall import periods
from hermes_memory_plugin.recall.normalise import normalise

_FIRST, _LAST = 1980, 2100
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:\.0+)?")
_WRITTEN = re.compile(
    r"(\d{4})\s?[-/.年]\s?(\d{1,2})\s?[-/.月]\s?(\d{1,2})\s?日?(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_YEAR = re.compile(r"(?:19[89]\d|20\d\d)(?:\.0+)?")
_QUARTERS = {(3, 31): "Q1", (6, 30): "H1", (9, 30): "Q3", (12, 31): ""}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day(cell: object) -> date | None:
    """The day of 20260331, "2026-03-31", "2026年3月31日", an ISO time or epoch milliseconds; None for 20260230 and words."""
    if isinstance(cell, datetime):
        return cell.date()
    if isinstance(cell, date):
        return cell
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    if not isinstance(cell, str):
        if 1e11 <= cell <= 4.2e12:  # how pandas writes times as JSON
            return _plausible((_EPOCH + timedelta(milliseconds=int(cell))).date())
        if cell != cell or abs(cell) > 1e9 or cell != int(cell):
            return None
        cell = str(int(cell))
    return _day_of(cell)


@lru_cache(maxsize=8_192)
def _day_of(text: str) -> date | None:
    text = text.strip()
    match = _COMPACT.fullmatch(text) or _WRITTEN.fullmatch(text)
    if match is None and not text.isascii():
        text = normalise(text)
        match = _COMPACT.fullmatch(text) or _WRITTEN.fullmatch(text)
    if match is None:
        return None
    try:
        found = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
    return _plausible(found)


def _plausible(found: date) -> date | None:
    return found if _FIRST <= found.year <= _LAST else None


def period(cell: object) -> str:
    """The id of a report period: 20260331 → 2026Q1, 20260630 → 2026H1, 20260930 → 2026Q3, 20261231 → 2026, 2026年中报 → 2026H1.

    A day that ends no quarter is itself; "" for what names no period or more than one.
    """
    found = day(cell)
    if found is not None:
        part = _QUARTERS.get((found.month, found.day))
        return found.isoformat() if part is None else f"{found.year}{part}"
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return ""
    return _period_of(str(cell))


@lru_cache(maxsize=8_192)
def _period_of(text: str) -> str:
    text = normalise(text).strip()
    if _YEAR.fullmatch(text):
        return text[:4]
    if not 4 < len(text) <= 20 or re.fullmatch(r"\d{8}(?:\.0+)?|\d{4}[-/.]\d+[-/.]\d+.*", text):
        return ""  # a number, or a day the calendar does not have
    named = {one.id for one in periods.named(text)}
    return named.pop() if len(named) == 1 else ""


def last_day(period_id: str) -> date:
    """The last day of a period."""
    return periods.bounds(period_id)[1]


def said(period_id: str, *, nine_months: bool = False) -> str:
    """The period as a sentence names it: 2025年, 2026年一季度 …"""
    year, part = period_id[:4], period_id[4:]
    if not part:
        return f"{year}年"
    if part[0] == "Q":
        return f"{year}年前三季度" if nine_months and part == "Q3" else f"{year}Q{part[1:]}"
    return period_id
