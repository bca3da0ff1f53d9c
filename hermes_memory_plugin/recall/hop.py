"""The second step of a question: 老周推荐的那只票现在估值多少 needs the stock of one row and the figure of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.candidate import Candidate

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked

Find = Callable[["Asked"], list[Candidate]]
MOST = 2
_STARTS, _LOOKS = 4, 3
_ALONE = 0.7
"""A row that covers this much of the question answers it alone."""
_MORE = 0.12
"""What both rows together must cover beyond what one row does."""


def second_step(
    asked: Asked, kept: list[Candidate], find: Find, weigh: Callable[[frozenset[str]], float]
) -> list[Candidate]:
    """The rows with what the second step found, both ends of it first; `weigh`: share of the question that tokens are."""
    if asked.entities or not kept:
        return kept
    looks = 0
    alone = max(one.coverage for one in kept)
    wanted = asked.metrics | asked.families
    for start in sorted(kept[:_STARTS], key=lambda one: -one.coverage):
        left = frozenset(asked.content) - start.holds
        unmet = wanted - start.facet("metrics") if not wanted & start.facet("metrics") else frozenset()
        if not start.coverage or (start.coverage >= _ALONE and not unmet) or not (left or unmet):
            continue
        for subject in _subjects(asked, start):
            if looks == _LOOKS:
                return kept
            looks += 1
            ends = [
                one
                for one in find(asked.about(subject, left))
                if one.row.id != start.row.id
                and subject in one.facet("entities") | one.facet("sectors")
                and (
                    not unmet.isdisjoint(one.facet("metrics"))
                    if unmet
                    else weigh(start.holds | one.holds) >= alone + _MORE
                )
            ]
            if ends:
                return _joined(kept, start, ends[:MOST], subject)
    return kept


def _subjects(asked: Asked, start: Candidate) -> Sequence[str]:
    """What the row speaks of that the question did not: a company, or else a sector."""
    entities = sorted(start.facet("entities"))
    if entities:
        return entities[:2]
    return sorted(start.facet("sectors") - asked.sectors)[:2]


def _joined(kept: list[Candidate], start: Candidate, ends: list[Candidate], subject: str) -> list[Candidate]:
    top = max(one.score for one in kept)
    start.score = max(start.score, top) + 0.1
    start.reasons.append(f"leads to {subject}")
    for place, one in enumerate(ends):
        one.score = start.score - 0.02 * (place + 1)
        one.named = True
        one.reasons.append(f"of {subject}, which {start.row.id} names")
    ids = {start.row.id, *(one.row.id for one in ends)}
    return [start, *ends, *(one for one in kept if one.row.id not in ids)]
