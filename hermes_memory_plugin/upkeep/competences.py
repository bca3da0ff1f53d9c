"""Competences: what the house knows and stands by, kept in files people write, one row each in the memory.

Importing a file again changes nothing. Where a file says something else than the memory has, the memory keeps what it
has, and the difference is a conflict until somebody decides it; what was taken over stays visible as history.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers import facts
from hermes_memory_plugin.layers.facts import as_moment, moment
from hermes_memory_plugin.store.files import atomic_write, private_folder
from hermes_memory_plugin.store.locks import LockFile
from hermes_memory_plugin.upkeep.competence_files import Entry, Read, read

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.verbs import Verbs

Drift = Literal["new", "same", "changed", "kept yours", "forgotten here", "not in the file"]
METRIC = "competence"
_STATE = "competences.json"


@dataclass(frozen=True, slots=True)
class Difference:
    """How one competence stands between a file and the memory."""

    id: str
    drift: Drift
    stored: str = ""
    offered: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file says something else than the memory has."""

    id: str
    owner: str
    stored: str
    offered: Entry
    file: str
    at: datetime


class Competences:
    """The competences of one memory."""

    def __init__(self, memory: Verbs) -> None:
        self._memory = memory
        self._path = memory.folder / _STATE

    def diff(self, path: Path, *, owner: Owner = Owner.SHARED) -> list[Difference]:
        """What importing the file would find. Raises CompetencesUnreadable; stores nothing."""
        return self._compare(read(path), owner, self._state()["kept"])

    def take_in(self, path: Path, *, owner: Owner = Owner.SHARED) -> tuple[Read, list[Difference]]:
        """Import a file: new entries are stored, changed ones open a conflict. Raises CompetencesUnreadable."""
        found = read(path)
        with self._changing() as state:
            differences = self._compare(found, owner, state["kept"])
            entries = {entry.id: entry for entry in found.entries}
            new = [entries[one.id] for one in differences if one.drift == "new"]
            self._store([(entry, found.path, None) for entry in new], owner)
            for one in differences:
                place = _place(owner, one.id)
                if one.drift == "changed":
                    state["conflicts"][place] = _as_json(entries[one.id], one.stored, found.path)
                elif one.drift in ("same", "kept yours"):
                    state["conflicts"].pop(place, None)
        return found, differences

    def conflicts(self, keys: frozenset[str] | None = None) -> list[Conflict]:
        """The open ones that these owners see, oldest first."""
        found = []
        for place, one in self._state()["conflicts"].items():
            owner, _, id = place.partition(" ")
            if keys is None or owner in keys:
                entry = Entry(id, one["statement"], one["source"], tuple(one["tickers"]), tuple(one["topics"]), as_moment(one["as_of"]))  # fmt: skip
                at = moment(one["at"]) or datetime.now(UTC)
                found.append(Conflict(id, owner, one["stored"], entry, one["file"], at))
        return found

    def resolve(self, id: str, *, take: bool, keys: frozenset[str] | None = None) -> Conflict:
        """Decide a conflict: `take` what the file says (the old row stays as history), or keep what is stored.

        What was kept is not asked again until the file says a third thing. Raises NotFound.
        """
        with self._changing() as state:
            conflict = next((one for one in self.conflicts(keys) if one.id == id), None)
            if conflict is None:
                raise NotFound(id, "No conflict is open under that id; `competences conflicts` lists them.")
            owner = Owner.parse(conflict.owner)
            place = _place(owner, id)
            if take:
                self._store([(conflict.offered, Path(conflict.file), self._stored(owner).get(id))], owner)
                state["kept"].pop(place, None)
            else:
                state["kept"][place] = conflict.offered.digest
            del state["conflicts"][place]
        return conflict

    def rows(self, keys: frozenset[str] | None, about: str = "") -> list[Row]:
        """The competences these owners see; with `about` those of that topic, ticker or company, or with those words."""
        memory = self._memory
        memory.reader.refresh()
        rows = memory.reader.index.scan(keys, now_us=_now(), layers=("L1",), kinds=(METRIC,))
        if about:
            gist = memory.reader.analyst.read(about)
            plain = about.casefold()
            rows = [
                row
                for row in rows
                if plain
                in f"{row.text} {row.extra.get('title')} {' '.join(row.extra.get('topics') or ())}".casefold()
                or gist.entities & set(row.extra.get("entities") or ())
                or gist.sectors & set(row.extra.get("sectors") or ())
            ]
        return sorted(rows, key=lambda row: str(row.extra.get("title") or ""))

    # -- how -----------------------------------------------------------------------------------------------------------

    def _compare(self, found: Read, owner: Owner, kept: dict[str, str]) -> list[Difference]:
        stored = self._stored(owner)
        buried = self._buried([entry for entry in found.entries if entry.id not in stored], owner)
        differences = []
        for entry in found.entries:
            row = stored.pop(entry.id, None)
            drift: Drift
            if row is None:
                drift = "forgotten here" if entry.id in buried else "new"
            elif row.extra.get("digest") == entry.digest:
                drift = "same"
            else:
                drift = "kept yours" if kept.get(_place(owner, entry.id)) == entry.digest else "changed"
            differences.append(
                Difference(entry.id, drift, row.text if row else "", entry.statement, entry.line)
            )
        mine = [row for row in stored.values() if row.extra.get("file") == found.path.name]
        return [
            *differences,
            *(Difference(str(row.extra.get("title")), "not in the file", row.text) for row in mine),
        ]

    def _stored(self, owner: Owner) -> dict[str, Row]:
        return {
            str(row.extra.get("title") or ""): row
            for row in self.rows(frozenset({owner.key}))
            if row.origin == "import"
        }

    def _buried(self, entries: list[Entry], owner: Owner) -> set[str]:
        ids = {_row_id(owner, entry): entry.id for entry in entries}
        if not ids:
            return set()
        self._memory.archive.flush()
        return {ids[one] for one in self._memory.archive.facts.buried(ids)}

    def _store(self, many: list[tuple[Entry, Path, Row | None]], owner: Owner) -> None:
        now = datetime.now(UTC)
        records = []
        for entry, path, before in many:
            as_of = entry.as_of or now
            earlier = moment(before.as_of) if before is not None else None
            if earlier is not None and as_of <= earlier:
                as_of = earlier + timedelta(microseconds=1)  # what is taken over comes after what it replaces
            fact = Fact(
                id=_row_id(owner, entry),
                statement=entry.statement,
                kind="competence",
                subject=f"{METRIC}:{entry.id}",
                metric=METRIC,
                source=entry.source or path.name,
                as_of=as_of,
                origin="import",
                owner=owner,
                created_at=now,
            )
            row = facts.as_json(facts.checked(fact), title=entry.id)
            row |= {"topics": [*entry.tickers, *entry.topics], "digest": entry.digest, "file": path.name}
            records.append(("fact", row, owner.key, None, None))
        self._memory.journal.append_many(records)
        self._memory.archive.notify()

    def _state(self) -> dict[str, Any]:
        return _read(self._path)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        private_folder(self._path.parent)
        with LockFile(self._path.with_suffix(".lock")).acquire(timeout=10.0):
            state = self._state()
            yield state
            atomic_write(self._path.parent, _STATE, json.dumps(state, ensure_ascii=False, indent=1))


def notices(folder: Path) -> list[str]:
    """What `status` says of open conflicts."""
    count = len(_read(folder / _STATE)["conflicts"])
    return (
        [f"{count} competences differ from their file: `hermes-memory competences conflicts`"]
        if count
        else []
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"conflicts": dict(found["conflicts"]), "kept": dict(found["kept"])}
    except (OSError, ValueError, TypeError, KeyError):
        return {"conflicts": {}, "kept": {}}


def _place(owner: Owner, id: str) -> str:
    return f"{owner.key} {id}"


def _row_id(owner: Owner, entry: Entry) -> str:
    """One id for one saying of one competence: what was forgotten is not brought back by importing it again."""
    return f"competence/{owner.key}/{entry.id}/{entry.digest}"


def _as_json(entry: Entry, stored: str, path: Path) -> dict[str, Any]:
    return {
        "statement": entry.statement,
        "source": entry.source,
        "tickers": entry.tickers,
        "topics": entry.topics,
        "as_of": entry.as_of.isoformat() if entry.as_of else "",
        "stored": stored,
        "file": path.name,
        "at": _now(),
    }


def _now() -> int:
    return time.time_ns() // 1000
