"""What a session sees as it was when the session began: Hermes' memory files where Hermes does not show them, and INDEX.md.

Frozen once per lineage and kept on disk, so that every process that goes on with the session shows the same.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_plugin.layers.persona import Target
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.question import language
from hermes_memory_plugin.recall.smalltalk import is_small_talk
from hermes_memory_plugin.store.frozen import Frozen
from hermes_memory_plugin.store.ids import handle_hash, handle_letters
from hermes_memory_plugin.upkeep import handover

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts

FOLDER = "snapshots"
KEPT, KEPT_STATES = 30 * 86_400, 90 * 86_400
"""Seconds after which a session's snapshots, and its states after a compaction, may go: since they were last read."""


class Snapshots:
    """The frozen views of one memory's sessions."""

    def __init__(self, memory: Parts) -> None:
        self._memory = memory
        self._frozen = Frozen(memory.folder / FOLDER)

    def persona(self, session: Session, hidden: Collection[Target]) -> tuple[str, ...]:
        """The entries of the files Hermes does not show this session; () for who is not the person at the machine."""
        memory = self._memory
        keys = memory.keys(session.owner)
        if not hidden or (keys is not None and Owner().key not in keys):
            return ()
        key = self._key("persona", session)
        text = self._frozen.get(key)
        if text is None:
            whole = memory.persona.snapshot()
            mine = {entry for target in hidden for entry in memory.persona.read(target).entries}
            text = self._keep(key, json.dumps([one for one in whole if one in mine], ensure_ascii=False))
        with suppress(ValueError):
            return tuple(str(entry) for entry in json.loads(text))
        return ()

    def beside(
        self, session: Session, hidden: Collection[Target], message: str, present: Collection[str]
    ) -> tuple[str, tuple[str, ...]]:
        """(the block with the persona for a message, its entries); nothing for small talk or what is still visible."""
        normal = normalise(message)
        if not hidden or is_small_talk(normal, anchored=False):
            return "", ()
        entries = self.persona(session, hidden)
        lines = [block.Line(handle_of(entry), entry) for entry in entries]
        tongue = "en" if language(normal) == "en" else "zh"
        shown = [block.line(line, tongue) for line in lines if line.handle not in present]
        return block.render([], standing=shown, language=tongue) if shown else "", entries

    def index(self, session: Session) -> list[str]:
        """INDEX.md as it was when the session first asked: lines of notes its owner may see, 200 at most."""
        key = self._key("index", session)
        text = self._frozen.get(key)
        if text is None:
            memory = self._memory
            memory.reader.refresh()
            now = time.time_ns() // 1000
            rows = memory.reader.index.scan(memory.keys(session.owner), now_us=now, layers=("L2",))
            paths = [str(row.extra.get("path") or "") for row in rows]
            lines = memory.notes.index([path for path in paths if path.startswith("notes/")])
            text = self._keep(key, "\n".join(lines))
        return text.splitlines()

    def prune(self) -> None:
        """Delete those of sessions long over, and what they were told after their compactions."""
        self._frozen.prune(KEPT)
        Frozen(self._memory.folder / handover.FOLDER).prune(KEPT_STATES)

    def _keep(self, key: str, text: str) -> str:
        try:
            return self._frozen.put(key, text)
        except OSError:
            return text  # for this process it is kept all the same

    def _key(self, name: str, session: Session) -> str:
        whose = f"{session.owner.key}\0{session.id}"
        return f"{name}-{hashlib.sha256(whose.encode('utf-8', 'replace')).hexdigest()[:32]}"


def handle_of(entry: str) -> str:
    """The handle an entry is shown under: of its text, so that it is the same wherever it is shown."""
    return f"p-{handle_letters(handle_hash(entry), 6)}"


def joined(persona: str, recalled: str) -> str:
    """One block of both; either may be empty."""
    if not persona or not recalled:
        return persona or recalled
    top, rest = persona.splitlines()[:-1], recalled.splitlines()[1:]
    return "\n".join([*top, *_without_head(top, rest)])


def _without_head(top: Sequence[str], rest: Sequence[str]) -> Iterable[str]:
    return rest[1:] if rest and len(top) > 1 and rest[0] == top[1] else rest
