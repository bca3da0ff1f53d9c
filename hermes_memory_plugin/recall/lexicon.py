"""Who a text speaks of: companies, indices, funds and sectors, by code, name, alias, pinyin or a near miss.

A `Lexicon` starts with the built-in list, learns the pairs it reads (`learn`), takes the user's own
(`load_entities`) and those of plugins (`add`). Thread-safe. What the user says beats what is built in, which beats
what was learned from text: no text can rename a company.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from hermes_memory_hookspecs import Entity
from hermes_memory_plugin.recall import catalogue, metrics, pairs, segment, shortnames, tickers, typos
from hermes_memory_plugin.recall import context as around
from hermes_memory_plugin.recall.normalise import fold, lowered, normalise
from hermes_memory_plugin.recall.terms import Hit, Terms

Via = Literal["code", "name", "alias", "pinyin", "initials", "learned", "user", "typo"]
FLOOR = 0.5
HINT = 0.5
"""How sure a name is that is an ordinary word as well, with nothing beside it that says which."""
_SURE: dict[Via, float] = {
    "code": 1,
    "user": 0.98,
    "name": 0.97,
    "alias": 0.92,
    "learned": 0.85,
    "pinyin": 0.85,
    "initials": 0.75,
    "typo": 0.65,
}
_MOST_LEARNED = 20_000
_MOST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity a text speaks of, and how sure that is (0.5 to 1)."""

    entity_id: str
    name: str
    text: str
    kind: str
    confidence: float
    start: int
    end: int
    via: Via


class _Ref(NamedTuple):
    id: str
    weak: bool
    via: Via


