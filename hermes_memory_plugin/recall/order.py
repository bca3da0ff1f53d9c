"""The order of what was found: trust before age for rows of one key, the newer first where two say one thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall import polarity
from hermes_memory_plugin.recall.candidate import Candidate

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.index_view import View

Near = Callable[[Candidate, Candidate], float]
DEEP = 12
"""How many rows from the top are compared with each other."""
ALIKE, CORRECTED = 0.5, 0.3
"""How alike two statements must be for the newer to go first, and how alike if it says that it corrects something."""
_DAY = re.compile(r"\d{4}[-/年.]\d{1,2}[-/月.]\d{1,2}|(?<!\d)\d{1,2}月\d{1,2}[日号]")
_WORD = re.compile(r"[a-z0-9]{2,}|[\u3400-\u9fff]+")


def newest_first(asked: Asked, ranked: Sequence[Candidate], near: Near) -> list[Candidate]:
    """Of two rows that speak of one thing, the newer (of one key: the more trusted) ahead. It moves rows, it drops none."""
    order = list(ranked)
    for place in range(1, min(len(order), DEEP)):
        for earlier in range(place):
            one, other = order[place], order[earlier]
            if why := _goes_first(asked, one, other, near):
                order.pop(place)
                one.reasons.append(why)
                order.insert(earlier, one)
                break
    return order


def contradict(ranked: Sequence[Candidate]) -> None:
    """Mark each row that says another value of a key than a row before it."""
    first: dict[tuple[str, str], Candidate] = {}
    for one in ranked:
        if not one.row.fact_key or one.state != "live":
            continue
        other = first.setdefault((one.row.owner, one.row.fact_key), one)
        if other is not one and other.row.value != one.row.value:
            one.contradicts = other.row
            one.reasons.append(f"contradicts {other.row.id}")


def by_vectors(view: View, ranked: Sequence[Candidate], *, vectors: bool) -> Near:
    """How alike two candidates are: the better of their words in common and, with `vectors`, their cosine."""
    some = ranked[:DEEP]
    places = {one.number: place for place, one in enumerate(some)}
    rows = view.vectors([one.number for one in some]) if vectors and some else None
    parts: dict[int, set[str]] = {}

    def words(one: Candidate) -> set[str]:
        if one.number not in parts:
            parts[one.number] = _parts(one.normal)
        return parts[one.number]

    def near(one: Candidate, other: Candidate) -> float:
        mine, theirs = words(one), words(other)
        common = 2 * len(mine & theirs) / (len(mine) + len(theirs) or 1)
        if rows is None or one.number not in places or other.number not in places:
            return common
        return max(common, float(rows[places[one.number]] @ rows[places[other.number]]))

    return near


def _goes_first(asked: Asked, one: Candidate, other: Candidate, near: Near) -> str:
    if one.row.owner != other.row.owner:
        return ""
    if one.row.fact_key and one.row.fact_key == other.row.fact_key:
        if one.row.trust != other.row.trust:
            return "better source" if one.row.trust > other.row.trust else ""
        return "newer" if one.at > other.at and not asked.names_time else ""
    if one.at <= other.at or one.row.trust < other.row.trust or one.score < 0.33 * other.score:
        return ""
    if not _one_matter(asked, one, other):
        return ""
    corrected = polarity.corrects(one.normal)
    if not corrected and one.likeness < ALIKE * other.likeness:
        return ""  # where all rows are of one thing, they are alike whatever they say of it
    covers = one.coverage >= (0.5 if corrected else 0.75) * other.coverage
    if not covers and not (corrected and one.cosine >= other.cosine):
        return ""
    if corrected and one.holds and one.holds >= other.holds:
        return "newer, and says so"
    return "newer" if near(one, other) >= (CORRECTED if corrected else ALIKE) else ""


def _one_matter(asked: Asked, one: Candidate, other: Candidate) -> bool:
    """Facts of the same entities, of no different figure, and of no other period or identifier than was asked for."""
    if one.row.layer != "L1" or other.row.layer != "L1" or one.off or (other.answers and not one.answers):
        return False
    if one.facet("entities") != other.facet("entities"):
        return False
    if _DAY.search(one.normal) and _DAY.search(other.normal):
        return False  # what happened on a day is not undone by what happened on another
    mine, theirs = one.facet("metrics"), other.facet("metrics")
    if mine != theirs and mine.isdisjoint(theirs):
        return False
    before, after = one.facet("periods"), other.facet("periods")
    return not asked.periods or before == after or not (before and after)


def _parts(text: str) -> set[str]:
    """Latin words and pairs of Chinese characters."""
    found: set[str] = set()
    for match in _WORD.finditer(text[:300]):
        run = match[0]
        found.update([run] if run.isascii() else map(str.__add__, run, run[1:]))
    return found


def without_echoes(ranked: Sequence[Candidate], question: str) -> list[Candidate]:
    """Each text once, the newest of it; turns that only asked the very question stand behind what answers it."""
    asked = _letters(question)
    newest: dict[str, int] = {}
    for one in ranked:
        text = _letters(one.row.text)
        newest[text] = max(newest.get(text, 0), one.row.created)
    once: list[Candidate] = []
    echoes: list[Candidate] = []
    seen: set[str] = set()
    for one in ranked:
        text = _letters(one.row.text)
        if one.row.kind == "turn":
            if text in seen or one.row.created < newest[text]:
                continue
            seen.add(text)
        (
            echoes
            if one.row.kind == "turn" and _letters(str(one.row.extra.get("user") or "")) == asked
            else once
        ).append(one)
    return [*once, *echoes]


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
