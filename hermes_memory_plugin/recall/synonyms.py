"""Words that say the same (``data/synonyms.txt``), for a question whose words are not those of the memory."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from hermes_memory_plugin.recall.terms import Terms


class Group(NamedTuple):
    """A term of the text and what else says it; all normalised."""

    term: str
    others: tuple[str, ...]


def find(text: str) -> list[Group]:
    """The groups whose terms a normalised text holds, each term once."""
    out: dict[str, Group] = {}
    for hit in _terms().find(text):
        term = text[hit.start : hit.end]
        if term not in out:
            out[term] = Group(term, hit.value)
    return list(out.values())


@cache
def groups() -> tuple[tuple[str, ...], ...]:
    """Every group of the file."""
    text = files("hermes_memory_plugin.recall.data").joinpath("synonyms.txt").read_text(encoding="utf-8")
    return tuple(tuple(line.split("|")) for line in text.splitlines() if line and line[0] != "#")


@cache
def _terms() -> Terms[tuple[str, ...]]:
    others: dict[str, dict[str, None]] = {}
    for group in groups():
        for term in group:
            others.setdefault(term, {}).update((other, None) for other in group if other != term)
    terms: Terms[tuple[str, ...]] = Terms()
    terms.fill((term, tuple(found)) for term, found in others.items())
    return terms
