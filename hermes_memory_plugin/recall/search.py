"""Which rows answer a question: candidates by words and meaning, then what entities, periods, time and trust say.

The score of a row is its BM25 over the weight of the question's content words, so that a question whose words are all found is
decided by the words, plus a fifth of the cosine, so that one whose words are missing is decided by the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hermes_memory_plugin.recall.answer import Cut
from hermes_memory_plugin.recall.poison import is_instruction

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.index_view import View

SATURATION = 2.5
"""BM25 over this times the question's idf mass is about 1 when every content word is found."""
COSINE = 0.2
OTHER_LANGUAGE = 0.1
"""What a cosine between Chinese and English is short of one within a language."""
CANDIDATES = 60
FLOOR_SHORT, FLOOR_LONG = 0.28, 0.55
"""Least coverage plus cosine of the best row, for questions of up to 3 and from 8 content words."""
KNOWLEDGE = ("L1", "L2", "L3", "report")
EVERYTHING = ("L0", *KNOWLEDGE)
_EVERY_STATE = ("live", "superseded", "expired")
_LATIN = re.compile(r"[A-Za-z]{2,}")
_UNTRUSTED = frozenset({"tool", "web", "report", "model"})


@dataclass(slots=True)
class Candidate:
    """A row on its way up or out."""

    number: int
    row: Row
    score: float
    words: float
    cosine: float
    coverage: float
    state: str = "live"
    named: bool = False
    """It speaks of an entity the question names."""
    reasons: list[str] = field(default_factory=list)
    later: Row | None = None
    """The row that stands in its place, when the question asked for its time."""


@dataclass(frozen=True, slots=True)
class Found:
    """Rows in the order of their worth, and those that were left out with the reason."""

    rows: tuple[Candidate, ...] = ()
    cut: tuple[Cut, ...] = ()
    weaker: int = 0
    """Related rows that did not earn their place."""


