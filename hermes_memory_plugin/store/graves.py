"""What was forgotten stays forgotten: rows of buried ids go, and none comes back by a replay or an import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.ledger import fetch
from hermes_memory_plugin.store.ledger_rows import TOMBSTONES, delete, insert, text, tombstones
from hermes_memory_plugin.store.log_links import bury_links, named_by
from hermes_memory_plugin.store.payloads import drop_unused
from hermes_memory_plugin.store.purge import untold

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.refs import Refs
    from hermes_memory_plugin.store.tails import Record

_ANYONE, _SHARED = "any", "shared"


def turn_key(turn: Record | Mapping[str, Any]) -> str:
    """What the halves of one turn share; the id itself when the host gave no turn id."""
    if isinstance(turn, Mapping):
        id, owner, session, turn_id = turn["id"], turn["owner"], turn["session_id"], turn["turn_id"]
    else:
        id, owner = text(turn.data.get("id")) or text(turn.id), text(turn.owner)
        session, turn_id = text(turn.data.get("session")), text(turn.data.get("turn"))
    return "\x1f".join(("turn", owner, session, turn_id)) if turn_id else id


class Graves:
    """The tombstones that matter to one batch of records of logs.db."""

    def __init__(
        self, connection: DuckDBPyConnection, forgets: Iterable[Record], records: Sequence[Record]
    ) -> None:
        self._connection = connection
        self._new = [row for record in forgets for row in tombstones(record)]
        self._owners: dict[str, set[str]] = {}
        for row in self._new:
            self._owners.setdefault(row["id"], set()).add(row["owner"])
        for row in self._stored(records):
            self._owners.setdefault(row["id"], set()).add(row["owner"])

    def hold(self, id: str, owner: str | None = None) -> bool:
        """Whether the id is buried; with the `owner` of the row, by someone who may bury that owner's rows."""
        owners = self._owners.get(id, ())
        return len(owners) > 0 and (owner in (None, _SHARED) or owner in owners or _ANYONE in owners)

    def bury(self, key: str) -> None:
        """Bury all halves of a turn: one that comes after its turn was forgotten must not begin it anew."""
        self._owners.setdefault(key, set()).add(_ANYONE)
        self._new.append({"id": key, "owner": _ANYONE, "forgotten_at": None, "forgotten_by": "", "why": ""})

    def close(self, refs: Refs) -> None:
        """Delete what the batch buries, the long texts nobody else refers to included, and keep the tombstones."""
        if not self._new:
            return
        ids = [row["id"] for row in self._new]
        for turn in fetch(
            self._connection,
            "SELECT id, owner, session_id, turn_id FROM turns WHERE id IN (SELECT unnest(?::VARCHAR[]))",
            [ids],
        ):
            self.bury(turn_key(turn))
        doomed = fetch(
            self._connection,
            "SELECT ulid, tool_call_id, owner, ref FROM logs "
            "WHERE ulid IN (SELECT unnest(?::VARCHAR[])) OR tool_call_id IN (SELECT unnest(?::VARCHAR[]))",
            [ids, ids],
        )
        doomed = [
            row for row in doomed if self.hold(row["ulid"]) or self.hold(row["tool_call_id"], row["owner"])
        ]
        delete(self._connection, "logs", "ulid", [row["ulid"] for row in doomed])
        delete(self._connection, "turns", "id", ids)
        bury_links(self._connection, ids, [(row["tool_call_id"], row["owner"]) for row in doomed])
        known = {(row["id"], row["owner"]) for row in self._find(row["id"] for row in self._new)}
        fresh: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self._new:
            if (row["id"], row["owner"]) not in known:
                fresh.setdefault((row["id"], row["owner"]), row)
        insert(self._connection, "tombstones", TOMBSTONES, list(fresh.values()))
        untold(self._connection, ids)
        # Before the commit: the record that says so comes again after a crash, a file left behind would stay.
        refs.remove(drop_unused(self._connection, {row["ref"] for row in doomed} - {""}))

    def _stored(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        ids: set[str] = set()
        for record in records:
            if record.kind == "trace":
                ids |= {text(record.data.get(name)) for name in ("id", "call")} | {text(record.id)}
            elif record.kind == "turn":
                ids |= {text(record.data.get("id")) or text(record.id), turn_key(record)}
            elif record.kind == "answer":
                ids |= named_by(record)
        return self._find(ids - {""})

    def _find(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        wanted = list(ids)
        sql = "SELECT id, owner FROM tombstones WHERE id IN (SELECT unnest(?::VARCHAR[]))"
        return fetch(self._connection, sql, [wanted]) if wanted else []
