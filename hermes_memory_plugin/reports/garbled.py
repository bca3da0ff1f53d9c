"""Tells text from what fonts without a right character map leave behind."""

from __future__ import annotations

import re
from functools import cache

HOPELESS = 0.10
"""From this share of bad characters on, a page is not text."""
NOTICED = 0.01
BAD_FONT = "its fonts do not say which characters they show, needs OCR"

_CID = re.compile(r"\(cid:\d+\)")
_LOST = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ufff0-\uffff\ue000-\uf8ff\U000f0000-\U0010ffff]")
_BULLET = re.compile(
    "(?:^|(?<=\\s))[\uf06c\uf06e\uf071\uf075\uf076\uf09f\uf0a7\uf0b7\uf0d8\uf0e8\uf0fc\uf0a8\uf0be](?=\\s|$|[^\ue000-\uf8ff])"
)
_SPACE = re.compile(r"\s+")
_ODD_LATIN = re.compile(
    "[\xa1-\xbf\xc0-\xff\u0152-\u0153\u0160-\u0161\u0178\u017d-\u017e\u0192\u02c6\u02dc\u2020-\u2022\u2030\u2039-\u203a\u2044\u20ac\u2122\u2202-\u2265\ufb01-\ufb02\u2206\u25ca\u03c0\u03a9]"
)
_LETTER_BOTH_SIDES = re.compile("[A-Za-z][\xe0-\xff]|[\xe0-\xff][a-z]")
_HAN = re.compile("[\u3400-\u9fff]")


def bullets(text: str) -> str:
    """The private signs of symbol fonts at the head of a line, written as bullets."""
    return _BULLET.sub("•", text)


def share(text: str) -> float:
    """The share of characters that cannot be what the page shows, 0 to 1."""
    text = _SPACE.sub("", bullets(text))
    if not text:
        return 0.0
    cids = _CID.findall(text)
    text = _CID.sub("", text)
    lost = len(_LOST.findall(text)) + len(cids)
    odd = _ODD_LATIN.findall(text)
    # A word of French has letters beside its accents; Chinese read as Latin has a run of them.
    if len(odd) > 0.2 * len(text) and len(_LETTER_BOTH_SIDES.findall(text)) < 0.5 * len(odd):
        lost += len(odd)
    han = _HAN.findall(text)
    if len(han) >= 20:
        rare = sum(1 for one in han if one not in common())
        if rare > 0.2 * len(han):
            lost += rare
    return min(1.0, lost / (len(text) + len(cids)))


def without_lost(text: str) -> str:
    """The text without characters that say nothing."""
    return _LOST.sub("", _CID.sub("", bullets(text)))


@cache
def common() -> frozenset[str]:
    """The Chinese characters in everyday use, simplified and traditional, and those of Japanese."""
    found = set()
    for encoding, rows in (
        ("gb2312", range(0xB0, 0xF8)),
        ("big5", range(0xA4, 0xC7)),
        ("euc_jp", range(0xB0, 0xD0)),
    ):
        for high in rows:
            for low in range(0x40, 0xFF):
                try:
                    found.add(bytes((high, low)).decode(encoding))
                except UnicodeDecodeError:
                    continue
    return frozenset(found)
