"""The read index of one home: the only thing recall reads.

Immutable segments below `memory/index/`, the ends of all journals behind them, and what this process has just written.
No lock between processes is needed to read; the holder of the drain lock alone writes (`index_writer`).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hermes_memory_plugin.layers.facts import retires as retires_by_rank
from hermes_memory_plugin.recall.index_corpus import Corpus, Part, Retires
from hermes_memory_plugin.recall.index_disk import Manifest, Signature, load, signature
from hermes_memory_plugin.recall.index_files import Array, IndexDamaged
from hermes_memory_plugin.recall.index_row import Add, Change, Remove, Row, digest
from hermes_memory_plugin.recall.index_tail import JournalTail, stamp_of
from hermes_memory_plugin.recall.index_view import View
from hermes_memory_plugin.store.ids import MAX_LETTERS, MIN_LETTERS, handle_letters, parse_handle

if TYPE_CHECKING:
    from hermes_memory_plugin.store.tails import Record

__all__ = ["Add", "Change", "Index", "IndexDamaged", "JournalTail", "Refreshed", "Remove", "Row", "View"]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh found. `backlog`: bytes and records left for the next one (0: everything is in)."""

    records: int
    backlog: int
    adopted: bool


class Index:
    """Rows of every layer and owner. Safe to share between threads; one per process and home.

    `notice` says why the index on disk could not be used (None when it could); the rows then come from the journals
    alone until `index_writer.rebuild` has run. `failures` counts records whose rows could not be made.
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
        self.reading = threading.Lock()
        """Held by the one thread that reads journals."""
        self.writing = threading.RLock()
        """Held by the one thread that writes a generation."""
        _indexes.add(self)

    @classmethod
    def open(
        cls, folder: Path, *, tail: JournalTail, tokenizer: str = "", retires: Retires = retires_by_rank
    ) -> Index:
        """The index of a folder. Never raises for what is on disk: see `notice` and `missing`."""
        index = cls(folder, tail, tokenizer=tokenizer, retires=retires)
        index.adopt()
        return index

    def after_fork(self) -> None:
        """In a forked child: nothing another thread was doing then counts; all is read again from disk."""
        self.lock, self.reading, self.writing = threading.RLock(), threading.Lock(), threading.RLock()
        self.corpus = Corpus(self.retires)
        self.manifest = Manifest(tokenizer=self.tokenizer)
        self.missing, self._seen, self._own = True, None, set()
        self.tail.restart({})
        self.adopt()

    # -- what comes in ---------------------------------------------------------------------------------------------

    def apply(self, *records: Record) -> None:
        """Take records this process has just journalled; the next view shows them."""
        with self.lock:
            for record in records:
                self._own.add(record.id)
                self._take(record)

    def change(self, changes: Iterable[Change], *, stamp: int | None = None) -> None:
        """Take changes that no journal record stands for (Markdown files, a rebuild).

        `stamp` (epoch microseconds, default now) decides against other versions of the same ids.
        """
        stamp = time.time_ns() // 1000 if stamp is None else stamp
        with self.lock:
            for one in changes:
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
            with self.lock:
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
        self.corpus.adopt(loaded.parts, loaded.forgotten, loaded.removed)
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
            self._seen = signature(self.folder)

    def adopted(self, manifest: Manifest, seen: Signature) -> None:
        """The writer of this process has put this generation on disk; memory has it already."""
        self.manifest, self._seen = manifest, seen
        self.notice, self.missing = None, False

    def _take(self, record: Record) -> None:
        try:
            changes = list(self.tail.rows_of(record))
        except Exception:
            self.failures += 1
            return
        stamp = stamp_of(record)
        for one in changes:
            self._change(one, stamp, record.at)

    def _change(self, one: Change, stamp: int, at: int | None) -> None:
        if isinstance(one, Remove):
            self.corpus.remove(one.ids, stamp, forever=one.forever)
        else:
            self.corpus.add(one.row, stamp, one.row.created or stamp if at is None else at)

    # -- what goes out ---------------------------------------------------------------------------------------------

    def view(
        self,
        owners: Collection[str] | None,
        *,
        now_us: int,
        layers: Collection[str] | None = None,
        states: Collection[str] = ("live",),
        projects: Collection[str] | None = None,
    ) -> View:
        """What these owners may see (None: every owner). `projects`: only rows of these ("" = of none)."""
        with self.lock:
            self.corpus.flush()
            return View(
                self.corpus.parts,
                owners=owners,
                now_us=now_us,
                layers=layers,
                states=states,
                projects=projects,
            )

    def find(self, id_or_handle: str, owners: Collection[str] | None) -> Row | None:
        """The row of an id or handle whatever its state; None when it is gone, unknown or somebody else's."""
        with self.lock:
            self.corpus.flush()
            place = self._exact(digest(id_or_handle)) or self._by_handle(id_or_handle)
            row = place[0].segment.row(place[1]) if place else None
        return row if row is not None and (owners is None or row.owner in owners) else None

    def by_digest(self, id_digest: int, owners: Collection[str] | None) -> Row | None:
        """The living row whose id has this digest (see `View.successor`)."""
        with self.lock:
            self.corpus.flush()
            place = self._exact(id_digest)
            row = place[0].segment.row(place[1]) if place else None
        return row if row is not None and (owners is None or row.owner in owners) else None

    def superseded_by(self, row_id: str, owners: Collection[str] | None) -> Row | None:
        """The row that stands in place of this one."""
        with self.lock:
            self.corpus.flush()
            place = self._exact(digest(row_id))
            successor = int(place[0].successor[place[1]]) if place else 0
        return self.by_digest(successor, owners) if successor else None

    def handle(self, row: Row | str) -> str:
        """The short name of a row: its letter and the fewest letters (four at least) no older row begins with."""
        letter = "f" if isinstance(row, str) else handle_letter(row)
        key = digest(row if isinstance(row, str) else row.id)
        with self.lock:
            self.corpus.flush()
            place = self._exact(key)
            born = int(place[0].segment.column["born"][place[1]]) if place else time.time_ns() // 1000
            if place and isinstance(row, str):
                letter = handle_letter(place[0].segment.row(place[1]))
            for length in range(MIN_LETTERS, MAX_LETTERS + 1):
                handle = f"{letter}-{handle_letters(key, length)}"
                parsed = parse_handle(handle)
                if parsed is None or all(
                    (at, other) >= (born, key) for at, other in self.corpus.births(*parsed[1:])
                ):
                    break
        return handle

    def same_key(self, fact_key: str, owner: str) -> list[Row]:
        """Every row, of any state, that speaks of the same thing; newest as-of date first."""
        group = np.array([digest(f"{owner}\x1f{fact_key}")], np.uint64)
        with self.lock:
            self.corpus.flush()
            rows = [
                part.segment.row(number)
                for part in self.corpus.parts
                for _, numbers in part.segment.members(group)
                for number in numbers.tolist()
                if not part.dead[number]
            ]
        return sorted(rows, key=lambda row: (row.as_of or 0, row.trust, row.created), reverse=True)

    def by_session(
        self, session: str, owners: Collection[str] | None, *, layers: Collection[str] | None = None
    ) -> list[Row]:
        """The rows of one session in the order they were created."""
        view = self.view(owners, now_us=0, layers=layers, states=("live", "superseded", "expired"))
        if not view.size:
            return []
        numbers = np.flatnonzero((view.column("session") == np.uint64(digest(session))) & view.mask)
        return [
            row for row in view.rows(_by_time(view, numbers, newest_first=False)) if row.session == session
        ]

    def scan(
        self,
        owners: Collection[str] | None,
        *,
        now_us: int,
        layers: Collection[str] | None = None,
        kinds: Collection[str] | None = None,
        states: Collection[str] = ("live",),
        projects: Collection[str] | None = None,
        since: int | None = None,
        until: int | None = None,
        newest_first: bool = True,
        limit: int | None = None,
    ) -> list[Row]:
        """Rows by creation time (epoch microseconds, `until` excluded), without any search."""
        view = self.view(owners, now_us=now_us, layers=layers, states=states, projects=projects)
        numbers = view.numbers(kinds=kinds)
        created = view.column("created", numbers)
        wanted = np.ones(len(numbers), bool)
        if since is not None:
            wanted &= created >= since
        if until is not None:
            wanted &= created < until
        return view.rows(_by_time(view, numbers[wanted], newest_first=newest_first)[:limit])

    def owners(self) -> dict[str, int]:
        """How many rows, of any state, each owner has."""
        counts: dict[str, int] = {}
        with self.lock:
            self.corpus.flush()
            for part in self.corpus.parts:
                codes = part.segment.column["owner"][~part.dead]
                table = part.segment.tables["owner"]
                for code, count in enumerate(np.bincount(codes, minlength=len(table)).tolist()):
                    if count:
                        counts[table[code]] = counts.get(table[code], 0) + count
        return counts

    def __len__(self) -> int:
        with self.lock:
            self.corpus.flush()
            return sum(int(np.count_nonzero(~part.dead)) for part in self.corpus.parts)

    # -- lookups ---------------------------------------------------------------------------------------------------

    def _exact(self, key: int) -> tuple[Part, int] | None:
        ids = np.array([key], np.uint64)
        for part in reversed(self.corpus.parts):
            for _, row in part.find(ids):
                return part, row
        return None

    def _by_handle(self, text: str) -> tuple[Part, int] | None:
        parsed = parse_handle(text)
        births = self.corpus.births(*parsed[1:]) if parsed else []
        # The oldest is meant, also when it is forgotten: then the handle means nothing any more.
        return self._exact(min(births)[1]) if births else None


def handle_letter(row: Row) -> str:
    """What stands before the dash: f fact, t tool call, d dialogue, s scene, n note, r report, p persona."""
    if row.layer == "L0":
        return "d" if row.kind == "turn" else "t"
    if row.layer == "L2":
        return "s" if row.kind == "scene" else "n"
    return {"L1": "f", "report": "r", "L3": "p"}[row.layer]


def _by_time(view: View, numbers: Array, *, newest_first: bool) -> Sequence[int]:
    order = np.lexsort((numbers, view.column("created", numbers)))
    chosen: list[int] = numbers[order[::-1] if newest_first else order].tolist()
    return chosen


_indexes: weakref.WeakSet[Index] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for index in list(_indexes):
        index.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
