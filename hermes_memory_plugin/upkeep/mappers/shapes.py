"""The tables in a tool's result: records, columns with rows, columns of values, whatever wraps them, and text.

One result may be read in several ways (a dict of dicts is rows by index or columns by name); all of them are offered,
the likely ones first, and a mapper takes the first that has its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_memory_plugin.upkeep import dirty_json
from hermes_memory_plugin.upkeep.mappers import partial_json, text_tables

MOST_TEXT = 8 << 20
"""Characters of a result that are read; what follows is said to be left out."""
MOST_ROWS = 100_000
_DEEPEST = 6
_MOST_TABLES = 40
_HEADS = ("fields", "columns", "headers", "header", "cols", "column_names")
_ROWS = ("items", "data", "rows", "values", "records", "result")
_DIRTY = 400_000


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length by name, in their order; `outer` holds what stood beside the table (a ticker, say)."""

    columns: Mapping[str, Sequence[Any]]
    size: int
    outer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """The ways to read one result, and whether only its beginning was there."""

    tables: tuple[Table, ...]
    cut: bool = False


def read(text: str) -> Reading:
    """The tables of a tool's result. Never raises; bounded in time and memory whatever the size of the text."""
    cut = len(text) > MOST_TEXT
    found: list[Table] = []
    for value, whole in _values(text[:MOST_TEXT] if cut else text):
        cut = cut or not whole
        for table in _tables(value, {}, 0):
            found.append(table)
            if len(found) >= _MOST_TABLES:
                break
    return Reading(tuple(found), cut)


