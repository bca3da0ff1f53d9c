"""A ledger written anew, so that its file holds what lives and nothing else, while everybody goes on working.

Rows are copied in slices, each under the ledger's lock for a few dozen milliseconds; the finished file then takes the old
one's place. What was drained in between needs no copy: the new file begins with the offsets the old one had at the
start, no journal is retired meanwhile, and the next drain applies the records behind them again, which changes nothing
for rows that were copied with them. A kill at any moment leaves the old file, or the new one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_plugin.store.drain import COPYING
from hermes_memory_plugin.store.ledger import CONFIG, Ledger, transaction
from hermes_memory_plugin.store.locks import LockFile
from hermes_memory_plugin.store.queued import queued

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

AIM = 0.05
"""Seconds of processor time one slice is meant to take."""
_FIRST, _LEAST, _MOST = 1_000, 50, 20_000
_PATIENCE = 30.0
_NEW = ".new"


Edit = Callable[["DuckDBPyConnection", str], None]


class Stopped(Exception):
    """The process ends or the time is up; what was under way is begun anew another day."""


@dataclass(slots=True)
class Pace:
    """How work is cut into slices: how many rows at once, and how long the lock was held."""

    rows: int = _FIRST
    held: list[float] = field(default_factory=list)
    """Seconds of each hold, oldest first."""
    halted: Callable[[], bool] = lambda: False
    _base: float = 1.0

    @contextlib.contextmanager
    def slice(self, lock: Path) -> Iterator[None]:
        """One hold of the lock; others get their turn before the next one. Raises Stopped or LockBusy."""
        if self.halted():
            raise Stopped
        with queued(lock, timeout=_PATIENCE):
            began, worked = time.monotonic(), time.thread_time()
            try:
                yield
            finally:
                spent, worked = time.monotonic() - began, time.thread_time() - worked
                self.held.append(spent)
                # By processor time: on a busy machine smaller slices would not be shorter ones. Opening the file costs what
                # it costs; only what the rows cost is ours to choose.
                self._base = min(self._base, worked)
                factor = max(AIM - self._base, AIM / 4) / max(worked - self._base, 0.001)
                self.rows = int(min(_MOST, max(_LEAST, self.rows * min(2.0, max(0.25, factor)))))
        time.sleep(min(spent / 2, 0.05))

    @contextlib.contextmanager
    def visit(self, ledger: Ledger) -> Iterator[DuckDBPyConnection]:
        """The ledger open to be written for one slice, in one transaction. It must be at this code's schema."""
        with (
            self.slice(lock_of(ledger)),
            contextlib.closing(_connect(ledger.path)) as connection,
            transaction(connection),
        ):
            yield connection

    @property
    def longest(self) -> float:
        """The longest hold, in seconds."""
        return max(self.held, default=0.0)


def lock_of(ledger: Ledger) -> Path:
    """The lock everybody who opens the file takes."""
    return ledger.path.with_name(f"{ledger.path.name}.lock")


def dead_share(ledger: Ledger) -> float:
    """Which part of the file is not living rows: free blocks and deleted rows, by the larger of the two."""
    if not ledger.path.exists():
        return 0.0
    with ledger.visit() as connection:
        total, used = _blocks(connection)
        worst = 1 - used / total if total else 0.0
        for table in _tables(connection):
            stored = connection.execute(
                "SELECT coalesce(sum(count), 0) FROM pragma_storage_info(?) WHERE column_id = 0 AND segment_type <> 'VALIDITY'",
                [table],
            ).fetchone()
            found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            physical, living = int(stored[0]) if stored else 0, int(found[0]) if found else 0
            if physical > 100:
                worst = max(worst, 1 - living / physical)
        return worst


