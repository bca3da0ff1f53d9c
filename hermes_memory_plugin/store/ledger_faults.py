"""What an error of DuckDB means for the file it came from."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

from hermes_memory_plugin.errors import HermesMemoryError, LedgerNewer


class Fault(Enum):
    """Why DuckDB failed."""

    BUSY = "somebody holds the file"
    NEWER = "the file's format is newer than this DuckDB"
    WAL = "the write-ahead log is damaged, the file is not"
    CORRUPT = "the file is damaged"
    SURROUNDINGS = "the disk, the folder or the memory does not let us"
    ENGINE = "DuckDB itself failed"
    PASSING = "nothing is known against the statement or the file: it was interrupted, or lost its connection"
    STATEMENT = "the statement or its values are at fault"


class LedgerUnusable(HermesMemoryError):
    """The ledger cannot be opened or written for a reason outside it (disk full, rights …)."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} cannot be used: {reason}. What was acknowledged is safe in the journal: "
            "free space or fix the folder; the next drain catches up."
        )
        self.path = path
        self.reason = reason


class LedgerFormatNewer(LedgerNewer):
    """A newer DuckDB wrote the file in a format this one cannot read; nothing was written to it."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(path, found, known)
        self.args = (
            f"{path} has DuckDB storage version {found}, the DuckDB here reads up to {known}. Nothing was "
            "written: update DuckDB (pip install -U duckdb).",
        )


# First match wins: a full disk while checkpointing also speaks of a fatal error.
_SIGNS: tuple[tuple[Fault, re.Pattern[str]], ...] = (
    (
        Fault.BUSY,
        re.compile(
            r"conflicting lock|could not set lock|different configuration than existing|being used by another|unique file handle conflict",
            re.I,
        ),
    ),
    (Fault.NEWER, re.compile(r"database file with version number \d+")),
    (
        Fault.SURROUNDINGS,
        re.compile(
            r"no space left|disk quota|file too large|permission denied|read-only file system|input/output error"
            r"|too many open files|out of memory|failed to allocate|cannot open file|is a directory"
            r"|not enough space|failed to write|could not write|could not truncate",
            re.I,
        ),
    ),
    (
        Fault.WAL,
        re.compile(
            r"\bWAL\b.*(corrupt|not match|damaged)|(corrupt|replay\w*) .*\bWAL\b|\.wal\b.*corrupt",
            re.I | re.S,
        ),
    ),
    (
        Fault.CORRUPT,
        re.compile(
            r"not a valid duckdb database|corrupt database file|computed checksum|could not read enough bytes"
            r"|failed to deserialize|serialization error|failed to load metadata",
            re.I,
        ),
    ),
)
_ENGINE = frozenset({"InternalException", "FatalException"})
# A statement that was interrupted says nothing about its values. Seen in the drain on hermes-agent 0.17; by whom is not known.
_PASSING = frozenset(
    {
        "InterruptException",
        "OperationalError",
        "PermissionException",
        "SequenceException",
        "DependencyException",
    }
)
_VERSIONS = re.compile(r"version number (\d+).*?between \d+ and (\d+)", re.S)
_HOLDER = re.compile(r"held in (.+? \(PID \d+\))")


def fault(error: Exception) -> Fault:
    """Sort an exception of DuckDB; what no sign is known for is blamed on the statement, if its class may be."""
    text = str(error)
    for kind, sign in _SIGNS:
        if sign.search(text):
            return kind
    classes = {one.__name__ for one in type(error).__mro__}
    if classes & _ENGINE:
        return Fault.ENGINE
    return Fault.PASSING if classes & _PASSING else Fault.STATEMENT


def is_damage(error: Exception) -> bool:
    """Whether a file that could not be opened is damaged: its metadata may also make DuckDB itself fail."""
    return fault(error) in (Fault.WAL, Fault.CORRUPT, Fault.ENGINE)


def holder(error: Exception) -> str:
    """The process that holds the file, as DuckDB names it; "" when it does not."""
    found = _HOLDER.search(str(error))
    return found[1] if found else ""


def storage_versions(error: Exception) -> tuple[int, int]:
    """(version of the file, newest version this DuckDB reads)."""
    found = _VERSIONS.search(str(error))
    return (int(found[1]), int(found[2])) if found else (0, 0)
