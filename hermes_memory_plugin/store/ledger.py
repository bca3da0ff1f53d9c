"""A DuckDB file that is visited, never held: opened under our own lock, used, closed.

DuckDB lets one process at a time have a file, readers included. So nobody keeps a ledger open; a visit costs
some 15 to 25 ms. Whoever needs an answer in less time asks the read index instead.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hermes_memory_plugin.errors import LedgerBusy, LedgerCorrupt, LedgerNewer
from hermes_memory_plugin.store.ledger_faults import (
    Fault,
    LedgerFormatNewer,
    LedgerUnusable,
    fault,
    holder,
    is_damage,
    storage_versions,
)
from hermes_memory_plugin.store.locks import LockBusy
from hermes_memory_plugin.store.migrations import steps
from hermes_memory_plugin.store.queued import queued

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Owners = Collection[str] | None
"""Owner keys whose rows may be seen; None sees every owner's."""

# The same everywhere: one process cannot open a file twice with different settings. Storage is what the oldest
# supported DuckDB (1.4.4) reads; extensions are never fetched.
CONFIG: Mapping[str, str] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "storage_compatibility_version": "v1.4.0",
    "threads": "1",
}
_RETRY = 0.02
_NOT_OURS_TO_WRITE = {errno.EROFS, errno.EACCES}


