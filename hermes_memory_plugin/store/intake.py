"""How journal records get into a ledger: rows and the new offset in one transaction, so each record counts once."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hermes_memory_plugin.store.ledger import Ledger, fetch, transaction
from hermes_memory_plugin.store.ledger_faults import Fault, fault
from hermes_memory_plugin.store.ledger_rows import OTHER, Table, delete, insert, other

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.tails import Chunk, Record

_OFFSETS: Table = {"journal": "text", "offset": "integer"}


def at_fault(error: Exception) -> bool:
    """Whether an error speaks against the records that were to be stored, not against the moment or the file."""
    return fault(error) is Fault.STATEMENT and not isinstance(error, OSError)


class LedgerConsumer(Ledger):
    """A ledger that the drain fills."""

    counted: ClassVar[tuple[str, ...]] = ()

    def store(self, connection: DuckDBPyConnection, records: Sequence[Record]) -> None:
        """Apply records within the caller's transaction; applying them twice changes nothing."""
        raise NotImplementedError

    @contextlib.contextmanager
    def intake(self) -> Iterator[LedgerIntake]:
        """The ledger, open to take records in."""
        with self.visit(write=True) as connection:
            yield LedgerIntake(self, connection)

    def status(self) -> dict[str, Any]:
        """Row counts, bytes on disk and damaged files kept, for people and `doctor`."""
        tables = ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in self.counted)
        found = self.rows(f"SELECT {tables}")
        return {
            "path": str(self.path),
            "rows": found[0] if found else dict.fromkeys(self.counted, 0),
            "bytes": self.size(),
            "schema": self.schema,
            "damaged": [str(path) for path in self.set_aside()],
        }


class LedgerIntake:
    """A ledger opened by the drain: its offsets, and `apply` to move them on."""

    def __init__(self, ledger: LedgerConsumer, connection: DuckDBPyConnection) -> None:
        self._ledger = ledger
        self._connection = connection
        self.offsets: dict[str, int] = {
            row["journal"]: row["offset"]
            for row in fetch(connection, 'SELECT journal, "offset" FROM offsets')
        }
        self.refused = 0
        """Records kept as raw JSON because they could not be stored as what they are."""

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Store the chunks' records and move the offsets behind them: both or nothing."""
        offsets = dict(self.offsets)
        for chunk in chunks:
            if chunk.start != offsets.get(chunk.journal, 0):
                raise ValueError(
                    f"{chunk.journal}: chunk starts at {chunk.start}, not {offsets.get(chunk.journal, 0)}"
                )
            offsets[chunk.journal] = chunk.end
        records = [record for chunk in chunks for record in chunk.records]
        try:
            self._commit(records, [], offsets)
        except Exception as error:
            if not at_fault(error):
                raise
            bad = dict(self._poison(records))
            good = [record for number, record in enumerate(records) if number not in bad]
            self._commit(good, [other(records[number], why) for number, why in bad.items()], offsets)
            self.refused += len(bad)
        self.offsets = offsets

    def drop(self, journals: Collection[str]) -> None:
        """Forget the offsets of journals that are gone."""
        gone = [name for name in journals if name in self.offsets]
        if gone:
            with transaction(self._connection):
                delete(self._connection, "offsets", "journal", gone)
            for name in gone:
                del self.offsets[name]

    def _commit(
        self, records: Sequence[Record], refused: Sequence[dict[str, Any]], offsets: dict[str, int]
    ) -> None:
        moved = {name: offset for name, offset in offsets.items() if offset != self.offsets.get(name)}
        with transaction(self._connection):
            self._ledger.store(self._connection, records)
            delete(self._connection, "other", "id", [row["id"] for row in refused])
            insert(self._connection, "other", OTHER, refused)
            delete(self._connection, "offsets", "journal", moved)
            insert(
                self._connection, "offsets", _OFFSETS, [{"journal": n, "offset": o} for n, o in moved.items()]
            )

    def _poison(self, records: Sequence[Record], start: int = 0) -> list[tuple[int, str]]:
        """(position, reason) of the records that cannot be stored, found by halving."""
        if not records or not self._refusal(records):
            return []
        if len(records) == 1:
            # Asked twice: what fails once may have been the moment's fault, and a record set aside is out of its table.
            reason = self._refusal(records)
            return [(start, reason)] if reason else []
        half = len(records) // 2
        return self._poison(records[:half], start) + self._poison(records[half:], start + half)

    def _refusal(self, records: Sequence[Record]) -> str:
        """Why these records cannot be stored together; "" when they can. Nothing is changed."""
        try:
            self._connection.execute("BEGIN")
            self._ledger.store(self._connection, records)
        except Exception as error:
            if not at_fault(error):
                raise
            return f"{type(error).__name__}: {error}"[:500]
        finally:
            with contextlib.suppress(Exception):
                self._connection.execute("ROLLBACK")
        return ""
