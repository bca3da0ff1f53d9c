"""From the rows of a frame to facts: the newest of each key, as many as one call may give, the rest summed up."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from hermes_memory_hookspecs import Fact, ToolTrace
from hermes_memory_plugin.upkeep.mappers import cells, dates
from hermes_memory_plugin.upkeep.mappers.rows import Frame, Row

MOST = 150
"""Facts of single rows one call may give."""
SHORT = 5
"""Days of a series that are kept one by one."""
SUMMED = 4
"""Figures that are summed up where rows are left out."""
FEW = 5
"""Subjects whose rows are summed up each on its own; more are one crowd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped(Fact):
    """A fact a mapper made."""

    public: bool = False
    """Market data that is no client's own."""
    original: str = ""
    """How the figure was written where that is another unit."""


@dataclass(frozen=True, slots=True)
class Made:
    """What one table gave."""

    facts: list[Mapped]
    bounded: str = ""
    """What was not kept row by row, in words; empty when everything was."""


def make(frame: Frame, trace: ToolTrace, *, cut: bool) -> Made:
    """The facts of a frame. `cut` says that only the beginning of the result could be read."""
    newest = _newest(frame)
    kept, width = _kept(list(newest.values()), len(frame.fields))
    found = [
        fact
        for row in kept
        for number in range(width)
        if (fact := _fact(frame, number, row, trace)) is not None
    ]
    # Of a table of periods nothing is lost where the same period stood there twice.
    whole = len(newest) if frame.mapper.period else len({(*row.key, row.as_of) for row in frame.rows})
    if len(kept) == whole and width == len(frame.fields):
        return Made(found, "only the beginning of the result was there" if cut else "")
    found += _summaries(frame, trace, cut)
    said = f"{len(frame.rows):,} rows, {len(kept):,} kept one by one"
    if width < len(frame.fields):
        said += f" with {width} of {len(frame.fields)} figures"
    return Made(found, said + (", of the beginning of the result" if cut else ""))


def _newest(frame: Frame) -> dict[tuple[str, ...], Row]:
    """The newest row of each key; of a short series every day, as the chain of what was true when."""
    many = Counter(row.key for row in frame.rows)
    newest: dict[tuple[str, ...], Row] = {}
    for row in frame.rows:
        short = not frame.mapper.period and many[row.key] <= SHORT
        key = (*row.key, f"{row.as_of:%Y-%m-%d}") if short else row.key
        before = newest.get(key)
        if before is None or (row.as_of, row.rank) > (before.as_of, before.rank):
            newest[key] = row
    return newest


def _kept(rows: list[Row], width: int) -> tuple[list[Row], int]:
    """(rows that become facts, how many of their figures): the newest of every subject before the older ones."""
    of: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of[row.subject].append(row)
    if not of:
        return [], width
    if len(rows) * width <= MOST:
        return rows, width
    # Rows of one period (its segments, its holders) go or stay together.
    together = max(
        sum(one.period == many[0].period and one.as_of == many[0].as_of for one in many)
        for many in of.values()
    )
    each = MOST // (len(of) * width)
    if each < together:
        narrow = MOST // (len(of) * together)
        if narrow == 0:
            return [], width
        each, width = together, min(width, narrow)
    kept = []
    for many in of.values():
        many.sort(key=lambda row: (row.period, row.as_of), reverse=True)
        kept += many[:each]
    return kept, width


def _fact(frame: Frame, number: int, row: Row, trace: ToolTrace) -> Mapped | None:
    what, column = frame.fields[number]
    basis = frame.basis(number, row)
    label = f"{what.label}（{_said_basis(basis)}）" if _said_basis(basis) else what.label
    when = (
        dates.said(row.period, nine_months=frame.nine_months(number, row))
        if row.period
        else f"{row.as_of:%Y-%m-%d}"
    )
    head = f"{_who(row)} {when} {label}"
    if what.text:
        word = " ".join(str(column[row.at] or "").split())[:80]
        if not word or word.casefold() in ("nan", "none", "--", "-"):
            return None
        return _mapped(frame, number, row, trace, basis, f"{head} {word}", None)
    cell = frame.figure(number, row)
    if cell is None:
        return None
    told = cells.said(cell.value, cell.unit)
    original = f"（原 {cell.original}）" if cell.original.replace(" ", "") not in ("", told) else ""
    return _mapped(frame, number, row, trace, basis, f"{head} {told}{original}", cell)


