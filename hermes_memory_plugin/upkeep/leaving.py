"""One who leaves: everything of one owner handed out in a file, or taken out of every file below memory/.

Only the rows of exactly that key; what is shared, and what another key of the same person has, stays.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.compact import Pace
from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.upkeep import handover
from hermes_memory_plugin.upkeep.dialogue import ids_of

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.verbs import Verbs

_EVERY = ("live", "superseded", "expired")


class NotLeaving(HermesMemoryError):
    """This key does not stand for somebody who could leave."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key} is no one who could leave: name a person or a chat, as `hermes-memory owners list` shows it."
        )


@dataclass(frozen=True, slots=True)
class Left:
    """How much of an owner there was, by kind, and what could not be reached."""

    rows: dict[str, int]
    done: bool = False
    unreached: tuple[str, ...] = ()


def export(memory: Verbs, owner: Owner, file: Path) -> dict[str, int]:
    """Write everything of this owner into a file of JSON lines (mode 0600); returns the number of lines by kind.

    Each line: kind (fact, trace, turn, passages, note, scene, trash, audit), id, at (epoch microseconds), data. Raises NotLeaving.
    """
    _check(owner)
    memory.flush()
    lines, counted = [], Counter[str]()
    for line in _everything(memory, owner.key):
        counted[line["kind"]] += 1
        lines.append(json.dumps(line, ensure_ascii=False, default=str))
    file = file.expanduser().absolute()
    atomic_write(file.parent, file.name, "\n".join(lines) + "\n" if lines else "", fsync=True)
    return dict(counted)


def erase(memory: Verbs, owner: Owner, *, dry_run: bool) -> Left:
    """Forget every row of this owner and take their bytes out of every file; `dry_run` only counts.

    Tombstones keep any replay or rebuild from bringing one back. Raises NotLeaving, LockBusy while upkeep runs elsewhere.
    """
    _check(owner)
    memory.flush()
    found = list(_everything(memory, owner.key))
    counts = dict(Counter(line["kind"] for line in found))
    if dry_run:
        return Left(counts)
    for one in memory.library.reports(owner):
        if one["owner"] == owner.key:
            memory.library.remove(one["id"], owner=owner)
    memory.reader.refresh()
    rows = memory.reader.index.scan({owner.key}, now_us=0, states=_EVERY)
    _forget(memory, owner, rows, found)
    for thrown in memory.notes.trash:
        if thrown.owner == owner.key:
            thrown.path.unlink(missing_ok=True)
    memory.owners.unlink(owner.key)
    memory.flush()
    for ledger, tables in (
        (memory.archive.logs, ("audits", "links", "other")),
        (memory.archive.facts, ("other",)),
    ):
        if ledger.path.exists():
            with Pace().visit(ledger) as connection:
                for table in tables:
                    connection.execute(f"DELETE FROM {table} WHERE owner = ?", [owner.key])
    report = memory.upkeep.run(for_good=True)
    return Left(counts, done=report.finished, unreached=tuple(report.left))


def _forget(memory: Verbs, owner: Owner, rows: list[Row], found: list[dict[str, Any]]) -> None:
    """One record that buries them all, also what was still to be read from a turn; then the files that are theirs."""
    ids = {row.id for row in rows}
    ids |= {line["id"] for line in found if line["kind"] in ("fact", "trace", "turn")}
    for line in found:
        if line["kind"] == "turn":
            ids.update(ids_of(line["id"]))
    told = sorted({(row.owner, row.session) for row in rows if row.session})
    memory.journal.append(
        "forget", {"ids": sorted(ids), "by": "owners erase", "why": "left", "told": told}, owner=owner.key
    )
    for row in rows:
        memory._remove_file(str(row.extra.get("path") or ""))
        if row.layer == "L0":
            handover.forget(memory, row)
    memory.drafts.files.without(rows)


def _everything(memory: Verbs, key: str) -> Iterator[dict[str, Any]]:
    for record in memory.archive.stored():
        if record.owner == key:
            yield _line(record.kind, str(record.data.get("id") or record.id), record.at, record.data)
    pages = [("note", path, memory.notes.read(path)) for path in sorted(memory.notes.folder.glob("*.md"))]
    scenes = [(path, memory.scenes.read(path)) for path in sorted(memory.scenes.folder.glob("*.md"))]
    pages += [("scene", path, scene.note if scene else None) for path, scene in scenes]
    for kind, path, note in pages:
        if note is not None and note.owner.key == key:
            with contextlib.suppress(OSError):
                at, text = int(path.stat().st_mtime * 1e6), path.read_text(encoding="utf-8")
                yield _line(kind, note.id, at, {"file": path.name, "text": text})
    for one in memory.notes.trash:
        if one.owner == key:
            with contextlib.suppress(OSError):
                yield _line("trash", one.id, 0, {"text": one.path.read_text(encoding="utf-8")})
    for audit in memory.archive.audits(1_000_000, frozenset({key})):
        yield _line("audit", str(audit.get("id") or ""), audit.get("at") or 0, audit)


def _line(kind: str, id: str, at: Any, data: Any) -> dict[str, Any]:
    return {"kind": kind, "id": id, "at": at, "data": data}


def _check(owner: Owner) -> None:
    if owner.key in ("shared", "any", ""):
        raise NotLeaving(owner.key)
