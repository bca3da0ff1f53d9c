"""The hand-written cases as data: how a file is read, and when a case counts as passed. See fixtures/CASES.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CHECKS = ("pass", "recall", "all", "no_bad", "order", "standing", "stale", "empty")
DECIDING = ("all", "no_bad", "order", "standing", "empty")
"""The checks a case must pass; `stale` is reported beside them, `recall` is the share behind `all`."""

_DATE = re.compile(r"(20\d\d)[-/.年](\d{1,2})[-/.月](\d{1,2})")


@dataclass(frozen=True, slots=True)
class Item:
    """One row to store before the question is asked."""

    id: str
    layer: str
    text: str
    date: str = ""
    owner: str = "local"
    origin: str = "user"
    project: str = ""
    title: str = ""
    broker: str = ""
    code: str = ""
    typed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the rows of its home, and which of them must and must not come back."""

    id: str
    kind: str
    query: str
    setup: tuple[Item, ...]
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    stale: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    expect_empty: bool = False
    now: str = ""
    owner: str = "local"
    project: str = ""
    history: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    note: str = ""

    @property
    def today(self) -> datetime:
        """`now`, else a date in `note`, else the day after the newest row: the clock of the machine never counts."""
        said = day_of(self.now) or day_of(self.note)
        if said:
            return said
        rows = [day for day in map(day_of, (item.date for item in self.setup)) if day]
        return max(rows, default=datetime(2026, 1, 1, tzinfo=UTC)) + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Shown:
    """What one recall put in front of the model, in the ids of the case file."""

    items: tuple[str, ...]
    standing: tuple[str, ...] = ()
    tokens: int = 0
    """Tokens of the whole block."""
    standing_tokens: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    case: Case
    shown: Shown
    checks: Mapping[str, float]
    """The checks that apply to the case; 1.0 is passed, `recall` is a share."""


def read_cases(path: Path) -> list[Case]:
    """The cases of a file; fields that are missing have the defaults of `Case`."""
    return [_case(row) for row in _rows(path)]


def read_bank(path: Path) -> list[Item]:
    """The background rows that every case has in its home."""
    return [_item(row) for row in _rows(path)]


def score(case: Case, shown: Shown) -> dict[str, float]:
    """The checks of the case that apply. Standing preferences are shown too: they can satisfy and they can harm."""
    place = {id_: number for number, id_ in reversed(list(enumerate((*shown.standing, *shown.items))))}
    checks: dict[str, float] = {}
    if case.expect_empty:
        checks["empty"] = float(not place and not shown.tokens)
    else:
        if case.must:
            checks["recall"] = sum(id_ in place for id_ in case.must) / len(case.must)
            checks["all"] = float(checks["recall"] == 1)
        if case.must_not:
            checks["no_bad"] = float(place.keys().isdisjoint(case.must_not))
    if case.before:
        checks["order"] = float(
            all(one in place and place[one] < place.get(other, len(place)) for one, other in case.before)
        )
    if case.standing:
        checks["standing"] = float(set(case.standing) <= set(shown.standing))
    if case.stale:
        checks["stale"] = float(place.keys().isdisjoint(case.stale))
    checks["pass"] = float(all(checks[name] == 1 for name in DECIDING if name in checks))
    return checks


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _case(row: Mapping[str, Any]) -> Case:
    known = {name: row[name] for name in Case.__dataclass_fields__ if row.get(name) is not None}
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
    lists["setup"] = tuple(_item(item) for item in row["setup"])
    lists["before"] = tuple((str(one), str(other)) for one, other in row.get("before") or ())
    return Case(**(known | lists))


def _item(row: Mapping[str, Any]) -> Item:
    return Item(**{name: row[name] for name in Item.__dataclass_fields__ if row.get(name) is not None})


def day_of(text: str) -> datetime | None:
    """The first date in the text as its midnight in UTC; a time of day is kept when the text is an ISO time."""
    if found := _DATE.search(text):
        try:
            whole = datetime.fromisoformat(text)
            return whole if whole.tzinfo else whole.replace(tzinfo=UTC)
        except ValueError:
            pass
        try:
            year, month, day = map(int, found.groups())
            return datetime(year, month, day, tzinfo=UTC)
        except ValueError:
            return None
    return None
