"""`memory_trace`: where a number came from, read back from the log of tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.tools.base import Caller, Refused, Tool, plain, text
from hermes_memory_plugin.tools.expand import expand

if TYPE_CHECKING:
    from hermes_memory_hookspecs import ToolTrace

WHOLE = 8_000
"""Characters of a result looked up by id."""
GLANCE = 200
MOST = 50

SCHEMA: dict[str, Any] = {
    "name": "memory_trace",
    "description": (
        "Reads the log of tool calls made in any earlier session: tool, arguments, result, time. "
        "Look up the id that a recalled item names as its source, or list the calls of a time range or a tool. "
        "Use it to prove or re-check where a figure came from (verify does both for a claim), and instead of repeating a call whose stored result is still good. "
        "Not for searching by meaning: that is remember recall. "
        "How to research a stock with proof: skill_view hermes-memory:stock-research."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["lookup", "expand", "verify"],
                "description": "lookup (default); expand: the raw results of a canvas node, call or reference, by pages; "
                "verify: whether the figures of a text still stand, and which call they came from",
            },
            "text": {"type": "string", "description": "verify: the claim, as in 茅台 PE 28 倍"},
            "id": {
                "type": "string",
                "description": "tool call id or handle; alone, shows that call whole. expand: also a node or ref-id",
            },
            "offset": {"type": "integer", "description": "expand: where the page begins (next_offset)"},
            "since": {"type": "string", "description": "ISO date or time, included"},
            "until": {"type": "string", "description": "ISO date or time, not included"},
            "tool": {"type": "string", "description": "only calls of this tool"},
            "status": {
                "type": "string",
                "description": "only calls that ended so: ok, error …; started = no end known",
            },
            "limit": {
                "type": "integer",
                "description": f"calls to list, newest first (default 10, at most {MOST})",
            },
        },
    },
}


def run(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """One call of the tool."""
    action = text(arguments, "action").lower()
    if action == "expand":
        return expand(caller, arguments)
    if action == "verify":
        return _verify(caller, arguments)
    if action not in ("", "lookup"):
        raise Refused("action must be lookup, expand or verify")
    wanted = text(arguments, "id", "tool_call_id")
    memory = caller.memory()
    if wanted:
        found = memory.trace(wanted, owner=caller.session.owner)
        if found is None:
            return {
                "status": "not_found",
                "retry": False,
                "message": f"No tool call is on record under {wanted!r} for this user.",
            }
        return {"status": "found", **_shown(found), **_whole(found)}
    since, until, tool, status = (text(arguments, name) for name in ("since", "until", "tool", "status"))
    if not (since or until or tool or status):
        raise Refused("lookup needs an id, or since, until, tool or status")
    calls = memory.traces(
        since=since or None,
        until=until or None,
        tool=tool or None,
        status=status or None,
        owner=caller.session.owner,
        limit=_limit(arguments.get("limit")),
    )
    return {
        "status": "found" if calls else "nothing",
        "calls": [
            {**_shown(call), "result_begins": plain(call.result[: GLANCE * 2], GLANCE)} for call in calls
        ],
    }


def _verify(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    claim = text(arguments, "text", "claim", "query")
    if not claim:
        raise Refused("verify needs the text of the claim: whose figure, which, how much")
    verdict = caller.memory().verify(claim, owner=caller.session.owner)
    return {
        "status": verdict.status,
        "said": verdict.said,
        "fact_ids": list(verdict.fact_ids),
        "tool_call_ids": list(verdict.tool_call_ids),
        **(
            {"claims": [{"claim": one.claim, "status": one.status} for one in verdict.parts]}
            if verdict.parts
            else {}
        ),
    }


def _shown(call: ToolTrace) -> dict[str, Any]:
    return {
        "id": call.tool_call_id,
        "tool": call.tool_name,
        "arguments": plain(json.dumps(call.args, ensure_ascii=False, default=str), WHOLE // 4),
        "at": call.at.isoformat(timespec="seconds"),
        "outcome": call.status,
        **({"error": plain(call.error, GLANCE)} if call.error else {}),
    }


def _whole(call: ToolTrace) -> dict[str, Any]:
    return {
        "result": plain(call.result[: WHOLE * 2], WHOLE),
        "result_characters": len(call.result),
        **({"duration_ms": call.duration_ms} if call.duration_ms is not None else {}),
        **({"session": call.session_id} if call.session_id else {}),
    }


def _limit(value: object) -> int:
    try:
        return max(1, min(MOST, int(str(value))))
    except ValueError:
        return 10


TOOL = Tool("memory_trace", SCHEMA, run)
