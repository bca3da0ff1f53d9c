"""The drain: what the journals hold goes to every consumer, by one process at a time; then old journals may go."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from hermes_memory_plugin.errors import LedgerCorrupt
from hermes_memory_plugin.store.files import open_private
from hermes_memory_plugin.store.ledger_faults import LedgerUnusable
from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.store.queued import queued
from hermes_memory_plugin.store.tails import Chunk, journal_files, read_tails, retire

BATCH = 4 << 20
RETIRED = "retired.stamp"
"""A file beside the ledgers that is there once any journal was removed."""
COPYING = "compact.lock"
"""Held by whoever writes a ledger anew: until then its new file needs the journals from where the copy began."""
PAUSE = 0.5
"""Seconds between two drains of one home, whichever processes do them."""
_VISIT = 1.0  # seconds after which a consumer is closed and opened again, so that readers get their turn
_BREATH = 0.03


class Halted(Exception):
    """The process ends: what is left stays in the journals for the next one."""


class Intake(Protocol):
    """A consumer that is open to take records in."""

    @property
    def offsets(self) -> Mapping[str, int]:
        """How far each journal has been applied."""

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Store the records and move the offsets behind them, both or nothing; applying again changes nothing."""

    def drop(self, journals: Collection[str]) -> None:
        """Forget the offsets of journals that are gone."""


class Consumer(Protocol):
    """Something that is fed with every record exactly once: facts.db, logs.db, the read index."""

    @property
    def name(self) -> str:
        """What reports call it."""

    def intake(self) -> AbstractContextManager[Intake]:
        """Open it; raises when it cannot be opened now, and is asked again next time."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What one run did. It never raises: `errors` holds, by consumer, what kept it from taking everything."""

    state: Literal["done", "nothing new", "too soon", "another process drains"]
    records: Mapping[str, int] = field(default_factory=dict)
    """Records taken, by consumer."""
    refused: int = 0
    """Records a ledger could only keep as raw JSON."""
    torn: int = 0
    """Lines that were no record."""
    newer: int = 0
    """Records only a newer version can read; their journals stay."""
    retired: tuple[str, ...] = ()
    """Journals removed because everybody has them."""
    errors: Mapping[str, Exception] = field(default_factory=dict)
    notices: tuple[LedgerCorrupt, ...] = ()
    """Damaged files that were moved aside, to be said aloud."""

    @property
    def complete(self) -> bool:
        """Everything that was journalled before the run is with every consumer."""
        return self.state in ("done", "nothing new") and not self.errors


