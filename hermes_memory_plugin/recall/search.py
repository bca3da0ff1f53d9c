"""Which rows answer a question: candidates by words and meaning, then what the rules say of each, then which come along."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall import gate, order
from hermes_memory_plugin.recall.answer import Cut
from hermes_memory_plugin.recall.candidate import Candidate, Found
from hermes_memory_plugin.recall.choose import choose
from hermes_memory_plugin.recall.gather import gather
from hermes_memory_plugin.recall.hop import second_step
from hermes_memory_plugin.recall.judge import verdict

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_files import Array
    from hermes_memory_plugin.recall.index_view import View
    from hermes_memory_plugin.recall.meaning import Meaning

CANDIDATES = 60
KNOWLEDGE = ("L1", "L2", "L3", "report")
EVERYTHING = ("L0", *KNOWLEDGE)
OUT = 0.4
"""What explicit recall leaves of the score of a row that automatic recall would leave out."""
LOG = 0.8
"""The share of the floor that rows of the log must reach when past work is asked for: they are not prose."""
_DAY = 86_400_000_000
_EVERY_STATE = ("live", "superseded", "expired")
_SURE = 0.7


class Search:
    """One question against one owner's rows."""

    def __init__(
        self,
        index: Index,
        keys: frozenset[str] | None,
        now_us: int,
        *,
        project: str = "",
        meaning: Meaning | None = None,
        sessions: Collection[str] | None = None,
    ) -> None:
        self._index = index
        self._keys = keys
        self._now = now_us
        self._projects: Collection[str] | None = ("", project) if project else None
        self._meaning = meaning
        self._sessions = sessions
        """The sessions, or reports, that alone are searched; None: all."""

    def automatic(self, asked: Asked, *, facts: int = 8, scenes: int = 2, chunks: int = 2) -> Found:
        """What earns a place beside the message: live rows over the floor, each with something new to say."""
        if asked.small_talk:
            return Found(cut=(Cut("", "small talk"),), aside=True)
        if not asked.weights:
            return Found(cut=(Cut("", "nothing to search for"),))
        cut: list[Cut] = []
        states = _EVERY_STATE if asked.names_time else ("live", "expired") if asked.periods else ("live",)
        view = self._view(KNOWLEDGE, states)
        found = self._gather(view, asked, KNOWLEDGE, live=not asked.names_time)
        if not asked.names_time:
            found = _of_its_period(asked, found, cut)
        candidates = self._judged(asked, found, cut, strict=True)
        if gate.wants_nothing(asked, candidates):
            return Found(cut=(Cut("", "small talk"),), aside=True)
        passed = gate.passed(asked, candidates, cut)
        passed = self._hopped(asked, view, passed)
        ranked = passed if asked.names_time else self._ordered(asked, view, passed)
        if asked.past_work or not passed:
            ranked = self._with_log(asked, ranked, cut)
        order.contradict(ranked)
        chosen, weaker = choose(asked, ranked, cut, facts=facts, scenes=scenes, chunks=chunks)
        return Found(tuple(chosen), tuple(cut), weaker, aside=not chosen and not gate.is_work(asked))

    def explicit(self, asked: Asked, *, limit: int = 5, layers: Sequence[str] = EVERYTHING) -> Found:
        """Everything that matches, best first, whatever its state."""
        if not asked.weights:
            return Found()
        cut: list[Cut] = []
        view = self._view(layers, _EVERY_STATE)
        candidates = self._gather(view, asked, layers, max(CANDIDATES, 2 * limit), live=False)
        ranked = self._ordered(asked, view, self._judged(asked, candidates, cut, strict=False))
        ranked = order.without_echoes(ranked, asked.question.text)
        order.contradict(ranked[:limit])
        return Found(tuple(ranked[:limit]), tuple(cut), max(0, len(ranked) - limit))

    # -- steps -------------------------------------------------------------------------------------------------------

    def _view(self, layers: Sequence[str], states: Sequence[str]) -> View:
        return self._index.view(
            self._keys,
            now_us=self._now,
            layers=layers,
            states=states,
            projects=self._projects,
            sessions=self._sessions,
        )

    def _gather(
        self, view: View, asked: Asked, layers: Sequence[str], most: int = CANDIDATES, *, live: bool = True
    ) -> list[Candidate]:
        meaning = self._meaning
        if meaning is None:
            return gather(view, asked, most=most)

        def mix(words: Array, scores: Array, cosine: Array) -> tuple[Array, Array]:
            return meaning.mixed(
                view, self._keys, layers, live=live, now=self._now, words=words, scores=scores, cosine=cosine
            )

        found = gather(view, asked, most=most, mix=mix)
        meaning.again(found)
        return found

    def _ordered(self, asked: Asked, view: View, ranked: list[Candidate]) -> list[Candidate]:
        near = order.by_vectors(view, ranked, vectors=asked.vector is not None)
        return order.newest_first(asked, ranked, near)

    def _judged(
        self, asked: Asked, candidates: list[Candidate], cut: list[Cut], *, strict: bool, again: bool = True
    ) -> list[Candidate]:
        """Apply the rules; `strict` leaves out, else it demotes."""
        kept = []
        for one in candidates:
            before = one.score
            why = verdict(asked, one)
            if why and strict:
                cut.append(Cut(one.row.id, why))
                continue
            if why:
                one.score *= OUT
                one.reasons.append(why)
            if 0 < one.score < before:
                one.likeness *= one.score / before  # what speaks against a row speaks against its likeness
            kept.append(one)
        if asked.names_time:
            kept = self._valid_then(asked, kept, cut, strict=strict)
        if again and self._meaning is not None:
            self._meaning.again(kept)
        kept.sort(key=lambda one: -one.rank)
        return kept

    def _valid_then(
        self, asked: Asked, candidates: list[Candidate], cut: list[Cut], *, strict: bool
    ) -> list[Candidate]:
        """For a question that names its time: of each key the row valid then; what was replaced since says by what."""
        kept: list[Candidate] = []
        start, end = asked.span
        for one in candidates:
            inside = start is None or end is None or start <= one.at < end
            if one.state == "live":
                if inside and start is not None and one.row.as_of is not None:
                    one.score += 0.1
                    one.reasons.append("of that time")
                elif start is not None and end is not None and not _near_that_time(one.at, start, end):
                    one.score *= 0.75
                    one.reasons.append("of another time")
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

    def _hopped(self, asked: Asked, view: View, passed: list[Candidate]) -> list[Candidate]:
        mass = sum(view.idf(token) * weight for token, weight in asked.content.items()) or 1.0

        def find(further: Asked) -> list[Candidate]:
            return self._judged(
                further, gather(view, further, most=CANDIDATES // 3), [], strict=True, again=False
            )

        def weigh(tokens: frozenset[str]) -> float:
            return sum(view.idf(token) * asked.content.get(token, 0.0) for token in tokens) / mass

        return second_step(asked, passed, find, weigh)

    def _with_log(self, asked: Asked, ranked: list[Candidate], cut: list[Cut]) -> list[Candidate]:
        """The rows with those of the log: calls and talk, when past work is asked for or nothing else is known."""
        view = self._view(("L0",), ("live",))
        log = self._judged(asked, self._gather(view, asked, ("L0",)), cut, strict=True)
        if not asked.past_work:
            return ranked + [one for one in log if one.coverage >= _SURE]
        # Calls are no prose: each kind is measured by its own best.
        least = LOG * gate.need(asked)
        found = [
            one
            for kind in ("call", "turn")
            for one in gate.passed(asked, [row for row in log if row.row.kind == kind], cut, least=least)
        ]
        if not found:
            return ranked
        merged = sorted([*ranked, *found], key=lambda one: -one.rank)
        return gate.beside_the_best(merged, cut)


def _of_its_period(asked: Asked, candidates: list[Candidate], cut: list[Cut]) -> list[Candidate]:
    """Without the expired rows, but for those of the very period that is asked for: such a figure does not age."""
    kept = []
    for one in candidates:
        if one.state == "live" or not asked.periods.isdisjoint(one.facet("periods")):
            kept.append(one)
        else:
            cut.append(Cut(one.row.id, one.state))
    return kept


def _near_that_time(at: int, start: int, end: int) -> bool:
    """Whether a row may speak of a time up to a month long: figures of a month are known some weeks after."""
    if end - start > 32 * _DAY:
        return True
    return end - start > 8 * _DAY and start <= at < end + 40 * _DAY
