"""`memory_trace expand`: the raw results behind a node of a canvas, a call or a kept result, page by page.

What was stored is returned as it is, not one character changed: pages put together are the result itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory_plugin.tools.base import Caller, Refused, text

PAGE = 8_000
"""Characters of one page."""


def expand(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """One page. Raises NotFound for what this caller's user has nothing of."""
    from hermes_memory_plugin.upkeep import offload

    wanted = text(arguments, "id", "node", "tool_call_id").strip("[]")
    if not wanted:
        raise Refused("expand needs an id: a node of the canvas, a tool call id or handle, or a reference")
    memory, owner = caller.memory(), caller.session.owner
    if offload.is_reference(wanted):
        stored = offload.read(memory.folder, wanted, memory.keys(owner))
        whole: list[tuple[dict[str, Any], str]] = [({"id": wanted}, stored)]
    else:
        whole = [
            (
                {
                    "id": call.tool_call_id,
                    "tool": call.tool_name,
                    "at": call.at.isoformat(timespec="seconds"),
                    "status": call.status,
                },
                call.result or call.error,
            )
            for call in memory.expand(wanted, owner=owner)
        ]
    total = sum(len(raw) for _, raw in whole)
    start = min(_offset(arguments.get("offset")), total)
    parts, position, room = [], 0, PAGE
    for facts, raw in whole:
        inside = max(0, start - position)
        position += len(raw)
        if room and (inside < len(raw) or (not raw and start <= position)):
            piece = raw[inside : inside + room]
            parts.append({**facts, "characters": len(raw), "offset": inside, "text": piece})
            room -= len(piece)
    end = start + PAGE - room
    return {
        "status": "found",
        "node": wanted,
        "calls": len(whole),
        "characters": total,
        "parts": parts,
        **({"next_offset": end} if end < total else {}),
    }


def _offset(value: object) -> int:
    try:
        return max(0, int(str(value or 0)))
    except ValueError:
        raise Refused("offset must be a whole number: the next_offset of the page before") from None
