"""What comes into the read index of a process: generations from disk, records from journals, its own writes."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hermes_memory_plugin.layers.facts import retires as retires_by_rank
from hermes_memory_plugin.recall.index_corpus import Corpus, Part, Retires
from hermes_memory_plugin.recall.index_disk import Manifest, Signature, load, signature
from hermes_memory_plugin.recall.index_files import IndexDamaged, verify
from hermes_memory_plugin.recall.index_row import Change, Remove
from hermes_memory_plugin.recall.index_tail import JournalTail, stamp_of

if TYPE_CHECKING:
    from hermes_memory_plugin.store.tails import Record


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh found. `backlog`: bytes and records left for the next one (0: everything is in)."""

    records: int
    backlog: int
    adopted: bool


class Following:
    """Keeps a corpus up to date. Safe to share between threads; one per process and home.

    `notice` says why the index on disk could not be used (None when it could); the rows then come from the journals
    alone until `IndexWriter.rebuild` has run. `failures` counts records whose rows could not be made.
    """

    def __init__(
        self, folder: Path, tail: JournalTail, *, tokenizer: str = "", retires: Retires = retires_by_rank
    ) -> None:
        self.folder = folder
        self.tail = tail
        self.tokenizer = tokenizer
        self.manifest = Manifest(tokenizer=tokenizer)
        self.notice: IndexDamaged | None = None
        self.missing = True
        """There is nothing on disk yet (or nothing that can be used)."""
        self.failures = 0
        self.retires = retires
        self.corpus = Corpus(retires)
        self.lock = threading.RLock()
        self._seen: Signature | None = None
        self._own: set[str] = set()
        self._making = threading.Lock()
        """Held by the one thread that makes rows of a record; may be waited for, but never under `lock`."""
        self.written = -1
        """The version of the corpus that is on disk."""
        self.reading = threading.Lock()
        """Held by the one thread that reads journals."""
        self.writing = threading.RLock()
        """Held by the one thread that writes a generation."""
        _indexes.add(self)

    @classmethod
    def open(
        cls, folder: Path, *, tail: JournalTail, tokenizer: str = "", retires: Retires = retires_by_rank
    ) -> Self:
        """The index of a folder. Never raises for what is on disk: see `notice` and `missing`."""
        index = cls(folder, tail, tokenizer=tokenizer, retires=retires)
        index.adopt()
        return index

    def after_fork(self) -> None:
        """In a forked child: nothing another thread was doing then counts; all is read again from disk."""
        self.lock, self.reading, self.writing = threading.RLock(), threading.Lock(), threading.RLock()
        self._making = threading.Lock()
        self.corpus = Corpus(self.retires)
        self.manifest = Manifest(tokenizer=self.tokenizer)
        self.missing, self._seen, self._own = True, None, set()
        self.tail.restart({})
        self.adopt()

    def apply(self, *records: Record) -> None:
        """Take records this process has just journalled; the next view shows them.

        Only what is taken is passed over when the journal is read: offsets on disk never stand for a row that is not.
        """
        for record in records:
            self._take(record)
            with self.lock:
                self._own.add(record.id)

    def change(self, changes: Iterable[Change], *, stamp: int | None = None) -> None:
        """Take changes that no journal record stands for (Markdown files, a rebuild).

        `stamp` (epoch microseconds, default now) decides against other versions of the same ids.
        """
        stamp = time.time_ns() // 1000 if stamp is None else stamp
        for one in changes:
            with self.lock:
                self._change(one, stamp, None)

    def refresh(self, *, budget_ms: float | None = None) -> Refreshed:
        """Take what other processes have written since. Cheap when nothing has; ends early past the budget.

        A second thread that asks meanwhile does not wait: it gets what is there.
        """
        if not self.reading.acquire(blocking=False):
            return Refreshed(0, self.tail.unread() + self.tail.waiting, False)
        try:
            return self._refresh(budget_ms)
        finally:
            self.reading.release()

    def caught_up(self) -> tuple[dict[str, int], list[Part], list[Part]]:
        """Take everything there is, then: offsets that stand for exactly that, the parts on disk and in memory."""
        with self.reading:
            self._refresh(None)
            with self.lock:
                self.corpus.flush()
                self.tail.prune()
                return dict(self.tail.offsets), list(self.corpus.disk), list(self.corpus.memory)

    def _refresh(self, budget_ms: float | None) -> Refreshed:
        deadline = None if budget_ms is None else time.monotonic() + budget_ms / 1000
        adopted = self.adopt()
        with self.lock:
            before, self._own = self._own, set()
        count = 0
        for record in self.tail.records(deadline=deadline):
            if record.id in before or record.id in self._own:
                continue
            self._take(record)
            count += 1
        if self.tail.waiting or (deadline is not None and time.monotonic() >= deadline):
            with self.lock:  # not met yet
                self._own |= before
        # A journal may have been drained and removed since the first look.
        adopted |= self.adopt()
        return Refreshed(count, self.tail.waiting + self.tail.unread(), adopted)

    def adopt(self) -> bool:
        """Take the newest generation on disk, if it is another one. Never while this process writes one."""
        seen = signature(self.folder)
        if seen == self._seen or not self.writing.acquire(blocking=False):
            return False
        try:
            with self.lock:
                return self._adopt(seen)
        finally:
            self.writing.release()

    def _adopt(self, seen: Signature | None) -> bool:
        try:
            loaded = load(self.folder, self.tokenizer, self.corpus.disk)
        except IndexDamaged as damage:
            self.notice, self._seen = damage, seen
            return False
        if loaded is None:
            self._seen = None
            return False
        previous = self.manifest.offsets
        self.corpus.adopt(loaded.parts, loaded.gone)
        offsets = self.tail.offsets
        for journal, offset in loaded.manifest.offsets.items():
            behind = offset < previous.get(journal, 0)  # rebuilt from an older state: read that part again
            offsets[journal] = offset if behind else max(offset, offsets.get(journal, 0))
        self.manifest, self._seen = loaded.manifest, loaded.signature
        self.notice, self.missing = None, False
        return True

    def start_over(self, offsets: Mapping[str, int]) -> None:
        """Hold nothing, whatever is on disk; journals are read again from `offsets`."""
        with self.reading, self.lock:
            self.corpus = Corpus(self.retires)
            self.tail.restart(offsets)
            self.manifest = Manifest(generation=self.manifest.generation, tokenizer=self.tokenizer)
            self.missing = True
            self._seen = signature(self.folder)

    def replace_with(self, other: Following) -> None:
        """Hold what another index of the same folder holds, which nobody else uses; fresher records are read again."""
        with self.reading, self.lock:
            self.corpus, self.written, self._own = other.corpus, other.written, set()
            self.tail.restart(other.tail.offsets)
            assert other._seen is not None
            self.adopted(other.manifest, other._seen)

    def verify(self) -> None:
        """Read every file of this generation; raises IndexDamaged, and remembers it as the notice."""
        named = [*self.manifest.files, *([self.manifest.overlay] if self.manifest.overlay else [])]
        try:
            for name, size, crc in named:
                verify(self.folder / name, size, crc)
        except IndexDamaged as damage:
            if self._seen == signature(self.folder):  # otherwise the files went with their generation
                self.notice = damage
                raise

    def adopted(self, manifest: Manifest, seen: Signature) -> None:
        """The writer of this process has put this generation on disk; memory has it already."""
        self.manifest, self._seen = manifest, seen
        self.notice, self.missing = None, False

    def _take(self, record: Record) -> None:
        # Cutting a long text takes its time: nobody's view waits for it.
        with self._making:
            try:
                changes = list(self.tail.rows_of(record))
            except Exception:
                self.failures += 1
                return
            stamp = stamp_of(record)
            with self.lock:
                for one in changes:
                    self._change(one, stamp, record.at)

    def _change(self, one: Change, stamp: int, at: int | None) -> None:
        if isinstance(one, Remove):
            self.corpus.remove(one.ids, stamp, forever=one.forever)
        else:
            born = one.row.created or stamp if at is None else at
            self.corpus.add(one.row, stamp, born, restored=one.restored)


_indexes: weakref.WeakSet[Following] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for index in list(_indexes):
        index.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
