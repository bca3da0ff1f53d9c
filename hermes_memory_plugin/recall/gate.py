"""The floor: whether anything found is about the question at all, and which rows are too weak beside the best."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.answer import Cut
from hermes_memory_plugin.recall.candidate import Candidate

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked

SHORT, LONG = 0.28, 0.55
"""Least coverage plus cosine of the best row, for questions of up to 3 and from 8 content words."""
UNANCHORED = 0.12
"""How much more it takes when the question names nothing a memory is about."""
UNKNOWN = 0.2
"""How much more when it names an identifier no row holds."""
ASIDE, NEARER, COVERED = 0.5, 0.05, 0.6
"""Cosine to an aside from which a message is like it, how much nearer a row may be, and how much of it a row may hold."""
AS_MUCH = 0.75
"""A row that covers this share of what the best one covers comes along, however rare its words are."""
LITTLE = 0.55
"""Below this share of what the best row covers, a row must hold something the others do not."""
NEAREST = 0.5
"""Cosine from which the row whose meaning is nearest comes along, whatever its words."""
REST = 0.2
"""How much of the question a row must hold that names none of its companies, where others do."""
BESIDE = 0.45
"""The share of the best score a row must reach."""
BESIDE_OFF = 0.7
"""The same for one that something speaks against."""
_GENERAL = re.compile(
    r"(?:why|how (?:do|does|did|can|could|would|many|far|long|old|tall|big|to)|what(?:'s| is| are| was| were| does| do| causes)|who (?:is|was|were|invented|wrote|discovered)"
    r"|when (?:did|was|were)|where (?:is|are|was)|is it true|can you (?:explain|tell|write|give)|explain|define)\b"
    r"|为什么|为何|为啥|怎么(?!看|样)|如何|什么是|什么叫|谁(?:发明|发现|写)|.*(?:是什么意思|的原理|怎么写|怎么念|怎么读)"
)
_OWN = re.compile(r"我|咱|\b(?:my|our|ours|mine|we|us|i|i'm|i've)\b")


def need(asked: Asked) -> float:
    """How near the best row must come."""
    length = sum(1.0 for weight in asked.content.values() if weight >= 1.0)
    share = min(1.0, max(0.0, (length - 3) / 5))
    least = SHORT + (LONG - SHORT) * share
    return least + (UNANCHORED if not asked.anchored and is_general(asked) else 0.0)


def is_general(asked: Asked) -> bool:
    """Whether it is put like a question anybody might be asked: why is the sky blue, 为什么天是蓝的."""
    normal = asked.question.normalised
    return (
        not asked.anchored
        and not asked.people
        and bool(_GENERAL.match(normal.lstrip()))
        and not _OWN.search(normal)
    )


def wants_nothing(asked: Asked, candidates: list[Candidate]) -> bool:
    """Whether the message is an aside (see `asides`): nearer to one than to anything stored, and hardly worded like it."""
    if asked.anchored or asked.aside < ASIDE:
        return False
    nearest = max((one.cosine for one in candidates), default=0.0)
    covered = max((one.coverage for one in candidates), default=0.0)
    return covered < COVERED and asked.aside >= nearest - NEARER


def passed(
    asked: Asked, candidates: list[Candidate], cut: list[Cut], *, least: float | None = None
) -> list[Candidate]:
    """The rows that are about the question."""
    if not candidates:
        return []
    floor = need(asked) if least is None else least
    unknown = any(len(mark) >= 6 for mark in asked.marks or ()) and not any(one.answers for one in candidates)
    if unknown:
        floor += UNKNOWN
    surely = bool(asked.entities) or not unknown
    best = max(one.coverage + one.cosine for one in candidates)
    if best < floor and not (surely and any(one.named for one in candidates)):
        cut += [Cut(one.row.id, "nothing stored comes near the question") for one in candidates[:5]]
        return []
    if is_general(asked) and max(one.coverage for one in candidates) < 0.5 and len(asked.content) > 1:
        cut += [Cut(one.row.id, "a general question, hardly touched") for one in candidates[:5]]
        return []
    return _beside(asked, candidates, cut, floor)


def _beside(asked: Asked, candidates: list[Candidate], cut: list[Cut], floor: float) -> list[Candidate]:
    """The rows that are not too weak beside the best."""
    best = candidates[0]
    answered = any(one.answers and "same identifier" in one.reasons for one in candidates)
    dated = any("same period" in one.reasons for one in candidates)
    named = bool(asked.entities) and any(one.named for one in candidates)
    covered = max(one.coverage for one in candidates)
    worded = any(one.worded for one in candidates) and covered >= 0.2
    nearest = max(one.cosine for one in candidates)
    kept: list[Candidate] = []
    told: set[str] = set()
    for one in candidates:
        why = ""
        if answered and "another identifier" in one.reasons:
            why = "another identifier"
        elif dated and "another period" in one.reasons:
            why = "another period"
        elif named and not one.named:
            if _completes(one, told):
                one.reasons.append("holds the rest of the question")
            else:
                why = "names none of the companies and adds nothing"
        elif kept and one.holds <= told and one.coverage < LITTLE * covered and not one.answers:
            why = "holds little of the question, and nothing new"
        elif one.cosine >= max(NEAREST, nearest - 0.02) and not one.off:
            one.reasons.append("nearest in meaning")
        elif one.coverage >= max(AS_MUCH * covered, 0.4) and one.worded and not one.off:
            one.reasons.append("holds as much of the question")
        elif one.score < (BESIDE_OFF if one.off else BESIDE) * best.score or (
            one.coverage + one.cosine < 0.6 * floor and not one.named
        ):
            why = "weaker"
        elif not (one.worded or one.named or one.answers) and (worded or one.cosine < nearest - 0.12):
            why = "only its meaning is near, and others are nearer"
        if why:
            cut.append(Cut(one.row.id, why))
        else:
            kept.append(one)
            told |= one.holds
    return kept


def beside_the_best(ranked: list[Candidate], cut: list[Cut]) -> list[Candidate]:
    """Without the rows that hold no word of the question and are weak beside the best, once all layers are together."""
    kept = []
    for one in ranked:
        if one.worded or one.named or one.score >= BESIDE * ranked[0].score:
            kept.append(one)
        else:
            cut.append(Cut(one.row.id, "weaker"))
    return kept


def _completes(one: Candidate, told: set[str]) -> bool:
    """Whether a row that names no company holds what the rows about the company leave open (打分档位 beside 83分)."""
    rest = [token for token in one.holds - told if token[0] != "~"]
    return one.coverage >= REST and len(rest) >= 2 and not one.off and not one.facet("entities")
