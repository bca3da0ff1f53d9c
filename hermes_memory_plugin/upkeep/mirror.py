"""What Hermes' own `memory` tool does, seen from here: its entries are rows of L3, and what found no room there is kept in L1.

The files are compared, not the calls: so the writes of the review fork, of other processes and of people count as well.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_plugin.layers.persona import FILES, TARGETS
from hermes_memory_plugin.upkeep.slim import same_text
from hermes_memory_plugin.upkeep.slim_rules import classify

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory
    from hermes_memory_plugin.parts import Parts

OWNER = Owner()
"""Whose the entries are: the person's at the machine."""

_NO_ROOM = re.compile(
    r"exceed the limit|over the limit|at capacity|chars\. Adding|consolidation failed", re.IGNORECASE
)


class Mirror:
    """Keeps the rows of L3 as the two files are."""

    def __init__(self, memory: Parts) -> None:
        self._memory = memory
        self._seen: tuple[tuple[int, int], ...] = ()
        self._lock = threading.Lock()

    def soon(self, *, call: str = "") -> None:
        """`follow`, in the background, when there is something to follow."""
        if self._memory.persona.stamp() != self._seen:
            self._memory.worker.soon(lambda: self.follow(call=call))

    def follow(self, *, call: str = "") -> int:
        """Take up what changed in the files; returns how many rows. Costs two stats when nothing did."""
        stamp = self._memory.persona.stamp()
        if stamp == self._seen:
            return 0
        with self._lock:
            changed = self._compare(call)
            self._seen = stamp
        return changed

    def _compare(self, call: str) -> int:
        memory = self._memory
        memory.reader.refresh()
        now = time.time_ns() // 1000
        rows = memory.reader.index.scan(
            frozenset({OWNER.key}), now_us=now, layers=("L3",), states=("live", "superseded", "expired")
        )
        known = {row.id for row in rows}
        wanted: dict[str, dict[str, Any]] = {}
        for target in TARGETS:
            for entry in memory.persona.read(target).entries:
                if same_text(memory, entry, OWNER) is not None:
                    continue  # it has an identity already: one fact, one row
                row_id = "persona-" + _hash(f"{target}\0{entry}")
                wanted[row_id] = {
                    "id": row_id,
                    "text": entry,
                    "target": target,
                    "file": FILES[target],
                    "call": call,
                }
        for row_id, record in wanted.items():
            if row_id not in known:
                memory.journal.append("persona", record, owner=OWNER.key)
        gone = sorted(known - set(wanted))
        if gone:
            memory.journal.append("gone", {"ids": gone}, owner=OWNER.key)
        return len(set(wanted) - known) + len(gone)


def overflow(
    memory: Memory, arguments: Mapping[str, Any], result: str, session: Session, call: str, *, review: bool
) -> list[str]:
    """A write Hermes refused because its file is full: what it wanted to keep becomes rows of L1. Returns their ids."""
    if not _refused(result):
        return []
    ids = []
    for target, content in _wanted(arguments):
        kind, _ = classify(content, "user" if target == "user" else "memory", memory.reader.analyst.read)
        in_person = session.kind == "user" and not review
        ids.append(
            memory.remember(
                content,
                id="overflow-" + _hash(f"{session.owner.key}\0{content}"),
                # What nobody said in person never becomes a rule.
                kind={"persona": "preference" if in_person else "fact", "scene": "fact"}.get(kind, kind),
                source=f"Hermes {'USER.md' if target == 'user' else 'MEMORY.md'} (full)",
                origin="user" if in_person else "model",
                owner=session.owner,
                tool_call_id=call,
            )
        )
    if ids:
        memory.count("persona_overflow", f"{len(ids)} entries kept in L1", len(ids))
    return ids


def pressure(memory: Parts) -> list[tuple[str, str]]:
    """(key, one sentence) for each of Hermes' files that is nearly full."""
    found = []
    for pages in memory.persona.pressure():
        level = "over" if pages.share > 1 else "90" if pages.share >= 0.9 else "80"
        found.append(
            (
                f"persona:{pages.target}:{level}",
                f"{pages.path.name} is {pages.share:.0%} full ({pages.characters:,} of {pages.limit:,} characters); "
                "`hermes-memory persona slim` shows what can move to other layers. What finds no room is kept as facts.",
            )
        )
    return found


def _refused(result: str) -> bool:
    try:
        answer = json.loads(result)
    except (ValueError, RecursionError):
        return False
    if not isinstance(answer, Mapping) or answer.get("success") is not False:
        return False
    return bool(_NO_ROOM.search(str(answer.get("error") or "")))


def _wanted(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    target = str(arguments.get("target") or "memory")
    operations = arguments.get("operations")
    for one in operations if isinstance(operations, list) else [arguments]:
        if isinstance(one, Mapping) and str(one.get("action") or "add") in ("add", "replace"):
            content = one.get("content")
            if isinstance(content, str) and content.strip():
                yield target, content.strip()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]
