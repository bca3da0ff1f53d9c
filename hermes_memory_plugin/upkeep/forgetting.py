"""Forgetting a row, with all that follows from it; and what of it this memory cannot reach, said honestly.

A call takes the figures that were read from it along, a turn what it stated. A conclusion that rested on them stays, and says
that its basis changed. Tombstones keep any replay, import or rebuild from bringing something back.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError, NotFound
from hermes_memory_plugin.layers.persona import FILES, TARGETS, PersonaRefused, Target
from hermes_memory_plugin.recall.asked import Asked
from hermes_memory_plugin.recall.search import Search
from hermes_memory_plugin.recall.standing import plain
from hermes_memory_plugin.store.ledger_facts import record_of
from hermes_memory_plugin.upkeep import handover, refill
from hermes_memory_plugin.upkeep.dialogue import ids_of
from hermes_memory_plugin.upkeep.pins import words

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.verbs import Verbs

_EVERY = ("live", "superseded", "expired")
_PATIENCE = 5.0
"""Seconds to wait for the ledgers, so that what is still being read from a call is known."""
_SHORTEST = 4
"""Characters of a statement from which on other texts are searched for it."""
_HOST = 0.5


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What went, or would go, and what stays where it is."""

    ids: tuple[str, ...]
    shaken: tuple[str, ...] = ()
    """Conclusions whose basis changed by it."""
    entries: tuple[str, ...] = ()
    """Entries of Hermes' own files that went too (`everywhere`)."""
    backup: str = ""
    """Where those files were copied to before."""
    unreached: tuple[str, ...] = ()
    """What still says it, one sentence for each place."""


def forget(
    memory: Verbs, name: str, *, owner: Owner | None, dry_run: bool, by: str, why: str, everywhere: bool
) -> Forgotten:
    """Forget the rows of that id, handle or exact title. Raises NotFound, or PersonaRefused for an entry of Hermes' own.

    `everywhere`: what Hermes' memory files say of it goes too, under Hermes' lock and after a backup, and so do the turns
    and calls of this memory that say the same words.
    """
    keys = memory.keys(owner)
    rows = memory.reader.named(name, keys)
    if not rows:
        raise NotFound(name, "Look it up first: `recall` shows handles; a query is not a title.")
    if not _of_the_house(memory, owner):
        rows = [row for row in rows if row.owner != Owner.SHARED.key]
        if not rows:
            raise NotFound(name, "It is shared by everybody here: only who runs this machine can forget it.")
    theirs = [row for row in rows if row.layer == "L3"]
    if theirs and not everywhere:
        raise PersonaRefused(
            memory.persona.folder / str(theirs[0].extra.get("file") or "MEMORY.md"),
            "this entry is Hermes' own; its memory tool removes it, and recall follows "
            "(`hermes-memory forget --everywhere` does it for you)",
        )
    said = [row.text for row in rows if len(plain(row.text)) >= _SHORTEST]
    if everywhere:
        rows += [
            row for text in said for row in _saying(memory, text, keys) if row.id not in {r.id for r in rows}
        ]
    rows, never = _with_what_follows(memory, rows)
    ids = tuple(row.id for row in rows if row.layer != "L3")
    if dry_run:
        return Forgotten(
            ids or tuple(row.id for row in theirs), unreached=_unreached(memory, rows, said, keys)
        )
    gone = _names(memory, rows)
    entries, backup = _from_host(memory, said) if everywhere else ((), "")
    for row in rows:
        _copies(memory, row)
    key = (owner or Owner()).key
    if ids or never:
        told = sorted({(row.owner, row.session) for row in rows if row.layer == "L0" and row.session})
        record = {"ids": [*ids, *never], "by": by or key, "why": why, "told": told}
        memory._flush_audits()
        memory.journal.append("forget", record, owner=key)
    if theirs:  # they may be written again, by Hermes
        memory.journal.append("gone", {"ids": [row.id for row in theirs]}, owner=theirs[0].owner)
    memory._wrote()
    shaken = _shake(memory, gone)
    if any(row.layer in ("L0", "L1") for row in rows):
        memory.drafts.files.without(rows)
    return Forgotten(
        ids or tuple(row.id for row in theirs), shaken, entries, backup, _unreached(memory, rows, said, keys)
    )


def _of_the_house(memory: Verbs, owner: Owner | None) -> bool:
    """Whether this owner may forget what is everybody's: the person at the machine may, who writes from elsewhere may not."""
    key = (owner or Owner()).key
    return key in (Owner.SHARED.key, Owner.ANY.key) or key in memory.owners.linked(Owner().key)


def _with_what_follows(memory: Verbs, rows: list[Row]) -> tuple[list[Row], list[str]]:
    """(the rows and those read from their calls or stated by their turns, ids that are still to be made)."""
    index, never = memory.reader.index, []
    found = {row.id: row for row in rows}
    if any(row.layer == "L0" for row in rows):
        with contextlib.suppress(
            HermesMemoryError
        ):  # what is still to be read from a call is not read any more
            memory.archive.flush(_PATIENCE)
        memory.reader.refresh()
    for row in rows:
        if row.kind == "turn":
            for one in ids_of(row.id):
                stated = index.find(one, {row.owner})
                if stated is None:
                    never.append(one)
                else:
                    found.setdefault(one, stated)
        elif row.kind == "call":
            call = str(row.extra.get("call") or row.id)
            # What is read from a call bears its time; its id alone may come again in another session.
            for fact in index.scan(
                {row.owner}, now_us=0, layers=("L1",), states=_EVERY, since=row.created, until=row.created + 1
            ):
                if str(fact.extra.get("tool_call_id") or "") == call and fact.origin == "tool":
                    found.setdefault(fact.id, fact)
    return list(found.values()), never


