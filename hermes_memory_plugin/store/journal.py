"""The journal: where every write lands first, and what has been acknowledged is never lost.

One file per process, only ever appended to, one line per record: eight hex digits of CRC-32 over the JSON bytes, a
space, compact JSON, a newline. The whole line goes out in one `write`, so a kill leaves at most one torn piece at the
end, which no reader takes for a record. A shared lock on the open file is the owner's sign of life; the kernel
drops it with the process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes_memory_plugin.errors import JournalWriteFailed
from hermes_memory_plugin.store.encode import encode
from hermes_memory_plugin.store.files import open_private, private_folder
from hermes_memory_plugin.store.ids import new_ulid
from hermes_memory_plugin.store.locks import try_lock
from hermes_memory_plugin.store.tails import (
    SUFFIX,
    VERSION,
    Chunk,
    JournalFile,
    Record,
    journal_files,
    live_journals,
    read_tails,
    retire,
)

__all__ = [
    "Chunk",
    "Journal",
    "JournalFile",
    "Record",
    "journal_files",
    "live_journals",
    "read_tails",
    "retire",
]

# The host's ids are looked up again later: they are never masked.
_IDS = ("call", "id", "ids", "session", "turn")
_BATCH_BYTES = 1 << 20
_LOCK_PAUSE = 0.001
# A fresh file would not help against these.
_HOPELESS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


class Journal:
    """This process's journal in `folder`. Safe to share between threads, and across a fork.

    `redact` is applied to every text after the built-in masking. The file is created by the first append, anew after
    a fork, at `rotate_bytes`, and when somebody removed it.
    """

    def __init__(
        self, folder: Path, *, rotate_bytes: int = 64 << 20, redact: Callable[[str], str] | None = None
    ) -> None:
        self.folder = folder
        self.name = ""
        self.offset = 0
        self._rotate_bytes = rotate_bytes
        self._redact = redact
        self._lock = threading.Lock()
        self._fd = -1
        self._pid = 0
        self._file = (0, 0)  # device and inode
        self._end = 0  # size of the file before the write under way
        self._torn = False
        _journals.add(self)

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        owner: str = "local",
        id: str | None = None,
        at: int | None = None,
    ) -> Record:
        """Store one record; it is acknowledged when this returns, and survives the death of the process.

        Secrets are masked first. Values JSON does not know become text. Raises `JournalWriteFailed` (disk full,
        read-only …); then nothing is stored and the file is as sound as before.
        """
        record, line = self._line(kind, data, owner, id, at)
        with self._lock:
            self._write(line)
        return record

    def append_many(
        self, records: Iterable[tuple[str, Mapping[str, Any], str, str | None, int | None]]
    ) -> list[Record]:
        """Store (kind, data, owner, id or None, at or None) records with one write per megabyte.

        When a write fails, the megabytes before it are stored and its own is not.
        """
        stored: list[Record] = []
        batch: list[bytes] = []
        size = 0
        for item in records:
            record, line = self._line(*item)
            stored.append(record)
            batch.append(line)
            size += len(line)
            if size >= _BATCH_BYTES:
                with self._lock:
                    self._write(b"".join(batch))
                batch, size = [], 0
        if batch:
            with self._lock:
                self._write(b"".join(batch))
        return stored

    def close(self) -> None:
        """Close the file; a later append begins a new one."""
        with self._lock:
            self._drop()

    def _line(
        self, kind: str, data: Mapping[str, Any], owner: str, id: str | None, at: int | None
    ) -> tuple[Record, bytes]:
        if at is None:
            at = time.time_ns() // 1000
        if id is None:
            id = new_ulid()
        ids = {key: data[key] for key in _IDS if key in data}
        rest = {key: value for key, value in data.items() if key not in ids} if ids else dict(data)
        rest, rest_json = encode(rest, mask=True, redact=self._redact)
        ids, ids_json = encode(ids)
        _, head = encode({"v": VERSION, "id": id, "k": kind, "o": owner, "t": at})
        comma = b"," if ids and rest else b""
        parts = (
            head[:-1],
            b',"d":',
            ids_json[:-1],
            comma,
            memoryview(rest_json)[1:],
            b"}",
        )  # one copy less of what may be long
        crc = 0
        for part in parts:
            crc = zlib.crc32(part, crc)
        return Record(id, kind, owner, at, ids | rest), b"".join((b"%08x " % crc, *parts, b"\n"))

    def _write(self, line: bytes) -> None:
        for last in (False, True):
            try:
                self._ready(len(line))
                # After a torn piece that could not be taken back the record begins on a line of its own.
                data = b"\n" + line if self._torn else line
                written = os.write(self._fd, data)
            except OSError as error:
                if not last and error.errno not in _HOPELESS:
                    self._drop()  # the file or its folder may have vanished, or reached a limit: try a fresh one
                    continue
                raise self._failed(error.strerror or str(error)) from error
            if written < len(data):
                self._cut()
                if not last and self._end:  # a limit on the size of files looks the same as a full disk
                    self._drop()
                    continue
                raise self._failed(f"only {written} of {len(data)} bytes fit")
            self.offset = self._end + written
            self._torn = False
            return

    def _ready(self, size: int) -> None:
        if self._fd >= 0 and self._pid == os.getpid():
            stat = os.fstat(self._fd)
            if (stat.st_dev, stat.st_ino) != self._file:
                self._fd = -1  # somebody closed it and the number is another file's now: not ours to close
            elif not stat.st_mode & 0o200:
                pass  # sealed: somebody wants the file to come to its end, see `upkeep --purge`
            elif stat.st_nlink and not (stat.st_size and stat.st_size + size > self._rotate_bytes):
                self._end = stat.st_size
                return
        self._drop()
        self._open()

    def _open(self) -> None:
        pid = os.getpid()
        while True:
            private_folder(self.folder)
            name = f"{pid}-{time.time_ns()}{SUFFIX}"
            try:
                fd = open_private(self.folder / name, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY)
            except FileExistsError:
                continue
            except FileNotFoundError:
                if self.folder.is_dir():
                    raise
                continue
            try:
                while not try_lock(fd, exclusive=False):
                    time.sleep(_LOCK_PAUSE)  # a drainer is just looking at it
                stat = os.fstat(fd)
            except BaseException:
                os.close(fd)
                raise
            if stat.st_nlink:
                break
            os.close(fd)  # the drainer took the file for a dead one's and removed it before the lock
        self._fd, self._pid, self._file, self._torn = fd, pid, (stat.st_dev, stat.st_ino), False
        self.name, self.offset, self._end = name, 0, 0

    def _cut(self) -> None:
        # No reader looks behind the last newline of a living journal, so the torn piece can be taken back.
        try:
            os.ftruncate(self._fd, self._end)
        except OSError:
            self._torn = True

    def _drop(self) -> None:
        fd, self._fd = self._fd, -1
        self.name, self.offset, self._torn = "", 0, False
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _failed(self, reason: str) -> JournalWriteFailed:
        return JournalWriteFailed(self.folder / self.name if self.name else self.folder, reason)

    def _after_fork(self) -> None:
        # The parent's file stays the parent's: only our copy of the descriptor goes, or it would look alive for ever.
        self._lock = threading.Lock()
        self._drop()


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for journal in list(_journals):
        journal._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
