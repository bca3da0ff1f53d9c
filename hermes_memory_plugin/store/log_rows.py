"""The tables of logs.db and how journal records become their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.graves import Graves, turn_key
from hermes_memory_plugin.store.ledger import fetch
from hermes_memory_plugin.store.ledger_rows import (
    Table,
    as_json,
    delete,
    flag,
    integer,
    moment,
    number,
    select,
    text,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.tails import Record

Row = dict[str, Any]

LOGS: Table = {
    "ulid": "text",
    "tool_call_id": "text",
    "tool_name": "text",
    "arguments": "text",
    "result": "text",
    "ref": "text",
    "result_bytes": "integer",
    "status": "text",
    "error": "text",
    "duration_ms": "number",
    "session_id": "text",
    "turn_id": "text",
    "owner": "text",
    "origin": "text",
    "kind": "text",
    "timestamp": "time",
}
TURNS: Table = {
    "id": "text",
    "session_id": "text",
    "turn_id": "text",
    "user_text": "text",
    "assistant_text": "text",
    "speaker": "text",
    "completed": "flag",
    "owner": "text",
    "kind": "text",
    "timestamp": "time",
}
AUDITS: Table = {
    "id": "text",
    "session_id": "text",
    "turn_id": "text",
    "question": "text",
    "tokens": "integer",
    "ms": "number",
    "items": "text",
    "cut": "text",
    "degraded": "text",
    "owner": "text",
    "timestamp": "time",
}
EVENTS: Table = {
    "id": "text",
    "name": "text",
    "n": "integer",
    "detail": "text",
    "owner": "text",
    "timestamp": "time",
}


def trace_row(record: Record) -> Row:
    """A tool call; `result` is whole."""
    data = record.data
    result = text(data.get("result"))
    return {
        "ulid": text(data.get("id")) or text(record.id),  # a call's end completes the row of its start
        "tool_call_id": text(data.get("call")),
        "tool_name": text(data.get("tool")),
        "arguments": as_json(data.get("args") or {}),
        "result": result,
        "ref": "",
        "result_bytes": len(result.encode()),
        "status": text(data.get("status")) or "ok",
        "error": text(data.get("error")),
        "duration_ms": number(data.get("ms")),
        "session_id": text(data.get("session")),
        "turn_id": text(data.get("turn")),
        "owner": text(record.owner),
        "origin": text(data.get("origin")) or "tool",
        "kind": text(data.get("kind")) or "user",
        "timestamp": moment(record.at),
    }


def untell(connection: DuckDBPyConnection, forgets: Iterable[Record]) -> None:
    """Delete what conversations were told after a compaction, once something of theirs was forgotten."""
    for record in forgets:
        told = record.data.get("told")
        for owner, session in _pairs(told if isinstance(told, list) else ()):
            stored = fetch(
                connection,
                "SELECT id, record FROM other WHERE kind = 'compaction' AND owner = ?"
                ' AND "timestamp" <= make_timestamp(?::BIGINT)',
                [owner, moment(record.at)],
            )
            gone = [row["id"] for row in stored if json.loads(row["record"]).get("session") == session]
            delete(connection, "other", "id", gone)


def _pairs(many: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for pair in many:
        if isinstance(pair, list | tuple) and len(pair) == 2:
            yield text(pair[0]), text(pair[1])


def audit_row(record: Record) -> Row:
    """One recall: what was asked, found, injected and cut."""
    data = record.data
    return {
        "id": text(record.id),
        "session_id": text(data.get("session")),
        "turn_id": text(data.get("turn")),
        "question": text(data.get("question")),
        "tokens": integer(data.get("tokens")),
        "ms": number(data.get("ms")),
        "items": as_json(data.get("items") or []),
        "cut": as_json(data.get("cut") or []),
        "degraded": as_json(data.get("degraded") or []),
        "owner": text(record.owner),
        "timestamp": moment(record.at),
    }


def event_row(record: Record) -> Row:
    """Something that happened `n` times."""
    n = integer(record.data.get("n"))
    return {
        "id": text(record.id),
        "name": text(record.data.get("name")),
        "n": 1 if n is None else n,
        "detail": text(record.data.get("detail")),
        "owner": text(record.owner),
        "timestamp": moment(record.at),
    }


def merged(connection: DuckDBPyConnection, records: Sequence[Record], graves: Graves) -> list[Row]:
    """The turns the records speak of, each with what is stored of it already.

    Halves of one owner, session and turn id are one row: its id and time are the first one's, later words win over
    earlier ones, nothing wins over words. A turn without a turn id is a row of its own.
    """
    rows = _stored(connection, records)
    touched: dict[str, Row] = {}
    for record in sorted(records, key=lambda record: record.id):
        half = _half(record)
        key = turn_key(record)
        row = rows.setdefault(key, half)
        touched[key] = row
        for name in ("user_text", "assistant_text", "speaker", "kind"):
            row[name] = half[name] or row[name]
        if half["completed"] is not None:
            row["completed"] = half["completed"]
    for key in [key for key, row in touched.items() if graves.hold(key) or graves.hold(row["id"])]:
        graves.bury(key)
        del touched[key]
    for row in touched.values():
        row["kind"] = row["kind"] or "user"
    return list(touched.values())


def _half(record: Record) -> Row:
    data = record.data
    return {
        "id": text(data.get("id")) or text(record.id),
        "session_id": text(data.get("session")),
        "turn_id": text(data.get("turn")),
        "user_text": text(data.get("user")),
        "assistant_text": text(data.get("assistant")),
        "speaker": text(data.get("speaker")),
        "completed": flag(data.get("completed")),
        "owner": text(record.owner),
        "kind": text(data.get("kind")),
        "timestamp": moment(record.at),
    }


def _stored(connection: DuckDBPyConnection, records: Sequence[Record]) -> dict[str, Row]:
    halves = [_half(record) for record in records]
    if not halves:
        return {}
    found = fetch(
        connection,
        f"SELECT {select(TURNS)} FROM turns WHERE id IN (SELECT unnest(?::VARCHAR[])) OR (turn_id <> '' "
        "AND turn_id IN (SELECT unnest(?::VARCHAR[])) AND session_id IN (SELECT unnest(?::VARCHAR[])))",
        [
            [half["id"] for half in halves],
            list({half["turn_id"] for half in halves}),
            list({half["session_id"] for half in halves}),
        ],
    )
    return {turn_key(row): row for row in found}
