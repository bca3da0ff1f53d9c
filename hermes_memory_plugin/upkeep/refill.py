"""After a ledger was damaged and moved aside: what the read index still holds is journalled again for the new one.

Facts come back whole. Turns come back as far as they are shown (8,000 characters a side), tool calls as the line the index shows, marked
as such; the damaged file keeps their payloads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers.calls import call_of

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_row import Row

Item = tuple[str, dict[str, Any], str, str | None, int | None]
"""What `Journal.append_many` takes: kind, data, owner, id, time."""

CUT = "restored from the index after logs.db was damaged; the result is cut"
_EVERY = ("live", "superseded", "expired")
_TYPED = ("subject", "metric", "period", "unit", "basis", "holder", "currency", "title", "tool_call_id")


def facts(index: Index) -> Iterator[Item]:
    """Every fact of the index, of any state, as the record it once was."""
    for row in index.scan(None, now_us=_now(), layers=("L1",), states=_EVERY, newest_first=False):
        yield "fact", fact_of(row), row.owner, None, None


def log(index: Index) -> Iterator[Item]:
    """Every turn and tool call of the index."""
    for row in index.scan(None, now_us=_now(), layers=("L0",), states=_EVERY, newest_first=False):
        extra = row.extra
        if row.kind == "turn":
            data = {
                name: extra[name]
                for name in ("user", "assistant", "speaker", "completed", "turn")
                if extra.get(name) not in (None, "")
            }
            yield (
                "turn",
                {"id": row.id, "session": row.session, "half": "full", **data},
                row.owner,
                None,
                row.created,
            )
        else:
            yield "trace", _call(row), row.owner, None, row.created


def _call(row: Row) -> dict[str, Any]:
    """The call as the index shows it; under its own id, so that it takes its own place and not a second one."""
    found = call_of(row, "")
    data = {name: row.extra[name] for name in ("call", "tool", "turn") if row.extra.get(name)}
    arguments: Any = found.arguments
    with suppress(ValueError, RecursionError):
        arguments = json.loads(found.arguments or "{}")
    data |= {"id": row.id, "session": row.session, "status": found.status}
    data["args"] = arguments if isinstance(arguments, dict) else {"(cut)": str(arguments)}
    if not found.unfinished:
        data["result"] = f"{found.result}\n[{CUT}]"
    return data


def fact_of(row: Row) -> dict[str, Any]:
    """The fact as the index shows it."""
    fields: dict[str, Any] = {
        "id": row.id,
        "kind": row.kind,
        "statement": row.text,
        "source": row.source,
        "as_of": row.as_of,
        "created_at": row.created,
        "expires_at": row.expires,
        "origin": row.origin,
        "trust": row.trust,
        "value": row.extra.get("value", row.value),
        "approximate": row.approximate,
        "project": row.project,
        **{name: row.extra[name] for name in _TYPED if row.extra.get(name)},
    }
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value != "" and value is not False
    }


def _now() -> int:
    return time.time_ns() // 1000
