"""What leaves a ledger when it is written anew: rows whose time is over, unless something living cites them.

Deleting in place would not do: DuckDB then merges what is left at some later close, and everybody waits for seconds.
Whoever purges says first what goes (`gone`): killed before the new file is in place, the same rows are found again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.ledger_rows import delete
from hermes_memory_plugin.store.payloads import LONG, compress

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.compact import Pace
    from hermes_memory_plugin.store.ledger import Ledger
    from hermes_memory_plugin.store.ledger_facts import FactsLedger
    from hermes_memory_plugin.store.ledger_logs import LogsLedger

Gone = Callable[[Sequence[str]], object]
"""Is told the ids before their rows are gone."""

_OLDER = '"timestamp" < make_timestamp(?::BIGINT)'
_OUTLIVED = (
    "kind <> 'competence' AND recorded_at < make_timestamp(?::BIGINT) "
    "AND (superseded_by <> '' OR expires_at < make_timestamp(?::BIGINT))"
)
_SPARED = "NOT IN (SELECT unnest(?::VARCHAR[]))"
_LONG = f"ref = '' AND length(result) > {LONG}"
_PART = 200
"""Results that are compressed in one go."""


@dataclass(slots=True)
class Edit:
    """What happens to the rows of logs.db and facts.db as they are copied. Times are epoch microseconds; 0 is never."""

    calls: int = 0
    turns: int = 0
    facts: int = 0
    payloads: int = 0
    pinned: Collection[str] = ()
    gone: Gone = lambda ids: None
    done: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("calls", "turns", "facts", "payloads"), 0)
    )

    def __call__(self, connection: DuckDBPyConnection, table: str) -> None:
        """Change the rows in `slice`."""
        pins = list(self.pinned)
        if table == "logs":
            if self.calls:
                where = f"{_OLDER} AND ulid {_SPARED} AND tool_call_id {_SPARED}"
                self.done["calls"] += self._drop(connection, "ulid", where, [self.calls, pins, pins])
            if self.payloads:
                self._compress(connection)
        elif table == "turns" and self.turns:
            where = f"{_OLDER} AND id {_SPARED}"
            self.done["turns"] += self._drop(connection, "id", where, [self.turns, pins])
        elif table == "links" and self.turns:
            connection.execute(f"DELETE FROM slice WHERE {_OLDER} AND answer {_SPARED}", [self.turns, pins])
        elif table == "facts" and self.facts:
            where = f"{_OUTLIVED} AND id {_SPARED}"
            self.done["facts"] += self._drop(connection, "id", where, [self.facts, self.facts, pins])
        elif table == "payloads":  # copied behind the calls
            connection.execute(
                "DELETE FROM slice WHERE hash IN (SELECT hash FROM payloads) OR hash NOT IN (SELECT ref FROM logs)"
            )

    def _drop(self, connection: DuckDBPyConnection, key: str, where: str, values: list[Any]) -> int:
        ids = [
            row[0] for row in connection.execute(f"SELECT {key} FROM slice WHERE {where}", values).fetchall()
        ]
        if ids:
            self.gone(ids)
            delete(connection, "slice", key, ids)
        return len(ids)

    def _compress(self, connection: DuckDBPyConnection) -> None:
        found = connection.execute(
            f"SELECT ulid FROM slice WHERE {_OLDER} AND {_LONG}", [self.payloads]
        ).fetchall()
        ids = [row[0] for row in found]
        for start in range(0, len(ids), _PART):
            self.done["payloads"] += compress(connection, ids[start : start + _PART], "slice")


def count(
    logs: LogsLedger, facts: FactsLedger, cut: Mapping[str, int], pinned: Collection[str]
) -> dict[str, tuple[int, int]]:
    """By name (calls, turns, facts, payloads): how many rows would go or be compressed, and how many there are."""
    pins = list(pinned)
    older = {"calls": cut["calls"], "turns": cut["turns"], "facts": cut["facts"], "payloads": cut["payloads"]}
    questions: dict[str, tuple[Ledger, str, str, list[Any]]] = {
        "payloads": (logs, "logs", f"{_OLDER} AND {_LONG}", [older["payloads"]]),
        "calls": (
            logs,
            "logs",
            f"{_OLDER} AND ulid {_SPARED} AND tool_call_id {_SPARED}",
            [older["calls"], pins, pins],
        ),
        "turns": (logs, "turns", f"{_OLDER} AND id {_SPARED}", [older["turns"], pins]),
        "facts": (facts, "facts", f"{_OUTLIVED} AND id {_SPARED}", [older["facts"], older["facts"], pins]),
    }
    found = {}
    for name, (ledger, table, where, values) in questions.items():
        rows = ledger.rows(
            f"SELECT count(*) FILTER (WHERE {where}) AS n, count(*) AS whole FROM {table}", values
        )
        n, whole = (int(rows[0]["n"]), int(rows[0]["whole"])) if rows else (0, 0)
        found[name] = (n if older[name] else 0, whole)
    return found


def reach(logs: LogsLedger, most: int, before: int, pinned: Collection[str]) -> int:
    """The time before which the `most` oldest calls lie that nothing pins and that are older than `before`."""
    pins = list(pinned)
    rows = logs.rows(
        f'SELECT epoch_us(max("timestamp")) AS at FROM (SELECT "timestamp" FROM logs WHERE {_OLDER} AND ulid {_SPARED} '
        f'AND tool_call_id {_SPARED} ORDER BY "timestamp" LIMIT {int(most)})',
        [before, pins, pins],
    )
    at = rows[0]["at"] if rows else None
    return int(at) + 1 if at is not None else 0


def audits(ledger: LogsLedger, pace: Pace, *, days: int) -> int:
    """Delete counters older than `days` and the audits of recalls that showed what is forgotten by now."""
    with pace.visit(ledger) as connection:
        connection.execute(
            f'DELETE FROM events WHERE "timestamp" < now()::TIMESTAMP - INTERVAL {int(days)} DAY'
        )
        ids = [row[0] for row in connection.execute("SELECT DISTINCT id FROM tombstones").fetchall()]
        return untold(connection, ids)


def untold(connection: DuckDBPyConnection, ids: Collection[str]) -> int:
    """Delete the audits that show rows of these ids, and those of forgotten turns; returns how many."""
    wanted = set(ids)
    if not wanted:
        return 0
    found = connection.execute("SELECT id, session_id, turn_id, items FROM audits").fetchall()
    doomed = [
        id
        for id, session, turn, items in found
        if (turn and f"turn:{session}:{turn}" in wanted) or any(one in wanted for one in _ids(items))
    ]
    delete(connection, "audits", "id", doomed)
    return len(doomed)


def _ids(items: str) -> list[str]:
    try:
        return [str(one.get("id")) for one in json.loads(items or "[]") if isinstance(one, dict)]
    except ValueError:
        return []
