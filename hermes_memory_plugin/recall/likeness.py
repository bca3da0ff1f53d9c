"""How alike a short question and a short row are, told apart from what all rows have in common.

Where every row is about one thing, its words say nothing and the vectors point one way. What is left of a vector without
the mean of the rows is what the row says itself; and a paraphrase shares characters where it shares no word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hermes_memory_plugin.recall.candidate import Candidate
from hermes_memory_plugin.recall.index_files import Array

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.index_view import View

LETTERS = 0.5
"""What the share of common characters and words adds to the rank of the shortest rows."""
MOST = 24
"""How many of the best rows are looked at."""
MEANT = 0.8
"""What the cosine without the mean of the rows counts there, in place of the plain one."""
_PIECE = re.compile(r"[\u3400-\u9fff]|[a-z0-9]+")


def weigh(view: View, asked: Asked, found: Sequence[Candidate], short: Sequence[float]) -> None:
    """Say of each row how alike it and the question are; `short`: 1 where both are short, 0 where either is long.

    A question that names a company, a figure or an identifier is left to the rules: 6月 and 5月 are alike, and not the same.
    """
    if asked.entities or asked.sectors or asked.metrics or asked.families or asked.marks or asked.scopes:
        return
    some = [(one, share) for one, share in zip(found[:MOST], short, strict=False) if share > 0]
    if not some:
        return
    letters = frozenset(_PIECE.findall(asked.question.normalised))
    near = _without_the_mean(view, asked, [one for one, _ in some])
    for (one, share), cosine in zip(some, near, strict=True):
        theirs = frozenset(_PIECE.findall(one.normal))
        common = len(letters & theirs) / (len(letters | theirs) or 1)
        one.likeness = round(share * (MEANT * cosine + LETTERS * common), 5)


def _without_the_mean(view: View, asked: Asked, found: Sequence[Candidate]) -> list[float]:
    """Of each row, the cosine without what all rows share, less the plain one that is counted already."""
    if asked.vector is None:
        return [0.0] * len(found)
    mean = view.mean
    rows = view.vectors([one.number for one in found])
    plain = rows @ asked.vector
    own = _unit(rows - mean) @ _unit(asked.vector - mean)
    own[~rows.any(axis=1)] = 0.0
    less: list[float] = np.round(own - np.maximum(plain, 0.0), 5).tolist()
    return less


def _unit(rows: Array) -> Array:
    lengths = np.sqrt(np.einsum("...i,...i->...", rows, rows))
    unit: Array = rows / np.maximum(lengths, 1e-9)[..., None]
    return unit
