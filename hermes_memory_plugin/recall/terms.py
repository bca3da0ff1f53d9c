"""Find many fixed terms in a text at once: the longest at each place, words kept whole."""

from __future__ import annotations

from collections.abc import Iterator
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
        self._by_start: dict[str, tuple[tuple[str, T], ...]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, term: str, value: T) -> None:
        """Add a term, or replace its value."""
        if len(term) < 2:
            return
        others = tuple(pair for pair in self._by_start.get(term[:2], ()) if pair[0] != term)
        self._by_start[term[:2]] = tuple(sorted((*others, (term, value)), key=lambda pair: -len(pair[0])))
        self._size += 1

    def fill(self, pairs: Iterator[tuple[str, T]]) -> None:
        """Add many at once; the first value of a term stays."""
        table: dict[str, dict[str, T]] = {}
        for term, value in pairs:
            if len(term) >= 2:
                table.setdefault(term[:2], {}).setdefault(term, value)
        for start, group in table.items():
            self._by_start[start] = tuple(sorted(group.items(), key=lambda pair: -len(pair[0])))
            self._size += len(group)

    def get(self, term: str) -> T | None:
        """The value of exactly this term."""
        return next((value for text, value in self._by_start.get(term[:2], ()) if text == term), None)

    def items(self) -> Iterator[tuple[str, T]]:
        """Every term with its value."""
        for group in list(self._by_start.values()):
            yield from group

    def find(self, text: str) -> Iterator[Hit[T]]:
        """What stands in the text, left to right, without overlaps."""
        by_start = self._by_start
        skip = 0
        for at, pair in enumerate(map(str.__add__, text, text[1:])):
            if at < skip or (here := by_start.get(pair)) is None:
                continue
            for term, value in here:
                if text.startswith(term, at) and whole(text, at, at + len(term)):
                    skip = at + len(term)
                    yield Hit(at, skip, value)
                    break


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
