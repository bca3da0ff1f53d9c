"""The built-in companies, indices, funds and sectors (``data/entities.txt``), parsed and nothing more."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Kind = Literal["stock", "index", "fund", "bond", "sector"]
_FIELDS = re.compile(r" (?=[~=<@] ?\S)")
_HEADER = re.compile(r"\[(\S+?)(?: = ([^:\]]*?))?(?: : (\w+))?\]")


class Name(NamedTuple):
    """A name as written; `weak` ones are ordinary words too."""

    text: str
    weak: bool = False


@dataclass(slots=True)
class Item:
    """An entity: its names (the first is the one to show), sectors and listings elsewhere."""

    id: str
    kind: Kind
    names: list[Name]
    sectors: list[str] = field(default_factory=list)
    twins: list[str] = field(default_factory=list)
    second_listing: bool = False

    @property
    def name(self) -> str:
        return self.names[0].text


def sector_id(name: str) -> str:
    """The entity id of a sector."""
    return f"sector:{name}"


@cache
def load() -> dict[str, Item]:
    """Every entity by id, in the order of the file: larger companies stand before smaller ones of a sector."""
    text = files("hermes_memory_plugin.recall.data").joinpath("entities.txt").read_text(encoding="utf-8")
    items: dict[str, Item] = {}
    sector = ""
    kind: Kind = "stock"
    for line in text.splitlines():
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            header = _HEADER.fullmatch(line)
            if header is None:
                raise ValueError(f"entities.txt: not a sector: {line}")
            first = _name(header[1])
            sector = first.text
            kind = header[3] or "stock"  # type: ignore[assignment]
            names = [first, *map(_name, header[2].split(", ") if header[2] else ())]
            items[sector_id(sector)] = Item(sector_id(sector), "sector", names)
            continue
        code, _, rest = line.partition(" ")
        item = Item(code, kind, [], [sector])
        for part in _FIELDS.split(rest):
            mark = part[0]
            if mark == "~":
                item.twins.append(part[1:])
            elif mark == "@":
                item.sectors += part[2:].split(", ")
            elif mark in "=<":
                item.names += map(_name, part[2:].split(", "))
            else:
                item.names.append(_name(part))
        item.names = list({name.text: name for name in reversed(item.names)}.values())[::-1]
        items[code] = item
        for twin in item.twins:
            items.setdefault(twin, Item(twin, "stock", item.names, item.sectors, [code], second_listing=True))
    return items


@cache
def pinyin() -> list[tuple[str, list[str]]]:
    """(entity id, keys) of ``data/pinyin.txt``: lower case is whole pinyin, upper case initials."""
    text = files("hermes_memory_plugin.recall.data").joinpath("pinyin.txt").read_text(encoding="utf-8")
    return [(entity, keys) for entity, *keys in map(str.split, text.splitlines())]


def _name(text: str) -> Name:
    return Name(text[:-1], True) if text[-1] == "?" else Name(text)
