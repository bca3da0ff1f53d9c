"""Candidates: the rows of a view whose words or meaning come near a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hermes_memory_plugin.recall.candidate import Candidate
from hermes_memory_plugin.recall.index_files import Array

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.index_view import View

SATURATION = 2.5
"""BM25 over this times the question's idf mass is about 1 when every content word is found."""
COSINE = 0.2
OTHER_LANGUAGE = 0.1
"""What a cosine between Chinese and English is short of one within a language."""
SYNONYM = 0.8
"""What a content word counts for that a row says in other words."""
Mix = Callable[[Array, Array, Array], tuple[Array, Array]]
"""(BM25, scores, cosine) of every number → (scores, cosine): what an encoder for sentences makes of them."""
_LATIN = re.compile(r"[A-Za-z]{2,}")


def gather(view: View, asked: Asked, *, most: int, mix: Mix | None = None) -> list[Candidate]:
    """The `most` best rows, best first.

    The score is BM25 over the weight of the question's content words plus a fifth of the cosine: a question whose words
    are all found is decided by the words, one whose words are missing by the meaning.
    """
    if not view.n or not asked.weights:
        return []
    words = view.bm25(_weights(view, asked))
    mass = sum(view.idf(token) * weight for token, weight in asked.content.items()) or 1.0
    cosine = _cosine(view, asked)
    scores = words / np.float32(SATURATION * mass) + np.float32(COSINE) * cosine
    if mix is not None:
        scores, cosine = mix(words, scores, cosine)
    numbers = view.top(scores, most)
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
                number, row, score, float(words[number]), near, covered, frozenset(held), view.state(number)
            )
        )
    return found


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
    han = sum("\u3400" <= character <= "\u9fff" for character in text[:400])
    return han > 0 and 2 * han >= len(_LATIN.findall(text[:400]))


def _held(view: View, asked: Asked, numbers: Sequence[int]) -> list[dict[str, float]]:
    """Of each number, the content tokens it holds itself (1) or by another name (`SYNONYM`)."""
    wanted = np.asarray(numbers, np.int64)
    held: list[dict[str, float]] = [{} for _ in numbers]
    for token in asked.content:
        for other, share in ((token, 1.0), *((same, SYNONYM) for same in asked.same.get(token, ()))):
            holders, _ = view.postings(other)
            if len(holders):
                for place in np.flatnonzero(np.isin(wanted, holders)).tolist():
                    held[place].setdefault(token, share)
    return held
