"""Results of old calls inside logs.db: each content once, compressed, the row keeps how it begins and ends."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_plugin.store.packed import Unpackable, pack, unpack
from hermes_memory_plugin.store.refs import RefDamaged, excerpt

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.ledger_logs import LogsLedger

LONG = 4_000
"""Characters from which on an old result is compressed."""
_HEAD, _TAIL = 2_000, 500  # what the read index knows of a result


def compress(connection: DuckDBPyConnection, ids: Collection[str], table: str = "logs") -> int:
    """Compress the results of these calls (ULIDs) in a table of calls; returns how many."""
    wanted = list(ids)
    found = connection.execute(
        f"SELECT ulid, result FROM {table} WHERE ulid IN (SELECT unnest(?::VARCHAR[])) AND ref = '' AND length(result) > ?",
        [wanted, LONG],
    ).fetchall()
    if not found:
        return 0
    texts = {ulid: (sha256(result.encode()).hexdigest(), result) for ulid, result in found}
    hashes = list({hash_ for hash_, _ in texts.values()})
    known = {
        row[0]
        for row in connection.execute(
            "SELECT hash FROM payloads WHERE hash IN (SELECT unnest(?::VARCHAR[]))", [hashes]
        ).fetchall()
    }
    fresh = {hash_: result for hash_, result in texts.values() if hash_ not in known}
    if fresh:
        connection.execute(
            "INSERT INTO payloads SELECT unnest(?::VARCHAR[]), unnest(?::BLOB[])",
            [list(fresh), [pack(result.encode()) for result in fresh.values()]],
        )
    connection.execute(
        f"UPDATE {table} SET ref = new.hash, result = new.shown FROM (SELECT unnest(?::VARCHAR[]) AS ulid, "
        f"unnest(?::VARCHAR[]) AS hash, unnest(?::VARCHAR[]) AS shown) AS new WHERE {table}.ulid = new.ulid",
        [
            list(texts),
            [hash_ for hash_, _ in texts.values()],
            [excerpt(result, _HEAD, _TAIL) for _, result in texts.values()],
        ],
    )
    return len(texts)


def read(ledger: LogsLedger, ref: str) -> str:
    """The whole text of a row's reference, wherever it is kept. Raises NotFound or RefDamaged."""
    for row in ledger.rows("SELECT data FROM payloads WHERE hash = ?", [ref]):
        try:
            data = unpack(bytes(row["data"]))
        except Unpackable as error:
            raise RefDamaged(ledger.path, f"payload {ref[:12]}: {error}") from error
        if sha256(data).hexdigest() != ref:
            raise RefDamaged(Path(ledger.path), f"payload {ref[:12]} has another content")
        return data.decode()
    return ledger.refs.read(ref)


def drop_unused(connection: DuckDBPyConnection, refs: Collection[str]) -> set[str]:
    """Delete those of the contents no row refers to any more; returns them: their files may go too."""
    wanted = list(refs)
    if not wanted:
        return set()
    used = {
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT ref FROM logs WHERE ref IN (SELECT unnest(?::VARCHAR[]))", [wanted]
        ).fetchall()
    }
    unused = set(wanted) - used
    if unused:
        connection.execute("DELETE FROM payloads WHERE hash IN (SELECT unnest(?::VARCHAR[]))", [list(unused)])
    return unused