class Search:
    """One question against one owner's rows."""

    def __init__(self, index: Index, keys: frozenset[str] | None, now_us: int, *, project: str = "") -> None:
        self._index = index
        self._keys = keys
        self._now = now_us
        self._projects: Collection[str] | None = ("", project) if project else None

    def automatic(self, asked: Asked, *, facts: int = 8, scenes: int = 2, chunks: int = 2) -> Found:
        """What earns a place beside the message: live rows over the floor, each with something new to say."""
        if asked.small_talk or not asked.weights:
            return Found(cut=(Cut("", "small talk" if asked.small_talk else "nothing to search for"),))
        cut: list[Cut] = []
        states = _EVERY_STATE if asked.names_time else ("live",)
        candidates = self._candidates(asked, KNOWLEDGE, states, cut)
        candidates = self._judged(asked, candidates, cut, strict=True)
        passed = self._over_the_floor(asked, candidates, cut)
        if asked.past_work or not passed:
            log = self._judged(asked, self._candidates(asked, ("L0",), ("live",), cut), cut, strict=True)
            passed += (
                self._over_the_floor(asked, log, cut)[:2] if asked.past_work else self._sure(asked, log)[:2]
            )
        chosen, weaker = _chosen(asked, passed, cut, facts=facts, scenes=scenes, chunks=chunks)
        return Found(tuple(chosen), tuple(cut), weaker)

    def explicit(self, asked: Asked, *, limit: int = 5, layers: Sequence[str] = EVERYTHING) -> Found:
        """Everything that matches, best first, whatever its state."""
        if not asked.weights:
            return Found()
        cut: list[Cut] = []
        candidates = self._candidates(asked, layers, _EVERY_STATE, cut, most=max(CANDIDATES, 2 * limit))
        ranked = _newest_first(self._judged(asked, candidates, cut, strict=False))
        return Found(tuple(ranked[:limit]), tuple(cut), max(0, len(ranked) - limit))

    # -- candidates --------------------------------------------------------------------------------------------------

    def _candidates(
        self,
        asked: Asked,
        layers: Sequence[str],
        states: Sequence[str],
        cut: list[Cut],
        most: int = CANDIDATES,
    ) -> list[Candidate]:
        view = self._index.view(
            self._keys, now_us=self._now, layers=layers, states=states, projects=self._projects
        )
        if not view.n:
            return []
        words = view.bm25(asked.weights)
        mass = sum(view.idf(token) * weight for token, weight in asked.content.items()) or 1.0
        cosine = self._cosine(view, asked)
        scores = words / np.float32(SATURATION * mass) + np.float32(COSINE) * cosine
        numbers = view.top(scores, most)
        found = []
        for number, covered in zip(numbers, _coverage(view, asked, mass, numbers), strict=True):
            row, meaning = view.row(number), float(cosine[number])
            score = float(scores[number])
            if meaning > 0 and is_chinese(row.text) != (asked.language == "zh"):
                meaning += OTHER_LANGUAGE
                score += COSINE * OTHER_LANGUAGE
            found.append(
                Candidate(number, row, score, float(words[number]), meaning, covered, view.state(number))
            )
        return found

    def _cosine(self, view: View, asked: Asked) -> Any:
        if asked.vector is None:
            return np.zeros(view.size, np.float32)
        cosine = view.cosine(asked.vector)
        return np.maximum(cosine, 0.0)

    # -- rules -------------------------------------------------------------------------------------------------------

    def _judged(
        self, asked: Asked, candidates: list[Candidate], cut: list[Cut], *, strict: bool
    ) -> list[Candidate]:
        """Apply what entities, metrics, periods, scopes, origin and time say; `strict` leaves out, else it demotes."""
        kept = []
        for one in candidates:
            why = self._verdict(asked, one)
            if why and strict:
                cut.append(Cut(one.row.id, why))
                continue
            if why:
                one.score *= 0.4
                one.reasons.append(why)
            kept.append(one)
        if strict and asked.periods and any("period" in one.reasons for one in kept):
            for one in [one for one in kept if "other period" in one.reasons]:
                cut.append(Cut(one.row.id, "another period"))
                kept.remove(one)
        if asked.names_time:
            kept = self._valid_then(asked, kept, cut, strict=strict)
        kept.sort(key=lambda one: -one.score)
        return kept

    def _verdict(self, asked: Asked, one: Candidate) -> str:
        """Why the row is out, "" when it is in; scores and reasons are adjusted on the way."""
        row, extra = one.row, one.row.extra
        one.reasons.append("words" if one.words else "meaning")
        if row.origin in _UNTRUSTED and is_instruction(row.text):
            return "speaks like an instruction, from an untrusted origin"
        if asked.scopes and row.scope and row.scope not in asked.scopes:
            return f"belongs to {row.scope}"
        entities = frozenset(extra.get("entities") or ())
        if asked.entities and entities:
            if not entities & asked.entities:
                return "another company"
            one.named = True
            one.score += 0.35
            one.reasons.append("entity")
        elif asked.entities:
            one.score *= 0.8
        elif asked.sectors:
            if asked.sectors & frozenset(extra.get("sectors") or ()):
                one.named = True
                one.score += 0.2
                one.reasons.append("sector")
            elif entities or extra.get("sectors"):
                return "another sector"
        metrics = frozenset(extra.get("metrics") or ())
        if asked.metrics and metrics:
            if asked.metrics & metrics:
                one.score += 0.15
                one.reasons.append("metric")
            else:
                one.score *= 0.6
                one.reasons.append("other metric")
        periods = frozenset(extra.get("periods") or ())
        if asked.periods and periods:
            if asked.periods & periods:
                one.score += 0.2
                one.reasons.append("period")
            else:
                one.score *= 0.4
                one.reasons.append("other period")
        if row.approximate:
            one.score *= 0.95
        return ""

    def _valid_then(
        self, asked: Asked, candidates: list[Candidate], cut: list[Cut], *, strict: bool
    ) -> list[Candidate]:
        """For a question that names its time: of each key the row valid then; what was replaced since says by what."""
        kept: list[Candidate] = []
        start, end = asked.span
        for one in candidates:
            at = one.row.as_of if one.row.as_of is not None else one.row.created
            inside = start is None or end is None or start <= at < end
            if one.state == "live":
                if inside and asked.span != (None, None) and one.row.as_of is not None:
                    one.score += 0.1
                    one.reasons.append("of that time")
                kept.append(one)
            elif inside and end is not None:
                one.score += 0.1
                one.reasons.append("valid then")
                one.later = self._index.superseded_by(one.row.id, self._keys)
                kept.append(one)
            elif strict:
                cut.append(Cut(one.row.id, one.state))
            else:
                kept.append(one)
        return kept

    # -- floor -------------------------------------------------------------------------------------------------------

    def _over_the_floor(self, asked: Asked, candidates: list[Candidate], cut: list[Cut]) -> list[Candidate]:
        """The rows that are about the question at all."""
        if not candidates:
            return []
        need = self._need(asked)
        best = max(one.coverage + one.cosine for one in candidates)
        if best < need and not any(one.named for one in candidates):
            cut += [Cut(one.row.id, "below the floor") for one in candidates[:5]]
            return []
        least = 0.45 * candidates[0].score
        passed = []
        for one in candidates:
            if one.score < least or (one.coverage + one.cosine < 0.6 * need and not one.named):
                cut.append(Cut(one.row.id, "weaker"))
            else:
                passed.append(one)
        return passed

    def _sure(self, asked: Asked, candidates: list[Candidate]) -> list[Candidate]:
        """Rows of the log that nobody asked for: only those that hold nearly all the question's words."""
        return [one for one in candidates if one.coverage >= 0.7]

    def _need(self, asked: Asked) -> float:
        length = sum(0.6 if len(token) == 2 and not token.isascii() else 1.0 for token in asked.content)
        share = min(1.0, max(0.0, (length - 3) / 5))
        return FLOOR_SHORT + (FLOOR_LONG - FLOOR_SHORT) * share - (0.05 if asked.groups else 0.0)


