"""Which rows earn a place beside the message: each must bring something the ones before it do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.answer import Cut
from hermes_memory_plugin.recall.candidate import Candidate

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked

STRONG = 0.75
"""A row this near the best one comes along whatever it brings."""
ENOUGH = 3
"""So many rows come along even if they speak of the same."""
MOST_LOG = 3


def choose(
    asked: Asked, ranked: Sequence[Candidate], cut: list[Cut], *, facts: int, scenes: int, chunks: int
) -> tuple[list[Candidate], int]:
    """(the rows that come along, how many related ones do not)."""
    room = {"L2": scenes, "report": chunks, "L0": MOST_LOG}
    used: dict[str, int] = {}
    chosen: list[Candidate] = []
    weaker = 0
    replaced = {one.later.id: one for one in ranked if one.later is not None}
    top = max((one.score for one in ranked), default=0.0)
    brought: set[str] = set()
    for one in ranked:
        if one.row.id in replaced:
            cut.append(Cut(one.row.id, f"said as what came after {replaced[one.row.id].row.id}"))
            continue
        layer = one.row.layer if one.row.layer in room else "L1"
        if same := next((other for other in chosen if says_the_same(one, other)), None):
            cut.append(Cut(one.row.id, f"says what {same.row.id} says"))
        elif used.get(layer, 0) >= room.get(layer, facts):
            cut.append(Cut(one.row.id, f"enough rows of {layer}"))
            weaker += 1
        elif len(chosen) >= ENOUGH and one.score < STRONG * top and _brings(asked, one) <= brought:
            cut.append(Cut(one.row.id, "brings nothing new"))
            weaker += 1
        else:
            used[layer] = used.get(layer, 0) + 1
            brought |= _brings(asked, one)
            chosen.append(one)
    return chosen, weaker


def says_the_same(one: Candidate, other: Candidate) -> bool:
    """Whether two rows are one statement. Another value of the same key is a contradiction, and shown."""
    if one.row.fact_key and one.row.fact_key == other.row.fact_key and one.row.owner == other.row.owner:
        return one.row.value == other.row.value
    return one.plain == other.plain


def _brings(asked: Asked, one: Candidate) -> set[str]:
    """What of the question the row speaks to, and what it speaks of."""
    subjects = one.facet("entities") & asked.entities if asked.entities else one.facet("entities")
    metrics = (
        one.facet("metrics") & (asked.metrics | asked.families) if asked.metrics else one.facet("metrics")
    )
    parts = [f"@{entity}" for entity in subjects] or [""]
    found = {f"{part}#{metric}" for part in parts for metric in metrics or ("",)}
    found |= {f"{part}~{period}" for part in parts for period in one.facet("periods") if one.answers}
    return found | set(one.holds)
