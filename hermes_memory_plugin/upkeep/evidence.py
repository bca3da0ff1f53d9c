"""Evidence: everything on record that speaks of a figure, each piece with its date, its state and the call behind it.

Typed facts first; where there is none, the results of tool calls, by the names of their columns; where the claim leaves
open whose figure it is, what earlier answers said and where they had it from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin.layers.facts import microseconds, moment
from hermes_memory_plugin.recall import amounts
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.upkeep import answers
from hermes_memory_plugin.upkeep.match import factors, is_flow, match
from hermes_memory_plugin.upkeep.readings import Reading, of_call, of_fact, of_row

if TYPE_CHECKING:
    from hermes_memory_hookspecs import ToolTrace
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.verbs import Verbs

_STATES = ("live", "superseded", "expired")
_ROWS, _PROSE, _CALLS, _LINKS = 4_000, 200, 40, 5_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One figure on record."""

    reading: Reading
    state: str = "live"
    row: Row | None = None
    """The fact it is; None for what only a call's result holds."""
    factor: float = 1.0
    """What takes the value to base units, where the source does not say its unit."""

    @property
    def value(self) -> float:
        """In base units."""
        return self.reading.value * self.factor

    @property
    def group(self) -> tuple[str, ...]:
        """Pieces of one group speak of the same thing at different times."""
        one = self.reading
        holder = str(self.row.extra.get("holder") or "") if self.row else ""
        period = one.period if is_flow(one.metric) or one.growth else ""
        return (one.subject, one.exact, one.basis, period, one.growth, one.qualifier, holder)

    @property
    def estimate(self) -> bool:
        """Somebody's view of what will be: it proves what he said, and contradicts no figure."""
        words = self.reading.basis.casefold()
        return (
            "estimate" in words
            or "consensus" in words
            or (self.row is not None and self.row.kind == "conclusion")
        )

    def as_fact(self) -> Fact:
        """The piece as a fact."""
        one, row = self.reading, self.row
        extra: dict[str, Any] = dict(row.extra) if row else {}
        return Fact(
            id=one.fact,
            statement=row.text if row else one.words,
            kind=row.kind
            if row and row.kind in ("fact", "conclusion", "preference", "holding", "competence")
            else "fact",  # type: ignore[arg-type]
            subject=one.subject,
            metric=str(extra.get("metric") or one.metric),
            period=one.period,
            value=extra.get("value", self.value),
            unit=str(extra.get("unit") or one.unit),
            as_of=one.as_of,
            basis=one.basis,
            holder=str(extra.get("holder") or ""),
            currency=str(extra.get("currency") or ""),
            source=row.source if row else "",
            tool_call_id=one.call,
            origin=(row.origin if row else "tool"),  # type: ignore[arg-type]
            owner=Owner.parse(row.owner) if row else Owner(),
            created_at=(moment(row.created) if row else one.as_of) or datetime.fromtimestamp(0).astimezone(),
            expires_at=moment(row.expires) if row else None,
        )


