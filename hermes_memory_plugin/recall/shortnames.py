"""Short names several companies bear: 平安 is the bank where net interest margins are spoken of, else the insurer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hermes_memory_plugin.recall.vocabulary import spoken_of

_LISTED = re.compile(r"(?:^|[、和与跟及,，/])([\u3400-\u9fff]{2,4})(?=[、和与跟及,，/])")
_LIST_AHEAD = re.compile(r"[、,，/].*[、和与跟及,，/]")
Sectors = Mapping[str, tuple[str, ...]]


class Bearers:
    """Which companies' names begin, or end, with two characters."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._heads: dict[str, dict[str, None]] = {}
        for name, entity in names:
            self.add(name, entity)

    def add(self, name: str, entity: str) -> None:
        """One more bearer of the beginning (or end) of that name."""
        if len(name) < 3 or name.isascii():
            return
        heads = (name[:2], name[2:]) if name.startswith("中国") and len(name) == 4 else (name[:2],)
        for head in heads:
            self._heads[head] = {**self._heads.get(head, {}), entity: None}

    def meant(self, text: str, start: int, end: int, entity: str, sectors: Sectors) -> str:
        """The id the short name means by the words of the text; "" when they do not tell."""
        name = text[start:end]
        if len(name) != 2 or name.isascii() or entity.startswith("sector:"):
            return ""
        rest = f"{text[:start]} {text[end:]}"
        fitting = [
            other
            for other in dict.fromkeys((entity, *self._heads.get(name, ())))
            if spoken_of(rest, sectors.get(other, ()))
        ]
        return fitting[0] if len(fitting) == 1 else ""

    def listed(self, text: str, found: Sequence[str], sectors: Sectors) -> Iterator[tuple[int, int, str]]:
        """Names in a row with known companies (招行、宁波、兴业) that mean the one of the same trade."""
        known = [set(sectors.get(entity, ())) for entity in found if entity in sectors]
        if not known or not _LIST_AHEAD.search(text):
            return
        trade = set.intersection(*known)
        for match in _LISTED.finditer(text):
            name = match[1]
            fitting = [
                entity
                for entity in self._heads.get(name[:2], ())
                if len(name) == 2 and trade & set(sectors.get(entity, ()))
            ]
            if len(fitting) == 1 and fitting[0] not in found:
                yield match.start(1), match.end(1), fitting[0]
