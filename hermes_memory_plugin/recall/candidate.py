"""A row on its way into a recall, and what came of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hermes_memory_plugin.recall.answer import Cut
from hermes_memory_plugin.recall.index_row import Row
from hermes_memory_plugin.recall.normalise import normalise

_READ = 1_200


@dataclass
class Candidate:
    """A row on its way up or out."""

    number: int
    row: Row
    score: float
    words: float
    cosine: float
    coverage: float
    """Which share of the question's content, by idf, the row holds."""
    holds: frozenset[str] = frozenset()
    """The content tokens it holds."""
    state: str = "live"
    whom: float = 0.0
    """Which share of the question's content, by idf, is the names of people and things in it."""
    named: bool = False
    """It speaks of an entity the question names."""
    answers: bool = False
    """It holds a figure, period or identifier the question asks for."""
    off: bool = False
    """Something speaks against it: another period, metric or identifier, the opposite of what was asked."""
    reasons: list[str] = field(default_factory=list)
    likeness: float = 0.0
    """What being alike adds to its place among others, and to nothing else (see `likeness`)."""
    later: Row | None = None
    """The row that stands in its place, when the question asked for its time."""
    contradicts: Row | None = None
    """Another row of the same key that stands too, with another value."""

    @cached_property
    def normal(self) -> str:
        """The beginning of its text, normalised."""
        return normalise(self.row.text[:_READ])

    @cached_property
    def plain(self) -> str:
        """The same without blanks, to tell whether two rows are one statement."""
        return "".join(self.normal.split())

    @property
    def rank(self) -> float:
        """What rows are ordered by. The floor, and what a row must reach beside the best, go by the score alone."""
        return self.score + self.likeness

    @property
    def at(self) -> int:
        """When it was true."""
        return self.row.as_of if self.row.as_of is not None else self.row.created

    @property
    def worded(self) -> bool:
        """Whether it holds a word of the question, and not just its period: half of all rows are of this year."""
        return any(token[0] != "~" for token in self.holds)

    def facet(self, name: str) -> frozenset[str]:
        """Its entities, sectors, metrics or periods."""
        return frozenset(self.row.extra.get(name) or ())


@dataclass(frozen=True, slots=True)
class Found:
    """Rows in the order of their worth, and those that were left out with the reason."""

    rows: tuple[Candidate, ...] = ()
    cut: tuple[Cut, ...] = ()
    weaker: int = 0
    """Related rows that did not earn their place."""
    aside: bool = False
    """The message wants nothing of a memory: not even standing preferences belong beside it."""
