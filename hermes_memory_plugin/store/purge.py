"""Rows whose time is over leave their ledger, a slice at a time; what something living cites stays.

Whoever purges says first what goes (`gone`), then deletes: killed in between, the same rows are found again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.ledger_rows import delete
from hermes_memory_plugin.store.payloads import LONG, compress, drop_unused

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.compact import Pace
    from hermes_memory_plugin.store.ledger import Ledger
    from hermes_memory_plugin.store.ledger_facts import FactsLedger
    from hermes_memory_plugin.store.ledger_logs import LogsLedger

Gone = Callable[[Sequence[str]], object]
"""Is told the ids before they are deleted."""
CALLS = 'SELECT ulid, tool_call_id, ref FROM logs WHERE ulid > ? AND "timestamp" < make_timestamp(?::BIGINT)'
_OUTLIVED = (
    "kind <> 'competence' AND recorded_at < make_timestamp(?::BIGINT) "
    "AND (superseded_by <> '' OR expires_at < make_timestamp(?::BIGINT))"
)
TURNS = "SELECT id, '', '' FROM turns WHERE id > ? AND \"timestamp\" < make_timestamp(?::BIGINT)"


def calls(
    ledger: LogsLedger,
    before: int,
    pinned: Collection[str],
    pace: Pace,
    gone: Gone,
    *,
    most: int | None = None,
) -> int:
    """Delete calls older than `before` (epoch microseconds) that nothing pins, the oldest first, `most` of them."""
    after, done = "", 0
    while most is None or done < most:
        with pace.visit(ledger) as connection:
            limit = pace.rows if most is None else min(pace.rows, most - done)
            rows = connection.execute(f"{CALLS} ORDER BY ulid LIMIT {limit}", [after, before]).fetchall()
            if not rows:
                break
            doomed = [row for row in rows if row[0] not in pinned and row[1] not in pinned]
            ids = [row[0] for row in doomed]
            if ids:
                gone(ids)
                connection.execute(
                    "DELETE FROM logs WHERE ulid > ? AND ulid <= ? AND ulid IN (SELECT unnest(?::VARCHAR[]))",
                    [after, rows[-1][0], ids],
                )
            unused = drop_unused(connection, {row[2] for row in doomed} - {""})
        ledger.refs.remove(unused)
        after, done = rows[-1][0], done + len(ids)
    return done


def turns(ledger: LogsLedger, before: int, pinned: Collection[str], pace: Pace, gone: Gone) -> int:
    """Delete turns older than `before` that nothing pins, with the links of their answers."""
    after, done = "", 0
    while True:
        with pace.visit(ledger) as connection:
            rows = connection.execute(f"{TURNS} ORDER BY id LIMIT {pace.rows}", [after, before]).fetchall()
            if not rows:
                return done
            ids = [row[0] for row in rows if row[0] not in pinned]
            if ids:
                gone(ids)
                delete(connection, "turns", "id", ids)
                delete(connection, "links", "answer", ids)
        after, done = rows[-1][0], done + len(ids)


def facts(ledger: FactsLedger, before: int, pinned: Collection[str], pace: Pace, gone: Gone) -> int:
    """Delete facts that were replaced or outlived, and last written, before `before`; competences stay."""
    after, done = "", 0
    while True:
        with pace.visit(ledger) as connection:
            rows = connection.execute(
                f"SELECT id FROM facts WHERE id > ? AND {_OUTLIVED} ORDER BY id LIMIT {pace.rows}",
                [after, before, before],
            ).fetchall()
            if not rows:
                return done
            ids = [row[0] for row in rows if row[0] not in pinned]
            if ids:
                gone(ids)
                delete(connection, "facts", "id", ids)
                delete(connection, "confirmations", "id", ids)
        after, done = rows[-1][0], done + len(ids)


def payloads(ledger: LogsLedger, before: int, pace: Pace) -> int:
    """Compress the long results of calls older than `before`."""
    after, done = "", 0
    pace.rows = min(pace.rows, 500)  # texts, not ids
    while True:
        with pace.visit(ledger) as connection:
            rows = connection.execute(
                f"{CALLS} AND ref = '' AND length(result) > {LONG} ORDER BY ulid LIMIT {min(pace.rows, 2_000)}",
                [after, before],
            ).fetchall()
            if not rows:
                return done
            done += compress(connection, [row[0] for row in rows])
        after = rows[-1][0]


def count(
    logs: LogsLedger, facts: FactsLedger, cut: Mapping[str, int], pinned: Collection[str]
) -> tuple[int, int, int, int]:
    """How many results would be compressed, and calls, turns and facts purged, up to these times."""
    ids = [list(pinned)]
    found = [0, 0, 0, 0]
    older = '"timestamp" < make_timestamp(?::BIGINT)'
    spared = "NOT IN (SELECT unnest(?::VARCHAR[]))"
    questions: tuple[tuple[Ledger, str, list[Any]], ...] = (
        (logs, f"logs WHERE {older} AND ref = '' AND length(result) > {LONG}", [cut["payloads"]]),
        (logs, f"logs WHERE {older} AND ulid {spared} AND tool_call_id {spared}", [cut["calls"], *ids, *ids]),
        (logs, f"turns WHERE {older} AND id {spared}", [cut["turns"], *ids]),
        (facts, f"facts WHERE {_OUTLIVED} AND id {spared}", [cut["facts"], cut["facts"], *ids]),
    )
    for place, (ledger, what, values) in enumerate(questions):
        if values[0]:
            rows = ledger.rows(f"SELECT count(*) AS n FROM {what}", values)
            found[place] = int(rows[0]["n"]) if rows else 0
    return found[0], found[1], found[2], found[3]


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