def _mapped(
    frame: Frame,
    number: int,
    row: Row,
    trace: ToolTrace,
    basis: str,
    statement: str,
    cell: cells.Cell | None,
) -> Mapped:
    metric = frame.fields[number][0].metric
    currency = cell.currency if cell else ""
    what = "\x1f".join(
        (
            *(trace.owner.key, trace.session_id, trace.tool_call_id),
            *(row.subject, metric, row.period, basis, currency, f"{row.as_of:%Y-%m-%d}"),
        )
    )
    return Mapped(
        id="x-" + hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:24],
        statement=statement,
        subject=row.subject,
        metric=metric,
        period=row.period,
        value=cell.value if cell else None,
        unit=cell.unit if cell else "",
        currency=currency,
        basis=basis,
        as_of=row.as_of,
        public=frame.mapper.public,
        original=cell.original if cell else "",
    )


def _said_basis(basis: str) -> str:
    return basis.removesuffix("9M").strip()


def _who(row: Row) -> str:
    return f"{row.name}（{row.subject}）" if row.name else row.subject


# -- what is left out, in a sentence ----------------------------------------------------------------------------------


def _summaries(frame: Frame, trace: ToolTrace, cut: bool) -> Iterator[Mapped]:
    of: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in frame.rows:
        of[row.subject, row.basis, row.currency].append(row)
    if len({row.subject for row in frame.rows}) > FEW:
        yield from _crowd(frame, trace, cut)
        return
    for rows in list(of.values())[:FEW]:
        if len(rows) > SHORT and not frame.mapper.split:
            yield from _series(frame, rows, trace, cut)


def _series(frame: Frame, rows: list[Row], trace: ToolTrace, cut: bool) -> Iterator[Mapped]:
    """One subject through time: first, last, lowest and highest of the leading figures."""
    ordered = sorted(rows, key=lambda row: (row.period, row.as_of))
    for number in _figures(frame):
        points = [(row, cell) for row in ordered if (cell := frame.figure(number, row)) is not None]
        if len(points) < 2:
            continue
        what = frame.fields[number][0]
        first, last = points[0], points[-1]
        low, high = (pick(points, key=lambda point: point[1].value) for pick in (min, max))
        basis = frame.basis(number, rows[0]).removesuffix("9M").strip()
        label = f"{what.label}（{basis}）" if basis else what.label
        # Three months beside twelve have no lowest and highest.
        extremes = (
            ""
            if frame.mapper.cumulative
            else f"，最低 {_said(low)}（{_when(low[0])}），最高 {_said(high)}（{_when(high[0])}）"
        )
        statement = (
            f"{_who(last[0])} {_when(first[0])} 至 {_when(last[0])} {label} 共 {len(points):,} 条：首 {_said(first)}，"
            f"末 {_said(last)}{extremes}；其余各条见该次调用{_beginning(cut)}"
        )
        row = last[0]._replace(period="")
        yield _mapped(frame, number, row, trace, f"{basis} range".strip(), statement, None)


def _crowd(frame: Frame, trace: ToolTrace, cut: bool) -> Iterator[Mapped]:
    """Many subjects at once: how many, the middle, the lowest and the highest of the leading figures."""
    newest: dict[str, Row] = {}
    for row in frame.rows:
        before = newest.get(row.subject)
        if before is None or (row.period, row.as_of) > (before.period, before.as_of):
            newest[row.subject] = row
    rows = list(newest.values())
    for number in _figures(frame):
        points = [(row, cell) for row in rows if (cell := frame.figure(number, row)) is not None]
        if len({(cell.unit, cell.currency) for _, cell in points}) != 1:
            continue  # nothing there, or yuan beside dollars
        what = frame.fields[number][0]
        low, high = (pick(points, key=lambda point: point[1].value) for pick in (min, max))
        middle = median(cell.value for _, cell in points)
        last = max((row for row, _ in points), key=lambda row: row.as_of)
        label = f"{what.label}（{what.basis}）" if what.basis else what.label
        statement = (
            f"{trace.tool_name} {_when(last)} {len(points):,} 个标的的{label}：中位数 {cells.said(middle, low[1].unit)}，"
            f"最低 {_said(low)}（{_who(low[0])}），最高 {_said(high)}（{_who(high[0])}）；各标的见该次调用{_beginning(cut)}"
        )
        row = last._replace(subject=trace.tool_name, name="")
        yield _mapped(frame, number, row, trace, f"{what.basis} crowd".strip(), statement, None)


def _figures(frame: Frame) -> Sequence[int]:
    return [number for number, (what, _) in enumerate(frame.fields) if not what.text][:SUMMED]


def _when(row: Row) -> str:
    return dates.said(row.period) if row.period else f"{row.as_of:%Y-%m-%d}"


def _said(point: tuple[Row, cells.Cell]) -> str:
    return cells.said(point[1].value, point[1].unit)


def _beginning(cut: bool) -> str:
    return "（只读到结果的开头）" if cut else ""
