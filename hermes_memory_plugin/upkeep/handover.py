"""What a conversation is told after its host compressed it: the agent's state and the canvas, from the record alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner, Session, ToolTrace
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers import facts
from hermes_memory_plugin.layers.workspace import WorkspaceMemory
from hermes_memory_plugin.store.frozen import Frozen
from hermes_memory_plugin.upkeep import canvas, offload

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.verbs import Verbs

FOLDER = "compactions"
"""Where below memory/ the states are kept as they were first told."""
_CANVAS = "Task canvas (memory_trace expand NODE returns the raw results of a node):"


def workspace(memory: Verbs, session: Session, folder: str = "") -> WorkspaceMemory:
    """The state of that session, as far as its owner's rows tell it: nobody else's are looked at."""
    memory.reader.refresh()
    index = memory.reader.index
    rows = index.by_session(session.id, {session.owner.key}, layers={"L0"})
    own = frozenset({session.owner.key})
    return WorkspaceMemory.of(rows, index.handle, lambda name: index.find(name, own), folder=folder)


def text(memory: Verbs, session: Session, folder: str = "") -> str:
    """State and canvas; "" when nothing of the session is on record."""
    found = workspace(memory, session, folder)
    parts = [found.to_summary()]
    drawn = canvas.draw(found)
    if drawn:
        parts.append(f"{_CANVAS}\n```mermaid\n{drawn}\n```")
    return "\n\n".join(part for part in parts if part)


def key_of(digest: str, session: str, owner: str) -> str:
    """The name a state is kept under: the summary says which, owner and conversation keep equal ones apart."""
    return f"{digest}-{_apart(session, owner)}"


def forget(memory: Verbs, row: Row) -> None:
    """A call or a turn was forgotten: what was told of its conversation is derived anew, its kept result goes."""
    Frozen(memory.folder / FOLDER).forget(f"-{_apart(row.session, row.owner)}")
    if row.kind == "call":
        offload.forget(memory.folder, str(row.extra.get("call") or row.id), row.owner)


def _apart(session: str, owner: str) -> str:
    return hashlib.blake2b(f"{owner}\x1f{session}".encode("utf-8", "replace"), digest_size=6).hexdigest()


def expand(memory: Verbs, node: str, owner: Owner | None) -> Sequence[ToolTrace]:
    """The calls behind a node of a canvas, a handle or a call id, oldest first. Raises NotFound."""
    keys = memory.keys(owner)
    handles = canvas.calls_of(node)
    ends: list[Row] = []
    if handles:
        ends = [row for row in (memory.reader.call(name, keys) for name in handles) if row is not None]
    if len(ends) < 2 or ends[0].id == ends[1].id:
        found = memory.trace(ends[0].id if ends else node.strip().strip("[]"), owner=owner)
        if found is None or (handles and not ends):
            raise NotFound(node, "Use a node's id as the canvas has it, or the id of a call.")
        return [found]
    first, last = ends
    if first.session != last.session or first.owner != last.owner or first.created > last.created:
        raise NotFound(node, "Its two ends are no calls of one conversation, the older one first.")
    rows = memory.reader.index.by_session(first.session, {first.owner}, layers={"L0"})
    wanted = {
        (str(row.extra.get("call") or row.id), row.created)
        for row in rows
        if row.kind == "call"
        and first.created <= row.created <= last.created
        and row.extra.get("status") != "started"
    }
    calls = memory.archive.traces(
        since=first.created,
        until=last.created + 1,
        tool=None,
        keys=frozenset({first.owner}),
        session=first.session,
        status=None,
        limit=10_000,
    )
    return [call for call in reversed(calls) if (call.tool_call_id, facts.microseconds(call.at)) in wanted]