class Lexicon:
    """The names one memory knows."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entities: dict[str, Entity] = {}
        self._sectors: dict[str, tuple[str, ...]] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._twins: dict[str, tuple[str, ...]] = {}
        self._terms: Terms[_Ref] | None = None
        self._rank: dict[str, int] = {}
        self._second: set[str] = set()
        self._learned: dict[str, str] = {}
        self._typos: typos.Typos | None = None
        self._shared: shortnames.Bearers | None = None

    def warm(self) -> None:
        """Read the built-in list now (about 10 ms); otherwise the first use does."""
        self._ready()

    def link(
        self, text: str, *, context: str = "", floor: float = FLOOR, lenient: bool = False
    ) -> list[Mention]:
        """Who the text speaks of, each entity once, in the order of the text.

        `context` is text beside it (a title, the question before) that may say that a word means a stock.
        `lenient`: Chinese names that are ordinary words too come along without market talk, at `HINT`.
        At most the first 20,000 characters are read.
        """
        terms = self._ready()
        folded = fold(text[:_MOST_TEXT])
        normal = lowered(folded)
        if len(normal) < 2:
            return []
        talk = bool(
            around.MARKET_TALK.search(normal)
            or metrics.find(normal)
            or (context and around.MARKET_TALK.search(normalise(context)))
        )
        codes = tickers.find(normal, folded, self._entities, market_talk=talk)
        found: dict[str, Mention] = {}
        masked = list(normal)
        for code in codes:
            self._put(
                found, self._mention(_Ref(code.id, False, "code"), normal, code.start, code.end, code.sure)
            )
            masked[code.start : code.end] = " " * (code.end - code.start)
        rest = "".join(masked)
        talk = talk or bool(found)
        weak: list[Hit[_Ref]] = []
        for hit in terms.find(rest):
            if not self._stands_alone(rest, hit):
                continue
            masked[hit.start : hit.end] = " " * (hit.end - hit.start)
            meant = self._bearers().meant(rest, hit.start, hit.end, hit.value.id, self._sectors)
            if meant:
                ref = hit.value._replace(id=meant)
                self._put(
                    found, self._mention(self._listing(ref, rest), rest, hit.start, hit.end, _SURE["alias"])
                )
            elif hit.value.weak:
                weak.append(hit)
            elif (sure := self._sure(hit.value, rest, talk)) > 0:
                self._put(
                    found, self._mention(self._listing(hit.value, rest), rest, hit.start, hit.end, sure)
                )
        told = talk or any(mention.kind != "sector" for mention in found.values())
        for hit in weak:
            sure = _SURE[hit.value.via] - 0.2 if told else HINT
            if told or (lenient and not rest[hit.start : hit.end].isascii()):
                self._put(
                    found, self._mention(self._listing(hit.value, rest), rest, hit.start, hit.end, sure)
                )
        for start, end, entity in self._bearers().listed(rest, list(found), self._sectors):
            self._put(found, self._mention(_Ref(entity, False, "alias"), rest, start, end, 0.7))
        self._near("".join(masked), terms, talk, found)
        return sorted((m for m in found.values() if m.confidence >= floor), key=lambda mention: mention.start)

    def learn(self, text: str) -> list[Entity]:
        """Take up the name–code pairs a text states: 贵州茅台（600519.SH）, ``"ts_code": …, "name": …``; the new ones."""
        new = []
        self._ready()
        for code, name in pairs.find(text):
            key = normalise(name)
            with self._lock:
                if (
                    len(self._learned) >= _MOST_LEARNED
                    or key in self._learned
                    or not self._may_learn(code, key)
                ):
                    continue
                self._learned[key] = code
                known = self._entities.get(code)
                entity = known or Entity(code, name, tickers.kind_of(code))  # type: ignore[arg-type]
                if known and name not in (known.name, *known.aliases):
                    entity = Entity(code, known.name, known.kind, (*known.aliases, name))
                self._entities[code] = entity
                self._name(key, _Ref(code, False, "learned"))
            new.append(entity)
        return new

    def learn_pinyin(self) -> None:
        """Give learned names their pinyin (imports pypinyin: for background threads)."""
        from hermes_memory_plugin.recall.pinyin import keys

        terms = self._ready()
        for name, code in list(self._learned.items()):
            for key in keys(name):
                if terms.get(key.lower()) is None:
                    self._name(key.lower(), _Ref(code, False, "initials" if key.isupper() else "pinyin"))

    def add(self, entity: Entity, *, sectors: Iterable[str] = ()) -> None:
        """Add an entity or further names of one; its names win over the built-in ones."""
        self._ready()
        with self._lock:
            known = self._entities.get(entity.id)
            aliases = dict.fromkeys((*(known.aliases if known else ()), *entity.aliases))
            if known and known.name != entity.name:
                aliases[known.name] = None
            self._entities[entity.id] = Entity(entity.id, entity.name, entity.kind, tuple(aliases))
            for name in (entity.name, *entity.aliases):
                self._name(normalise(name), _Ref(entity.id, False, "user"))
            for sector in sectors:
                key = catalogue.sector_id(sector)
                if key not in self._entities:
                    self._entities[key] = Entity(key, sector, "sector")
                    self._name(normalise(sector), _Ref(key, False, "user"))
                self._members[key] = tuple(dict.fromkeys((*self._members.get(key, ()), entity.id)))
                self._sectors[entity.id] = tuple(dict.fromkeys((*self._sectors.get(entity.id, ()), sector)))

    def load_entities(self, path: Path) -> list[str]:
        """Read the user's ``entities.yaml``; what is wrong in it comes back, one line each, and the rest is used."""
        from hermes_memory_plugin.recall.entities_file import read

        entries, problems = read(path)
        for entity, sectors in entries:
            self.add(entity, sectors=sectors)
        return problems

    def entity(self, entity_id: str) -> Entity | None:
        """The entity with this id."""
        self._ready()
        return self._entities.get(entity_id)

    def members(self, sector: str) -> tuple[str, ...]:
        """The ids of a sector (``sector:白酒`` or its name)."""
        self._ready()
        return self._members.get(sector) or self._members.get(catalogue.sector_id(sector), ())

    def sectors_of(self, entity_id: str) -> tuple[str, ...]:
        """The names of the sectors an entity is in."""
        self._ready()
        return self._sectors.get(entity_id, ())

    def listings(self, entity_id: str) -> tuple[str, ...]:
        """The same company on other exchanges."""
        self._ready()
        return self._twins.get(entity_id, ())

    def names(self, entity_id: str) -> tuple[str, ...]:
        """Every name of an entity, the one to show first."""
        entity = self.entity(entity_id)
        return (entity.name, *entity.aliases) if entity else ()

    def _ready(self) -> Terms[_Ref]:
        if self._terms is None:
            with self._lock:
                if self._terms is None:
                    self._terms = self._built_in()
        return self._terms

    def _built_in(self) -> Terms[_Ref]:
        members: dict[str, list[str]] = {}
        for rank, item in enumerate(catalogue.load().values()):
            self._rank[item.id] = rank
            self._entities[item.id] = Entity(
                item.id, item.name, item.kind, tuple(name.text for name in item.names[1:])
            )
            self._twins[item.id] = tuple(item.twins)
            self._sectors[item.id] = tuple(item.sectors)
            if item.second_listing:
                self._second.add(item.id)
            else:
                for sector in item.sectors:
                    members.setdefault(catalogue.sector_id(sector), []).append(item.id)
        self._members = {sector: tuple(ids) for sector, ids in members.items()}
        terms: Terms[_Ref] = Terms()
        terms.fill(_built_in_names())
        return terms

    def _bearers(self) -> shortnames.Bearers:
        shared = self._shared
        if shared is None:
            with self._lock:
                names = (
                    (name.lower(), entity.id)
                    for entity in self._entities.values()
                    if self._bears(entity)
                    for name in (entity.name, *entity.aliases)
                )
                shared = self._shared = shortnames.Bearers(names)
        return shared

    def _bears(self, entity: Entity) -> bool:
        return entity.kind == "stock" and entity.id not in self._second

    def _near_misses(self) -> typos.Typos:
        found = self._typos
        if found is None:
            with self._lock:
                names = ((name, ref.via == "pinyin") for name, ref in self._ready().items() if _misspelt(ref))
                found = self._typos = typos.Typos(names)
        return found

    def _name(self, key: str, ref: _Ref) -> None:
        """One more name. What was made of the others stays: a corpus teaches thousands, each in its own text."""
        with self._lock:
            self._ready().add(key, ref)
            if self._typos is not None and _misspelt(ref):
                self._typos.add(key, pinyin=ref.via == "pinyin")
            entity = self._entities.get(ref.id)
            if self._shared is not None and entity is not None and self._bears(entity):
                self._shared.add(key, ref.id)

    def _may_learn(self, code: str, key: str) -> bool:
        known = self._ready().get(key)
        if known is not None or len(key) < 2 or key in segment.STOP:
            return False
        entity = self._entities.get(code)
        # A company of the list has its names; a further one must at least share characters with them.
        return entity is None or any(
            len(set(key) & set(normalise(name))) >= 2 for name in (entity.name, *entity.aliases)
        )

    def _stands_alone(self, text: str, hit: Hit[_Ref]) -> bool:
        """Whether the stretch is a name here, and not part of other words (东财 in 广东财政, 中国银行 in 中国银行业)."""
        name = text[hit.start : hit.end]
        if not "\u3400" <= name[-1] <= "\u9fff":
            return True
        if hit.value.id[0] != "s" and around.NOT_A_COMPANY.match(text, hit.end):
            return False
        if (
            len(name) == 2
            and hit.value.via == "alias"
            and hit.value.id[0] != "s"
            and around.OTHER_COMPANY.match(text, hit.end)
        ):
            return False
        return not ((len(name) == 2 or hit.value.weak) and around.cut_across(text, hit.start, hit.end))

    def _sure(self, ref: _Ref, text: str, talk: bool) -> float:
        sure = _SURE[ref.via]
        if (
            not talk
            and not around.ERRAND_SECTORS.isdisjoint(self._sectors.get(ref.id, ()))
            and around.ERRAND.search(text)
        ):
            return 0.0
        return sure

    def _listing(self, ref: _Ref, text: str) -> _Ref:
        """The listing a name means: the first of the list, or that of the exchange the text speaks of."""
        if twins := self._twins.get(ref.id):
            wanted = ".HK" if around.HONG_KONG.search(text) else "" if around.AMERICA.search(text) else None
            for twin in twins if wanted is not None else ():
                if twin.endswith(".HK") if wanted else "." not in twin:
                    return ref._replace(id=twin)
        return ref

    def _near(self, text: str, terms: Terms[_Ref], talk: bool, found: dict[str, Mention]) -> None:
        for near in self._near_misses().find(text, latin=talk or len(text.strip()) <= 24):
            ref = terms.get(near.name)
            if ref:
                meant = self._listing(ref, text)._replace(via="typo")
                self._put(found, self._mention(meant, text, near.start, near.end, _SURE["typo"]))

    def _mention(self, ref: _Ref, text: str, start: int, end: int, sure: float) -> Mention:
        entity = self._entities.get(ref.id)
        name = entity.name if entity else ref.id
        kind = entity.kind if entity else tickers.kind_of(ref.id)
        return Mention(ref.id, name, text[start:end], kind, round(sure, 2), start, end, ref.via)

    @staticmethod
    def _put(found: dict[str, Mention], mention: Mention) -> None:
        known = found.get(mention.entity_id)
        if known is None or known.confidence < mention.confidence:
            found[mention.entity_id] = mention


def _misspelt(ref: _Ref) -> bool:
    return not ref.weak and ref.id[0] != "s" and ref.via != "initials"


def _built_in_names() -> Iterator[tuple[str, _Ref]]:
    for item in catalogue.load().values():
        if item.second_listing:
            continue
        for place, name in enumerate(item.names):
            yield name.text.lower(), _Ref(item.id, name.weak, "alias" if place else "name")
    for entity, keys in catalogue.pinyin():
        sector = entity[0] == "s"
        for key in keys:
            initials = key.isupper()
            weak = sector or (initials and len(key) == 3 and key not in _SHORT_INITIALS)
            yield key.lower(), _Ref(entity, weak, "initials" if initials else "pinyin")


_SHORT_INITIALS = frozenset({"BYD", "WLY", "PZH", "THS"})
