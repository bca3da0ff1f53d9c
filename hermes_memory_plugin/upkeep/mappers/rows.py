"""The rows of a mapped table: whose they are, of when, on what basis; what cannot be told is refused and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.upkeep.mappers import cells, codes, dates, shapes
from hermes_memory_plugin.upkeep.mappers.model import Field, Mapper, fold
from hermes_memory_plugin.upkeep.mappers.shapes import Table

_CLOSE = timedelta(hours=7)
"""15:00 in Shanghai, in UTC."""
_AHEAD = timedelta(days=2)
_GAPS = frozenset({"", "-", "--", "none", "nan", "nat", "null", "n/a"})


class Row(NamedTuple):
    """One row of a table; `at` is its place there."""

    at: int
    subject: str
    name: str
    period: str
    basis: str
    split: str
    currency: str
    as_of: datetime
    rank: float

    @property
    def key(self) -> tuple[str, ...]:
        """Rows of one key tell the same figures of different days."""
        return (self.subject, self.period, self.basis, self.split, self.currency)


@dataclass(slots=True)
class Frame:
    """A table as its mapper sees it."""

    mapper: Mapper
    fields: list[tuple[Field, Sequence[Any]]]
    rows: list[Row]
    size: int
    refused: Counter[str] = field(default_factory=Counter)

    def figure(self, number: int, row: Row) -> cells.Cell | None:
        """The figure of the field of that number; None for a gap and for what its column cannot hold."""
        what, column = self.fields[number]
        money = what.currency or row.currency
        try:
            found = cells.figure(column[row.at], what.unit, money)
        except cells.OtherUnit as error:
            self.refused[f"{what.columns[0]}: {error}"] += 1
            return None
        if found is not None and found.currency and not money and found.currency == what.unit.name:
            self.refused["an unknown currency"] += 1
            return None
        return found

    def basis(self, number: int, row: Row) -> str:
        """The basis of a figure: the field's, the row's, and that of nine months where it is of three quarters."""
        what = self.fields[number][0]
        rows_own = row.basis
        of = self.mapper.basis
        if of is not None and of.only and what.metric not in of.only:
            rows_own = ""
        nine = "9M" if self.nine_months(number, row) else ""
        return " ".join(part for part in (what.basis, rows_own, nine, row.split) if part)

    def nine_months(self, number: int, row: Row) -> bool:
        """Whether the figure is the sum of the year's first three quarters."""
        return (
            self.mapper.cumulative
            and not self.fields[number][0].point
            and row.period.endswith("Q3")
            and "single quarter" not in row.basis
        )


def frame(mapper: Mapper, table: Table, trace: ToolTrace) -> Frame | None:
    """The table as the mapper sees it; None when it is not of that shape."""
    shaped = _shaped(mapper, table)
    if shaped is None or _ruled_out(mapper, trace.args):
        return None
    names: dict[str, str] = {}
    for name in shaped.columns:
        names.setdefault(fold(name), name)
    fields = []
    for what in mapper.fields:
        column = next((names[one] for one in what.columns if one in names), None)
        if column is not None:
            fields.append((what, shaped.columns[column]))
    if not fields or any(one not in names for one in mapper.requires):
        return None
    found = _Sources(mapper, shaped, names, trace)
    if not found.reachable(mapper.subject):
        return None
    made = Frame(mapper, fields, [], shaped.size)
    made.rows = list(_rows(made, found, trace))
    return made


def _rows(made: Frame, found: _Sources, trace: ToolTrace) -> Iterator[Row]:
    mapper, refused = made.mapper, made.refused
    latest = trace.at + _AHEAD
    subjects, names = found.lists(mapper.subject), found.lists(mapper.title)
    periods, as_of = found.lists(mapper.period), found.lists(mapper.as_of)
    money, bases = found.lists(mapper.currency), None
    if mapper.basis is not None:
        bases = next(iter(found.lists((mapper.basis.source,))), None)
    split = next(iter(found.lists((mapper.split,))), None) if mapper.split else None
    prefer = next(iter(found.lists((mapper.prefer,))), None) if mapper.prefer else None
    for at in range(made.size):
        subject = next((one for cells_ in subjects if (one := _subject(cells_[at], mapper.market))), "")
        if not subject:
            refused["no code of a security"] += 1
            continue
        basis = ""
        if mapper.basis is not None:
            written = fold(_plain(bases[at])) if bases is not None else ""
            if written not in mapper.basis.values:
                refused["left out by its basis"] += 1
                continue
            basis = mapper.basis.values[written]
        period = ""
        if mapper.period:
            period = next((one for cells_ in periods if (one := dates.period(cells_[at]))), "")
            if not period:
                wrong = next((str(cells_[at])[:20] for cells_ in periods), "")
                refused[f"no period ({wrong})" if wrong else "no period"] += 1
                continue
        day, strange = _as_of(as_of, at, period, mapper, trace)
        if day is None:
            refused[f"no such date ({strange})" if strange else "no date"] += 1
            continue
        if day > latest:
            refused[f"a date after the call ({day:%Y-%m-%d})"] += 1
            continue
        part = ""
        if split is not None:
            part = " ".join(str(split[at] or "").split())[:40]
            if not part:
                refused["no part"] += 1
                continue
        yield Row(
            at,
            subject,
            next((one for cells_ in names if (one := _name(cells_[at]))), ""),
            period,
            basis,
            part,
            _currency(next((cells_[at] for cells_ in money if not _is_gap(cells_[at])), "")),
            day,
            _rank(prefer[at]) if prefer is not None else 0.0,
        )


