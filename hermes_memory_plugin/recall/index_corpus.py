"""Which rows of which segments stand: newest version of each id, nothing forgotten, superseded rows marked.

All rules here commute: records may arrive in any order, twice, or both from disk and from a journal, and the
result is the same. A version is dead for ever once a newer one is known; a forgotten id lives again only by a row that
says when it was restored, and that was later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hermes_memory_plugin.layers.facts import KeyRank
from hermes_memory_plugin.recall.index_files import Array
from hermes_memory_plugin.recall.index_gone import Gone
from hermes_memory_plugin.recall.index_row import Row, digest
from hermes_memory_plugin.recall.segments import UNDATED, Entry, Segment, build, merge
from hermes_memory_plugin.store.ids import is_ulid

Retires = Callable[[KeyRank, KeyRank], bool]

_FREEZE = 2_048  # pending rows that are made a segment without waiting for a reader
_FAN = 4  # segments in memory of like size that become one
_LARGEST = 50_000  # rows above which segments in memory are left alone


class Part:
    """A segment and what became of its rows. `successor` holds the id digest of the row that supersedes, or 0."""

    __slots__ = ("dead", "on_disk", "pinned", "segment", "successor")

    def __init__(self, segment: Segment, *, on_disk: bool = False) -> None:
        self.segment = segment
        self.on_disk = on_disk
        self.pinned = on_disk
        """Somebody is writing it to disk: it must stay what it is."""
        self.dead: Array = np.zeros(segment.rows, bool)
        self.successor: Array = np.zeros(segment.rows, np.uint64)

    def find(self, ids: Array) -> list[tuple[int, int]]:
        """(place in `ids`, row) of the rows that are alive."""
        places, rows = self.segment.find(ids)
        return [(p, r) for p, r in zip(places.tolist(), rows.tolist(), strict=True) if not self.dead[r]]


@dataclass(slots=True)
class _Member:
    """A row of a group while the group is settled."""

    part: Part
    row: int
    id: int
    rank: KeyRank

    @property
    def order(self) -> tuple[int, int, int, int]:
        return (self.rank.as_of or 0, self.rank.trust, self.rank.created, self.id)


class Corpus:
    """All parts of one index. Not thread-safe: the index holds its lock around every call."""

    def __init__(self, retires: Retires) -> None:
        self.disk: list[Part] = []
        self.memory: list[Part] = []
        self.gone = Gone()
        self.version = 0
        self._retires = retires
        self._pending: dict[int, Entry] = {}
        self._tombstones: tuple[Array, Array] | None = None

    @property
    def parts(self) -> list[Part]:
        """Every part, oldest first."""
        return [*self.disk, *self.memory]

    def add(self, row: Row, stamp: int, born: int, *, restored: int = 0) -> None:
        """The row stands from now on, unless its id is forgotten, another owner's, or a newer version is known.

        `restored`: when the row was asked back; what was forgotten before then lives again.
        """
        key = digest(row.id)
        if restored and self.gone.restore(key, restored):
            self._tombstones = None
        if self.gone.holds(key) or self.gone.removed.get(key, -1) >= stamp:
            return
        born = min(born, self.gone.forgotten.get(key, born))
        if not is_ulid(row.id) and self._owner_of(key) not in ("", row.owner):
            return  # nobody takes over a row by naming its id
        older = self._pending.pop(key, None)
        if older is not None:
            if older[1] > stamp:
                row, stamp = older[0], older[1]
            born = min(born, older[2])
        self._pending[key] = (row, stamp, born)
        if len(self._pending) >= _FREEZE:
            self.flush()

    def remove(self, ids: Iterable[str], stamp: int, *, forever: bool) -> None:
        """The ids are gone; ids never seen are remembered all the same."""
        self.flush()
        keys = [digest(id_) for id_ in ids]
        if forever:
            self.gone.bury(keys, stamp)
            self._tombstones = None
            keys = [key for key in keys if self.gone.holds(key)]
        else:
            self.gone.remove(keys, stamp)
        self._kill(keys, stamp, forever)
        self.version += 1

    def _owner_of(self, key: int) -> str:
        """Whose row has the id now; "" when nobody's has."""
        entry = self._pending.get(key)
        if entry is not None:
            return entry[0].owner
        ids = np.array([key], np.uint64)
        for part in reversed(self.parts):
            for _, row in part.find(ids):
                return part.segment.tables["owner"][int(part.segment.column["owner"][row])]
        return ""

    def pending(self, key: int) -> Row | None:
        """The row of an id that was added and is not part of a segment yet."""
        entry = self._pending.get(key)
        return entry[0] if entry is not None else None

    def flush(self) -> None:
        """Make pending rows a part, so that a view sees them."""
        if not self._pending:
            return
        entries = list(self._pending.values())
        self._pending.clear()
        part = Part(build(entries))
        self._integrate(part)
        self.memory.append(part)
        self._fold()
        self.version += 1

    def adopt(self, disk: list[Part], gone: Gone) -> None:
        """Another state of the disk takes the place of the old one; what only memory knows stays."""
        self.flush()
        known_here, known_there = self.gone.held(), gone.held()
        changed = {
            key
            for key in self.gone.removed.keys() | gone.removed.keys()
            if self.gone.removed.get(key, -1) != gone.removed.get(key, -1)
        }
        memory, self.memory, self.disk = self.memory, [], disk
        self.gone.merge(gone)
        self._tombstones = None
        for part in memory:
            part.successor = np.zeros(part.segment.rows, np.uint64)
            self._integrate(part)
            self.memory.append(part)
        news = self.gone.held() - (known_here & known_there)
        if news:
            self._kill(sorted(news), 0, True)
        for key in changed:
            self._kill([key], self.gone.removed[key], False)
        self.memory = [part for part in self.memory if not part.dead.all()]
        self.version += 1

    def births(self, low: int, high: int) -> list[tuple[int, int]]:
        """(first seen, id digest) of all ids in a range, forgotten ones included."""
        if self._tombstones is None:
            keys = np.array(sorted(self.gone.held()), np.uint64)
            born = self.gone.forgotten
            self._tombstones = keys, np.array([born[key] for key in keys.tolist()], np.int64)
        keys, births = self._tombstones
        start, stop = np.searchsorted(keys, np.uint64(low)), np.searchsorted(keys, np.uint64(high), "right")
        found = list(zip(births[start:stop].tolist(), keys[start:stop].tolist(), strict=True))
        for part in self.parts:
            rows = part.segment.between(low, high)
            column = part.segment.column
            alive = rows[~part.dead[rows]]
            found.extend(zip(column["born"][alive].tolist(), column["ids"][alive].tolist(), strict=True))
        return found

    # -- rules -----------------------------------------------------------------------------------------------------

    def _integrate(self, part: Part) -> None:
        """Let the rows of a part that is not listed yet meet those of all others."""
        segment = part.segment
        stamps, born = segment.column["stamp"], segment.column["born"]
        disturbed: set[int] = set()
        ids = np.where(part.dead, np.uint64(0), segment.column["ids"])
        for other in self.parts:
            theirs = other.segment.column
            for mine, row in other.find(ids):
                first = min(int(born[mine]), int(theirs["born"][row]))
                newer = int(theirs["stamp"][row]) - int(stamps[mine])
                if newer > 0 or (newer == 0 and other.on_disk):
                    part.dead[mine] = True
                    if not other.on_disk:
                        theirs["born"][row] = first
                else:
                    other.dead[row] = True
                    born[mine] = first
                    disturbed.add(int(theirs["group"][row]))
        groups = np.where(part.dead, np.uint64(0), segment.column["group"])
        self._settle(disturbed - {0}, {part: groups}, extra=part)

    def _kill(self, keys: Sequence[int], stamp: int, forever: bool) -> None:
        disturbed: set[int] = set()
        ids = np.array(keys, np.uint64)
        for part in self.parts:
            column = part.segment.column
            for place, row in part.find(ids):
                if forever or column["stamp"][row] <= stamp:
                    part.dead[row] = True
                    disturbed.add(int(column["group"][row]))
                    if forever:
                        key, born = keys[place], self.gone.forgotten
                        born[key] = min(born[key], int(column["born"][row]))
                        self._tombstones = None
        self._settle(disturbed - {0}, {}, extra=None)

    def _settle(self, disturbed: set[int], fresh: dict[Part, Array], extra: Part | None) -> None:
        """Mark who is superseded: in groups that lost a row from scratch, in groups that grew by what is new."""
        wanted = set(disturbed)
        for groups in fresh.values():
            wanted.update(np.unique(groups[groups != 0]).tolist())
        if not wanted:
            return
        keys = sorted(wanted)
        array = np.array(keys, np.uint64)
        found: dict[int, list[tuple[Part, Array]]] = {}
        counts: dict[int, int] = {}
        for part in [*self.parts, extra] if extra is not None else self.parts:
            for place, rows in part.segment.members(array):
                alive = rows[~part.dead[rows]]
                if len(alive):
                    found.setdefault(keys[place], []).append((part, alive))
                    counts[keys[place]] = counts.get(keys[place], 0) + len(alive)
        for key, where in found.items():
            if counts[key] == 1:
                part, rows = where[0]
                part.successor[rows[0]] = 0
                continue
            members = [member for part, rows in where for member in _members(part, rows)]
            members.sort(key=lambda member: member.order, reverse=True)
            self._settle_group(members, None if key in disturbed else extra)

    def _settle_group(self, members: list[_Member], fresh: Part | None) -> None:
        """`members` newest first. With `fresh` only pairs with a row of that part are new."""
        retires = self._retires
        place = {member.id: number for number, member in enumerate(members)}
        arrivals = [member for member in members if member.part is fresh]
        for number, member in enumerate(members):
            known = int(member.part.successor[member.row])
            whole = fresh is None or member.part is fresh
            best = len(members) if whole else place.get(known, len(members))
            successor = 0 if whole else known
            for other in members if whole else arrivals:
                at = place[other.id]
                if at >= best:
                    break
                if at != number and retires(other.rank, member.rank):
                    best, successor = at, other.id
                    break
            if successor != known:
                member.part.successor[member.row] = successor

    def _fold(self) -> None:
        """Keep the number of parts in memory logarithmic: like sizes become one, dead rows go."""
        while len(self.memory) >= _FAN:
            last = self.memory[-_FAN:]
            total = sum(part.segment.rows for part in last)
            if any(part.pinned for part in last) or total > _LARGEST:
                return
            if last[0].segment.rows > _FAN * max(1, last[-1].segment.rows):
                return
            self.memory[-_FAN:] = [joined(last)[0]]


def joined(parts: Sequence[Part]) -> tuple[Part, list[Array]]:
    """One part in memory of the living rows of some parts, and where each old row went (-1: dropped)."""
    segment, numbers = merge([part.segment for part in parts], [~part.dead for part in parts])
    part = Part(segment)
    carry(parts, numbers, part)
    return part, numbers


def carry(parts: Sequence[Part], numbers: Sequence[Array], new: Part) -> None:
    """Give `new` the state its rows have in `parts` by now."""
    for old, where in zip(parts, numbers, strict=True):
        moved = where >= 0
        new.dead[where[moved]] = old.dead[moved]
        new.successor[where[moved]] = old.successor[moved]


def _members(part: Part, rows: Array) -> list[_Member]:
    column = part.segment.column
    fields = [
        column[name][rows].tolist() for name in ("ids", "trust", "as_of", "created", "value", "approximate")
    ]
    return [
        _Member(
            part,
            row,
            id_,
            KeyRank(
                trust,
                None if as_of == UNDATED else as_of,
                created,
                None if value != value else value,
                bool(approximate),
            ),
        )
        for row, id_, trust, as_of, created, value, approximate in zip(rows.tolist(), *fields, strict=True)
    ]