class Evidence:
    """What one owner's memory has on record, as of `now`."""

    def __init__(self, memory: Verbs, owner: Owner | None, now: datetime) -> None:
        self._memory = memory
        self._owner = owner
        self._keys = memory.keys(owner)
        self._now = microseconds(now) or 0
        self._calls: dict[str, list[Reading]] = {}

    def facts(self, figure: Figure) -> list[Piece]:
        """The facts of that subject and metric, newest first, whatever their state."""
        found: list[Piece] = []
        read = 0
        for row, state in self._rows(figure, ("L1", "L2")):
            if row.origin == "model" or row.kind == "scene":
                continue  # what a model said before is no proof of what it says
            typed = of_fact(row)
            readings = [typed] if typed is not None else []
            if typed is None and read < _PROSE:
                read += 1
                readings = _alone(of_row(row, self._memory.reader.analyst), figure)
            found += [
                Piece(one, state, row, _factor(one, figure)) for one in readings if _speaks(one, figure)
            ]
        return _newest_first(found)

    def calls(self, figure: Figure) -> list[Piece]:
        """What tool results say of that figure; the newest of a group stands, the others are what it was before."""
        pieces: list[Piece] = []
        for row in self._call_rows(figure) if figure.subject else ():
            for one in self._read(str(row.extra.get("call") or row.id)):
                if one.subject == figure.subject and _speaks(one, figure):
                    pieces.append(Piece(one, factor=_factor(one, figure)))
        newest: dict[tuple[str, ...], Piece] = {}
        ordered = _newest_first(pieces)
        for piece in ordered:
            newest.setdefault(piece.group, piece)
        return [
            piece if _same(piece, newest[piece.group]) else replace(piece, state="superseded")
            for piece in ordered
        ]

    def about(self, figure: Figure) -> list[Reading]:
        """Every reading of the subject that a figure could be computed from; live facts before results of calls."""
        if not figure.subject:
            return []
        readings = [
            typed
            for row, state in self._rows(replace(figure, metric=""), ("L1",))
            if state != "superseded" and (typed := of_fact(row))
        ]
        for row in self._call_rows(figure):
            readings += [
                one
                for one in self._read(str(row.extra.get("call") or row.id))
                if one.subject == figure.subject
            ]
        return readings

    def said(self, figure: Figure) -> list[tuple[answers.Link, datetime | None]]:
        """Where earlier answers said that number, newest first."""
        return [
            (link, at)
            for link, at in self._links
            if abs(link.value) > 0
            and (not figure.subject or not link.subject or figure.subject == link.subject)
            and (not figure.metric or link.metric.startswith(figure.metric))
            and (not figure.amount.unit or not link.unit or figure.amount.unit == link.unit)
            and amounts.agrees(figure.amount, link.value)
        ]

    def call(self, call_id: str) -> ToolTrace | None:
        """The call of that id, as far as this owner may see it."""
        return self._memory.trace(call_id, owner=self._owner) if call_id else None

    def excerpt(self, piece: Piece) -> str:
        """The words of the call's result that hold the figure."""
        readings = [one for one in self._read(piece.reading.call) if one.metric == piece.reading.metric]
        near = [one for one in readings if not one.subject or one.subject == piece.reading.subject]
        exact = [
            one
            for one in near
            for factor in (1.0, 1e4, 1e8, 1e3, 1e6, 100.0)
            if abs(one.value * factor - piece.value) <= abs(piece.value) * 1e-6
        ]
        return exact[0].words if exact else ""

    def _read(self, call_id: str) -> list[Reading]:
        if call_id not in self._calls:
            trace = self.call(call_id)
            self._calls[call_id] = of_call(trace, self._memory.reader.analyst) if trace else []
        return self._calls[call_id]

    def _call_rows(self, figure: Figure) -> list[Row]:
        """The calls that speak of the subject, those first whose text names the figure; newest first."""
        rows = [row for row, _ in self._rows(figure, ("L0",)) if row.kind == "call"]
        rows.sort(key=lambda row: figure.metric not in (row.extra.get("metrics") or ()))
        return rows[:_CALLS]

    @cached_property
    def _links(self) -> Sequence[tuple[answers.Link, datetime | None]]:
        self._memory.provenance.catch_up(owner=self._owner)
        return [
            (answers.of_stored(row), moment(row["timestamp"]))
            for row in self._memory.archive.links(keys=self._keys, limit=_LINKS)
            if row["kind"] != "empty"
        ]

    def _rows(self, figure: Figure, layers: tuple[str, ...]) -> Iterator[tuple[Row, str]]:
        """The rows of the figure's subject (of its metric where it has none), newest first, each with its state."""
        token = f"@{figure.subject}" if figure.subject else f"#{figure.metric}" if figure.metric else ""
        if not token:
            return
        self._memory.reader.refresh()
        view = self._memory.reader.index.view(self._keys, now_us=self._now, layers=layers, states=_STATES)
        numbers = view.postings(token)[0]
        created = view.column("created", numbers)
        for number in numbers[created.argsort()[::-1]][:_ROWS]:
            yield view.row(int(number)), view.state(int(number))


def _alone(readings: Iterable[Reading], figure: Figure) -> list[Reading]:
    """What an untyped statement says of the figure; nothing where it says several things of it."""
    found = [one for one in readings if one.metric and _speaks(one, figure)]
    return found if len(found) == 1 else []


def _speaks(reading: Reading, figure: Figure) -> bool:
    """Whether both are of one figure, whatever the values."""
    if figure.subject and reading.subject != figure.subject:
        return False
    if not figure.metric:
        return (
            bool(figure.subject)
            and match(figure, replace(reading, metric="", unit=reading.unit or figure.amount.unit))
            is not None
        )
    alike = replace(reading, value=figure.amount.value, unit=figure.amount.unit)
    if (
        reading.unit
        and figure.amount.unit
        and reading.unit != figure.amount.unit
        and {reading.unit, figure.amount.unit} != {"x", ""}
    ):
        return False
    found = match(figure, alike)
    return found is not None and found.worth[0] == 2.0


def _factor(reading: Reading, figure: Figure) -> float:
    """The factor under which a bare number of a source is the figure, 1 where none makes it so."""
    if reading.unit:
        return 1.0
    return next((one for one in factors(figure) if amounts.agrees(figure.amount, reading.value * one)), 1.0)


def _same(one: Piece, other: Piece) -> bool:
    return one is other or abs(one.value - other.value) <= abs(other.value) * 1e-9


def _newest_first(pieces: Sequence[Piece]) -> list[Piece]:
    return sorted(
        pieces, key=lambda one: one.reading.as_of.timestamp() if one.reading.as_of else 0.0, reverse=True
    )
