"""Characters with their places on a page, from either reader, and the runs of text they form.

Coordinates are points from the top left corner of the page as it is shown.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

_HYPHENS = {"\x02": "-", "\ufffe": "-", "\xad": "-"}
"""What readers give for a hyphen at the end of a line."""
_LIGATURES = "filt"
"""Letters that one glyph may hold twice, all of them in its box."""
_SAMPLE = 300
"""Characters from both ends of a page that say which way its text runs."""
UNKNOWN = "\ufffd"
_SPACES = frozenset(
    " \t\r\n\x0b\x0c\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000\u200b\ufeff\x00"
)


class Glyph(NamedTuple):
    """One character; `spaced` when a space stood before it."""

    char: str
    x0: float
    x1: float
    top: float
    bottom: float
    spaced: bool


@dataclass(slots=True)
class Run:
    """Characters that follow one another on one line; or a table, where `rows` holds its cells."""

    text: str
    x0: float
    x1: float
    top: float
    bottom: float
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def size(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True)
class Sheet:
    """The glyphs of one page."""

    width: float
    height: float
    glyphs: Sequence[Glyph]


def from_pdfium(page: Any) -> Sheet:
    """The glyphs of a pypdfium2 page, in the order they were drawn."""
    import pypdfium2.raw as raw

    textpage = page.get_textpage()
    try:
        handle = textpage.raw
        unicode_of, box_of = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox
        box = raw.FS_RECTF()
        reference = ctypes.byref(box)
        placed = []
        spaced = False
        for place in range(raw.FPDFText_CountChars(handle)):
            code = unicode_of(handle, place)
            char = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else UNKNOWN
            if char in _SPACES and code:
                spaced = True
                continue
            if not box_of(handle, place, reference):
                continue
            placed.append((char if code else UNKNOWN, box.left, box.right, box.bottom, box.top, spaced))
            spaced = False
    finally:
        textpage.close()
    left, bottom, right, top = page.get_bbox()
    return _shown(placed, (left, bottom, right, top), page.get_rotation())


_Placed = tuple[str, float, float, float, float, bool]
"""char, left, right, bottom, top (points from the lower left corner), spaced"""


def _shown(placed: list[_Placed], box: tuple[float, float, float, float], rotation: int) -> Sheet:
    """The page turned as a viewer shows it, or as most of its text runs."""
    left, low, right, high = box
    turn = rotation // 90 % 4 or _turn(placed)
    width, height = right - left, high - low
    if turn % 2:
        width, height = height, width
    if turn == 0:
        upright = [
            Glyph(_HYPHENS.get(char, char), x0 - left, x1 - left, high - top, high - bottom, spaced)
            for char, x0, x1, bottom, top, spaced in placed
        ]
        return Sheet(width, height, upright)
    glyphs = []
    for char, x0, x1, bottom, top, spaced in placed:
        if turn == 1:
            shown = (bottom - low, top - low, x0 - left, x1 - left)
        elif turn == 2:
            shown = (right - x1, right - x0, bottom - low, top - low)
        else:
            shown = (high - top, high - bottom, right - x1, right - x0)
        glyphs.append(Glyph(_HYPHENS.get(char, char), *shown, spaced))
    return Sheet(width, height, glyphs)


def _turn(placed: list[_Placed]) -> int:
    """Quarter turns that bring text which runs up or down the page to run across it."""
    up = down = across = 0
    sample = placed if len(placed) < 2 * _SAMPLE else placed[:_SAMPLE] + placed[-_SAMPLE:]
    for before, after in pairwise(sample):
        size = max(before[2] - before[1], before[4] - before[3])
        dx, dy = after[1] - before[1], after[3] - before[3]
        if after[5] or abs(dx) + abs(dy) > 1.5 * size:
            continue
        if abs(dx) >= abs(dy):
            across += 1
        elif dy > 0:
            up += 1
        else:
            down += 1
    if max(up, down) <= 2 * across + 8:
        return 0
    return 1 if up > down else 3


def from_pdfplumber(page: Any) -> Sheet:
    """The glyphs of a pdfplumber page."""
    left, top = page.bbox[:2]
    glyphs = []
    spaced = False
    for char in page.chars:
        text = char["text"]
        if not text.strip():
            spaced = True
            continue
        glyphs.append(
            Glyph(
                _HYPHENS.get(text, text),
                char["x0"] - left,
                char["x1"] - left,
                char["top"] - top,
                char["bottom"] - top,
                spaced,
            )
        )
        spaced = False
    return Sheet(page.width, page.height, glyphs)


def runs(glyphs: Iterable[Glyph]) -> list[Run]:
    """Glyphs joined as they follow one another; a gap of more than a character ends a run."""
    found: list[Run] = []
    chars: list[str] = []
    x0 = x1 = top = bottom = start = 0.0
    for glyph in glyphs:
        size = bottom - top
        height = glyph.bottom - glyph.top
        gap = glyph.x0 - x1
        same_line = (
            chars
            and abs((glyph.top + glyph.bottom) - (top + bottom)) < 0.9 * min(size, height)
            and height < 2.5 * size
            and size < 2.5 * height
        )
        in_ligature = glyph.char in _LIGATURES and glyph.x0 == start
        again = same_line and glyph.char == chars[-1] and abs(glyph.x1 - x1) < 0.15 * height
        if again and not in_ligature:
            continue  # drawn twice, to look bold
        # Chinese marks are set closer than they are wide.
        follows = gap > -0.5 * height or glyph.x0 > start or in_ligature
        if same_line and follows and gap < max(0.9 * height, 1.0):
            if (glyph.spaced and gap > 0.05 * height) or gap > 0.25 * height:
                chars.append(" ")
            chars.append(glyph.char)
            start, x1 = glyph.x0, max(x1, glyph.x1)
            top, bottom = min(top, glyph.top), max(bottom, glyph.bottom)
            continue
        if chars:
            found.append(Run("".join(chars), x0, x1, top, bottom))
        chars = [glyph.char]
        start = x0 = glyph.x0
        x1, top, bottom = glyph.x1, glyph.top, glyph.bottom
    if chars:
        found.append(Run("".join(chars), x0, x1, top, bottom))
    return found
