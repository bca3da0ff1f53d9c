"""`persona slim`: which entries of MEMORY.md and USER.md are persona, and where the others belong; nothing is ever lost.

A plan changes nothing. Applying it first backs both files up, then stores what moves, then takes it out of the file, under
Hermes' own lock; `restore` is the way back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers.persona import (
    DELIMITER,
    FILES,
    TARGETS,
    Pages,
    PersonaRefused,
    Target,
    entries_of,
)
from hermes_memory_plugin.owners import is_private
from hermes_memory_plugin.recall.asked import Asked
from hermes_memory_plugin.recall.search import Search
from hermes_memory_plugin.recall.standing import plain
from hermes_memory_plugin.store.files import atomic_write, inside
from hermes_memory_plugin.upkeep.slim_rules import Becomes, classify

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.recall.index_row import Row

_BACKUPS = "backups/persona"

_DAY = re.compile(r"(?<!\d)(20\d{2})[-/.年](\d{1,2})[-/.月](\d{1,2})")


@dataclass(frozen=True, slots=True)
class Move:
    """One entry and where it belongs."""

    target: Target
    entry: str
    becomes: Becomes
    why: str
    id: str = ""
    """The row that says it now, once it moved."""
    made: bool = False
    """Whether that row was made for it; else it was there before."""


@dataclass(frozen=True, slots=True)
class File:
    """What a plan does to one file."""

    name: str
    limit: int
    before: int
    after: int
    refused: str = ""
    """Why the file cannot be changed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `slim` would do, or did."""

    moves: tuple[Move, ...]
    files: tuple[File, ...]
    backup: str = ""
    """The name `restore` takes, once it was applied."""

    @property
    def moving(self) -> tuple[Move, ...]:
        """The entries that leave their file."""
        refused = {file.name for file in self.files if file.refused}
        return tuple(m for m in self.moves if m.becomes != "persona" and FILES[m.target] not in refused)


def plan(memory: Memory) -> Plan:
    """What would move; nothing is changed."""
    return _plan(memory, {target: memory.persona.read(target) for target in TARGETS})


def apply(memory: Memory, *, owner: Owner | None = None) -> Plan:
    """Back up, store what moves, take it out of its file. A plan without moves changes nothing."""
    with memory.persona.changing(*TARGETS) as pages:
        found = _plan(memory, pages)
        if not found.moving:
            return found
        stamp = back_up(memory, pages)
        moved = [_store(memory, move, owner or Owner()) for move in found.moving]
        kept = {
            target: [
                e
                for e in pages[target].entries
                if not any(m.target == target and m.entry == e for m in moved)
            ]
            for target in TARGETS
        }
        record = {"moves": [asdict(move) for move in moved], "wrote": kept}
        atomic_write(
            memory.folder,
            f"{_BACKUPS}/{stamp}/plan.json",
            json.dumps(record, ensure_ascii=False, indent=1),
            fsync=True,
        )
        memory.flush()  # what leaves the file must be on disk before it does
        for target in {move.target for move in moved}:
            memory.persona.write(pages[target], kept[target])
    stored = {(move.target, move.entry): move for move in moved}
    moves = tuple(stored.get((move.target, move.entry), move) for move in found.moves)
    return replace(found, moves=moves, backup=stamp)


def restore(memory: Memory, name: str = "") -> list[str]:
    """Undo one `slim` (the last): its entries go back where they were, beside what was added since. Returns their texts.

    Raises NotFound without such a backup, PersonaRefused when Hermes' limit does not allow it any more.
    """
    names = backups(memory)
    chosen = name or (names[-1] if names else "")
    if chosen not in names:
        raise NotFound(chosen or "a backup", "`persona slim --apply` makes one; its name is what it prints.")
    folder = inside(memory.folder, f"{_BACKUPS}/{chosen}")
    record: dict[str, Any] = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    moves = [Move(**one) for one in record["moves"]]
    with memory.persona.changing(*TARGETS) as pages:
        wanted = {
            target: _merged(pages[target], record["wrote"][target], moves, folder) for target in TARGETS
        }
        for target, (entries, as_it_was) in wanted.items():
            if not as_it_was and not pages[target].fits(entries):
                size = len(DELIMITER.join(entries))
                raise PersonaRefused(
                    pages[target].path,
                    f"with its {len(moves)} entries back it would hold {size:,} characters and Hermes allows "
                    f"{pages[target].limit:,}. Make room first; the backup is {folder}",
                )
        back_up(memory, pages, suffix="-before-restore")
        for target in {move.target for move in moves}:
            entries, as_it_was = wanted[target]
            memory.persona.write(replace(pages[target], limit=10**9) if as_it_was else pages[target], entries)
    for move in moves:
        if move.made:
            try:
                memory.forget(
                    move.id, owner=Owner.ANY, by="persona restore", why="back in Hermes' memory file"
                )
            except NotFound:
                continue  # forgotten since
    (folder / "plan.json").rename(folder / "restored.json")
    return [move.entry for move in moves]


def backups(memory: Memory) -> list[str]:
    """Names of what can be restored, oldest first."""
    folder = memory.folder / _BACKUPS
    return sorted(path.parent.name for path in folder.glob("*/plan.json"))


def adopt(memory: Memory, name: str, *, target: Target = "memory", owner: Owner | None = None) -> str:
    """Move one standing preference into Hermes' memory file; returns the entry. The note goes to the trash.

    Raises NotFound, or PersonaRefused: what Hermes shows, it shows to everybody who uses this home.
    """
    path = memory.persona.folder / FILES[target]
    people = _people(memory)
    if len(people) > 1:
        listed = ", ".join(sorted(people)[:5])
        raise PersonaRefused(
            path, f"several people use this home ({listed}), and Hermes shows its file to all of them"
        )
    rows = [row for row in memory.reader.named(name, memory.keys(owner)) if row.layer != "L3"]
    if not rows:
        raise NotFound(name, "`persona show` lists the standing preferences.")
    row = rows[0]
    if row.kind != "preference" or row.origin not in ("user", "import", ""):
        raise PersonaRefused(
            path, f"{name} is no standing preference the user stated, but {row.kind} ({row.origin})"
        )
    entry = row.text.strip()
    with memory.persona.changing(target) as pages:
        if plain(entry) not in {plain(one) for one in pages[target].entries}:
            memory.persona.write(pages[target], [*pages[target].entries, entry])
    memory.forget(row.id, owner=Owner.ANY, by="persona adopt", why=f"moved to {FILES[target]}")
    return entry


def same_text(memory: Parts, text: str, owner: Owner) -> Row | None:
    """The owner's living fact or note that says exactly this."""
    wanted = plain(text)
    if not wanted:
        return None
    memory.reader.refresh()
    now = datetime.now(UTC)
    keys = frozenset({owner.key, Owner.SHARED.key})
    asked = Asked.of(text[:2_000], analyst=memory.reader.analyst, now=now, semantic=False)
    search = Search(memory.reader.index, keys, int(now.timestamp() * 1e6))
    # By its own words it comes first, and no more than the best few need to be compared.
    found = search.explicit(asked, limit=10, layers=("L1", "L2")).rows
    return next((one.row for one in found if one.state == "live" and plain(one.row.text) == wanted), None)


