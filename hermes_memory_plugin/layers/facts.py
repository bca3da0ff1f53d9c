"""L1: what makes a fact, which facts speak of the same thing, and which one of them stands.

Two rows speak of the same thing when owner, subject, metric, period, basis, holder and currency are equal (see `keys`).
Among those the newer as-of date wins, but a row retires only rows of equal or lower trust; what cannot be
decided stays live on both sides and is shown as a contradiction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, get_args

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_hookspecs.types import FactKind, Origin
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.layers import keys

TRUST: Mapping[str, int] = {"user": 5, "tool": 4, "report": 3, "import": 2, "model": 1, "web": 0}
"""How much a row of that origin may overrule; a row of an unknown origin counts as web."""

KINDS: tuple[str, ...] = get_args(FactKind)
ORIGINS: tuple[str, ...] = get_args(Origin)

_KEY = ("subject", "metric", "period", "basis", "holder", "currency", "unit")
_APPROXIMATE = re.compile(
    r"(?:大概|大约|约为|约|差不多|估计|好像|左右|上下|roughly|about|around|approximately|circa|~)\s*[-+]?\d"
    r"|\d[\d.,]*\s*(?:%|％|倍|元|万|亿|x)?\s*(?:左右|上下|or so|-ish)",
    re.IGNORECASE,
)


class BadFact(HermesMemoryError, ValueError):
    """The statement or one of its fields cannot be stored; nothing was."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"cannot remember with {field} = {value!r}: {allowed}. Nothing was stored.")
        self.field = field
        self.value = value


@dataclass(frozen=True, slots=True)
class KeyRank:
    """What decides between two rows of one key. Times in epoch microseconds; `as_of` None when undated."""

    trust: int
    as_of: int | None
    created: int
    value: float | None = None
    approximate: bool = False


def retires(newer: KeyRank, older: KeyRank) -> bool:
    """Whether `newer` takes `older` out of use. Never true in both directions."""
    if newer.approximate and not older.approximate:
        return False
    if newer.trust < older.trust:
        return False
    if newer.as_of is None or older.as_of is None:
        if newer.as_of is None and older.as_of is not None:
            return False  # undated never beats dated
        return newer.created > older.created
    if newer.as_of != older.as_of:
        return newer.as_of > older.as_of
    # Of one day: a correction of higher trust, or the same figure said again.
    corrected = newer.trust > older.trust and newer.created >= older.created
    repeated = newer.trust == older.trust and newer.value == older.value and newer.created > older.created
    return corrected or repeated


def resolve(rows: Mapping[str, KeyRank]) -> dict[str, str]:
    """Which rows of one key are superseded: {id: id of the row that stands in its place}."""
    newest_first = sorted(
        rows.items(),
        key=lambda item: (item[1].as_of or 0, item[1].trust, item[1].created, item[0]),
        reverse=True,
    )
    superseded: dict[str, str] = {}
    for own_id, own in newest_first:
        for other_id, other in newest_first:
            if other_id != own_id and retires(other, own):
                superseded[own_id] = other_id
                break
    return superseded


def contradictions(rows: Mapping[str, KeyRank]) -> list[tuple[str, str]]:
    """Pairs of one key that both stand, of one date, with different values."""
    standing = [item for item in rows.items() if item[0] not in resolve(rows)]
    return [
        (one_id, other_id)
        for number, (one_id, one) in enumerate(standing)
        for other_id, other in standing[number + 1 :]
        if one.as_of == other.as_of and one.value != other.value
    ]


def fact_key(owner_key: str, fact: Mapping[str, Any]) -> str:
    """The text rows that speak of the same thing share; "" when subject or metric is missing."""
    if not fact.get("subject") or not fact.get("metric"):
        return ""
    return keys.key(owner_key, tuple(str(fact.get(name) or "") for name in _KEY))  # type: ignore[arg-type]


def rank_of(fact: Mapping[str, Any]) -> KeyRank:
    """The rank of a fact as it is journalled. Its value is that of `keys.quantity`: 1741亿 and 174,100,000,000 are one."""
    value, unit = fact.get("value"), str(fact.get("unit") or "")
    return KeyRank(
        trust=int(fact.get("trust") or 0),
        as_of=fact.get("as_of"),
        created=int(fact.get("created_at") or 0),
        value=keys.quantity(value, unit).value if isinstance(value, int | float) else value,
        approximate=bool(fact.get("approximate")),
    )


