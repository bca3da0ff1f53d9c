"""A question in the terms of the index: the tokens to look for, their weights, and what the rules compare."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers.facts import microseconds
from hermes_memory_plugin.recall import focus, intent, metrics, segment, spoken, values
from hermes_memory_plugin.recall.gist import code_tokens, groups_of
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.question import Question

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst

_SURE = 0.6
"""Mentions below this confidence are looked for, but exclude nothing."""
_ENTITY, _NAME, _SECTOR, _METRIC, _FAMILY, _GROUP = 1.0, 0.3, 0.8, 0.6, 0.4, 0.6
_THEME = 0.2
_SINGLE = 0.6
"""What a character by itself counts for: 高, 长 and 去 are in everything."""
_PAIR = 0.3
"""What a pair of characters across two words counts for in what a row must cover."""


@dataclass(frozen=True)
class Asked:
    """One question, ready to be searched for."""

    question: Question
    weights: dict[str, float]
    """Token → weight in the BM25 sum."""
    content: dict[str, float]
    """Token → weight in what a row must cover: an entity counts once, however its name is spelled."""
    same: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Content token → tokens of the index that say the same: its synonym group, its metric, its sector."""
    entities: frozenset[str] = frozenset()
    listings: frozenset[str] = frozenset()
    """The same companies on other exchanges, where the question names the company and not a listing."""
    excluded: frozenset[str] = frozenset()
    """Entities the question leaves out."""
    names: tuple[tuple[str, str], ...] = ()
    """(entity, as it is written) of those that were named by a short name."""
    people: frozenset[str] = frozenset()
    """Stems of proper names no list knows: Oskar, Lisbon."""
    sectors: frozenset[str] = frozenset()
    hinted: frozenset[str] = frozenset()
    """Sectors and companies it may mean."""
    metrics: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    """Metrics that answer as well, where the question uses a general word (便宜: PE, PB …)."""
    periods: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    marks: dict[str, str] | None = None
    """{identifier: kind}: versions, error codes, paths, numbers."""
    denies: bool = False
    """It asks for what is not so, not done, not wanted."""
    calls: bool = False
    """It asks for what a tool was given or gave."""
    span: tuple[int | None, int | None] = (None, None)
    """First microsecond and end of the time it names; (None, None) when it names none."""
    vector: Any = None
    aside: float = 0.0
    """How near it comes to what people say without wanting their memory."""

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

    @property
    def anchored(self) -> bool:
        """Whether it names, or may name, something a memory is about."""
        return self.told or bool(self.question.hints)

    @cached_property
    def told(self) -> bool:
        """Whether it names something a memory is about: a company, trade, figure, client, identifier, past work."""
        asked = self.question
        return bool(
            self.entities or self.excluded or self.question.sectors or self.metrics or self.families or self.scopes
            or self.marks or asked.hints or asked.past_work or asked.pick or asked.follow_up
        )  # fmt: skip

    @classmethod
    def of(
        cls, text: str, *, analyst: Analyst, now: datetime, history: Sequence[str] = (), semantic: bool = True
    ) -> Asked:
        """Read a message; `history`: the user's messages before it, oldest first. Without `semantic`: words only."""
        analyst.refresh()
        analyst.link(text[:4_000])  # lets other plugins make their entities known
        asking, rest = focus.split(text)
        if rest:
            history = (*history, rest)
        question = Question.parse(asking, now=now, lexicon=analyst.lexicon, history=history)
        normal = question.normalised
        out, unwanted = spoken.left_out(normal, (*question.entities, *question.hints))
        named = [one for one in question.entities if one.entity_id not in out]
        hints = [one for one in question.hints if one.entity_id not in out]
        codes, names = spoken.spelled(named)
        codes |= code_tokens(one.entity_id for one in named) | code_tokens(out)
        families = metrics.families(normal)
        # 高股息 is told by its figure, and no list of its members is complete: a trade excludes, a theme does not.
        trades = tuple(name for name in question.sectors if not metrics.families(normalise(name)))
        family = frozenset(id_ for one in families for id_ in one.ids) - frozenset(question.metrics)
        numbers = list(values.find(normal))
        # What the index holds beside words, with what it is worth in the sum.
        concepts = {f"@{one.entity_id}": _ENTITY * one.confidence for one in named}
        concepts |= {spoken.key(one): _ENTITY / 2 for one in hints}
        concepts |= {f"%{name}": _SECTOR if name in trades else _THEME for name in question.sectors}
        concepts |= {f"#{name}": _FAMILY for name in family}
        concepts |= {f"#{name}": _METRIC for name in question.metrics}
        concepts |= dict.fromkeys(groups_of(normal), _GROUP)
        concepts |= {one.token: 1.0 for one in numbers}
        weights = {
            token: _NAME if token in names else 1.0
            for token in question.tokens
            if token not in codes and token not in unwanted
        }
        digits = {piece for one in numbers for piece in segment.tokens(normal[one.start : one.end])}
        trade_words = {piece for name in trades for piece in segment.tokens(name)}
        words = spoken.words(normal)
        content = {
            token: _PAIR
            if words and spoken.is_pair(token, words)
            else _SINGLE
            if spoken.is_single(token)
            else 1.0
            for token in question.content
            if token not in codes | names | trade_words | digits | unwanted
        }
        content |= {f"@{one.entity_id}": 1.0 for one in named} | {
            f"%{name}": 1.0 for name in question.sectors
        }
        content |= {one.token: 1.0 for one in numbers}
        vector = analyst.vector(normal) if semantic else None
        return cls(
            question=question,
            weights=weights | concepts,
            content=content,
            same=spoken.same(normal, content, families, hints),
            entities=frozenset(one.entity_id for one in named if one.confidence >= _SURE),
            listings=frozenset(
                twin
                for one in named
                if one.via != "code"
                for twin in analyst.lexicon.listings(one.entity_id)
                if one.confidence >= _SURE
            ),
            excluded=frozenset(out),
            names=tuple(
                (one.entity_id, one.text) for one in named if one.via == "alias" and len(one.text) == 2
            ),
            people=spoken.people(question.text) - names - codes,
            sectors=frozenset(trades),
            hinted=frozenset(one.name if one.kind == "sector" else one.entity_id for one in hints),
            metrics=frozenset(question.metrics),
            families=family,
            periods=frozenset(one for one in question.periods if "-" not in one),
            scopes=frozenset(question.scopes),
            marks=spoken.identifiers(normal, named),
            denies=question.negated and not out and not unwanted,
            calls=question.past_work and bool(intent.CALLS.search(normal)),
            vector=vector,
            aside=analyst.aside(vector),
            span=(microseconds(question.since), microseconds(question.until)),
        )

    def about(self, entity: str, left: Collection[str]) -> Asked:
        """The same question asked of an entity it did not name itself, by the words that are still unanswered."""
        weights = {
            token: weight for token, weight in self.weights.items() if token in left or token[0] in "#~="
        }
        content = {token: weight for token, weight in self.content.items() if token in left}
        key = f"@{entity}" if "." in entity or entity.isupper() else f"%{entity}"
        return replace(
            self,
            weights=weights | {key: _ENTITY},
            content=content or {key: 1.0},
            entities=frozenset({entity}) if key[0] == "@" else frozenset(),
            sectors=frozenset() if key[0] == "@" else frozenset({entity}),
            names=(),
            vector=None,  # the words that are left decide; a second look at every row would double the time
        )

    def understood(self) -> dict[str, Any]:
        """What `why` shows of how the question was read."""
        question = self.question
        flags = (
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
        found = {
            "entities": [f"{one.text} = {one.entity_id}" for one in question.entities],
            "left_out": sorted(self.excluded),
            "sectors": list(question.sectors),
            "metrics": list(question.metrics),
            "periods": list(question.periods),
            "scopes": list(question.scopes),
            "identifiers": list(self.marks or ()),
            "flags": [name for name in flags if getattr(question, name)],
        }
        return {name: value for name, value in found.items() if value}
