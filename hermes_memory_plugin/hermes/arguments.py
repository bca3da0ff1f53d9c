"""Reading what Hermes passes to a hook: names and types differ between versions, nothing may be missing badly."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, cast, get_args

from hermes_memory_hookspecs.types import TraceStatus

_STATUSES = get_args(TraceStatus)


def text(arguments: Mapping[str, Any], name: str) -> str:
    """One argument as text; "" when it is missing or None."""
    value = arguments.get(name)
    return value if isinstance(value, str) else "" if value is None else str(value)


def surrogate() -> str:
    """An id for what the host did not name."""
    return f"local-{uuid.uuid4().hex[:20]}"


def as_text(value: object) -> str:
    """A tool's result as text: JSON where it is not text already."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def as_dict(value: object) -> dict[str, Any]:
    """A tool's arguments as a dict of its own."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    return {} if value is None else {"value": value}


def number(value: object) -> float | None:
    """A duration, or None for anything that is no number."""
    return float(value) if isinstance(value, int | float) else None


def status(named: str, error: str, result: str) -> TraceStatus:
    """How a call ended. Before 0.16 the host does not say; it has always judged by the same key of the result."""
    if named in _STATUSES:
        return cast("TraceStatus", named)
    if error:
        return "error"
    if result.startswith("{") and '"error"' in result:
        try:
            return "error" if json.loads(result).get("error") else "ok"
        except (ValueError, RecursionError):
            return "ok"
    return "ok"