def _copies(memory: Verbs, row: Row) -> None:
    """The row's file goes to the trash, a fact into a file there, and what was derived from a call or turn goes."""
    memory._remove_file(str(row.extra.get("path") or ""))
    if row.layer == "L0":
        handover.forget(memory, row)
    elif row.layer == "L1" and row.origin != "tool":
        with contextlib.suppress(OSError):
            memory.notes.trash.keep(row.id, row.owner, row.text[:60], _record(memory, row))
    elif row.layer == "L2":  # frozen copies of INDEX.md have its title
        for path in (memory.folder / "snapshots").glob("index-*.md"):
            path.unlink(missing_ok=True)


def _record(memory: Verbs, row: Row) -> dict[str, object]:
    with contextlib.suppress(HermesMemoryError):
        for stored in memory.archive.facts.by_ids([row.id]):
            return record_of(stored)
    return refill.fact_of(row)


def _names(memory: Verbs, rows: Sequence[Row]) -> set[str]:
    """Everything by which another row can cite these."""
    calls = {str(row.extra.get("call") or row.id) for row in rows}
    return {row.id for row in rows} | calls | {memory.reader.index.handle(row) for row in rows}


def _shake(memory: Verbs, gone: set[str]) -> tuple[str, ...]:
    """Say of the conclusions that rested on what is gone that their basis changed."""
    index = memory.reader.index
    memory.reader.refresh()
    now, shaken = time.time_ns() // 1000, []
    for row in index.scan(None, now_us=now, layers=("L1",), kinds=("conclusion",), states=_EVERY):
        rests_on = {str(row.extra.get("tool_call_id") or ""), *words(row.source), *words(row.text)}
        if rests_on & gone and not row.extra.get("basis_changed"):
            memory.journal.append("fact", _record(memory, row) | {"basis_changed": now}, owner=row.owner)
            shaken.append(row.id)
    return tuple(shaken)


def _saying(memory: Verbs, text: str, keys: frozenset[str] | None) -> list[Row]:
    """The turns and calls of these owners that say this text."""
    memory.reader.refresh()
    asked = Asked.of(text[:2_000], analyst=memory.reader.analyst, now=datetime.now(UTC), semantic=False)
    found = Search(memory.reader.index, keys, time.time_ns() // 1000).explicit(
        asked, limit=50, layers=("L0",)
    )
    return [one.row for one in found.rows if plain(text) in plain(one.row.text)]


def _from_host(memory: Verbs, said: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Take the entries that say one of these texts out of Hermes' files; (the entries, the backup's folder)."""
    from hermes_memory_plugin.upkeep.bytes_gone import FORGOTTEN
    from hermes_memory_plugin.upkeep.slim import back_up

    if not _entries(memory, said):
        return (), ""
    with memory.persona.changing(*TARGETS) as pages:
        gone = [(target, entry) for target, entry in _entries(memory, said) if not pages[target].foreign]
        stamp = back_up(memory, pages, suffix=FORGOTTEN)
        for target in {target for target, _ in gone}:
            left = [entry for entry in pages[target].entries if (target, entry) not in gone]
            memory.persona.write(pages[target], left)
    for path in (memory.folder / "snapshots").glob("persona-*.md"):
        path.unlink(missing_ok=True)
    return tuple(entry for _, entry in gone), f"backups/persona/{stamp}"


def _entries(memory: Verbs, said: Sequence[str]) -> list[tuple[Target, str]]:
    wanted = [plain(text) for text in said]
    return [
        (target, entry)
        for target in TARGETS
        for entry in memory.persona.read(target).entries
        if any(text and (text in plain(entry) or plain(entry) in text) for text in wanted)
    ]


def _unreached(
    memory: Verbs, rows: Sequence[Row], said: Sequence[str], keys: frozenset[str] | None
) -> tuple[str, ...]:
    gone, index, found = {row.id for row in rows}, memory.reader.index, []
    for target, _ in _entries(memory, said):
        found.append(
            f"{FILES[target]} has an entry that says it: `forget --everywhere` removes it, and so does Hermes' memory tool."
        )
    still = [row for text in said for row in _saying(memory, text, keys) if row.id not in gone]
    if still:
        handles = ", ".join(dict.fromkeys(index.handle(row) for row in still))
        found.append(
            f"Said again in {handles}: `forget --everywhere` takes these along, or forget them one by one."
        )
    messages = _in_sessions(memory, said)
    if messages:
        found.append(
            f"Hermes' own session history (state.db) has it in {messages} messages, and its session search finds them there: "
            "deleting those sessions is Hermes' to do."
        )
    found.append("A conversation that is open now still shows what was said in it, until it ends.")
    found.append("The bytes stay in files nothing reads any more until `hermes-memory upkeep --purge`.")
    return tuple(dict.fromkeys(found))


def _in_sessions(memory: Verbs, said: Sequence[str]) -> int:
    """In how many messages of Hermes' own database the texts stand; 0 also when it cannot be read in time."""
    path = memory.home / "state.db"
    if not said or not path.is_file():
        return 0
    with contextlib.suppress(sqlite3.Error, OSError):
        address = f"file:{quote(str(path))}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_HOST)) as connection:
            stop = time.monotonic() + _HOST
            connection.set_progress_handler(lambda: int(time.monotonic() > stop), 10_000)
            where = " OR ".join("instr(content, ?) > 0" for _ in said)
            row = connection.execute(
                f"SELECT count(*) FROM messages WHERE {where}", [text[:200] for text in said]
            ).fetchone()
            return int(row[0]) if row else 0
    return 0
