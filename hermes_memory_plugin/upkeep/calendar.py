"""The trading days of Shanghai and Shenzhen: a small table of closures, weekends beyond it.

The exchanges announce a year's closures in the December before it. A home may add days of its own, one ISO date a line, in
`memory/closures.txt`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache
from pathlib import Path

SHANGHAI = timezone(timedelta(hours=8))
CLOSE = time(15, 0)
"""When the continuous auction ends, Shanghai time."""
FROM, UNTIL = date(2024, 1, 1), date(2026, 12, 31)
"""The days the table knows; outside, only weekends are taken for closed."""
FILE = "closures.txt"

# Weekdays without trading, as month-day or a run of them within a month.
_CLOSED = {
    2024: "0101 0209 0212-0216 0404-0405 0501-0503 0610 0916-0917 1001-1004 1007",
    2025: "0101 0128-0131 0203-0204 0404 0501-0502 0505 0602 1001-1003 1006-1008",
    2026: "0101-0102 0216-0220 0223 0406 0501 0504-0505 0619 0925 1001-1002 1005-1007",
}


@lru_cache(1)
def closures() -> frozenset[date]:
    """The weekdays without trading the table knows."""
    days: set[date] = set()
    for year, runs in _CLOSED.items():
        for run in runs.split():
            first, _, last = run.partition("-")
            month = int(first[:2])
            days |= {date(year, month, day) for day in range(int(first[2:]), int((last or first)[2:]) + 1)}
    return frozenset(days)


def added(folder: Path) -> frozenset[date]:
    """The closures a home adds; lines that are no date are left out."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    days = set()
    for line in lines:
        try:
            days.add(date.fromisoformat(line.partition("#")[0].strip()))
        except ValueError:
            continue
    return frozenset(days)


def known_until(more: Collection[date] = ()) -> date:
    """The last day whose trading is known: of the table, or the end of the last year somebody added closures for."""
    return max([UNTIL, *(date(day.year, 12, 31) for day in more)])


def is_open(day: date, more: Collection[date] = ()) -> bool:
    """Whether there is trading on that day."""
    return day.weekday() < 5 and day not in closures() and day not in more


def close_after(at: datetime, days: int = 1, more: Collection[date] = ()) -> datetime:
    """The close of the `days`-th trading day after the day of `at` (in Shanghai), in UTC."""
    day = at.astimezone(SHANGHAI).date()
    for _ in range(max(days, 1)):
        day += timedelta(days=1)
        while not is_open(day, more):
            day += timedelta(days=1)
    return datetime.combine(day, CLOSE, SHANGHAI).astimezone(UTC)