def compact(ledger: Ledger, pace: Pace | None = None, edit: Edit | None = None) -> tuple[int, int]:
    """Write the ledger anew; returns its bytes (before, after). Raises Stopped, LedgerBusy or LockBusy, nothing changed.

    `edit(connection, table)` may change the rows of each slice, the table `slice`, before they are written.

    A missing file stays missing. The caller sees to it that nobody but the drain writes meanwhile (`upkeep.lock`).
    """
    pace = pace or Pace()
    if not ledger.path.exists():
        return 0, 0
    lock = lock_of(ledger)
    with LockFile(ledger.path.with_name(COPYING)).acquire(timeout=_PATIENCE):
        new = ledger.path.with_name(f"{ledger.path.name}{_NEW}")
        clear(ledger)
        try:
            with ledger.visit(write=True) as connection:
                tables = _tables(connection)
            before, which = ledger.size(), ledger.path.stat().st_ino
            with contextlib.closing(_connect(new)) as connection:
                ledger._migrate(connection)
                for table in (
                    "offsets",
                    "meta",
                    *(name for name in tables if name not in ("offsets", "meta")),
                ):
                    _copy(connection, ledger, table, pace, lock, edit)
                connection.execute("CHECKPOINT")
            _sync(new)
            with pace.slice(lock):
                _swap(ledger, new, which)
        finally:
            clear(ledger)
    return before, ledger.size()


def _copy(
    connection: DuckDBPyConnection,
    ledger: Ledger,
    table: str,
    pace: Pace,
    lock: Path,
    edit: Edit | None = None,
) -> None:
    """One table, in slices by its first column; the small ones that say where things stand in one piece."""
    if table in ("offsets", "meta"):
        with pace.slice(lock), _attached(connection, ledger):
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} SELECT * FROM old.{table}")
        return
    found = connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND column_index = 1", [table]
    ).fetchone()
    assert found is not None
    key, after = f'"{found[0]}"', ""
    while True:
        with pace.slice(lock), _attached(connection, ledger):
            last = connection.execute(
                f"SELECT max({key}) FROM (SELECT {key} FROM old.{table} WHERE {key} > ? ORDER BY {key} LIMIT {pace.rows})",
                [after],
            ).fetchone()
            if last is None or last[0] is None:
                break
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE slice AS SELECT * FROM old.{table} WHERE {key} > ? AND {key} <= ?",
                [after, last[0]],
            )
        after = last[0]
        if edit is not None:
            edit(connection, table)
        connection.execute(f"INSERT INTO {table} SELECT * FROM slice")
        connection.execute("DROP TABLE slice")
    if not after:
        return
    # Rows whose first column is empty come before every slice.
    with pace.slice(lock), _attached(connection, ledger):
        connection.execute(f"INSERT INTO {table} SELECT * FROM old.{table} WHERE {key} = ''")


@contextlib.contextmanager
def _attached(connection: DuckDBPyConnection, ledger: Ledger) -> Iterator[None]:
    connection.execute(f"ATTACH '{str(ledger.path).replace(chr(39), chr(39) * 2)}' AS old (READ_ONLY)")
    try:
        yield
    finally:
        connection.execute("DETACH old")


def _connect(path: Path) -> DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(str(path), config=dict(CONFIG))
    with contextlib.suppress(OSError):
        path.chmod(0o600)
    connection.execute("PRAGMA wal_autocheckpoint = '64MB'")
    return connection


def _swap(ledger: Ledger, new: Path, which: int) -> None:
    """Put the finished file in place; the caller holds the lock."""
    if ledger.path.stat().st_ino != which:
        raise Stopped  # it was damaged and begun anew meanwhile
    if ledger._wal.exists():  # a log of the old file must never meet the new one
        _connect(ledger.path).close()
        if ledger._wal.exists():
            raise Stopped
    new.replace(ledger.path)
    _sync(ledger.path.parent)


def clear(ledger: Ledger) -> None:
    """Remove what a killed copy left behind; the caller holds `upkeep.lock`."""
    new = ledger.path.with_name(f"{ledger.path.name}{_NEW}")
    for path in (new, new.with_name(f"{new.name}.wal")):
        with contextlib.suppress(OSError):
            path.unlink()


def _sync(path: Path) -> None:
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _tables(connection: DuckDBPyConnection) -> list[str]:
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY table_name"
    )
    return [row[0] for row in found.fetchall()]


def _blocks(connection: DuckDBPyConnection) -> tuple[int, int]:
    done = connection.execute("PRAGMA database_size")
    names = [column[0] for column in done.description or ()]
    row = done.fetchone() or ()
    found = dict(zip(names, row, strict=False))
    return int(found.get("total_blocks") or 0), int(found.get("used_blocks") or 0)
