"""Numbers by their size, however they are written: 1741亿, 174,144百万元 and 174.1 billion are one token.

A token is the number to three digits, ``≈1.74e+11``, a share with its sign, ``≈30%``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

DIGITS = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
UNITS = {"十": 10, "百": 100, "千": 1_000}
SCALES = {
    "万亿": 1e12, "千亿": 1e11, "百亿": 1e10, "十亿": 1e9, "亿": 1e8, "千万": 1e7, "百万": 1e6, "十万": 1e5,
    "万": 1e4, "千": 1e3, "百": 1e2, "trillion": 1e12, "tn": 1e12, "billion": 1e9, "bn": 1e9, "b": 1e9,
    "million": 1e6, "mn": 1e6, "mm": 1e6, "m": 1e6, "thousand": 1e3, "k": 1e3,
}  # fmt: skip
_SCALE = "|".join(sorted(SCALES, key=len, reverse=True))
_NUMBER = re.compile(
    r"(?P<share>百分之)(?P<of>[零〇一二两三四五六七八九十百]+(?:点[零〇一二三四五六七八九]+)?|\d+(?:\.\d+)?)"
    r"|(?<![\d.a-z_/-])(?P<plain>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"(?:\s?(?P<percent>%|个百分点|percent\b|pct\b)|(?P<tenths>成半?)(?![立交本员功为长品都])|\s?(?P<scale>{_SCALE})(?![a-z]))?(?![\d_a-z/-])"
    r"|(?P<han>[零〇一二两三四五六七八九十百千万亿]{2,})(?P<han_percent>个百分点)?"
    r"|(?P<han_tenths>[一二三四五六七八九])(?P<half>成半?)(?![立交本员功为长品都])"
)
_DIGIT_AHEAD = re.compile(r"\d|[一二两三四五六七八九十百千万亿零]")


class Value(NamedTuple):
    """A number and where it stands."""

    token: str
    start: int
    end: int


def find(text: str) -> Iterator[Value]:
    """The numbers of a normalised text that have a size worth comparing: from 100 on, with a scale, or a share."""
    if not _DIGIT_AHEAD.search(text):
        return
    for match in _NUMBER.finditer(text):
        token = _token(match)
        if token:
            yield Value(token, *match.span())


def _token(match: re.Match[str]) -> str:
    if match["share"]:
        value = chinese(match["of"])
        return _share(value) if value is not None else ""
    if match["han_tenths"]:
        return _share(10.0 * DIGITS[match["han_tenths"]] + (5 if match["half"] == "成半" else 0))
    if match["han"]:
        value = chinese(match["han"])
        if value is None:
            return ""
        return _share(value) if match["han_percent"] else _sized(value) if value >= 100 else ""
    digits = match["plain"].replace(",", "")
    value = float(digits)
    if match["percent"]:
        return _share(value)
    if match["tenths"]:
        return _share(10 * value + (5 if match["tenths"] == "成半" else 0)) if value < 10 else ""
    if match["scale"]:
        return _sized(value * SCALES[match["scale"]])
    bare = digits == match["plain"] and "." not in digits
    if bare and (
        len(digits) in (5, 6) or len(digits) > 7 or (len(digits) == 4 and digits[:2] in ("19", "20"))
    ):
        return ""  # a code, a telephone number or a year
    return _sized(value) if value >= 100 else ""


def _sized(value: float) -> str:
    return f"≈{value:.2e}" if value else ""


def _share(value: float) -> str:
    return f"≈{value:.3g}%"


def chinese(text: str) -> float | None:
    """A Chinese numeral as a number: 一千二百 → 1200; None for what is no number (百亿 alone, 千万)."""
    if text[0].isdigit():
        return float(text)
    whole, _, rest = text.partition("点")
    if whole[0] not in DIGITS and whole[0] != "十":
        return None
    total = section = digit = 0.0
    for character in whole:
        if character in DIGITS:
            digit = 10 * digit + DIGITS[character] if digit else float(DIGITS[character])
        elif character in UNITS:
            section += (digit or 1) * UNITS[character]
            digit = 0
        else:
            scale = 1e4 if character == "万" else 1e8
            total = (total + section + digit) * scale
            section = digit = 0
    value = total + section + digit
    return value + (float("0." + "".join(str(DIGITS[one]) for one in rest)) if rest else 0)
