"""What a real encoder adds to one recall: rows it finds, the order of those both found, a second look at the best.

The encoder has its own time limit. What it misses is counted and costs the recall nothing but its help: words and the
word table answer alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hermes_memory_plugin.store.vectors import Hits, Table, Wanted

if TYPE_CHECKING:
    from hermes_memory_plugin.embedding.timely import Timely
    from hermes_memory_plugin.recall.candidate import Candidate
    from hermes_memory_plugin.recall.index_files import Array
    from hermes_memory_plugin.recall.index_view import View

K = 60.0
DEPTH = 50
"""How far down each list counts."""
FIRST = 20
"""How many of the best a second pass looks at again."""
WORTH = 0.15
"""A row the words found counts only with this share of the best such row's score: a common word is no hit."""
SIMILAR = 0.5
"""What an encoder's similarity weighs beside the coverage by words."""
_MOST = 6.0  # standard deviations above unrelated rows that count in full
_FAR, _NEAR = 2.0, 6.0  # those at which a row begins to be near, and surely is: what the floor asks
_LONGEST = 300  # characters of a question that are embedded
_FEW = 24  # rows below which nobody can say what an unrelated one looks like: then ranks decide


class Encoding(Protocol):
    """What answers with vectors (see `upkeep.embed.Serving`)."""

    @property
    def table(self) -> Table: ...
    @property
    def timely(self) -> Timely: ...
    @property
    def background(self) -> Any: ...
    @property
    def finds(self) -> bool: ...


@dataclass(slots=True)
class Meaning:
    """The encoder's part in one recall; made anew for each."""

    encoding: Encoding | None
    """None: no encoder, or it is not loaded yet; then only `fusion` counts."""
    text: str
    within: float
    """Seconds the encoder and its table may take, over the whole recall."""
    fusion: str = "auto"
    """coverage, or rrf; auto is coverage."""
    second_pass: bool = False
    count: Callable[[str, str], None] = lambda name, detail: None
    _vector: Any = None
    _failed: bool = False
    _seen: dict[int, float] = field(default_factory=dict)

    def mixed(
        self,
        view: View,
        owners: Collection[str] | None,
        layers: Collection[str],
        *,
        live: bool,
        now: int,
        words: Array,
        scores: Array,
        cosine: Array,
    ) -> tuple[Array, Array]:
        """(scores, cosine) of every number of the view with what the encoder says of the rows."""
        similar = cosine
        ranked: list[int] = []
        hits = self._hits(Wanted(owners, layers, live, now))
        if hits is not None:
            numbers = view.numbers_of(hits.key)
            seen = numbers >= 0  # the index has the last word on who may see what
            ranked = numbers[seen][:DEPTH].tolist()
            similar = cosine.copy()
            above = self._above(hits.cosine[seen][:DEPTH])
            near = np.clip((above - _FAR) / (_NEAR - _FAR), 0.0, 1.0)
            similar[ranked] = np.maximum(similar[ranked], near)
        if self.fusion == "rrf" or (hits is not None and not self._knows_unrelated):
            if hits is None:
                ranked = view.top(cosine, DEPTH)
            return fused(view, words, scores, ranked), similar
        if hits is None:
            return scores, cosine
        gain = np.zeros_like(scores)
        gain[ranked] = np.clip(above / _MOST, 0.0, 1.0)
        return scores + np.float32(SIMILAR) * gain, similar

    def again(self, candidates: list[Candidate]) -> None:
        """Order the best by half their score and half the encoder's; the scores as such stay what they are."""
        if not self.second_pass or self.encoding is None or len(candidates) < 2:
            return
        from hermes_memory_plugin.recall.index_row import digest

        best = sorted(candidates, key=lambda one: -one.rank)[:FIRST]
        keys = [digest(one.row.id) for one in best]
        known = self._cosines(keys)
        if not known:
            return
        mean = float(np.mean(list(known.values())))
        second = _standard(np.array([known.get(key, mean) for key in keys]))
        order = np.argsort(-(_standard(np.array([one.rank for one in best])) + second), kind="stable")
        scores = [(one.score, one.likeness) for one in best]
        for place, which in enumerate(order.tolist()):
            best[which].score, best[which].likeness = scores[place]

    # -- the encoder -------------------------------------------------------------------------------------------------

    def _hits(self, wanted: Wanted) -> Hits | None:
        if self.encoding is None or not self.encoding.finds:
            return None
        table, timely = self.encoding.table, self.encoding.timely

        def look() -> tuple[Any, Hits]:
            vector = timely.embedder.query(self.text[:_LONGEST]) if self._vector is None else self._vector
            return vector, table.search(vector, 2 * DEPTH, wanted)

        found = self._timed(look)
        if found is None:
            return None
        self._vector, hits = found
        return hits if len(hits.key) else None

    def _cosines(self, keys: Sequence[int]) -> dict[int, float]:
        assert self.encoding is not None
        table, timely = self.encoding.table, self.encoding.timely

        def look() -> tuple[Any, dict[int, float]]:
            vector = timely.embedder.query(self.text[:_LONGEST]) if self._vector is None else self._vector
            return vector, table.cosines(vector, keys)

        found = self._timed(look)
        if found is None:
            return {}
        self._vector = found[0]
        cosines: dict[int, float] = found[1]
        return cosines

    def _timed(self, look: Callable[[], Any]) -> Any:
        assert self.encoding is not None
        if self._failed:
            return None
        began = time.monotonic()
        found = self.encoding.timely.run(look, self.within)
        self.within -= time.monotonic() - began
        if found is None:
            self._failed = True  # one question, one attempt
            error = self.encoding.timely.error
            self.count("embed_query_failed" if error else "embed_late", str(error or ""))
        return found

    @property
    def _knows_unrelated(self) -> bool:
        return self.encoding is not None and len(self.encoding.background) >= _FEW

    def _above(self, cosine: Array) -> Array:
        """Cosines as standard deviations above those of unrelated rows: e5's lie between .8 and .9, bge's elsewhere."""
        assert self.encoding is not None
        if not self._knows_unrelated:
            return np.zeros(len(cosine), np.float32)
        others = self.encoding.background @ np.asarray(self._vector, np.float32)
        deviation = float(np.std(others)) or 1.0
        above: Array = ((cosine - float(np.mean(others))) / deviation).astype(np.float32)
        return above


def fused(view: View, words: Array, scores: Array, ranked: Sequence[int]) -> Array:
    """The scores, dealt out anew in the order of reciprocal rank fusion; rows far down in both lists have none.

    The first list is that of the scores, without rows whose words are hardly worth mentioning.
    """
    best = float(words.max()) if len(words) else 0.0
    worthy = np.where(words >= WORTH * best, scores, 0.0) if best > 0 else np.zeros_like(scores)
    share: dict[int, float] = {}
    for numbers in (view.top(worthy, DEPTH), ranked):
        for place, number in enumerate(numbers, 1):
            share[number] = share.get(number, 0.0) + 1.0 / (K + place)
    order = sorted(share, key=lambda number: (-share[number], -float(scores[number])))
    dealt = np.zeros_like(scores)
    if order:
        values = np.sort(scores[order])[::-1]
        dealt[order] = np.maximum(values, np.linspace(2e-3, 1e-3, len(order)))
    return dealt


def _standard(values: Array) -> Array:
    deviation = float(values.std())
    standard: Array = (values - values.mean()) / deviation if deviation else np.zeros_like(values)
    return standard
