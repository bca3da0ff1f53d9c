"""A view: the rows one asker may see, and BM25 over exactly those."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from hermes_memory_plugin.recall.index_corpus import Part
from hermes_memory_plugin.recall.index_files import Array, IndexDamaged
from hermes_memory_plugin.recall.index_row import LAYERS, VECTOR_SIZE, Row, digests
from hermes_memory_plugin.recall.segments import Segment

K1 = 1.5
B = 0.75
B_LOG = 0.4
"""Turns and calls: a long one says more, where a long statement says the same at length."""
_CHUNK = 1_024  # rows of vectors turned to floats at a time: 1 MB
_STACK = 32
_SAMPLE = 128
_FEW = 8  # rows that count as nothing in their mean: two rows are not opposites
_LOG = LAYERS.index("L0")


class _Slice:
    """A part as the view found it; later writes do not show."""

    __slots__ = ("base", "expired", "mask", "norm", "segment", "successor", "visible")

    def __init__(self, segment: Segment, base: int, mask: Array, expired: Array, successor: Array) -> None:
        self.segment = segment
        self.base = base
        self.mask = mask
        self.expired = expired
        self.successor = successor
        self.norm: Array = mask
        self.visible = int(np.count_nonzero(mask))


class View:
    """A snapshot for one set of owners. Rows are numbers from 0 to `size`; hidden ones count for nothing.

    Document frequencies, lengths and scores come from visible rows only: what somebody else stored neither
    shows nor shifts a score.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        owners: Collection[str] | None,
        now_us: int,
        layers: Collection[str] | None = None,
        states: Collection[str] = ("live",),
        projects: Collection[str] | None = None,
        sessions: Collection[str] | None = None,
    ) -> None:
        only = None if sessions is None else np.array(digests(sessions), np.uint64)
        self._slices: list[_Slice] = []
        self.size = 0
        """How many numbers there are, hidden rows included: the length of every array of scores."""
        for part in parts:
            self._slices.append(_slice(part, self.size, owners, now_us, layers, states, projects, only))
            self.size += part.segment.rows
        self.n = sum(piece.visible for piece in self._slices)
        """How many rows are visible."""
        length = sum(
            float(p.segment.column["length"][p.mask].sum(dtype=np.float64)) for p in self._slices if p.visible
        )
        self.avgdl = length / self.n if self.n else 0.0
        per_word = 1.0 / self.avgdl if self.avgdl else 0.0
        for piece in self._slices:
            if piece.visible:
                b = np.where(piece.segment.column["layer"] == _LOG, np.float32(B_LOG), np.float32(B))
                piece.norm = np.float32(K1) * (
                    1 - b + b * (piece.segment.column["length"] * np.float32(per_word))
                )
        self._hits: dict[str, tuple[Array, Array]] = {}

    @cached_property
    def mask(self) -> Array:
        """bool array: which numbers are visible."""
        return np.concatenate([piece.mask for piece in self._slices]) if self._slices else np.zeros(0, bool)

    def numbers(self, *, kinds: Collection[str] | None = None) -> Array:
        """The visible numbers, all or of some kinds."""
        if kinds is None or not self._slices:
            return np.flatnonzero(self.mask)
        kind = [
            np.array([name in kinds for name in piece.segment.tables["kind"]], bool)[
                piece.segment.column["kind"]
            ]
            for piece in self._slices
        ]
        return np.flatnonzero(self.mask & np.concatenate(kind))

    # -- words -----------------------------------------------------------------------------------------------------

    def df(self, token: str) -> int:
        """In how many visible rows the token occurs."""
        self.look_up((token,))
        return len(self._hits[token][0])

    def idf(self, token: str) -> float:
        """The BM25 idf of the token among the visible rows; highest for one that occurs nowhere."""
        df = self.df(token)
        return math.log(1 + (self.n - df + 0.5) / (df + 0.5))

    def postings(self, token: str) -> tuple[Array, Array]:
        """Visible numbers that hold the token (ascending) and its BM25 contribution to each, at weight 1."""
        self.look_up((token,))
        return self._hits[token]

    def bm25(self, weights: Mapping[str, float] | Iterable[str]) -> Array:
        """float32 score of every number; tokens of a mapping count times their weight."""
        weighted = weights if isinstance(weights, Mapping) else dict.fromkeys(weights, 1.0)
        self.look_up(weighted)
        scores = np.zeros(self.size, np.float32)
        for token, weight in weighted.items():
            numbers, gain = self._hits[token]
            if len(numbers):
                scores[numbers] += gain if weight == 1.0 else gain * np.float32(weight)
        return scores

    def look_up(self, tokens: Iterable[str]) -> None:
        """Fetch the postings of many tokens at once; what asks for one of them later finds it ready."""
        wanted = [token for token in dict.fromkeys(tokens) if token not in self._hits]
        if not wanted:
            return
        terms = np.array(digests(wanted), np.uint64)
        numbers: list[list[Array]] = [[] for _ in wanted]
        gains: list[list[Array]] = [[] for _ in wanted]
        for piece in self._slices:
            if not piece.visible:
                continue
            for place, docs, tf in piece.segment.postings(terms):
                try:
                    if piece.visible < piece.segment.rows:
                        seen = piece.mask[docs]
                        docs, tf = docs[seen], tf[seen]
                    gains[place].append(tf * np.float32(K1 + 1) / (tf + piece.norm[docs]))
                except IndexError as error:
                    raise IndexDamaged(
                        Path(piece.segment.file), "its postings name rows it has not"
                    ) from error
                numbers[place].append(docs + piece.base)
        for token, found, gained in zip(wanted, numbers, gains, strict=True):
            if not found:
                self._hits[token] = _NOTHING
                continue
            where = found[0] if len(found) == 1 else np.concatenate(found)
            gain = gained[0] if len(gained) == 1 else np.concatenate(gained)
            df = len(where)
            self._hits[token] = (where, gain * np.float32(math.log(1 + (self.n - df + 0.5) / (df + 0.5))))

    # -- vectors ---------------------------------------------------------------------------------------------------

    def cosine(self, query: Array, numbers: Array | None = None) -> Array:
        """Dot product with every visible row's vector (0 without one); of `numbers` only where given.

        `query` is a float vector of unit length; rows are int8 times their own scale.
        """
        scores = np.zeros(self.size, np.float32)
        query = np.ascontiguousarray(query, np.float32)
        for piece in self._slices:
            if not piece.segment.vectors:
                continue
            wanted = piece.mask
            if numbers is not None:
                chosen = np.zeros(piece.segment.rows, bool)
                own = (
                    numbers[(numbers >= piece.base) & (numbers < piece.base + piece.segment.rows)]
                    - piece.base
                )
                chosen[own] = True
                wanted = wanted & chosen
            vectors, scale = piece.segment.column["vector"], piece.segment.column["vector_scale"]
            rows = np.flatnonzero(wanted)
            if 2 * len(rows) > piece.segment.rows:
                dots = _dots(vectors, None, query) * scale.astype(np.float32)
                scores[piece.base : piece.base + piece.segment.rows] = dots * wanted
            else:
                scores[rows + piece.base] = _dots(vectors, rows, query) * scale[rows].astype(np.float32)
        # The last bits depend on which rows stand beside a row in memory, other owners' included.
        return np.round(scores, 5)

    def vectors(self, numbers: Sequence[int] | Array) -> Array:
        """float32 [len(numbers), VECTOR_SIZE]: the vectors of some rows, zeros for those without one."""
        found = np.zeros((len(numbers), VECTOR_SIZE), np.float32)
        wanted = np.asarray(numbers, np.int64)
        for piece in self._slices:
            if piece.segment.vectors:
                here = np.flatnonzero((wanted >= piece.base) & (wanted < piece.base + piece.segment.rows))
                rows = wanted[here] - piece.base
                scale = piece.segment.column["vector_scale"][rows].astype(np.float32)
                found[here] = piece.segment.column["vector"][rows].astype(np.float32) * scale[:, None]
        return found

    @cached_property
    def mean(self) -> Array:
        """float32 [VECTOR_SIZE]: the mean vector of the visible rows, of about a hundred of them where they are many,
        nearer to nothing where they are few.

        Which ones, their ids say, so that rows of others change nothing.
        """
        some = self.mask
        if self.n > _SAMPLE:
            some = some & (self.column("ids") < np.uint64(2**64 // self.n * _SAMPLE))
        numbers = np.flatnonzero(some)
        total = self.vectors(numbers).sum(axis=0, dtype=np.float64)
        mean: Array = np.round(total / (len(numbers) + _FEW), 5).astype(np.float32)
        return mean

    # -- rows ------------------------------------------------------------------------------------------------------

    def top(self, scores: Array, k: int) -> list[int]:
        """The k best visible numbers with a score above 0, best first; of equals the newer first."""
        hits = np.flatnonzero((scores > 0) & self.mask)
        if len(hits) > k > 0:
            values = scores[hits]
            hits = hits[values >= np.partition(values, len(values) - k)[len(values) - k]]
        # The id decides at last: what other owners have stored moves numbers, and must move no result.
        order = np.lexsort((self.column("ids", hits), -self.column("created", hits), -scores[hits]))
        return [int(number) for number in hits[order[:k]]]

    def row(self, number: int) -> Row:
        """The row of a number (its weights are empty)."""
        piece = self._at(number)
        return piece.segment.row(number - piece.base)

    def rows(self, numbers: Iterable[int]) -> list[Row]:
        """The rows of some numbers, in that order."""
        return [self.row(int(number)) for number in numbers]

    def state(self, number: int) -> str:
        """live, superseded or expired (at the view's time)."""
        piece = self._at(number)
        if piece.successor[number - piece.base]:
            return "superseded"
        return "expired" if piece.expired[number - piece.base] else "live"

    def successor(self, number: int) -> int:
        """Digest of the id that supersedes the row, 0 when none does; `Index.by_digest` finds the row."""
        piece = self._at(number)
        return int(piece.successor[number - piece.base])

    def live(self, numbers: Array) -> Array:
        """bool array: which of the numbers are neither superseded nor expired."""
        if not self._slices:
            return np.zeros(0, bool)
        every = np.concatenate([(piece.successor == 0) & ~piece.expired for piece in self._slices])
        live: Array = every[numbers]
        return live

    def numbers_of(self, ids: Array) -> Array:
        """The visible number of each id digest (uint64), -1 for those this asker may not see."""
        found = np.full(len(ids), -1, np.int64)
        for piece in self._slices:
            places, rows = piece.segment.find(ids)
            seen = piece.mask[rows]
            found[places[seen]] = rows[seen] + piece.base
        return found

    def column(self, name: str, numbers: Array | None = None) -> Array:
        """A numeric column (created, as_of, expires, trust, value, layer, length …) of all or some numbers."""
        if not self._slices:
            return np.zeros(0, np.int64)
        columns = [piece.segment.column[name] for piece in self._slices]
        if numbers is None:
            return np.concatenate(columns)
        found = np.empty(len(numbers), columns[0].dtype)
        where = np.searchsorted([piece.base for piece in self._slices], numbers, "right") - 1
        for at in np.unique(where).tolist():
            here = where == at
            found[here] = columns[at][numbers[here] - self._slices[at].base]
        return found

    def _at(self, number: int) -> _Slice:
        for piece in reversed(self._slices):
            if number >= piece.base:
                return piece
        raise IndexError(number)


def _dots(vectors: Array, rows: Array | None, query: Array) -> Array:
    """int8 rows times a float vector.

    In stacks so small that the BLAS never calls its threads: with other work on the machine they cost ten times
    what they save.
    """
    total = len(vectors) if rows is None else len(rows)
    dots = np.empty(total, np.float32)
    buffer = np.empty((_CHUNK, vectors.shape[1]), np.float32)
    for start in range(0, total, _CHUNK):
        stop = min(start + _CHUNK, total)
        floats = buffer[: stop - start]
        floats[...] = vectors[start:stop] if rows is None else vectors[rows[start:stop]]
        whole = len(floats) // _STACK * _STACK
        stacked = floats[:whole].reshape(-1, _STACK, vectors.shape[1])
        np.matmul(stacked, query, out=dots[start : start + whole].reshape(-1, _STACK))
        dots[start + whole : stop] = floats[whole:] @ query
    return dots


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.float32))


def _slice(
    part: Part,
    base: int,
    owners: Collection[str] | None,
    now_us: int,
    layers: Collection[str] | None,
    states: Collection[str],
    projects: Collection[str] | None,
    sessions: Array | None,
) -> _Slice:
    segment = part.segment
    column = segment.column
    mask = ~part.dead
    for name, allowed in (("owner", owners), ("project", projects)):
        if allowed is not None:
            table = np.array([text in allowed for text in segment.tables[name]], bool)
            if not table.all():
                mask &= table[column[name]]
    if layers is not None:
        table = np.array([layer in layers for layer in LAYERS], bool)
        mask &= table[column["layer"]]
    if sessions is not None:
        mask &= np.isin(column["session"], sessions)
    expired = column["expires"] <= now_us
    successor = part.successor.copy()
    if set(states) != {"live", "superseded", "expired"}:
        superseded = successor != 0
        shown = np.zeros(segment.rows, bool)
        if "superseded" in states:
            shown |= superseded
        if "expired" in states:
            shown |= expired & ~superseded
        if "live" in states:
            shown |= ~(expired | superseded)
        mask &= shown
    return _Slice(segment, base, mask, expired, successor)
