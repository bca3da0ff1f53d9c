"""Finds what stands on every page, such as running headers, page numbers and notices, by its repetition."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from hermes_memory_plugin.reports.layout import Line

_SHARE = 0.6
_DEEPEST = 0.25
"""Of the page's height: how far in a header or a notice at the foot may reach."""
_MOST_OF_PAGE = 0.5
_EDGE = 0.12
"""Of the page's height: where headers and footers stand."""
_DIGITS = re.compile(r"[\dⅠ-Ⅻ]+|(?<![a-z])[ivx]+(?![a-z])")
_SPACE = re.compile(r"\s+")
_PAGE_NUMBER = re.compile(
    r"(?:第?\d{1,4}页?(?:[/|,，]?共?\d{1,4}页?)?|[-–—·|]*\d{1,4}[-–—·|]*|p(?:age|\.)?\d{1,4}(?:(?:of|/)\d{1,4})?|\d{1,4}of\d{1,4})"
)
_NOTICE = re.compile(
    r"请(?:务必|仔细|您)?.{0,6}(?:阅读|参阅|参见).{0,24}(?:声明|条款|披露|申明|说明|重要提示)|敬请(?:阅读|参阅|关注).{0,20}(?:声明|条款|说明)"
    r"|(?:please )?(?:see|read|refer to).{0,60}(?:disclosures?|disclaimers?|certifications?)",
    re.IGNORECASE,
)


def repeated(pages: Sequence[tuple[float, Sequence[Line]]]) -> set[int]:
    """The ids (`id(line)`) of the lines that are not of their page alone; pages: (height, its lines)."""
    found = {
        id(line)
        for height, lines in pages
        for line in lines
        if _at_edge(line, height) and (_is_notice(line.text) or (len(pages) > 1 and _is_number(line.text)))
    }
    if len(pages) >= 2:
        found |= _on_most(pages)
    return found


def _on_most(pages: Sequence[tuple[float, Sequence[Line]]]) -> set[int]:
    """From the top and from the foot of each page, the lines of the same words (digits apart) as on most pages.

    Most: of all pages, or of the even or the odd ones. A line further in that many pages share is theirs to say.
    """
    where: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, (height, lines) in enumerate(pages):
        for line in lines:
            where[_key(line.text)].append((number, line.top / max(height, 1.0)))
    few = len(pages) < 4
    shared = {key for key, places in where.items() if key and _shared(places, len(pages), few)}
    found: set[int] = set()
    for height, lines in pages:
        ordered = sorted(lines, key=lambda line: line.top)
        gone: list[Line] = []
        head = [line for line in ordered if line.top < _DEEPEST * height]
        foot = [line for line in reversed(ordered) if line.top > (1 - _DEEPEST) * height]
        for way in (head, foot):
            gone.extend(takewhile(lambda line: _key(line.text) in shared, way))
        said = sum(len(line.text) for line in lines)
        # What is most of a page is no header, whatever other pages say.
        if sum(len(line.text) for line in gone) <= _MOST_OF_PAGE * said:
            found.update(map(id, gone))
    return found


def _shared(places: Sequence[tuple[int, float]], pages: int, few: bool) -> bool:
    on = {number for number, _ in places}
    shares = [len(on) / pages]
    if pages >= 6:
        # Left and right pages have headers of their own.
        shares += [sum(n % 2 == side for n in on) / len(range(side, pages, 2)) for side in (0, 1)]
    if len(on) < 2 or max(shares) <= _SHARE:
        return False
    tops = [top for _, top in places]
    # Of two or three pages only what stands in the margin, and always in the same place.
    return not few or (all(map(_edge, tops)) and max(tops) - min(tops) < 0.02)


def _at_edge(line: Line, height: float) -> bool:
    return _edge(line.top / max(height, 1.0))


def _edge(top: float) -> bool:
    return top < _EDGE or top > 1 - _EDGE


def _key(text: str) -> str:
    return _DIGITS.sub("#", _SPACE.sub("", text).lower())


def _is_number(text: str) -> bool:
    return bool(_PAGE_NUMBER.fullmatch(_SPACE.sub("", text).lower()))


def _is_notice(text: str) -> bool:
    return len(text) <= 90 and bool(_NOTICE.search(text))
