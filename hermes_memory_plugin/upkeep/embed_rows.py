"""What a table of vectors must hold, seen from the read index: rows to embed, to mark and to take out.

There is no cursor to lose: index and table are compared, so a killed process, a forgotten row, another encoder and a
table that was made anew are all the same case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.vectors import NEVER, Entry, Held, signed

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.index_view import View
    from hermes_memory_plugin.store.vectors import Array, Table

LAYERS = ("L0", "L1", "L2", "report")
_STATES = ("live", "superseded", "expired")
_LONGEST = 1_500
"""Characters of a row that are embedded; rows are cut to be shown long before."""
_PAGE = 256
_ORDER = {"L2": 0, "L1": 1, "report": 2, "L0": 3}


@dataclass(frozen=True, slots=True)
class Task:
    """One row to embed."""

    row: Row
    key: int
    said: int
    stamp: int
    live: bool

    @property
    def text(self) -> str:
        """What is embedded."""
        return embedded_text(self.row)

    def entry(self, vector: Any) -> Entry:
        """The row of the table."""
        row = self.row
        expires = NEVER if row.expires is None else row.expires
        return Entry(
            self.key, row.id, row.owner, row.layer, self.live, expires, self.said, self.stamp, vector
        )


def embedded_text(row: Row) -> str:
    """The part of a row's text that is turned into its vector."""
    title = str(row.extra.get("title") or "")
    text = row.text if not title or title in row.text[:200] else f"{title}: {row.text}"
    return text[:_LONGEST].strip()


class Standing:
    """One table beside the index. Not thread-safe: the worker's own."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._said: dict[int, int] = {}
        self._stamp: dict[int, int] = {}
        self._live: dict[int, bool] = {}
        self._nothing: dict[int, int] = {}
        """Rows without a vector, by key: the version that says nothing, or that the encoder refuses."""
        self._version: object = None

    def compare(self, index: Index, now_us: int, digest: Callable[[str], int]) -> list[Task]:
        """Bring marks and removals into the table; returns what is to be embedded, the most useful first.

        `digest` is the index's 64-bit digest of a text.
        """
        import numpy as np

        if self._version is None or self._version != self.table.version:  # another process has written
            self._load(self.table.held())
        view = index.view(None, now_us=now_us, layers=LAYERS, states=_STATES)
        numbers = np.setdiff1d(view.numbers(), view.numbers(kinds=("call",)), assume_unique=True)
        keys, stamps = view.column("ids", numbers), view.column("stamp", numbers)
        live = view.live(numbers)
        self._remove(keys)
        self._mark(keys, live)
        self._version = self.table.version
        return self._tasks(view, numbers, keys, stamps, live, digest)

    def put(self, tasks: Sequence[Task], vectors: Any) -> None:
        """Store the vectors of these rows, all or none."""
        entries = [task.entry(vector) for task, vector in zip(tasks, vectors, strict=True)]
        self.table.upsert(entries)
        self.table.tidy()
        self._version = self.table.version
        for entry in entries:
            self._remember(entry.key, entry.said, entry.stamp, entry.live)

    def skip(self, task: Task) -> None:
        """The encoder has no vector for this row: leave it to the words."""
        self._nothing[task.key] = task.stamp
        if task.key in self._said:
            self.table.remove([task.key])
            self._version = self.table.version
            self._drop([task.key])

    def __len__(self) -> int:
        return len(self._said)

    def _load(self, held: Held) -> None:
        import numpy as np

        seen, times = np.unique(held.key, return_counts=True)
        if (times > 1).any():  # two processes put the same row in at once, where no lock kept them apart
            twice = np.isin(held.key, seen[times > 1])
            self.table.remove(seen[times > 1].tolist())
            held = Held(*(column[~twice] for column in (held.key, held.said, held.stamp, held.live)))
        columns = (held.key, held.said, held.stamp, held.live)
        keys, said, stamp, live = (column.tolist() for column in columns)
        self._said = dict(zip(keys, said, strict=True))
        self._stamp = dict(zip(keys, stamp, strict=True))
        self._live = dict(zip(keys, live, strict=True))

    def _remove(self, keys: Array) -> None:
        gone = list(self._said.keys() - set(keys.tolist()))
        if gone:
            self.table.remove(gone)
            self._drop(gone)

    def _mark(self, keys: Array, live: Array) -> None:
        changed: dict[bool, list[int]] = {True: [], False: []}
        for key, alive in zip(keys.tolist(), live.tolist(), strict=True):
            if self._live.get(key, alive) != alive:
                changed[alive].append(key)
        for alive, which in changed.items():
            if which:
                self.table.mark(which, live=alive)
                self._live.update(dict.fromkeys(which, alive))

    def _tasks(
        self,
        view: View,
        numbers: Array,
        keys: Array,
        stamps: Array,
        live: Array,
        digest: Callable[[str], int],
    ) -> list[Task]:
        tasks = []
        columns = (numbers.tolist(), keys.tolist(), stamps.tolist(), live.tolist())
        for number, key, stamp, alive in zip(*columns, strict=True):
            if self._stamp.get(key) == stamp or self._nothing.get(key) == stamp:
                continue
            row = view.row(number)
            text = embedded_text(row)
            said = signed(digest(f"{row.owner}\x1f{row.layer}\x1f{row.expires}\x1f{text}"))
            if self._said.get(key) == said:
                self._stamp[key] = stamp  # a newer version of the row that says the same
            elif not text:
                self._nothing[key] = stamp
            else:
                tasks.append(Task(row, key, said, stamp, alive))
        tasks.sort(key=lambda task: (not task.live, _ORDER.get(task.row.layer, 9), -task.row.created))
        return tasks

    def _remember(self, key: int, said: int, stamp: int, live: bool) -> None:
        self._said[key], self._stamp[key], self._live[key] = said, stamp, live

    def _drop(self, keys: Sequence[int]) -> None:
        for key in keys:
            for column in (self._said, self._stamp, self._live):
                column.pop(key, None)


def pages(tasks: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    """The tasks in runs of `size`."""
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]
