"""L0: tool calls and dialogue turns as the journal keeps them, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from hermes_memory_hookspecs import Owner, ToolTrace, Turn
from hermes_memory_plugin.layers import calls, footers
from hermes_memory_plugin.layers.facts import microseconds, moment
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.store.ids import new_ulid

if TYPE_CHECKING:
    from hermes_memory_plugin.settings import Lifetime

Half = Literal["user", "full", "end"]

_ARGUMENTS, _LONG = 32, 400
_DAY = 86_400_000_000


def expiry(kind: str, at: int, limits: Lifetime) -> int | None:
    """When a "call" or a "turn" of that time stops being current; None for never. Epoch microseconds."""
    days = limits.call_days if kind == "call" else limits.dialogue_days
    return at + days * _DAY if days else None


def trace_json(trace: ToolTrace, kind: str) -> dict[str, Any]:
    """The call as it is journalled; a call without an id of the host's gets one of ours."""
    fields: dict[str, Any] = {
        "call": trace.tool_call_id or f"call-{new_ulid().lower()}",
        "tool": trace.tool_name,
        "args": trace.args,
        "result": trace.result,
        "status": trace.status,
        "session": trace.session_id,
        "turn": trace.turn_id,
        "origin": "tool",
        "kind": kind,
    }
    if trace.error:
        fields["error"] = trace.error
    if trace.duration_ms is not None:
        fields["ms"] = trace.duration_ms
    return fields


def start_json(trace: ToolTrace, kind: str) -> dict[str, Any]:
    """The call as it is journalled before it runs. Long arguments are left out, never cut: half a secret is none
    that anybody recognises, and the end of the call brings them whole."""
    return {
        "call": trace.tool_call_id,
        "tool": trace.tool_name,
        "args": {name: _short(value) for name, value in list(trace.args.items())[:_ARGUMENTS]},
        "status": calls.STARTED,
        "session": trace.session_id,
        "turn": trace.turn_id,
        "origin": "tool",
        "kind": kind,
    }


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONG else f"({len(value):,} characters)"
    if isinstance(value, Mapping | list | tuple):
        return value if len(repr(value)) <= _LONG else f"({len(value):,} entries)"
    return value


def turn_row_id(session: str, turn_id: str, fallback: str) -> str:
    """One row for one turn, whichever of its halves comes first; `fallback` for a turn without an id."""
    return f"turn:{session}:{turn_id}" if turn_id else f"turn:{fallback}"


def turn_json(turn: Turn, kind: str, half: Half) -> dict[str, Any]:
    """The turn, or the half of it that is known so far, without anything we injected into it."""
    fields: dict[str, Any] = {
        "id": turn_row_id(turn.session_id, turn.turn_id, new_ulid().lower()),
        "turn": turn.turn_id,
        "session": turn.session_id,
        "user": block.strip(turn.user),
        "assistant": footers.without(block.strip(turn.assistant)),
        "speaker": turn.speaker,
        "kind": kind,
        "half": half,
        "said": microseconds(turn.at),
        "completed": None if half == "user" else turn.completed,
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def trace_of(row: Mapping[str, Any]) -> ToolTrace:
    """The trace of a journalled record's data or of a ledger row."""
    at = moment(row.get("at"))
    return ToolTrace(
        tool_call_id=str(row.get("call") or ""),
        tool_name=str(row.get("tool") or ""),
        args=dict(row.get("args") or {}),
        result=str(row.get("result") or ""),
        status=row.get("status") or "ok",
        error=str(row.get("error") or ""),
        duration_ms=row.get("ms"),
        session_id=str(row.get("session") or ""),
        turn_id=str(row.get("turn") or ""),
        owner=Owner.parse(str(row.get("owner") or "local")),
        **({"at": at} if at else {}),
    )
