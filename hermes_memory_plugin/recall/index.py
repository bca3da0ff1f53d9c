"""The read index of one home: the only thing recall reads.

Immutable segments below `memory/index/`, the ends of all journals behind them, and what this process has just written.
No lock between processes is needed to read; the holder of the drain lock alone writes (`index_writer`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

import numpy as np

from hermes_memory_plugin.recall.index_corpus import Part
from hermes_memory_plugin.recall.index_files import Array, IndexDamaged
from hermes_memory_plugin.recall.index_follow import Following, Refreshed
from hermes_memory_plugin.recall.index_row import Add, Change, Remove, Row, digest
from hermes_memory_plugin.recall.index_tail import JournalTail
from hermes_memory_plugin.recall.index_view import View
from hermes_memory_plugin.store.ids import MAX_LETTERS, MIN_LETTERS, handle_letters, parse_handle

__all__ = ["Add", "Change", "Index", "IndexDamaged", "JournalTail", "Refreshed", "Remove", "Row", "View"]


class Index(Following):
    """Rows of every layer and owner, as this process knows them by now."""

    def view(
        self,
        owners: Collection[str] | None,
        *,
        now_us: int,
        layers: Collection[str] | None = None,
        states: Collection[str] = ("live",),
        projects: Collection[str] | None = None,
        sessions: Collection[str] | None = None,
    ) -> View:
        """What these owners may see (None: every owner). `projects`: only rows of these ("" = of none).

        `sessions`: only rows of these sessions, or of the reports with these ids.
        """
        with self.lock:
            self.corpus.flush()
            return View(
                self.corpus.parts,
                owners=owners,
                now_us=now_us,
                layers=layers,
                states=states,
                projects=projects,
                sessions=sessions,
            )

    def find(self, id_or_handle: str, owners: Collection[str] | None) -> Row | None:
        """The row of an id or handle whatever its state; None when it is gone, unknown or somebody else's."""
        key = digest(id_or_handle)
        with self.lock:
            row = self.corpus.pending(key)
            if row is None:
                place = self._exact(key) or self._by_handle(id_or_handle)
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
        if parsed:
            self.corpus.flush()
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