def _coverage(view: View, asked: Asked, mass: float, numbers: Sequence[int]) -> list[float]:
    """Which share of the question's content, by idf, each of the numbers holds."""
    wanted = np.asarray(numbers, np.int64)
    covered = np.zeros(len(wanted), np.float64)
    for token, weight in asked.content.items():
        holders, _ = view.postings(token)
        if len(holders):
            covered += np.isin(wanted, holders) * (view.idf(token) * weight)
    return [float(value) for value in covered / mass]


def _chosen(
    asked: Asked, ranked: list[Candidate], cut: list[Cut], *, facts: int, scenes: int, chunks: int
) -> tuple[list[Candidate], int]:
    """The rows that each bring something new, within the ceilings."""
    room = {"L2": scenes, "report": chunks, "L0": 2}
    used: dict[str, int] = {}
    chosen: list[Candidate] = []
    weaker = 0
    replaced = {one.later.id: one for one in ranked if one.later is not None}
    for one in ranked if asked.names_time else _newest_first(ranked):
        if one.row.id in replaced:
            cut.append(Cut(one.row.id, f"said as what came after {replaced[one.row.id].row.id}"))
            continue
        same = next((other for other in chosen if _says_the_same(one, other)), None)
        layer = one.row.layer if one.row.layer in room else "L1"
        if same is not None:
            cut.append(Cut(one.row.id, f"says what {same.row.id} says"))
        elif used.get(layer, 0) >= room.get(layer, facts):
            cut.append(Cut(one.row.id, f"enough rows of {layer}"))
            weaker += 1
        else:
            used[layer] = used.get(layer, 0) + 1
            chosen.append(one)
    return chosen, weaker


def _newest_first(ranked: list[Candidate]) -> list[Candidate]:
    """Of two rows that say nearly the same of one thing, the newer goes ahead."""
    order = list(ranked)
    for place in range(1, min(len(order), 12)):
        for earlier in range(place):
            one, other = order[place], order[earlier]
            if _at(one) > _at(other) and one.score >= 0.5 * other.score and _same_matter(one, other):
                order.insert(earlier, replace(order.pop(place), reasons=[*one.reasons, "newer"]))
                break
    return order


def is_chinese(text: str) -> bool:
    """Whether most of what the text says, it says in Chinese."""
    han = sum("\u3400" <= character <= "\u9fff" for character in text[:400])
    return han > 0 and 2 * han >= len(_LATIN.findall(text[:400]))


def _at(one: Candidate) -> int:
    return one.row.as_of if one.row.as_of is not None else one.row.created


def _same_matter(one: Candidate, other: Candidate) -> bool:
    """Facts of one entity and metric, for no different period."""
    if one.row.layer != "L1" or other.row.layer != "L1" or one.row.owner != other.row.owner:
        return False
    mine, theirs = one.row.extra, other.row.extra
    same = bool(mine.get("entities")) and mine.get("entities") == theirs.get("entities")
    return (
        same
        and bool(mine.get("metrics"))
        and mine.get("metrics") == theirs.get("metrics")
        and mine.get("periods") == theirs.get("periods")
    )


def _says_the_same(one: Candidate, other: Candidate) -> bool:
    if one.row.fact_key and one.row.fact_key == other.row.fact_key and one.row.owner == other.row.owner:
        return one.row.value == other.row.value  # another value of the same key is a contradiction, and shown
    plain = "".join(one.row.text.split()).casefold()
    return plain == "".join(other.row.text.split()).casefold()
