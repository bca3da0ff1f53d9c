"""Find many fixed terms in a text at once: the longest at each place, words kept whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, count, pairwise
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Hit(NamedTuple, Generic[T]):
    """A term found in a text."""

    start: int
    end: int
    value: T


class Terms(Generic[T]):
    """Terms of two characters or more with a value each; texts and terms are normalised.

    A term that begins or ends with a Latin letter or digit matches only at the edge of such a word. Adding while
    another thread searches is safe: it sees the term or does not.
    """

    def __init__(self) -> None:
        # By their first two characters: the lengths there are, longest first, and the terms.
        self._by_start: dict[tuple[str, str], tuple[tuple[int, ...], dict[str, T]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, term: str, value: T) -> None:
        """Add a term, or replace its value."""
        if len(term) < 2:
            return
        _, others = self._by_start.get((term[0], term[1]), ((), {}))
        self._size += term not in others
        self._by_start[term[0], term[1]] = _group({**others, term: value})

    def fill(self, pairs: Iterator[tuple[str, T]]) -> None:
        """Add many at once; the first value of a term stays."""
        table: dict[tuple[str, str], dict[str, T]] = {}
        for term, value in pairs:
            if len(term) >= 2:
                table.setdefault((term[0], term[1]), {}).setdefault(term, value)
        for start, group in table.items():
            self._by_start[start] = _group(group)
            self._size += len(group)

    def get(self, term: str) -> T | None:
        """The value of exactly this term."""
        group = self._by_start.get((term[0], term[1])) if len(term) >= 2 else None
        return group[1].get(term) if group else None

    def items(self) -> Iterator[tuple[str, T]]:
        """Every term with its value."""
        for _, group in list(self._by_start.values()):
            yield from group.items()

    def find(self, text: str) -> Iterator[Hit[T]]:
        """What stands in the text, left to right, without overlaps."""
        by_start = self._by_start
        skip = 0
        # Most pairs begin no term: they are passed over without a step of Python each.
        for at in compress(count(), map(by_start.__contains__, pairwise(text))):
            if at < skip:
                continue
            lengths, group = by_start[text[at], text[at + 1]]
            for length in lengths:
                term = text[at : at + length]  # shorter at the end of the text
                if term in group and whole(text, at, at + len(term)):
                    skip = at + len(term)
                    yield Hit(at, skip, group[term])
                    break


def _group(terms: dict[str, T]) -> tuple[tuple[int, ...], dict[str, T]]:
    return tuple(sorted({len(term) for term in terms}, reverse=True)), terms


def whole(text: str, start: int, end: int) -> bool:
    """Whether the stretch does not cut a Latin word or a number."""
    first, last = text[start], text[end - 1]
    if (
        first.isascii()
        and first.isalnum()
        and start
        and text[start - 1].isascii()
        and text[start - 1].isalnum()
    ):
        return False
    return not (
        last.isascii() and last.isalnum() and end < len(text) and text[end].isascii() and text[end].isalnum()
    )
