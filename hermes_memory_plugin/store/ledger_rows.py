"""Journal records as rows: whatever a record holds becomes values its columns take; no record can break a batch."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.tails import Record

Kind = Literal["text", "integer", "number", "flag", "time"]
Table = Mapping[str, Kind]
"""The columns of a table, in order."""

_VALUES: Mapping[Kind, str] = {
    "text": "unnest(?::VARCHAR[])",
    "integer": "unnest(?::BIGINT[])",
    "number": "unnest(?::DOUBLE[])",
    "flag": "unnest(?::BOOLEAN[])",
    "time": "make_timestamp(unnest(?::BIGINT[]))",
}
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_000_000  # the years 1 to 9999
_INT64 = 1 << 63

OTHER: Table = {
    "id": "text",
    "kind": "text",
    "owner": "text",
    "timestamp": "time",
    "record": "text",
    "why": "text",
}
TOMBSTONES: Table = {
    "id": "text",
    "owner": "text",
    "forgotten_at": "time",
    "forgotten_by": "text",
    "why": "text",
}


_SLICE_ROWS, _SLICE_CHARACTERS = 256, 1 << 18
_BREATH = 0.0005


def _slices(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Runs of rows that are converted in a few milliseconds."""
    start = size = 0
    for number, row in enumerate(rows):
        size += sum(len(value) for value in row.values() if isinstance(value, str))
        if number - start + 1 >= _SLICE_ROWS or size >= _SLICE_CHARACTERS:
            yield rows[start : number + 1]
            start, size = number + 1, 0
    if start < len(rows):
        yield rows[start:]


def insert(
    connection: DuckDBPyConnection, table: str, columns: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """All rows, a list for each column at a time (row by row would be two hundred times slower).

    In slices: the conversion of the lists is one call that lets no other thread of the process go on, and hooks run beside it.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(_VALUES[kind] for kind in columns.values())
    for part in _slices(rows):
        lists = [[row[name] for row in part] for name in columns]
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {values}", lists)
        if len(part) < len(rows):
            time.sleep(_BREATH)


def delete(connection: DuckDBPyConnection, table: str, column: str, values: Iterable[str]) -> None:
    """Every row whose column holds one of the values."""
    wanted = list(values)
    if wanted:
        connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?::VARCHAR[]))", [wanted])


def replace(
    connection: DuckDBPyConnection, table: str, columns: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Put the rows in place of those with the same value in the first column; of equal ones the last counts."""
    key = next(iter(columns))
    unique = {row[key]: row for row in rows}
    delete(connection, table, key, unique)
    insert(connection, table, columns, list(unique.values()))


def select(columns: Table) -> str:
    """The column list that gives times back as epoch microseconds."""
    return ", ".join(
        f'epoch_us("{name}") AS "{name}"' if kind == "time" else f'"{name}"' for name, kind in columns.items()
    )


def text(value: object) -> str:
    """Text that has UTF-8: a lone surrogate becomes U+FFFD; what is no text becomes JSON; None is ""."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return as_json(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def texts(value: object) -> list[str]:
    """A list of texts; one text alone counts as a list of it."""
    if isinstance(value, list):
        return [text(item) for item in value if item not in (None, "")]
    return [text(value)] if value not in (None, "") else []


def number(value: object) -> float | None:
    """A finite number or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def integer(value: object) -> int | None:
    """A 64-bit integer or None."""
    found = number(value)
    whole = value if isinstance(value, int) else int(found) if found is not None else None
    return whole if whole is not None and found is not None and -_INT64 <= whole < _INT64 else None


def flag(value: object) -> bool | None:
    """True, False or None for anything else."""
    return value if isinstance(value, bool) else None


def moment(value: object) -> int | None:
    """Epoch microseconds within the years a database can hold, else None."""
    found = integer(value)
    return found if found is not None and _FIRST_MOMENT <= found <= _LAST_MOMENT else None


def as_json(value: object) -> str:
    """Compact JSON that has UTF-8."""
    found = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    try:
        found.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=repr)
    return found


def other(record: Record, why: str = "") -> dict[str, Any]:
    """The row that keeps a record nobody has a table for, whole; `why` when it could not be stored as what it is."""
    return {
        "id": text(record.id),
        "kind": text(record.kind),
        "owner": text(record.owner),
        "timestamp": moment(record.at),
        "record": json.dumps(record.data, separators=(",", ":"), default=repr),  # ASCII: fits anywhere
        "why": text(why),
    }


def tombstones(record: Record) -> list[dict[str, Any]]:
    """What a `forget` record buries."""
    common = {
        "owner": text(record.owner),
        "forgotten_at": moment(record.at),
        "forgotten_by": text(record.data.get("by")) or text(record.owner),
        "why": text(record.data.get("why")),
    }
    return [{"id": id, **common} for id in texts(record.data.get("ids"))]
