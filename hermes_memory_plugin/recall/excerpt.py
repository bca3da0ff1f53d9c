"""The part of a long passage that speaks to a question; of a table its heads and the rows that do."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hermes_memory_plugin.recall import block, metrics
from hermes_memory_plugin.recall.normalise import normalise

_PIECE = re.compile(r".+?(?:\n|[。！？；]+|[.!?](?=\s)|$)|\n", re.DOTALL)
_RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$", re.MULTILINE)
_ROOM = 20
"""Characters that must be left for anything but the heads of a table."""


def excerpt(text: str, wanted: Collection[str], characters: int) -> str:
    """At most so many characters of `text`: the run of sentences or rows that holds most of the tokens `wanted`."""
    if len(text) <= characters:
        return text
    head = ""
    if rule := _RULE.search(text):
        head = text[: rule.end()] + "\n"
        if len(head) + _ROOM > characters:  # the caption gives way; without the heads a row says nothing
            start = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
            head = text[start : rule.end()] + "\n"
        if len(head) + _ROOM > characters:
            head = ""
    body = text[rule.end() :].lstrip("\n") if rule and head else text
    pieces = _PIECE.findall(body)
    start, stop = _best(pieces, wanted, characters - len(head) - 2)
    shown = "".join(pieces[start:stop]).strip()
    if start and not head:
        shown = "…" + shown
    return head + block.cut(shown + ("…" if stop < len(pieces) else ""), characters - len(head))


def _best(pieces: Sequence[str], wanted: Collection[str], room: int) -> tuple[int, int]:
    """The run of pieces within `room` that holds most of the tokens; the first of several, and one piece at least."""
    held = [_held(one, wanted) for one in pieces]
    best, where = -1, (0, 1)
    for start in range(len(pieces)):
        found: set[str] = set()
        length, stop = 0, start
        while stop < len(pieces) and (stop == start or length + len(pieces[stop]) <= room):
            length += len(pieces[stop])
            found |= held[stop]
            stop += 1
        if len(found) > best:
            best, where = len(found), (start, stop)
    return where


def _held(piece: str, wanted: Collection[str]) -> set[str]:
    normal = normalise(piece)
    named = {f"#{one}" for one in metrics.find(normal)} if any(one[:1] == "#" for one in wanted) else set()
    return {one for one in wanted if one in named or (one[:1] not in "@%#~=" and one in normal)}
