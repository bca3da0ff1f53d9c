"""What became of one statement: every row of its key, oldest first, and how each stands to the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from hermes_memory_plugin.layers.facts import KeyRank, contradictions, moment, resolve

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row

Change = Literal["first", "newer", "restated", "corrected", "repeated", "contradicts"]
"""newer: of a later day; restated: another value for the same period, told later; corrected: another value of the same day that
may take the place of the first; contradicts: another value that may not, so that both stand."""


@dataclass(frozen=True, slots=True)
class Version:
    """One row of a history. Times in UTC."""

    id: str
    handle: str
    statement: str
    state: Literal["live", "superseded", "expired"]
    change: Change
    value: float | None = None
    unit: str = ""
    period: str = ""
    as_of: datetime | None = None
    stored: datetime | None = None
    origin: str = ""
    source: str = ""
    tool_call_id: str = ""
    turn: str = ""
    superseded_by: str = ""
    """The id of the row that stands in its place."""
    contradicts: tuple[str, ...] = ()
    """Ids of rows that stand as well and say another value of the same day, or of one that may not retire it."""


def versions(rows: Sequence[Row], handle: Callable[[Row], str], *, now_us: int) -> list[Version]:
    """The history that the rows of one key make, oldest first; rows of no key have one of their own each."""
    ranks = {row.id: _rank(row) for row in rows}
    keyed = all(row.fact_key for row in rows)
    superseded = resolve(ranks) if keyed and len(rows) > 1 else {}
    against: dict[str, list[str]] = {row.id: [] for row in rows}
    if keyed:
        for one, other in _both_stand(ranks, superseded):
            against[one].append(other)
            against[other].append(one)
    ordered = sorted(
        rows,
        key=lambda row: (row.as_of if row.as_of is not None else row.created, row.trust, row.created, row.id),
    )
    made: list[Version] = []
    for place, row in enumerate(ordered):
        earlier = ordered[:place]
        state: Literal["live", "superseded", "expired"] = "live"
        if row.id in superseded:
            state = "superseded"
        elif row.expires is not None and row.expires <= now_us:
            state = "expired"
        extra = row.extra
        made.append(
            Version(
                id=row.id,
                handle=handle(row),
                statement=row.text,
                state=state,
                change=_change(row, earlier, against[row.id]),
                value=extra.get("value", row.value),
                unit=str(extra.get("unit") or ""),
                period=str(extra.get("period") or ""),
                as_of=moment(row.as_of),
                stored=moment(row.created),
                origin=row.origin,
                source=row.source,
                tool_call_id=str(extra.get("tool_call_id") or ""),
                turn=str(extra.get("turn") or ""),
                superseded_by=superseded.get(row.id, ""),
                contradicts=tuple(against[row.id]),
            )
        )
    return made


def _both_stand(ranks: dict[str, KeyRank], superseded: dict[str, str]) -> list[tuple[str, str]]:
    """Pairs that stand with different values: of one date, or because the newer may not retire the older."""
    found = dict.fromkeys(contradictions(ranks))
    standing = [row for row in ranks if row not in superseded]
    for number, one in enumerate(standing):
        for other in standing[number + 1 :]:
            if ranks[one].value != ranks[other].value and (other, one) not in found:
                found[one, other] = None
    return list(found)


def _change(row: Row, earlier: Sequence[Row], against: Sequence[str]) -> Change:
    if not earlier:
        return "first"
    if against and any(one.id in against for one in earlier):
        return "contradicts"
    before = earlier[-1]
    if row.value == before.value and (row.value is not None or row.text == before.text):
        return "repeated"
    if row.as_of == before.as_of or _same_day(row, before):
        return "corrected"
    return "restated" if row.extra.get("period") else "newer"


def _same_day(row: Row, before: Row) -> bool:
    one, other = moment(row.as_of), moment(before.as_of)
    return row.origin == "user" and one is not None and other is not None and one.date() == other.date()


def _rank(row: Row) -> KeyRank:
    return KeyRank(row.trust, row.as_of, row.created, row.value, row.approximate)
