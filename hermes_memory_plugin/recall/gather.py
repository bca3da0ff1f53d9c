"""Candidates: the rows of a view whose words or meaning come near a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hermes_memory_plugin.recall import likeness
from hermes_memory_plugin.recall.candidate import Candidate
from hermes_memory_plugin.recall.index_files import Array
from hermes_memory_plugin.recall.index_row import LAYERS

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.index_view import View

SATURATION = 2.5
"""BM25 over this times the question's idf mass is about 1 when every content word is found."""
COSINE, SHORT = 0.2, 0.8
"""What the cosine of a long row adds to its score, and that of a short one."""
BRIEF, LONG = 25, 60
"""Up to so many tokens a row is short; from so many on it is long."""
TERSE, WORDY = 6, 12
"""The same for the content words of a question."""
OTHER_LANGUAGE = 0.1
"""What a cosine between Chinese and English is short of one within a language."""
SYNONYM = 0.8
"""What a content word counts for that a row says in other words."""
Mix = Callable[[Array, Array, Array], tuple[Array, Array]]
"""(BM25, scores, cosine) of every number → (scores, cosine): what an encoder for sentences makes of them."""
_HAN = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]{2,}")


def gather(view: View, asked: Asked, *, most: int, mix: Mix | None = None) -> list[Candidate]:
    """The `most` best rows, best first.

    The score is BM25 over the weight of the question's content words plus a fifth of the cosine: a question whose words
    are all found is decided by the words, one whose words are missing by the meaning.
    """
    if not view.n or not asked.weights:
        return []
    view.look_up((*asked.weights, *asked.content, *(one for some in asked.same.values() for one in some)))
    words = view.bm25(_weights(view, asked))
    mass = sum(view.idf(token) * weight for token, weight in asked.content.items()) or 1.0
    cosine = _cosine(view, asked)
    worth = _worth(view, asked)
    scores = words / np.float32(SATURATION * mass) + worth * cosine
    if mix is not None:
        scores, cosine = mix(words, scores, cosine)
    scores = np.round(scores, 5)
    numbers = view.top(scores, most)
    who = sum(view.idf(token) * asked.content.get(token, 0.0) for token in asked.people) / mass
    found = []
    for number, held in zip(numbers, _held(view, asked, numbers), strict=True):
        row, near, score = view.row(number), float(cosine[number]), float(scores[number])
        if near > 0 and is_chinese(row.text) != (asked.language == "zh"):
            # Only as far as it is near at all: two texts of different languages are never quite apart.
            bonus = OTHER_LANGUAGE * min(1.0, near / 0.3)
            near += bonus
            score += COSINE * bonus
        covered = sum(view.idf(token) * asked.content[token] * share for token, share in held.items()) / mass
        found.append(
            Candidate(
                number,
                row,
                score,
                float(words[number]),
                near,
                covered,
                frozenset(held),
                view.state(number),
                whom=who,
            )
        )
    short = (worth[numbers] - COSINE) / (SHORT - COSINE)
    likeness.weigh(view, asked, found, short.tolist())
    found.sort(key=lambda one: -one.rank)
    return found


def _worth(view: View, asked: Asked) -> Array:
    """What the cosine of each row counts: most where a short question meets a short statement.

    The sum of many words' vectors says little of any of them, a long question must find words, and the vector of a turn is
    its neighbours' too.
    """
    words = sum(weight >= 1.0 for weight in asked.content.values())
    eager = (SHORT - COSINE) * min(1.0, max(0.0, (WORDY - words) / (WORDY - TERSE)))
    if not eager:
        return np.full(view.size, COSINE, np.float32)
    short = np.clip((np.float32(LONG) - view.column("length")) / np.float32(LONG - BRIEF), 0.0, 1.0)
    short *= view.column("layer") != LAYERS.index("L0")
    worth: Array = np.float32(COSINE) + np.float32(eager) * short.astype(np.float32)
    return worth


def _weights(view: View, asked: Asked) -> dict[str, float]:
    """The weights of the sum; what says the same as a word no row holds counts as that word would."""
    weights = dict(asked.weights)
    for token, others in asked.same.items():
        if view.df(token):
            continue
        known = [other for other in others if view.df(other)]
        for other in known:
            weights[other] = weights.get(other, 0.0) + SYNONYM * asked.content.get(token, 0.0) / (
                2 * len(known)
            )
    return weights


def _cosine(view: View, asked: Asked) -> Array:
    if asked.vector is None:
        return np.zeros(view.size, np.float32)
    return np.maximum(view.cosine(asked.vector), np.float32(0))


def is_chinese(text: str) -> bool:
    """Whether most of what the text says, it says in Chinese."""
    head = text[:300]
    if head.isascii():
        return False
    han = len(_HAN.findall(head))
    return han > 0 and 2 * han >= len(_LATIN.findall(head))


def _held(view: View, asked: Asked, numbers: Sequence[int]) -> list[dict[str, float]]:
    """Of each number, the content tokens it holds itself (1) or by another name (`SYNONYM`)."""
    held: list[dict[str, float]] = [{} for _ in numbers]
    place_of = np.full(view.size, -1, np.int32)
    place_of[np.asarray(numbers, np.int64)] = np.arange(len(numbers), dtype=np.int32)
    for token in asked.content:
        for other, share in ((token, 1.0), *((same, SYNONYM) for same in asked.same.get(token, ()))):
            holders, _ = view.postings(other)
            if len(holders):
                places = place_of[holders]
                for place in places[places >= 0].tolist():
                    held[place].setdefault(token, share)
    return held
