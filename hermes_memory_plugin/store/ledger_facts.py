"""facts.db: every fact that was not forgotten, with the state that follows from the others of its key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hermes_memory_plugin.store.intake import LedgerConsumer
from hermes_memory_plugin.store.ledger import Owners, fetch
from hermes_memory_plugin.store.ledger_rows import (
    OTHER,
    TOMBSTONES,
    Table,
    as_json,
    delete,
    flag,
    insert,
    integer,
    moment,
    number,
    other,
    text,
    texts,
    tombstones,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.tails import Record

Row = dict[str, Any]
KeyOf = Callable[[str, Mapping[str, Any]], str]
"""(owner key, fields) -> the text shared by rows that speak of the same thing, "" for none."""
Resolve = Callable[[Mapping[str, Row]], Mapping[str, str]]
"""Rows of one key by id -> {id: id of the row that took its place}; rows left out stand."""

FACTS: Table = {
    "id": "text",
    "key": "text",
    "kind": "text",
    "statement": "text",
    "subject": "text",
    "metric": "text",
    "period": "text",
    "value": "number",
    "unit": "text",
    "as_of": "time",
    "basis": "text",
    "holder": "text",
    "currency": "text",
    "source": "text",
    "tool_call_id": "text",
    "origin": "text",
    "trust": "integer",
    "owner": "text",
    "title": "text",
    "project": "text",
    "approximate": "flag",
    "created_at": "time",
    "expires_at": "time",
    "superseded_by": "text",
    "record": "text",
    "recorded_at": "time",
    "extra": "text",
}
_CONFIRMATIONS: Table = {"id": "text", "confirmed_at": "time"}
_OWN = frozenset({"key", "owner", "superseded_by", "record", "recorded_at", "extra"})


class FactsLedger(LedgerConsumer):
    """The ledger of facts. Rows are dictionaries of the columns of `facts` and `confirmed_at`, times in epoch µs."""

    name: ClassVar[str] = "facts"
    counted: ClassVar[tuple[str, ...]] = ("facts", "tombstones", "other")

    def __init__(
        self, folder: Path, *, key_of: KeyOf, resolve: Resolve | None = None, wait: float = 2.0
    ) -> None:
        super().__init__(folder, wait=wait)
        self._key_of = key_of
        self._resolve = resolve

    def by_ids(self, ids: Iterable[str], owners: Owners = None) -> list[Row]:
        """The facts with these ids."""
        return self._facts("f.id IN (SELECT unnest(?::VARCHAR[]))", [list(ids)], owners)

    def by_key(self, owner: str, fields: Mapping[str, Any], owners: Owners = None) -> list[Row]:
        """Facts that speak of the same thing: subject, metric, period, basis, holder and currency of `fields`."""
        key = self._key_of(owner, fields)
        return self._facts("f.key = ?", [key], owners) if key else []

    def from_call(self, tool_call_id: str, owners: Owners = None) -> list[Row]:
        """Facts taken from one tool call."""
        return self._facts("f.tool_call_id = ?", [tool_call_id], owners)

    def scan(self, after: str = "", limit: int = 5_000, owners: Owners = None) -> list[Row]:
        """The next facts in the order of their ids; ask again with the last id until nothing comes."""
        return self._facts("f.id > ?", [after], owners, limit)

    def where(self, condition: str, values: Sequence[Any] = (), owners: Owners = None) -> list[Row]:
        """The facts of which an SQL condition on `f` holds."""
        return self._facts(condition, values, owners)

    def buried(self, ids: Iterable[str]) -> set[str]:
        """Those of the ids that were forgotten."""
        found = self.rows(
            "SELECT DISTINCT id FROM tombstones WHERE id IN (SELECT unnest(?::VARCHAR[]))", [list(ids)]
        )
        return {row["id"] for row in found}

    def graves(self, last: int, owners: Owners = None) -> list[Row]:
        """The tombstones of these owners, newest first: id, owner, forgotten_at (epoch µs), forgotten_by, why."""
        whose = "" if owners is None else "WHERE owner IN (SELECT unnest(?::VARCHAR[]))"
        return self.rows(
            "SELECT id, owner, epoch_us(forgotten_at) AS forgotten_at, forgotten_by, why FROM tombstones "
            f"{whose} ORDER BY forgotten_at DESC, id LIMIT {int(last)}",
            [] if owners is None else [list(owners)],
        )

    def _facts(
        self, where: str, values: Sequence[Any], owners: Owners, limit: int | None = None
    ) -> list[Row]:
        return self.rows(*_query(where, values, owners, limit))

    def store(self, connection: DuckDBPyConnection, records: Sequence[Record]) -> None:
        """Apply records; runs within the caller's transaction and may be repeated."""
        buried: dict[str, Row] = {}
        for record in records:
            if record.kind == "forget":
                for row in tombstones(record):
                    buried.setdefault(row["id"], row)
        gone = set(buried)
        facts = self._fresh(connection, self._rows_of(records), gone)
        self._keep_apart(connection, records, facts)
        known = _known(connection, "tombstones", gone)
        insert(connection, "tombstones", TOMBSTONES, [row for id, row in buried.items() if id not in known])
        touched = {*gone, *facts}
        keys = {row["key"] for row in facts.values()} | _keys(connection, touched)
        delete(connection, "facts", "id", touched)
        delete(connection, "confirmations", "id", gone)
        insert(connection, "facts", FACTS, list(facts.values()))
        self._confirm(connection, records)
        if self._resolve is not None:
            self._settle(connection, keys - {""}, self._resolve)

    def _rows_of(self, records: Sequence[Record]) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for record in records:
            if record.kind == "fact":
                row = self._row(record)
                known = rows.get(row["id"])
                if known is None or (known["owner"] == row["owner"] and known["record"] <= row["record"]):
                    rows[row["id"]] = row
        return rows

    def _row(self, record: Record) -> Row:
        data = record.data
        row: Row = {}
        extra = {name: value for name, value in data.items() if name not in FACTS or name in _OWN}
        for name, kind in FACTS.items():
            if name not in _OWN:
                row[name] = _COERCE[kind](data.get(name))
                if row[name] is None and data.get(name) is not None:
                    extra[name] = data[name]  # 'about 30' is no number, and still is what was said
        row["id"] = row["id"] or text(record.id)
        row["kind"] = row["kind"] or "fact"
        row["trust"] = row["trust"] or 0
        row["approximate"] = bool(row["approximate"])
        row["owner"] = text(record.owner)
        row["key"] = text(self._key_of(row["owner"], row))
        row["superseded_by"] = ""
        row["record"] = text(record.id)
        row["recorded_at"] = moment(record.at)
        row["extra"] = as_json(extra) if extra else ""
        return row

    def _fresh(self, connection: DuckDBPyConnection, rows: dict[str, Row], gone: set[str]) -> dict[str, Row]:
        """Without what is forgotten or older than what is stored."""
        if not rows:
            return rows
        gone = gone | _known(connection, "tombstones", rows)
        now = time.time_ns() // 1000
        stored = {}
        for id, owner, record, at in connection.execute(
            "SELECT id, owner, record, epoch_us(recorded_at) FROM facts WHERE id IN (SELECT unnest(?::VARCHAR[]))",
            [list(rows)],
        ).fetchall():
            if owner != rows[id]["owner"]:
                gone = gone | {id}  # nobody takes over a row by naming its id
            elif at is not None and at <= now:
                # A row from the future says that the clock was wrong, not that it is newer.
                stored[id] = record
        return {id: row for id, row in rows.items() if id not in gone and stored.get(id, "") <= row["record"]}

    def _keep_apart(
        self, connection: DuckDBPyConnection, records: Sequence[Record], facts: Mapping[str, Row]
    ) -> None:
        """What claims the id of another owner's fact is kept as raw JSON: nothing is lost, nothing taken over."""
        claims = {text(record.data.get("id")): record for record in records if record.kind == "fact"}
        owners = {id: row["owner"] for id, row in facts.items()} | dict(
            connection.execute(
                "SELECT id, owner FROM facts WHERE id IN (SELECT unnest(?::VARCHAR[]))", [list(claims)]
            ).fetchall()
        )
        foreign = [
            record
            for record in records
            if record.kind == "fact"
            and owners.get(text(record.data.get("id")), record.owner) != text(record.owner)
        ]
        if foreign:
            delete(connection, "other", "id", [record.id for record in foreign])
            insert(
                connection,
                "other",
                OTHER,
                [other(record, "the id of another owner's fact") for record in foreign],
            )

    def _confirm(self, connection: DuckDBPyConnection, records: Sequence[Record]) -> None:
        said = {
            id: {"id": id, "confirmed_at": moment(record.at)}
            for record in records
            if record.kind == "confirm" and moment(record.at) is not None
            for id in texts(record.data.get("ids"))
        }
        said = {id: row for id, row in said.items() if id not in _known(connection, "tombstones", said)}
        delete(connection, "confirmations", "id", said)
        insert(connection, "confirmations", _CONFIRMATIONS, list(said.values()))

    def _settle(self, connection: DuckDBPyConnection, keys: set[str], resolve: Resolve) -> None:
        """Say again which rows of the keys stand."""
        groups: dict[str, dict[str, Row]] = {}
        if keys:
            where = "f.key IN (SELECT unnest(?::VARCHAR[]))"
            for row in fetch(connection, *_query(where, [list(keys)], None, None)):
                groups.setdefault(row["key"], {})[row["id"]] = row
        changed: dict[str, str] = {}
        for rows in groups.values():
            superseded = resolve(rows) if len(rows) > 1 else {}
            changed |= {
                id: superseded.get(id, "")
                for id, row in rows.items()
                if row["superseded_by"] != superseded.get(id, "")
            }
        if changed:
            connection.execute(
                "UPDATE facts SET superseded_by = new.successor FROM "
                "(SELECT unnest(?::VARCHAR[]) AS id, unnest(?::VARCHAR[]) AS successor) AS new WHERE facts.id = new.id",
                [list(changed), list(changed.values())],
            )