def _plan(memory: Memory, pages: dict[Target, Pages]) -> Plan:
    moves: list[Move] = []
    files: list[File] = []
    for target in TARGETS:
        page = pages[target]
        mine = [Move(target, entry, *_becomes(memory, entry, target)) for entry in page.entries]
        left = [move.entry for move in mine if move.becomes == "persona"]
        text = DELIMITER.join(left)
        refused = page.foreign or ("" if entries_of(text) == left else "an entry holds a line with § alone")
        after = page.characters if refused else len(text)
        files.append(File(FILES[target], page.limit, page.characters, after, refused))
        moves += mine
    return Plan(tuple(moves), tuple(files))


def _becomes(memory: Memory, entry: str, target: Target) -> tuple[Becomes, str]:
    if memory.notes.mask(entry) != entry:  # elsewhere it would be stored without it, and so be lost
        return "persona", "it holds a secret, which every other layer masks"
    return classify(entry, target, memory.reader.analyst.read)


def _store(memory: Memory, move: Move, owner: Owner) -> Move:
    known = same_text(memory, move.entry, owner)
    if known is not None:
        return replace(move, id=known.id)
    found = memory.reader.analyst.read(move.entry)
    source = f"Hermes {FILES[move.target]}"
    if move.becomes == "scene":
        title = memory.scenes.mask(_title(memory.scenes.mask(move.entry)))
        while memory.scenes.by_title(title, owner) is not None:
            title += "*"
        row = memory.add_scene(
            title,
            f"{move.entry}\n\n({source}, {datetime.now(UTC).date().isoformat()})",
            owner=owner,
            origin="import",
            tickers=sorted(found.entities),
            sectors=sorted(found.sectors),
        )
        return replace(move, id=row, made=True)
    one = sorted(found.entities)
    row = memory.remember(
        move.entry,
        kind=move.becomes,
        source=source,
        origin="import",
        owner=owner,
        subject=one[0] if len(one) == 1 else "",
        as_of=_day(move.entry),
    )
    return replace(move, id=row, made=True)


def _merged(page: Pages, wrote: Sequence[str], moves: Sequence[Move], folder: Path) -> tuple[list[str], bool]:
    """(the entries to put back, whether the file is as `slim` left it and simply gets its old content)."""
    mine = [move.entry for move in moves if move.target == page.target]
    if list(page.entries) == list(wrote):
        saved = folder / FILES[page.target]
        text = saved.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n") if saved.is_file() else ""
        return entries_of(text), True
    return list(dict.fromkeys((*page.entries, *mine))), False


def back_up(memory: Parts, pages: dict[Target, Pages], suffix: str = "") -> str:
    """Copy Hermes' files as they are; returns the name of the copy."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ") + suffix
    for target in TARGETS:
        try:
            data = pages[target].path.read_bytes()
        except OSError:
            continue
        atomic_write(memory.folder, f"{_BACKUPS}/{stamp}/{FILES[target]}", data, fsync=True)
    return stamp


def _people(memory: Memory) -> set[str]:
    """One key of each person who has rows here."""
    memory.reader.refresh()
    keys = [key for key in memory.reader.index.owners() if key != Owner.SHARED.key and ":~" not in key]
    people = {min(memory.owners.linked(key)) if is_private(key) else key for key in keys}
    return {key for key in people if not key.startswith(("doctor:", "unreadable:"))}


def _title(entry: str) -> str:
    first = re.split(r"[。；;:：,，\n]|[.](?=\s|$)", entry.strip(), maxsplit=1)[0].strip()
    return (first or entry.strip())[:40]


def _day(entry: str) -> str | None:
    match = _DAY.search(entry)
    if match is None:
        return None
    day = f"{match[1]}-{int(match[2]):02}-{int(match[3]):02}"
    try:
        datetime.fromisoformat(day)
    except ValueError:
        return None
    return day
