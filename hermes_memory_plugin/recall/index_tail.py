"""Fresh rows of every process of the home, read from the ends of its journals."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.index_row import Change
from hermes_memory_plugin.store.ids import is_ulid

if TYPE_CHECKING:
    from hermes_memory_plugin.store.tails import Chunk, Record

RowsOf = Callable[["Record"], Iterable[Change]]

_SMALL = 256 << 10  # bytes of a chunk when somebody waits
_CROCKFORD = {letter: value for value, letter in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}


class JournalTail:
    """What follows the journals of one folder. `rows_of` turns a record into row changes."""

    def __init__(self, folder: Path, rows_of: RowsOf) -> None:
        self.folder = folder
        self.rows_of = rows_of
        self.offsets: dict[str, int] = {}
        """How far each journal was read; what was read but not taken yet waits in here."""
        self._waiting: deque[Record] = deque()

    @property
    def complete(self) -> bool:
        """Whether no journal of this home was ever removed, so that they hold all its records."""
        from hermes_memory_plugin.store.drain import RETIRED

        return not (self.folder.parent / RETIRED).exists()

    @property
    def waiting(self) -> int:
        """Records that were read and not taken yet."""
        return len(self._waiting)

    def unread(self) -> int:
        """Bytes that nobody has read yet; costs a look at the folder, no reading."""
        total = 0
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl"):
                        total += max(0, entry.stat().st_size - self.offsets.get(entry.name, 0))
        except FileNotFoundError:
            return 0
        return total

    def take(self, chunk: Chunk) -> None:
        """Queue what is new in a chunk (records met before do no harm); one that leaves a gap is not taken."""
        if chunk.start <= self.offsets.get(chunk.journal, 0) < chunk.end:
            self._waiting.extend(chunk.records)
            self.offsets[chunk.journal] = chunk.end

    def prune(self) -> None:
        """Drop the offsets of journals that are gone."""
        for name in [name for name in self.offsets if not (self.folder / name).exists()]:
            del self.offsets[name]

    def restart(self, offsets: Mapping[str, int]) -> None:
        """Read again from there."""
        self._waiting.clear()
        self.offsets = dict(offsets)

    def records(self, *, deadline: float | None = None) -> Iterator[Record]:
        """Records not taken yet, read on as needed; ends early once `time.monotonic()` passes the deadline."""
        while True:
            while self._waiting:
                yield self._waiting.popleft()
                if deadline is not None and time.monotonic() >= deadline:
                    return
            if not self.unread() or not self._read(deadline is not None):
                return

    def _read(self, hurried: bool) -> bool:
        """Queue one chunk; False when there is no complete record to read."""
        from hermes_memory_plugin.store.tails import read_tails

        limit = {"limit": _SMALL} if hurried else {}
        for chunk in read_tails(self.folder, self.offsets, **limit):
            before = self.offsets.get(chunk.journal, 0)
            self.take(chunk)
            if chunk.end > before:
                return True
        return False


def stamp_of(record: Record) -> int:
    """When the record was written, in epoch microseconds.

    Its `at` is taken only where it lies in the millisecond of its id: both halves of a turn share one `at`, and the
    second must be the newer version of the row also when the first is on disk already.
    """
    if not is_ulid(record.id):
        return record.at
    milliseconds = 0
    for letter in record.id[:10]:
        milliseconds = milliseconds << 5 | _CROCKFORD[letter]
    written = milliseconds * 1_000
    return record.at if written <= record.at < written + 1_000 else written
