"""Tables that were printed: Markdown, CSV with any of the usual delimiters, and columns set apart by blanks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import Any

Found = tuple[list[str], list[list[Any]]]

_MOST_LINES = 100_000
_LONGEST_LINE = 5_000
_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_NUMBER = re.compile(r"(?!(?:19|20)\d{6}$)[-+]?[\d.,]+%?")  # a day may head a column
_JSON = re.compile(r"[\[{]\s*[\[{\"]")
_DECODER = json.JSONDecoder(strict=False)
_SHAPE = re.compile(r"\[\d+ rows x \d+ columns\]")


def find(text: str) -> Iterator[Found]:
    """(head, rows) of every table of a text, in its order."""
    block: list[str] = []
    for number, line in enumerate(text.splitlines()):
        if number >= _MOST_LINES:
            break
        if line.strip() and len(line) <= _LONGEST_LINE and not _SHAPE.fullmatch(line.strip()):
            block.append(line)
        elif block:
            yield from _of_block(block)
            block = []
    if block:
        yield from _of_block(block)


def json_inside(text: str) -> Iterator[Any]:
    """The JSON values that stand between words, a handful at most."""
    at, found = 0, 0
    for _ in range(20):
        match = _JSON.search(text, at)
        if match is None or found == 5:
            return
        try:
            value, at = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        found += 1
        yield value


def _of_block(lines: list[str]) -> Iterator[Found]:
    if len(lines) < 2:
        return
    for number, line in enumerate(lines[1:], 1):
        if "-" in line and "|" in line + lines[number - 1] and _RULE.fullmatch(line):
            yield from _markdown(lines[number - 1 :])
            return
    for start in range(min(4, len(lines) - 1)):  # words may stand before the head
        for delimiter in (",", "\t", ";", "|"):
            table = _delimited(lines[start:], delimiter)
            if table is not None:
                yield table
    for start in range(min(4, len(lines) - 1)):
        table = _blanks(lines[start:])
        if table is not None:
            yield table


def _markdown(lines: list[str]) -> Iterator[Found]:
    head = _cells(lines[0])
    rows = []
    for line in lines[2:]:
        if "|" not in line:
            break
        cells = _cells(line)
        if len(cells) == len(head):
            rows.append(cells)
    if rows and all(head):
        yield head, rows


def _cells(line: str) -> list[Any]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().strip("*`").strip() for cell in inner.replace("\\|", "¦").split("|")]


def _delimited(lines: list[str], delimiter: str) -> Found | None:
    if delimiter not in lines[0] or delimiter not in lines[1]:
        return None
    parsed: list[list[str]] = []
    try:
        for cells in csv.reader(lines, delimiter=delimiter, skipinitialspace=True):
            parsed.append([cell.strip() for cell in cells])
    except csv.Error:
        return None
    if not parsed or not _is_head(parsed[0], unnamed=True):
        return None
    head = [name or "index" for name in parsed[0]]
    rows: list[list[Any]] = []
    for cells in parsed[1:]:
        if len(cells) != len(head):
            break
        rows.append(list(cells))
    return (head, rows) if rows else None


def _blanks(lines: list[str]) -> Found | None:
    """As pandas prints a frame: the first column may be an index without a name."""
    head = lines[0].split()
    if not _is_head(head):
        return None
    rows: list[list[Any]] = []
    width = 0
    for line in lines[1:]:
        cells = line.split()
        if set(cells) == {"..."} or cells.count("...") == len(cells):
            continue
        if len(cells) not in (len(head), len(head) + 1) or (width and len(cells) != width):
            continue
        width = len(cells)
        rows.append(list(cells))
    if not rows:
        return None
    return (["index", *head] if width > len(head) else head), rows


def _is_head(cells: list[str], *, unnamed: bool = False) -> bool:
    """Whether cells are names of columns: at least two, none a number, each once."""
    named = cells[1:] if unnamed and cells and not cells[0] else cells
    return (
        len(cells) >= 2
        and bool(named)
        and all(name and len(name) <= 60 and not _NUMBER.fullmatch(name) for name in named)
        and len(set(named)) == len(named)
    )