def record_of(row: Mapping[str, Any]) -> Row:
    """The fields of a stored row as its record had them: what had no column is back in its place."""
    data = {name: row[name] for name in FACTS if name not in _OWN and row.get(name) not in (None, "")}
    try:
        extra = json.loads(row.get("extra") or "{}")
    except ValueError:
        extra = {}
    return extra | data if isinstance(extra, dict) else data


_COERCE: Mapping[str, Callable[[object], Any]] = {
    "text": text,
    "integer": integer,
    "number": number,
    "flag": flag,
    "time": moment,
}


def _query(where: str, values: Sequence[Any], owners: Owners, limit: int | None) -> tuple[str, list[Any]]:
    columns = ", ".join(
        f"epoch_us(f.{name}) AS {name}" if kind == "time" else f"f.{name}" for name, kind in FACTS.items()
    )
    parameters = list(values)
    if owners is not None:
        where += " AND f.owner IN (SELECT unnest(?::VARCHAR[]))"
        parameters.append(list(owners))
    sql = (
        f"SELECT {columns}, (SELECT epoch_us(max(c.confirmed_at)) FROM confirmations c WHERE c.id = f.id) AS confirmed_at "
        f"FROM facts f WHERE {where} ORDER BY f.id"
    )
    if limit is not None:
        sql += " LIMIT ?"
        parameters.append(limit)
    return sql, parameters


def _known(connection: DuckDBPyConnection, table: str, ids: Iterable[str]) -> set[str]:
    wanted = list(ids)
    if not wanted:
        return set()
    sql = f"SELECT id FROM {table} WHERE id IN (SELECT unnest(?::VARCHAR[]))"
    return {row[0] for row in connection.execute(sql, [wanted]).fetchall()}


def _keys(connection: DuckDBPyConnection, ids: set[str]) -> set[str]:
    if not ids:
        return set()
    sql = "SELECT DISTINCT key FROM facts WHERE id IN (SELECT unnest(?::VARCHAR[]))"
    return {row[0] for row in connection.execute(sql, [list(ids)]).fetchall()}
