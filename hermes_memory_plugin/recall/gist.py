"""What a text speaks of: its words, and the entities, sectors, metrics, periods and synonym groups in it.

The index holds these as tokens beside the words, so that 贵州茅台, 600519 and Moutai meet in `@600519.SH`, 估值 and PE in
`#pe`, 便宜 and undervalued in one group; a number that only looks like a ticker meets none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.recall import asides, metrics, periods, segment, synonyms, times, values
from hermes_memory_plugin.recall.lexicon import Lexicon, Mention
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.question import scopes
from hermes_memory_plugin.recall.terms import Hit, Terms

if TYPE_CHECKING:
    from hermes_memory_plugin.embedding.static import StaticTable
    from hermes_memory_plugin.extensions import Hooks

FORMAT = 5
"""Raised whenever the same text gives another gist; part of the index's tokenizer name."""
MOST_VALUES = 24
"""Numbers of one text that are indexed by their size: a sentence has a few, a page of tables would drown in them."""
SHORT = 600
"""Characters up to which a text is a statement of one time; in longer ones 7月 may be of any year."""
LONGEST = 20_000
"""Characters of a text that are read for what it speaks of; its words are read whole."""


@dataclass(frozen=True, slots=True)
class Gist:
    """What one text speaks of."""

    tokens: tuple[str, ...] = ()
    """The words, without the digits of a ticker that was understood as one."""
    names: tuple[str, ...] = ()
    """Words that only spell an entity's name."""
    entities: frozenset[str] = frozenset()
    sectors: frozenset[str] = frozenset()
    """Sectors the text names itself."""
    wider: frozenset[str] = frozenset()
    """Sectors its entities belong to."""
    metrics: frozenset[str] = frozenset()
    periods: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """Numbers by their size (see `values`)."""
    scope: str = ""
    mentions: tuple[Mention, ...] = field(default=(), compare=False)

    def weights(self) -> dict[str, float]:
        """Token → term frequency, as the index stores a row."""
        weights: dict[str, float] = dict(Counter(self.tokens))
        for entity in self.entities:
            weights[f"@{entity}"] = 1.0
        for sector in self.sectors | self.wider:
            weights[f"%{sector}"] = 1.0
        for metric in self.metrics:
            weights[f"#{metric}"] = 1.0
        for group in self.groups:
            weights[group] = 1.0
        for value in self.values:
            weights[value] = 1.0
        return weights

    def extra(self) -> dict[str, Any]:
        """What the rules of the search need to know of a row."""
        found = {
            "entities": sorted(self.entities),
            "sectors": sorted(self.sectors | self.wider),
            "metrics": sorted(self.metrics),
            "periods": sorted(self.periods),
        }
        return {name: value for name, value in found.items() if value}

    def joined(self, other: Gist) -> Gist:
        """What both texts speak of together; the words stay those of this one."""
        return Gist(
            self.tokens,
            self.names,
            self.entities | other.entities,
            self.sectors | other.sectors,
            self.wider | other.wider,
            self.metrics | other.metrics,
            self.periods | other.periods,
            self.groups | other.groups,
            self.values | other.values,
            self.scope or other.scope,
            (*self.mentions, *other.mentions),
        )