class _Sources:
    """Where a mapper's words for subject, date … are found: columns, what stood beside the table, arguments, constants."""

    def __init__(self, mapper: Mapper, table: Table, names: Mapping[str, str], trace: ToolTrace) -> None:
        self._table = table
        self._names = names
        self._outer = {fold(name): cell for name, cell in table.outer.items()}
        self._args = {fold(name): cell for name, cell in trace.args.items()}
        inner = trace.args.get("params") or trace.args.get("kwargs")
        if isinstance(inner, dict):
            self._args |= {fold(name): cell for name, cell in inner.items()}
        self._size = table.size

    def reachable(self, sources: Sequence[str]) -> bool:
        """Whether any of them is there at all."""
        return any(True for _ in self._lists(sources))

    def lists(self, sources: Sequence[str]) -> list[Sequence[Any]]:
        """The cells of each source that is there, one a row."""
        return list(self._lists(sources))

    def _lists(self, sources: Sequence[str]) -> Iterator[Sequence[Any]]:
        for source in sources:
            name = fold(source)
            if source.startswith("=") or source in ("call", "period"):
                yield [source] * self._size
            elif name.startswith("arg:"):
                if name[4:] in self._args:
                    yield [self._args[name[4:]]] * self._size
            elif name in self._names:
                yield self._table.columns[self._names[name]]
            elif name in self._outer:
                yield [self._outer[name]] * self._size


def _shaped(mapper: Mapper, table: Table) -> Table | None:
    if mapper.pairs is not None:
        names = {fold(name): name for name in table.columns}
        if mapper.pairs[0] not in names or mapper.pairs[1] not in names:
            return None
        return shapes.pivoted(table, names[mapper.pairs[0]], names[mapper.pairs[1]])
    if mapper.turn:
        heads = {name: period for name in table.columns if (period := _head_period(name))}
        return shapes.turned(table, mapper.turn, heads)
    return table


def _head_period(name: str) -> str:
    return name if dates.day(name) is not None else ""


def _ruled_out(mapper: Mapper, args: Mapping[str, Any]) -> bool:
    if mapper.args and mapper.args not in str(args):
        return True
    given = {fold(name): fold(_plain(cell)) for name, cell in args.items()}
    return any(given.get(fold(name)) in values for name, values in (mapper.unless or {}).items())


def _as_of(
    lists: Sequence[Sequence[Any]], at: int, period: str, mapper: Mapper, trace: ToolTrace
) -> tuple[datetime | None, str]:
    for cells_ in lists:
        cell = cells_[at]
        if cell == "call":
            return trace.at, ""
        day = dates.last_day(period) if cell == "period" and period else dates.day(cell)
        if day is not None:
            return _midnight(day.year, day.month, day.day) + (_CLOSE if mapper.closes else timedelta()), ""
        if not _is_gap(cell):
            return None, str(cell)[:20]
    return None, ""


@lru_cache(maxsize=8_192)
def _midnight(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _subject(cell: object, market: str) -> str:
    if isinstance(cell, str) and cell.startswith("="):
        return cell[1:]
    return codes.subject(cell, market)


def _name(cell: object) -> str:
    text = " ".join(cell.split()) if isinstance(cell, str) else ""
    return text if 2 <= len(text) <= 30 and fold(text) not in _GAPS else ""


def _currency(cell: object) -> str:
    return cells.currency(str(cell).removeprefix("="))


def _is_gap(cell: object) -> bool:
    return cell is None or cell != cell or fold(cell) in _GAPS


def _plain(cell: object) -> object:
    if cell is None or cell != cell:
        return ""
    return int(cell) if isinstance(cell, float) and cell == int(cell) else cell


def _rank(cell: object) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0
