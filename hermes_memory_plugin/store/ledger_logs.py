"""logs.db: every tool call and dialogue turn, and what recall did."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hermes_memory_plugin.store.graves import Graves
from hermes_memory_plugin.store.intake import LedgerConsumer
from hermes_memory_plugin.store.ledger import Owners
from hermes_memory_plugin.store.ledger_reports import KINDS as REPORT_KINDS
from hermes_memory_plugin.store.ledger_rows import OTHER, Table, other, replace, select
from hermes_memory_plugin.store.log_links import LINKS, store_links
from hermes_memory_plugin.store.log_rows import (
    AUDITS,
    EVENTS,
    LOGS,
    TURNS,
    audit_row,
    event_row,
    merged,
    trace_row,
    untell,
)
from hermes_memory_plugin.store.refs import LIMIT, Refs, excerpt

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.tails import Record

Row = dict[str, Any]

AUDIT_DAYS = 30
# Kept elsewhere: facts in facts.db, notes and scenes as Markdown, the host's entries in its own files; "gone" is the index's.
_ELSEWHERE = frozenset({"fact", "confirm", "note", "scene", "persona", "gone"}) | REPORT_KINDS


class LogsLedger(LedgerConsumer):
    """The ledger of what happened. Rows are dictionaries of the tables' columns, times in epoch microseconds."""

    name: ClassVar[str] = "logs"
    counted: ClassVar[tuple[str, ...]] = ("logs", "turns", "links", "audits", "events", "tombstones", "other")

    def __init__(self, folder: Path, *, wait: float = 2.0) -> None:
        super().__init__(folder, wait=wait)
        self.refs = Refs(folder / "refs")

    def trace(self, id: str, owners: Owners = None) -> list[Row]:
        """The tool calls with this ULID or call id, newest first (a call id may come again in another session)."""
        return self._select(
            "logs", LOGS, {"(ulid = ? OR tool_call_id = ?)": [id, id]}, owners, "ulid DESC", None
        )

    def traces(
        self,
        *,
        since: int | None = None,
        until: int | None = None,
        tool: str | None = None,
        session: str | None = None,
        status: str | None = None,
        owners: Owners = None,
        limit: int = 100,
    ) -> list[Row]:
        """Tool calls of a time (epoch microseconds, `until` excluded), newest first."""
        where = _given(
            {
                '"timestamp" >= make_timestamp(?::BIGINT)': since,
                '"timestamp" < make_timestamp(?::BIGINT)': until,
                "tool_name = ?": tool,
                "session_id = ?": session,
                "status = ?": status,
            }
        )
        return self._select("logs", LOGS, where, owners, '"timestamp" DESC, ulid DESC', limit)

    def turns(
        self,
        *,
        ids: Collection[str] | None = None,
        since: int | None = None,
        until: int | None = None,
        session: str | None = None,
        owners: Owners = None,
        limit: int = 100,
    ) -> list[Row]:
        """Dialogue turns by id or of a time (epoch microseconds, `until` excluded), newest first."""
        where = _given(
            {
                "id IN (SELECT unnest(?::VARCHAR[]))": None if ids is None else list(ids),
                '"timestamp" >= make_timestamp(?::BIGINT)': since,
                '"timestamp" < make_timestamp(?::BIGINT)': until,
                "session_id = ?": session,
            }
        )
        return self._select("turns", TURNS, where, owners, '"timestamp" DESC, id DESC', limit)

    def links(
        self,
        *,
        answers: Collection[str] | None = None,
        turn: str | None = None,
        session: str | None = None,
        metric: str | None = None,
        subject: str | None = None,
        between: tuple[float, float] | None = None,
        owners: Owners = None,
        limit: int | None = None,
    ) -> list[Row]:
        """Where numbers of answers came from, newest answer first; `between`: the least and the most value."""
        where = _given(
            {
                "answer IN (SELECT unnest(?::VARCHAR[]))": None if answers is None else list(answers),
                "turn_id = ?": turn,
                "session_id = ?": session,
                "metric = ?": metric,
                "subject = ?": subject,
            }
        )
        if between is not None:
            where["value BETWEEN ? AND ?"] = list(between)
        return self._select("links", LINKS, where, owners, '"timestamp" DESC, answer DESC, place', limit)

    def scan_traces(self, after: str = "", limit: int = 1_000, owners: Owners = None) -> list[Row]:
        """The next tool calls in the order of their ULIDs; ask again with the last one until nothing comes."""
        return self._select("logs", LOGS, {"ulid > ?": [after]}, owners, "ulid", limit)

    def scan_turns(self, after: str = "", limit: int = 1_000, owners: Owners = None) -> list[Row]:
        """The next turns in the order of their ids; ask again with the last one until nothing comes."""
        return self._select("turns", TURNS, {"id > ?": [after]}, owners, "id", limit)

    def audits(self, last: int = 1, *, session: str | None = None, owners: Owners = None) -> list[Row]:
        """The last recalls, newest first."""
        return self._select("audits", AUDITS, _given({"session_id = ?": session}), owners, "id DESC", last)

    def events(self, since: int | None = None) -> dict[str, int]:
        """How often each thing happened since then (epoch microseconds)."""
        sql, values = "SELECT name, sum(n)::BIGINT AS n FROM events", []
        if since is not None:
            sql, values = f'{sql} WHERE "timestamp" >= make_timestamp(?::BIGINT)', [since]
        return {row["name"]: row["n"] for row in self.rows(f"{sql} GROUP BY name ORDER BY name", values)}

    def _select(
        self,
        table: str,
        columns: Table,
        where: Mapping[str, Sequence[Any]],
        owners: Owners,
        order: str,
        limit: int | None,
    ) -> list[Row]:
        conditions = dict(where)
        if owners is not None:
            conditions["owner IN (SELECT unnest(?::VARCHAR[]))"] = [list(owners)]
        sql = f"SELECT {select(columns)} FROM {table} WHERE {' AND '.join(conditions) or 'true'} ORDER BY {order}"
        values = [value for given in conditions.values() for value in given]
        if limit is not None:
            sql, values = f"{sql} LIMIT ?", [*values, limit]
        return self.rows(sql, values)

    def store(self, connection: DuckDBPyConnection, records: Sequence[Record]) -> None:
        """Apply records; runs within the caller's transaction and may be repeated."""
        kinds: dict[str, list[Record]] = {}
        for record in records:
            kinds.setdefault(record.kind, []).append(record)
        forgets = kinds.pop("forget", [])
        graves = Graves(connection, forgets, records)
        self._store_traces(connection, kinds.pop("trace", []), graves)
        turns = merged(connection, kinds.pop("turn", []), graves)
        replace(connection, "turns", TURNS, turns)
        store_links(connection, kinds.pop("answer", []), graves)
        audits = [audit_row(record) for record in kinds.pop("audit", [])]
        replace(connection, "audits", AUDITS, audits)
        replace(connection, "events", EVENTS, [event_row(record) for record in kinds.pop("event", [])])
        rest = [record for kind, found in kinds.items() if kind not in _ELSEWHERE for record in found]
        replace(connection, "other", OTHER, [other(record) for record in rest])
        untell(connection, forgets)
        graves.close(self.refs)
        if audits:
            _forget_old_audits(connection)

    def _store_traces(
        self, connection: DuckDBPyConnection, records: Iterable[Record], graves: Graves
    ) -> None:
        rows = []
        for record in records:
            row = trace_row(record)
            if graves.hold(row["ulid"]) or graves.hold(row["tool_call_id"], row["owner"]):
                continue
            if row["result_bytes"] > LIMIT:
                row["ref"] = self.refs.put(row["result"])
                row["result"] = excerpt(row["result"])
            rows.append(row)
        replace(connection, "logs", LOGS, rows)


def _given(conditions: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {sql: [value] for sql, value in conditions.items() if value is not None}


def _forget_old_audits(connection: DuckDBPyConnection) -> None:
    # From the newest audit when that is older than now: a clock that jumps ahead must not empty the table.
    now = time.time_ns() // 1000
    connection.execute(
        f'DELETE FROM audits WHERE "timestamp" < (SELECT least(max("timestamp"), make_timestamp(?::BIGINT)) '
        f"FROM audits) - INTERVAL {AUDIT_DAYS} DAY",
        [now],
    )