class Analyst:
    """Reads texts for one home: the built-in names, the user's `entities.yaml`, what plugins and stored text add."""

    def __init__(self, folder: Path, hooks: Hooks | None = None) -> None:
        self.lexicon = Lexicon()
        self._folder = folder
        self._hooks = hooks if hooks is not None and hooks.has("link_entities") else None
        self._entities_stamp: tuple[int, int] | None = None
        self._problems: list[str] = []
        self._load_entities()

    def warm(self) -> None:
        """Load the segmenter and the names."""
        segment.warm(self._folder / "index")
        self.lexicon.warm()
        self.aside(self.vector("估值"))

    @cached_property
    def table(self) -> StaticTable | None:
        """The word table that gives rows and questions their vectors; None when its files are damaged (`problems`)."""
        from hermes_memory_plugin.embedding import EmbedderUnavailable
        from hermes_memory_plugin.embedding.static import StaticTable

        try:
            return StaticTable.load(normalise, stem=segment.stem)
        except EmbedderUnavailable as error:
            self._problems.append(str(error))
            return None

    def pooled(self, text: str) -> Any:
        """float32 [256], not of unit length, so that the vectors of several texts can be added; None without a table."""
        return None if self.table is None else self.table.pooled(text)

    def vector(self, text: str) -> Any:
        """float32 [256] of unit length for a question; None without a table or without a known word."""
        if self.table is None:
            return None
        vector = self.table.query(text)
        return vector if vector.any() else None

    def aside(self, vector: Any) -> float:
        """How near a question's vector comes to what people say without wanting their memory; 0 without a table."""
        return 0.0 if vector is None else self._asides.near(vector)

    @cached_property
    def _asides(self) -> asides.Asides:
        return asides.Asides(self.vector)

    def read(self, text: str, at: datetime | None = None) -> Gist:
        """What the text speaks of; never raises. `at`: when it was said, for periods without a year (二季度, 7月)."""
        words = segment.tokens(text)
        part = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
        if "6" in part or ":" in part or "（" in part or "(" in part:
            self.lexicon.learn(part)
        mentions = self.link(part)
        normal = normalise(part)
        codes: set[str] = set()
        spelled: set[str] = set()
        for mention in mentions:
            pieces = _pieces(mention.text)
            (codes if mention.via == "code" else spelled).update(pieces)
        codes |= code_tokens(one.entity_id for one in mentions)
        entities = [one for one in mentions if one.kind != "sector"]
        sectors = frozenset(one.name for one in mentions if one.kind == "sector")
        wider = frozenset(sector for one in entities for sector in self.lexicon.sectors_of(one.entity_id))
        named = frozenset(
            item.id for item in periods.named(normal) if len(item.id) <= 7 and "-" not in item.id
        )
        if at is not None and len(part) <= SHORT:
            meant = {one.id for one in times.read(normal, at) if _lately(one, at)} - named
            words += [token for period in sorted(meant) for token in periods.tokens_of(period)]
            named |= meant
        return Gist(
            tokens=tuple(word for word in words if word not in codes) if codes else tuple(words),
            names=tuple(word for word in words if word in spelled),
            entities=frozenset(one.entity_id for one in entities),
            sectors=sectors,
            wider=wider,
            metrics=frozenset(metrics.find(normal)),
            periods=named,
            groups=groups_of(normal),
            values=frozenset(islice(dict.fromkeys(one.token for one in values.find(normal)), MOST_VALUES)),
            scope=next(iter(scopes(normal)), ""),
            mentions=tuple(mentions),
        )

    def link(self, text: str) -> list[Mention]:
        """The entities a text speaks of, those other plugins know included."""
        if self._hooks is not None:
            for entities in self._hooks.call("link_entities", text=text):
                for entity in entities:
                    if self.lexicon.entity(entity.id) is None:
                        self.lexicon.add(entity)
        return self.lexicon.link(text)

    def problems(self) -> list[str]:
        """What is wrong with the user's `entities.yaml`."""
        return list(self._problems)

    def refresh(self) -> None:
        """Take up `entities.yaml` when the user changed it."""
        self._load_entities()

    def _load_entities(self) -> None:
        path = self._folder / "entities.yaml"
        try:
            stat = path.stat()
        except OSError:
            return
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp != self._entities_stamp:
            self._entities_stamp = stamp
            self._problems = self.lexicon.load_entities(path)


def _lately(one: times.Moment, at: datetime) -> bool:
    """Whether a statement of that day surely means the period: December, said in July, may lie ahead."""
    if not one.id or "-" in one.id:
        return False
    return len(one.id) == 4 or timedelta(0) <= at.date() - one.start <= timedelta(days=230)


@lru_cache(maxsize=4_096)
def _pieces(name: str) -> tuple[str, ...]:
    return tuple(segment.tokens(name))


def groups_of(normal: str) -> frozenset[str]:
    """The tokens of the synonym groups a normalised text holds a word of; ``max_drawdown`` is two words here."""
    return frozenset(group for hit in group_hits(normal) for group in hit.value)


def group_hits(normal: str) -> list[Hit[tuple[str, ...]]]:
    """The words of synonym groups in a normalised text, with the tokens of their groups."""
    return list(_groups().find(normal.replace("_", " ")))


def code_tokens(entities: Iterable[str]) -> set[str]:
    """The tokens a ticker leaves when it is written out: an entity understood stands for them."""
    found: set[str] = set()
    for entity in entities:
        digits, _, market = entity.partition(".")
        if market and digits.isdigit():
            found |= {digits, entity.lower(), f"{market}{digits}".lower()}
    return found


def tokenizer() -> str:
    """The name of everything that decides which tokens a row gets."""
    return f"{segment.warm()}+gist{FORMAT}"


@cache
def _groups() -> Terms[tuple[str, ...]]:
    """Every synonym → the tokens of its groups."""
    members: dict[str, list[str]] = {}
    for group in synonyms.groups():
        for term in group:
            members.setdefault(term, []).append(f"={group[0]}")
    terms: Terms[tuple[str, ...]] = Terms()
    terms.fill((term, tuple(found)) for term, found in members.items())
    return terms
