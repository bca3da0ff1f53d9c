"""How often a row was recalled, and when last: counted from the audits of recalls, for as long as those are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_memory_plugin.layers.facts import moment

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Owner
    from hermes_memory_plugin.memory import Memory

RECALLS = 5_000
"""How many of the last recalls are looked at."""


@dataclass(frozen=True, slots=True)
class Use:
    """How a row was used."""

    count: int
    last: datetime | None


def uses(memory: Memory, *, owner: Owner | None = None) -> dict[str, Use]:
    """Row id → its uses by the recalls this owner may see."""
    counts: dict[str, int] = {}
    last: dict[str, int] = {}
    for audit in memory.why(RECALLS, owner=owner):
        at = audit.get("at")
        for item in audit.get("items") or ():
            row_id = str(item.get("id") or "")
            counts[row_id] = counts.get(row_id, 0) + 1
            if isinstance(at, int):
                last[row_id] = max(last.get(row_id, 0), at)
    return {row_id: Use(count, moment(last.get(row_id))) for row_id, count in counts.items() if row_id}