class Ledger:
    """One DuckDB file: `visit` it, or ask with `rows`. Safe to use from several threads and processes."""

    name: ClassVar[str]

    def __init__(self, folder: Path, *, wait: float = 2.0) -> None:
        self.path = folder / f"{self.name}.db"
        self.wait = wait
        self.notices: deque[LedgerCorrupt] = deque(maxlen=20)
        """Damage this object came upon and repaired by moving files aside, oldest first."""

    @contextlib.contextmanager
    def visit(self, *, write: bool = False, wait: float | None = None) -> Iterator[DuckDBPyConnection]:
        """The open file, at the schema of this code, for the length of the `with` block.

        A write visit makes and upgrades the file. A read visit of a missing file raises FileNotFoundError. Raises
        LedgerBusy when the file is not free within `wait` seconds, LedgerNewer (nothing written) and
        LedgerUnusable; a damaged file is moved aside and begun anew, see `notices`.
        """
        import duckdb

        deadline = time.monotonic() + (self.wait if wait is None else wait)
        if not write and not self.path.exists():
            raise FileNotFoundError(self.path)
        with contextlib.ExitStack() as stack:
            connection = None if write else self._open_to_read(stack, deadline)
            if connection is None:
                connection = self._open_to_write(stack, deadline)
                write = True
            try:
                yield connection
            except duckdb.Error as error:
                kind = fault(error)
                if kind is Fault.CORRUPT:
                    connection.close()
                    raise self._set_aside(error, move=write) from error
                if kind in (Fault.SURROUNDINGS, Fault.ENGINE, Fault.PASSING):
                    raise LedgerUnusable(self.path, _first_line(error)) from error
                raise
            except OSError as error:
                raise LedgerUnusable(self.path, str(error)) from error

    def rows(
        self, sql: str, parameters: Sequence[Any] = (), *, wait: float | None = None
    ) -> list[dict[str, Any]]:
        """What a SELECT finds; nothing when there is no file yet."""
        try:
            with self.visit(wait=wait) as connection:
                return fetch(connection, sql, parameters)
        except FileNotFoundError:
            return []

    def offsets(self) -> dict[str, int]:
        """How far each journal is in this ledger."""
        return {row["journal"]: row["offset"] for row in self.rows('SELECT journal, "offset" FROM offsets')}

    def set_aside(self) -> list[Path]:
        """Damaged files kept beside the ledger, oldest first."""
        return sorted(self.path.parent.glob(f"{self.path.name}*.damaged-*"))

    def size(self) -> int:
        """Bytes of the file and of what is not folded into it yet."""
        return sum(file.stat().st_size for file in (self.path, self._wal) if file.exists())

    @property
    def schema(self) -> int:
        """The schema this code writes."""
        return len(self._steps())

    @property
    def _wal(self) -> Path:
        return self.path.with_name(f"{self.path.name}.wal")

    def _steps(self) -> tuple[str, ...]:
        return steps(self.name)

    def _open_to_read(self, stack: contextlib.ExitStack, deadline: float) -> DuckDBPyConnection | None:
        """None when the file must be repaired or upgraded first."""
        import duckdb

        with contextlib.ExitStack() as own:
            self._lock(own, deadline, shared=True)
            try:
                connection = self._connect(deadline, read_only=True)
                own.callback(connection.close)
                if self._schema_of(connection) < self.schema:
                    return None
            except duckdb.Error as error:
                if is_damage(error):
                    return None
                raise LedgerUnusable(self.path, _first_line(error)) from error
            stack.push(own.pop_all())
            return connection

    def _open_to_write(self, stack: contextlib.ExitStack, deadline: float) -> DuckDBPyConnection:
        import duckdb

        self._lock(stack, deadline, shared=False)
        for _ in range(3):  # the log may be moved aside, then the file
            try:
                connection = self._connect(deadline, read_only=False)
                with contextlib.suppress(OSError):
                    self.path.chmod(0o600)
            except duckdb.Error as error:
                if not is_damage(error):
                    raise LedgerUnusable(self.path, _first_line(error)) from error
                self._set_aside(error)
                continue
            stack.callback(connection.close)
            try:
                self._migrate(connection)
            except duckdb.Error as error:
                connection.close()
                if fault(error) is not Fault.CORRUPT:
                    raise LedgerUnusable(self.path, _first_line(error)) from error
                self._set_aside(error)
                continue
            return connection
        raise LedgerCorrupt(self.path, "it stays unreadable though damaged parts were moved aside")

    def _connect(self, deadline: float, *, read_only: bool) -> DuckDBPyConnection:
        import duckdb

        started = time.monotonic()
        while True:
            try:
                return duckdb.connect(str(self.path), read_only=read_only, config=dict(CONFIG))
            except duckdb.Error as error:
                kind = fault(error)
                if kind is Fault.NEWER:
                    raise LedgerFormatNewer(self.path, *storage_versions(error)) from error
                if kind is not Fault.BUSY:
                    raise
                if time.monotonic() >= deadline:
                    raise LedgerBusy(self.path, time.monotonic() - started, holder(error)) from error
            time.sleep(_RETRY)

    def _lock(self, stack: contextlib.ExitStack, deadline: float, *, shared: bool) -> None:
        path = self.path.with_name(f"{self.path.name}.lock")
        timeout = max(0.0, deadline - time.monotonic())
        try:
            stack.enter_context(queued(path, exclusive=not shared, timeout=timeout))
        except LockBusy as busy:
            raise LedgerBusy(self.path, busy.waited, busy.holder) from busy
        except OSError as refused:
            if shared and refused.errno in _NOT_OURS_TO_WRITE:
                return  # nobody writes through a read-only mount; where others may, DuckDB's own lock remains
            raise LedgerUnusable(self.path, f"{refused.filename or path}: {refused.strerror}") from refused

    def _schema_of(self, connection: DuckDBPyConnection) -> int:
        """Raises LedgerNewer when this code does not know the schema."""
        import duckdb

        try:
            found = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        except duckdb.CatalogException:
            return 0  # an empty file, or one from before schemas were counted
        schema = int(found[0]) if found else 0
        if schema > self.schema:
            raise LedgerNewer(self.path, schema, self.schema)
        return schema

    def _migrate(self, connection: DuckDBPyConnection) -> None:
        try:
            schema = self._schema_of(connection)
        except LedgerNewer:
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            raise
        for version, step in enumerate(self._steps()[schema:], start=schema + 1):
            with transaction(connection):
                connection.execute(step)
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL)"
                )
                connection.execute("DELETE FROM meta WHERE name = 'schema'")
                connection.execute("INSERT INTO meta VALUES ('schema', ?)", [str(version)])

    def _set_aside(self, error: Exception, *, move: bool = True) -> LedgerCorrupt:
        """Move what is damaged, keep it, and leave a notice."""
        moved: Path | None = None
        if move:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            damaged = [self._wal] if fault(error) is Fault.WAL else [self._wal, self.path]
            for file in damaged:
                if file.exists():
                    moved = _unused(file.with_name(f"{file.name}.damaged-{stamp}"))
                    try:
                        file.rename(moved)
                    except OSError as refused:
                        raise LedgerCorrupt(self.path, f"{_first_line(error)}; {refused}") from error
        notice = LedgerCorrupt(self.path, _first_line(error), moved)
        self.notices.append(notice)
        return notice


@contextlib.contextmanager
def transaction(connection: DuckDBPyConnection) -> Iterator[None]:
    """All of the block or nothing of it."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(Exception):  # a failed commit has rolled back already
            connection.execute("ROLLBACK")
        raise


def fetch(connection: DuckDBPyConnection, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """The rows of a SELECT as dictionaries."""
    done = connection.execute(sql, list(parameters))
    names = [column[0] for column in done.description or ()]
    return [dict(zip(names, row, strict=True)) for row in done.fetchall()]


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _unused(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        free, number = path.with_name(f"{path.name}.{number}"), number + 1
    return free
