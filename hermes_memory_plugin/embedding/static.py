"""The built-in Chinese-English word table: 74,000 words of 256 numbers, NumPy only, no model at run time.

A text's vector is the sum of its words' rows, at unit length. Chinese is cut by longest match with the
vocabulary, English by word (else its stem) and two-word phrase; stop words and unknown words add nothing.
bench/distil_static.py makes the table, NOTICE names what it was made from.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_plugin.embedding.errors import EmbedderUnavailable
from hermes_memory_plugin.embedding.threads import load_numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
LONGEST_TEXT = 32_768
"""Characters of a text that count; what comes after them says little that is new."""

_RUN = re.compile(r"[a-z0-9]+(?:\.[0-9]+)?|[\u3400-\u9fff]+")
_HAN = "\u3400"
_LONGEST_WORD = 8
_LONGEST_STEMMED = 32
_BLOCK = 4_096
# Part of the table: its rows were fitted to texts without these words.
_STOP_WORDS = """
a about after all also am an and any are as at be because been but by can could did do does for from had has have he
her hers him his how i if in into is it its just me my no not of on or our out she so some than that the their them
then there they this to too up us was we were what when where which who why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())


class StaticTable:
    """An `Embedder`; deterministic, thread-safe, about 10 µs a question.

    `words` are sorted, `order` has the row of each: rows lie by frequency, so that few pages are ever read.
    A text without a known word has the zero vector: near to nothing, instead of near to something by chance.
    """

    def __init__(
        self,
        words: Sequence[str],
        order: NDArray[np.int32],
        rows: NDArray[np.int8],
        scale: NDArray[np.float32],
        *,
        normalise: Callable[[str], str],
        stem: Callable[[str], str] | None = None,
        name: str = "static",
    ) -> None:
        self.name = name
        self.dimension = int(rows.shape[1])
        # Cut into small dictionaries when they are asked for: one of all words takes 15 ms of a cold start.
        self._words = words
        self._order = order
        self._beginning: dict[str, dict[str, int]] = {}
        self._rows = rows
        self._scale = scale
        self._normalise = normalise
        self._stem = stem or _snowball

    @classmethod
    def load(
        cls, normalise: Callable[[str], str], *, stem: Callable[[str], str] | None = None, folder: Path = DATA
    ) -> StaticTable:
        """Map the table; `normalise` must be the one the texts of the index go through, `stem` Snowball's.

        Raises EmbedderUnavailable when a file is missing or damaged.
        """
        load_numpy()
        import numpy as np

        try:
            scale = np.load(folder / "scale.npy")
            # A plain view: indexing a memmap object itself is ten times slower.
            rows = np.asarray(np.load(folder / "vectors.npy", mmap_mode="r"))
            order = np.load(folder / "order.npy")
            words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(f"{folder} cannot be read: {error}") from error
        if rows.ndim != 2 or rows.dtype != np.int8 or not len(words) == len(order) == len(rows) == len(scale):
            raise _damaged(f"the files in {folder} do not belong together")
        name = f"static-zh-en:{zlib.crc32(scale.tobytes()):08x}"
        return cls(words, order, rows, scale.astype(np.float32), normalise=normalise, stem=stem, name=name)

    def query(self, text: str) -> NDArray[np.float32]:
        """float32 [256] of unit length, or zeros."""
        return _unit(self.pooled(text))

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 [len(texts), 256]."""
        import numpy as np

        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for at, text in enumerate(texts):
            out[at] = self.query(text)
        return out

    def rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """What an index keeps: int8 [n, 256] and a factor for each row (see `quantise`)."""
        return quantise(self.passages(texts))

    def pooled(self, text: str) -> NDArray[np.float32]:
        """The sum before it gets unit length: add these up, weighted, for a row with its neighbours."""
        import numpy as np

        found = self.ids(self._normalise(text[:LONGEST_TEXT]))
        total = np.zeros(self.dimension, dtype=np.float32)
        for start in range(0, len(found), _BLOCK):
            block = np.array(found[start : start + _BLOCK], dtype=np.intp)
            # einsum stays on this thread, where a matrix product may wake a pool.
            total += np.einsum("i,ij->j", self._scale[block], self._rows[block].astype(np.float32))
        return total

    def ids(self, normalised: str) -> list[int]:
        """The rows of a text, in order, repeated as often as their words occur."""
        out: list[int] = []
        previous = ""
        for match in _RUN.finditer(normalised):
            run = match[0]
            if run >= _HAN:
                self._longest(run, out)
                previous = ""
                continue
            row = None
            if run not in _STOP:
                row = self._row(run)
                if row is None and len(run) <= _LONGEST_STEMMED and run.isalpha():
                    row = self._row(self._stem(run))
            if row is not None:
                out.append(row)
            if previous and (row := self._row(f"{previous} {run}")) is not None:
                out.append(row)
            previous = run
        return out

    def _longest(self, run: str, out: list[int]) -> None:
        at, end = 0, len(run)
        while at < end:
            beginning = self._beginning.get(run[at])
            if beginning is None:
                beginning = self._cut(run[at])
            for size in range(min(_LONGEST_WORD, end - at), 0, -1):
                row = beginning.get(run[at : at + size])
                if row is not None:
                    out.append(row)
                    at += size
                    break
            else:
                at += 1

    def _row(self, word: str) -> int | None:
        key = word[:2]  # Latin words: by two letters, a letter alone has thousands
        beginning = self._beginning.get(key)
        return (self._cut(key) if beginning is None else beginning).get(word)

    def _cut(self, key: str) -> dict[str, int]:
        low = bisect_left(self._words, key)
        high = bisect_left(self._words, f"{key}\U0010ffff", low)
        found = dict(zip(self._words[low:high], self._order[low:high].tolist(), strict=True))
        self._beginning[key] = found
        return found


def quantise(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """int8 rows and a float16 factor each: ``factor * (row @ query)`` is the cosine. A zero row has factor 0."""
    import numpy as np

    most = np.abs(vectors).max(axis=1, initial=0.0)
    rows = np.rint(vectors * (127.0 / np.where(most == 0.0, 1.0, most))[:, None]).astype(np.int8)
    # By the length after rounding, so that rounding turns a vector but never shortens it.
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    factor = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return rows, factor.astype(np.float16)


def quantised(vector: NDArray[np.float32]) -> tuple[NDArray[np.int8], float]:
    """`quantise` of one vector that is not zero, in half the time: rows come one by one."""
    import numpy as np

    row = np.rint(vector * (127.0 / np.abs(vector).max())).astype(np.int8)
    wide = row.astype(np.int64)
    return row, float(np.float16(1.0 / float(wide @ wide) ** 0.5))


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = float((vector * vector).sum()) ** 0.5
    return vector / vector.dtype.type(length) if length > 1e-9 else vector * vector.dtype.type(0)


@lru_cache(maxsize=65_536)
def _snowball(word: str) -> str:
    import snowballstemmer

    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem


def _damaged(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        "static", reason, "Install the package anew: pip install --force-reinstall hermes-memory-plugin."
    )