class Drain:
    """Feeds the consumers of one memory folder. Any process may run it at any time; one thread at a time."""

    def __init__(self, folder: Path, consumers: Sequence[Consumer]) -> None:
        self.folder = folder
        self.journals = folder / "journal"
        self.consumers = tuple(consumers)
        self._stamp = folder / "drain.stamp"  # its modification time is that of the last run
        self._seen: dict[str, int] = {}
        self.halted = False
        """Set by another thread when the process ends: a run stops after its present batch, the rest stays journalled."""
        self.moved = 0
        """Grows with every batch a consumer took in: who waits for a long run sees that it goes on."""
        self.blocked_by = ""
        """The process that kept the last run from beginning, as far as it can be named."""

    def run(self, *, force: bool = False, wait: float = 0.0) -> Drained:
        """Take in what is new, unless somebody just did. `force` asks no such question; `wait` is for the lock."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(queued(self.folder / "drain.lock", timeout=wait))
            except LockBusy as busy:
                # Whoever waits in the queue is not the one to blame.
                self.blocked_by = LockFile(self.folder / "drain.lock").holder() or busy.holder
                return Drained("another process drains")
            except OSError as refused:
                reason = f"{refused.filename or 'drain.lock'}: {refused.strerror or refused}"
                return Drained("done", errors={"drain": LedgerUnusable(self.folder, reason)})
            self.blocked_by = ""
            if not force and self._is_recent():
                return Drained("too soon")
            sizes = {file.name: file.size for file in journal_files(self.journals)}
            if not force and sizes == self._seen:
                return Drained("nothing new")
            drained = _Run(self.journals, sizes, self._seen, lambda: self.halted, self._step).through(
                self.consumers
            )
            left = {name: size for name, size in sizes.items() if name not in drained.retired}
            self._seen = left if drained.complete else {}
            self._mark()
            return drained

    def _step(self) -> None:
        self.moved += 1

    def _is_recent(self) -> bool:
        try:
            age = time.time() - self._stamp.stat().st_mtime
        except OSError:
            return False
        return 0 <= age < PAUSE  # a stamp from the future says that the clock was set back

    def _mark(self) -> None:
        with contextlib.suppress(OSError):  # without it the next run comes sooner than it must, no more
            os.close(open_private(self._stamp, os.O_CREAT | os.O_WRONLY))
            os.utime(self._stamp)


class _Run:
    """One run over all consumers."""

    def __init__(
        self,
        journals: Path,
        sizes: Mapping[str, int],
        seen: Mapping[str, int],
        halted: Callable[[], bool],
        step: Callable[[], None],
    ) -> None:
        self._journals = journals
        self._halted = halted
        self._step = step
        self._names = set(sizes)
        self._records: dict[str, int] = {}
        self._errors: dict[str, Exception] = {}
        self._passed: list[dict[str, int]] = []
        self._refused = self._torn = self._newer = 0
        self._first: tuple[Mapping[str, int], list[Chunk]] | None = None
        self._counted = False
        for name, size in sizes.items():
            if size != seen.get(name):
                _sync(journals / name)

    def through(self, consumers: Sequence[Consumer]) -> Drained:
        notices: list[LedgerCorrupt] = []
        for consumer in consumers:
            self._records[consumer.name] = 0
            if self._halted():
                self._errors[consumer.name] = Halted()
                continue
            try:
                for attempt in (1, 2):
                    try:
                        self._feed(consumer)
                        break
                    except LedgerCorrupt as damage:  # found in the middle of a visit, and moved aside
                        if attempt == 2 or damage.moved_to is None:
                            raise
            except Exception as error:
                self._errors[consumer.name] = error
            found = getattr(consumer, "notices", None)
            while found:
                notices.append(found.popleft())
        return Drained(
            "done",
            records=self._records,
            refused=self._refused,
            torn=self._torn,
            newer=self._newer,
            retired=self._retire(),
            errors=self._errors,
            notices=tuple(notices),
        )

    def _feed(self, consumer: Consumer) -> None:
        more = True
        while more:
            more = False
            with consumer.intake() as intake:
                intake.drop(set(intake.offsets) - self._names)
                ends = time.monotonic() + _VISIT
                for batch in self._batches(dict(intake.offsets)):
                    intake.apply(batch)
                    self._step()
                    self._records[consumer.name] += sum(len(chunk.records) for chunk in batch)
                    if self._halted():
                        raise Halted
                    if time.monotonic() > ends:
                        more = True
                        break
                self._refused += getattr(intake, "refused", 0)
                passed = dict(intake.offsets)
            if more:
                time.sleep(_BREATH)
        self._passed.append(passed)

    def _batches(self, offsets: Mapping[str, int]) -> Iterator[list[Chunk]]:
        """Chunks by some 4 MB; what the first consumer read is kept for the next when it is one batch only."""
        if self._first is not None and self._first[0] == offsets:
            if self._first[1]:
                yield self._first[1]
            return
        chunks: list[Chunk] = []
        size = batches = 0
        for chunk in read_tails(self._journals, offsets, limit=BATCH):
            if not self._counted:
                self._torn += chunk.torn
                self._newer += chunk.newer
            chunks.append(chunk)
            size += chunk.end - chunk.start
            if size >= BATCH:
                batches += 1
                yield chunks
                chunks, size = [], 0
        self._counted = True
        if batches == 0:
            self._first = (offsets, chunks)
        if chunks:
            yield chunks

    def _retire(self) -> tuple[str, ...]:
        if self._errors or not self._passed or _is_held(self._journals.parent / COPYING):
            return ()
        lowest = {name: min(passed.get(name, 0) for passed in self._passed) for name in self._names}
        gone = tuple(retire(self._journals, lowest))
        if gone:
            # From now on the journals alone do not hold everything: an index that is lost must be rebuilt.
            with contextlib.suppress(OSError):
                os.close(open_private(self._journals.parent / RETIRED, os.O_CREAT | os.O_WRONLY))
        return gone


def _is_held(path: Path) -> bool:
    if not path.exists():
        return False
    lock = LockFile(path)
    try:
        held = not lock.try_acquire(exclusive=False)
    except OSError:
        return False
    lock.release()
    return held


def _sync(path: Path) -> None:
    """What was acknowledged survives a loss of power from here on."""
    try:
        fd = open_private(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)
