"""What must stay because something living rests on it: calls, turns and facts an answer, a conclusion, a scene or a fact cites."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.recall.index_row import Row

_WORDS = re.compile(r"[\w:./-]{4,120}")
_LIVING = "superseded_by = '' AND (expires_at IS NULL OR expires_at > make_timestamp(?::BIGINT))"


def pinned(memory: Parts, now: int) -> set[str]:
    """Ids of rows and of calls that something living cites; `now` in epoch microseconds."""
    facts, logs = memory.archive.facts, memory.archive.logs
    found = {
        row["id"]
        for row in facts.rows(
            f"SELECT DISTINCT tool_call_id AS id FROM facts WHERE tool_call_id <> '' AND {_LIVING}", [now]
        )
    }
    if logs.path.exists():
        for row in logs.rows("SELECT DISTINCT call, fact FROM links WHERE call <> '' OR fact <> ''"):
            found |= {row["call"], row["fact"]}
    concluded = facts.rows(
        f"SELECT source, tool_call_id FROM facts WHERE kind = 'conclusion' AND {_LIVING}", [now]
    )
    index = memory.reader.index
    for name in {*_cited(memory, now), *(word for row in concluded for word in words(row["source"]))}:
        cited = index.find(name, None)
        found |= _ids(cited) if cited is not None else {name}
    found.discard("")
    proofs = facts.rows(
        "SELECT DISTINCT tool_call_id AS id FROM facts WHERE tool_call_id <> '' AND id IN (SELECT unnest(?::VARCHAR[]))",
        [list(found)],
    )
    return found | {row["id"] for row in proofs}


def words(source: str) -> list[str]:
    """What in a source could be the id or the handle of a row."""
    return _WORDS.findall(source)


def _cited(memory: Parts, now: int) -> Iterable[str]:
    """The sources of the living scenes."""
    for row in memory.reader.index.scan(None, now_us=now, layers=("L2",), kinds=("scene",)):
        yield from map(str, (row.extra.get("scene") or {}).get("sources", ()))


def _ids(row: Row) -> set[str]:
    return {row.id, str(row.extra.get("call") or ""), str(row.extra.get("tool_call_id") or "")}