def is_approximate(statement: str) -> bool:
    """Whether the statement itself says that its number is rough ("大概30", "around 28x")."""
    return bool(_APPROXIMATE.search(statement))


def microseconds(moment: datetime | None) -> int | None:
    """Epoch microseconds of an aware time, exactly."""
    if moment is None:
        return None
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def moment(microseconds_: int | None) -> datetime | None:
    """The UTC time of epoch microseconds; None outside what a datetime can hold."""
    if microseconds_ is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=microseconds_)
    except OverflowError:
        return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_moment(value: object, field: str = "as_of") -> datetime | None:
    """A datetime, date or ISO text as an aware UTC time; a naive one is taken as UTC, a date as its midnight.

    Raises BadFact for anything else, 2026-02-30 included.
    """
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        text = value.strip().replace("/", "-")
        try:
            if re.fullmatch(r"\d{8}", text):
                text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
            elif re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text):
                year, month, day = text.split("-")
                text = f"{year}-{month:0>2}-{day:0>2}"
            elif re.fullmatch(r"\d{4}-\d{1,2}", text):
                year, month = text.split("-")
                text = f"{year}-{month:0>2}-01"
            return as_moment(datetime.fromisoformat(text), field)
        except ValueError:
            pass
    raise BadFact(field, value, "a date such as 2026-04-30 or an ISO time")


def as_json(
    fact: Fact, *, title: str = "", project: str = "", approximate: bool | None = None
) -> dict[str, Any]:
    """The fact as the journal keeps it (its owner travels on the record)."""
    fields: dict[str, Any] = {
        "id": fact.id,
        "kind": fact.kind,
        "statement": fact.statement,
        "subject": fact.subject,
        "metric": fact.metric,
        "period": fact.period,
        "value": fact.value,
        "unit": fact.unit,
        "as_of": microseconds(fact.as_of),
        "basis": fact.basis,
        "holder": fact.holder,
        "currency": fact.currency,
        "source": fact.source,
        "tool_call_id": fact.tool_call_id,
        "origin": fact.origin,
        "created_at": microseconds(fact.created_at),
        "expires_at": microseconds(fact.expires_at),
        "trust": TRUST.get(fact.origin, 0),
        "approximate": is_approximate(fact.statement) if approximate is None else approximate,
        "title": title,
        "project": project,
    }
    # By identity: a value of 0 is a figure, not a gap.
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value is not False and value != ""
    }


def from_json(owner: Owner, fields: Mapping[str, Any]) -> Fact:
    """The Fact of a journalled or stored row."""
    return Fact(
        id=str(fields.get("id") or ""),
        statement=str(fields.get("statement") or ""),
        kind=fields.get("kind") or "fact",
        subject=fields.get("subject") or "",
        metric=fields.get("metric") or "",
        period=fields.get("period") or "",
        value=fields.get("value"),
        unit=fields.get("unit") or "",
        as_of=moment(fields.get("as_of")),
        basis=fields.get("basis") or "",
        holder=fields.get("holder") or "",
        currency=fields.get("currency") or "",
        source=fields.get("source") or "",
        tool_call_id=fields.get("tool_call_id") or "",
        origin=fields.get("origin") or "user",
        owner=owner,
        created_at=moment(fields.get("created_at")) or _EPOCH,
        expires_at=moment(fields.get("expires_at")),
        superseded_by=fields.get("superseded_by") or "",
    )


def checked(fact: Fact) -> Fact:
    """The fact itself, or BadFact naming the field that cannot be stored."""
    if not fact.statement.strip():
        raise BadFact("statement", fact.statement, "a sentence, not blank text")
    if fact.kind not in KINDS:
        raise BadFact("kind", fact.kind, "one of " + ", ".join(KINDS))
    if fact.origin not in ORIGINS:
        raise BadFact("origin", fact.origin, "one of " + ", ".join(ORIGINS))
    if fact.value is not None and not isinstance(fact.value, (int, float)):
        raise BadFact("value", fact.value, "a number")
    if fact.value is not None and not _is_finite(fact.value):
        raise BadFact("value", fact.value, "a finite number")
    return fact


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no column of a ledger holds
        return False


def group(rows: Iterable[tuple[str, str, KeyRank]]) -> dict[str, dict[str, KeyRank]]:
    """(key, id, rank) rows gathered by key."""
    groups: dict[str, dict[str, KeyRank]] = {}
    for key, row_id, rank in rows:
        groups.setdefault(key, {})[row_id] = rank
    return groups
