"""A question in the terms of the index: the tokens to look for, their weights, and what the rules compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers.facts import microseconds
from hermes_memory_plugin.recall import segment
from hermes_memory_plugin.recall.gist import groups_of
from hermes_memory_plugin.recall.question import Question

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst

_SURE = 0.6
"""Mentions below this confidence are looked for, but exclude nothing."""
_ENTITY, _NAME, _SECTOR, _METRIC, _GROUP = 1.0, 0.3, 0.8, 0.6, 0.6


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, ready to be searched for."""

    question: Question
    weights: dict[str, float]
    """Token → weight in the BM25 sum."""
    content: dict[str, float]
    """Token → weight in what a row must cover: an entity counts once, however its name is spelled."""
    entities: frozenset[str]
    sectors: frozenset[str]
    metrics: frozenset[str]
    periods: frozenset[str]
    groups: frozenset[str]
    scopes: frozenset[str]
    span: tuple[int | None, int | None]
    """First microsecond and end of the time it names; (None, None) when it names none."""
    vector: Any = None

    @property
    def small_talk(self) -> bool:
        return self.question.small_talk

    @property
    def past_work(self) -> bool:
        return self.question.past_work

    @property
    def pick(self) -> bool:
        return self.question.pick

    @property
    def names_time(self) -> bool:
        return self.question.names_time

    @property
    def language(self) -> str:
        return "en" if self.question.language == "en" else "zh"

    @classmethod
    def of(
        cls, text: str, *, analyst: Analyst, now: datetime, history: Sequence[str] = (), semantic: bool = True
    ) -> Asked:
        """Read a message; `history`: the user's messages before it, oldest first. Without `semantic`: words only."""
        analyst.refresh()
        analyst.link(text[:4_000])  # lets other plugins make their entities known
        question = Question.parse(text, now=now, lexicon=analyst.lexicon, history=history)
        codes: set[str] = set()
        names: set[str] = set()
        for mention in question.entities:
            pieces = segment.tokens(mention.text)
            (codes if mention.via == "code" else names).update(pieces)
            names.update(segment.tokens(mention.name))
        sure = frozenset(one.entity_id for one in question.entities if one.confidence >= _SURE)
        entities = {f"@{one.entity_id}": _ENTITY * one.confidence for one in question.entities}
        sectors = {f"%{name}": _SECTOR for name in question.sectors}
        spoken = {piece for name in question.sectors for piece in segment.tokens(name)}
        metrics = {f"#{name}": _METRIC for name in question.metrics}
        groups = groups_of(question.normalised)
        weights: dict[str, float] = {}
        for token in question.tokens:
            if token not in codes:
                weights[token] = _NAME if token in names else 1.0
        content = {
            token: 1.0
            for token in question.content
            if token not in codes and token not in names and token not in spoken
        }
        # The words that only name the metric count as the metric does, found under any of its names.
        content.update(dict.fromkeys(entities, 1.0))
        content.update(dict.fromkeys(sectors, 1.0))
        weights |= entities | sectors | metrics | dict.fromkeys(groups, _GROUP)
        return cls(
            question=question,
            weights=weights,
            content=content,
            entities=sure,
            sectors=frozenset(question.sectors),
            metrics=frozenset(question.metrics),
            periods=frozenset(one for one in question.periods if _is_report_period(one)),
            groups=groups,
            scopes=frozenset(question.scopes),
            vector=analyst.vector(question.normalised) if semantic else None,
            span=(microseconds(question.since), microseconds(question.until)),
        )

    def understood(self) -> dict[str, Any]:
        """What `why` shows of how the question was read."""
        question = self.question
        found = {
            "entities": [f"{one.text} = {one.entity_id}" for one in question.entities],
            "sectors": list(question.sectors),
            "metrics": list(question.metrics),
            "periods": list(question.periods),
            "scopes": list(question.scopes),
            "flags": [
                name
                for name in (
                    "names_time",
                    "past_work",
                    "latest",
                    "compare",
                    "pick",
                    "negated",
                    "small_talk",
                    "follow_up",
                    "pasted",
                )
                if getattr(question, name)
            ],
        }
        return {name: value for name, value in found.items() if value}


def _is_report_period(period: str) -> bool:
    return len(period) == 4 or period[4] in "QH"
