"""Reading journals: what came after an offset, who is still alive, and what may go."""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_plugin.store.files import open_private
from hermes_memory_plugin.store.locks import try_lock, unlock

VERSION = 1
SUFFIX = ".jsonl"
_NAME = re.compile(rf"(\d+)-(\d+){re.escape(SUFFIX)}")
_HEX = re.compile(rb"[0-9a-f]{8} ")


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it was stored: secrets masked. `at` is in epoch microseconds."""

    id: str
    kind: str
    owner: str
    at: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The whole lines of `journal` between two offsets.

    `torn` counts lines that are no record (a killed or failed write; never acknowledged). `newer` counts records of
    a newer version seen behind `end`: the chunk stops before the first of them, possibly where it started, so that
    nobody passes what only a later version can read.
    """

    journal: str
    start: int
    end: int
    records: tuple[Record, ...]
    torn: int
    owner_alive: bool
    newer: int


@dataclass(frozen=True, slots=True)
class JournalFile:
    """A journal on disk; `started` is in epoch microseconds."""

    name: str
    pid: int
    started: int
    size: int
    alive: bool


def read_tails(folder: Path, offsets: Mapping[str, int], *, limit: int = 4 << 20) -> Iterator[Chunk]:
    """Everything behind `offsets` (journal name to byte offset; missing = 0), oldest journal first.

    A chunk holds about `limit` bytes; only a longer single record makes it larger. Never raises for what is in a
    file. A journal that grows meanwhile is read to the size it had.
    """
    for name, _, _ in _names(folder):
        yield from _read(folder / name, offsets.get(name, 0), max(limit, 1))


def retire(folder: Path, passed: Mapping[str, int]) -> list[str]:
    """Remove journals whose owner is dead and that `passed` (the LOWEST offset of all consumers) has reached the
    end of; returns their names. A dead journal without a byte goes too."""
    gone = []
    for name, _, _ in _names(folder):
        with _opened(folder / name) as fd:
            if fd is None or passed.get(name, 0) < os.fstat(fd).st_size:
                continue
            # With the lock nobody can append any more: the size read now is final.
            if not try_lock(fd, exclusive=True):
                continue
            try:
                if passed.get(name, 0) >= os.fstat(fd).st_size:
                    (folder / name).unlink()
                    gone.append(name)
            except OSError:
                continue  # read-only, or an open file on Windows: the next round tries again
    return gone


def journal_files(folder: Path) -> list[JournalFile]:
    """All journals of `folder`, oldest first, for a status page."""
    found = []
    for name, pid, started in _names(folder):
        with _opened(folder / name) as fd:
            if fd is not None:
                found.append(JournalFile(name, pid, started // 1000, os.fstat(fd).st_size, _alive(fd)))
    return found


def live_journals(folder: Path) -> list[JournalFile]:
    """The journals whose owner is still running."""
    return [file for file in journal_files(folder) if file.alive]


def _names(folder: Path) -> list[tuple[str, int, int]]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are all we need
    except OSError:
        return []
    matches = (_NAME.fullmatch(name) for name in names)
    return sorted(((m[0], int(m[1]), int(m[2])) for m in matches if m), key=lambda item: (item[2], item[1]))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    try:
        fd = open_private(path, os.O_RDONLY)
    except OSError:  # retired by another process a moment ago, or a symlink somebody put there
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _alive(fd: int) -> bool:
    if not try_lock(fd, exclusive=True):
        return True
    unlock(fd)
    return False


def _read(path: Path, start: int, limit: int) -> Iterator[Chunk]:
    with _opened(path) as fd:
        # The usual case first: nothing new, nothing to ask the kernel's locks about.
        if fd is None or os.fstat(fd).st_size <= start:
            return
        alive = _alive(fd)  # asked BEFORE the size: when dead, the size is final
        size = os.fstat(fd).st_size
        while start < size:
            data, whole = _lines(fd, start, size, limit)
            if not whole and alive:
                return  # a record on its way
            records, used, torn, newer = _parse(data)
            if not whole and not newer:
                torn, used = torn + 1, len(data)
            end = start + used
            yield Chunk(path.name, start, end, records, torn, alive, newer)
            if newer:
                return
            start = end


def _lines(fd: int, start: int, size: int, limit: int) -> tuple[bytes, bool]:
    """The bytes from `start` to the last newline within `limit`, or to the next one when a line is longer.

    (…, False) is the rest of the file without any newline.
    """
    parts: list[bytes] = []
    position = start
    while position < size:
        part = _pread(fd, min(limit, size - position), position)
        if not part:
            break
        cut = part.find(b"\n") if parts else part.rfind(b"\n")
        if cut >= 0:
            parts.append(part[: cut + 1])
            return b"".join(parts), True
        parts.append(part)
        position += len(part)
    return b"".join(parts), False


if hasattr(os, "pread"):
    _pread = os.pread
else:

    def _pread(fd: int, count: int, position: int, /) -> bytes:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, count)


def _parse(data: bytes) -> tuple[tuple[Record, ...], int, int, int]:
    """(records, bytes used, torn lines, newer records behind the used bytes)."""
    records: list[Record] = []
    torn = newer = used = position = 0
    for line in data.splitlines(keepends=True) if b"\r" not in data else _split(data):
        position += len(line)
        if newer == 0:
            used = position
        if not line.endswith(b"\n") or line == b"\n":
            continue  # the rest without a newline is the caller's; a blank line begins after a torn piece
        found = _record(line)
        if isinstance(found, Record):
            if newer == 0:
                records.append(found)
        elif found is None:
            torn += newer == 0
        else:
            if newer == 0:
                used = position - len(line)
            newer += 1
    return tuple(records), used, torn, newer


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


def _record(line: bytes) -> Record | int | None:
    """The record of a line; its version when that is a newer one; None for what is no record."""
    body = memoryview(line)[9:-1]
    if not _HEX.match(line) or int(line[:8], 16) != zlib.crc32(body):
        return None
    try:
        fields = json.loads(str(body, "utf-8"))
        version = fields["v"]
        if type(version) is int and version > VERSION:
            return version
        record = Record(fields["id"], fields["k"], fields["o"], fields["t"], fields["d"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    sound = (
        type(version) is int
        and version == VERSION
        and all(isinstance(text, str) for text in (record.id, record.kind, record.owner))
        and type(record.at) is int
        and isinstance(record.data, dict)
    )
    return record if sound else None