def _values(text: str) -> Iterator[tuple[Any, bool]]:
    """(JSON value or text, whether it is all there)."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in ("{", "["):
        try:
            yield partial_json.loads(stripped)
        except ValueError:
            pass
        else:
            return
        if len(stripped) <= _DIRTY:
            try:
                yield dirty_json.loads(stripped), True
            except ValueError:
                pass
            else:
                return
    yield text, True


def _tables(value: Any, outer: Mapping[str, Any], depth: int) -> Iterator[Table]:
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield from _of_text(value, outer, depth)
    elif isinstance(value, list):
        yield from _of_list(value, outer, depth)
    elif isinstance(value, dict):
        yield from _of_dict(value, outer, depth)


def _of_text(text: str, outer: Mapping[str, Any], depth: int) -> Iterator[Table]:
    inner = text.strip()
    if depth and inner[:1] in ("{", "["):
        for value, _ in _values(inner):
            if not isinstance(value, str):
                yield from _tables(value, outer, depth + 1)
                return
    for head, rows in text_tables.find(text):
        yield from _of_rows(head, rows, outer)
    for value in text_tables.json_inside(text):
        yield from _tables(value, outer, depth + 1)


def _of_list(value: list[Any], outer: Mapping[str, Any], depth: int) -> Iterator[Table]:
    rows = value[:MOST_ROWS]
    if not rows:
        return
    if all(isinstance(row, dict) for row in rows):
        if any(not isinstance(cell, dict | list) for cell in rows[0].values()):
            yield _of_records(rows, outer)
        if len(rows) <= 200:
            for row in rows:
                for cell in row.values():
                    if isinstance(cell, dict | list) or _may_hold_table(cell):
                        yield from _tables(cell, {**outer, **_scalars(row)}, depth + 1)
    elif all(isinstance(row, list) for row in rows) and all(isinstance(cell, str) for cell in rows[0]):
        yield from _of_rows(rows[0], rows[1:], outer)
    else:
        for one in rows[:20]:
            if isinstance(one, dict | list) or _may_hold_table(one):
                yield from _tables(one, outer, depth + 1)


def _of_dict(value: dict[str, Any], outer: Mapping[str, Any], depth: int) -> Iterator[Table]:
    beside = {**outer, **_scalars(value)}
    lower = {str(key).casefold(): key for key in value}
    head = next((value[lower[name]] for name in _HEADS if name in lower), None)
    if isinstance(head, list) and head:
        names = [str(one.get("name")) if isinstance(one, dict) else str(one) for one in head]
        if {"codes", "times", "data"} <= lower.keys():
            codes, times, data = (value[lower[name]] for name in ("codes", "times", "data"))
            yield from _of_matrix(names, codes, times, data, outer=beside)
            return
        for name in _ROWS:
            rows = value.get(lower.get(name, ""))
            if isinstance(rows, list) and rows and isinstance(rows[0], list):
                yield from _of_rows(names, rows[:MOST_ROWS], beside)
    scalars = _scalars(value)
    if scalars:
        yield Table({key: [cell] for key, cell in scalars.items()}, 1, outer)
    inner = {key: cell for key, cell in value.items() if isinstance(cell, dict | list) and cell}
    nested = {key: cell for key, cell in inner.items() if isinstance(cell, dict)}
    lists = {
        key: cell
        for key, cell in inner.items()
        if isinstance(cell, list) and not isinstance(cell[0], dict | list)
    }
    if nested and len(nested) == len(inner):
        yield from _of_nested(nested, beside)
    elif len(lists) > 1:
        size = min(max(map(len, lists.values())), MOST_ROWS)
        yield Table({key: _padded(cell, size) for key, cell in lists.items()}, size, beside)
    for cell in value.values():
        if (isinstance(cell, dict | list) and cell) or _may_hold_table(cell):
            yield from _tables(cell, beside, depth + 1)


def _of_records(rows: list[dict[str, Any]], outer: Mapping[str, Any]) -> Table:
    names: dict[str, None] = {}
    for row in (*rows[:50], *rows[-5:]):
        names.update(dict.fromkeys(row))
    return Table({name: [row.get(name) for row in rows] for name in names}, len(rows), outer)


def _of_rows(head: Sequence[str], rows: Sequence[Sequence[Any]], outer: Mapping[str, Any]) -> Iterator[Table]:
    # A row of another length is of another table, or one column a list.
    rows = [row for row in rows if isinstance(row, list) and len(row) == len(head)]
    if rows and len(set(head)) == len(head):
        columns = {name: [row[place] for row in rows] for place, name in enumerate(head)}
        yield Table(columns, len(rows), outer)


def _of_nested(value: dict[str, dict[str, Any]], outer: Mapping[str, Any]) -> Iterator[Table]:
    """A dict of dicts: {column: {row: cell}} as pandas writes it, and {row: {column: cell}}."""
    keys: dict[str, None] = {}
    for column in value.values():
        keys.update(dict.fromkeys(list(column)[:MOST_ROWS]))
    by_column = {name: [column.get(key) for key in keys] for name, column in value.items()}
    if all(
        not isinstance(cell, dict | list) for column in value.values() for cell in list(column.values())[:3]
    ):
        yield Table({"index": list(keys), **by_column}, len(keys), outer)
        rows = [{"index": key, **row} for key, row in list(value.items())[:MOST_ROWS]]
        yield _of_records(rows, outer)


def _of_matrix(
    names: list[str], codes: Any, times: Any, data: Any, *, outer: Mapping[str, Any]
) -> Iterator[Table]:
    """Codes, Fields, Times and Data as Wind gives them: one list a field, or one list a code."""
    if not all(isinstance(one, list) and one for one in (codes, times, data)):
        return
    if len(data) == len(names) and all(isinstance(column, list) for column in data):
        size = len(data[0])
        columns: dict[str, Sequence[Any]] = {
            name: _padded(column, size) for name, column in zip(names, data, strict=True)
        }
        if size == len(times):
            yield Table({"codes": [codes[0]] * size, "times": times, **columns}, size, outer)
        elif size == len(codes):
            yield Table({"codes": codes, "times": [times[0]] * size, **columns}, size, outer)


def _padded(cells: Sequence[Any], size: int) -> list[Any]:
    return [*cells[:size], *([None] * (size - len(cells)))]


def _scalars(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(key): cell
        for key, cell in value.items()
        if not isinstance(cell, dict | list) and not _may_hold_table(cell)
    }


def _may_hold_table(cell: Any) -> bool:
    return (
        isinstance(cell, str) and len(cell) > 20 and (cell.lstrip()[:1] in ("{", "[") or "\n" in cell.strip())
    )


def pivoted(table: Table, keys: str, values: str) -> Table | None:
    """A table of names and values (item, value) as one record."""
    if keys not in table.columns or values not in table.columns:
        return None
    record: dict[str, list[Any]] = {}
    for key, cell in zip(table.columns[keys], table.columns[values], strict=True):
        record.setdefault(str(key), [cell])
    return Table(record, 1, table.outer)


def turned(table: Table, names: str, heads: Mapping[str, str]) -> Table | None:
    """A table with one row a figure and one column a period, as one row a period (its column is ``head``)."""
    if names not in table.columns or not heads:
        return None
    columns: dict[str, list[Any]] = {}
    for row, name in enumerate(table.columns[names]):
        columns.setdefault(str(name), [table.columns[head][row] for head in heads])
    return Table({"head": list(heads.values()), **columns}, len(heads), table.outer)
