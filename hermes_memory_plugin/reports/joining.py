"""Joins the lines of a paragraph into one: hyphenated words come together, Chinese needs no space."""

from __future__ import annotations

import re
from collections.abc import Iterable

WIDE = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\u2018\u2019\u201c\u201d\u2014\u2026"
"""Characters (for a regular expression) that are written without spaces between them."""
WIDE_END = re.compile(f"[{WIDE}]$")
_WIDE_START = re.compile(f"^[{WIDE}]")
_HYPHENATED = re.compile(r"[^\W\d_]{2}-$")
_LOWER = re.compile(r"^[a-zà-öø-ÿ]{2}")
# Words that keep their hyphen when a line ends behind it: "year-on-year", "long-term".
_KEEPS = re.compile(
    r"(?:^|\W)\w+(?:-\w+)+-$|(?:^|\W)(?:self|non|pre|post|long|short|mid|high|low|year|quarter|month|day|on|in|well|cross|full|half|over|ex|co|all|one|two|three|first|second|third|best|cost|cash|year|buy|sell)-$",
    re.IGNORECASE,
)
_BROKEN_NUMBER = re.compile(rf"\d[,，]\n\d{{3}}(?!\d)|[{WIDE}][^\n]{{0,20}}\d\.\n\d")
_SPACE = re.compile(r"\s+")
_UNIT_SPACE = re.compile(r"(?<=\d) (?=[年月日季元亿万倍个家吨%％])|(?<=[年月]) (?=\d)")
_BETWEEN_WIDE = re.compile(f"(?<=[{WIDE}]) (?=[{WIDE}])")


def join(lines: Iterable[str]) -> str:
    """One line of all: no character but white space and the hyphens of divided words is lost."""
    text = ""
    for line in lines:
        line = tidy(line)
        if not line:
            continue
        text = f"{text}{_between(text, line)}{line}" if not _divided(text, line) else text[:-1] + line
    return text


def tidy(line: str) -> str:
    """A line with single spaces, and none where Chinese has none."""
    line = _SPACE.sub(" ", line).strip()
    line = _BETWEEN_WIDE.sub("", line)
    return _UNIT_SPACE.sub("", line)


def _divided(text: str, line: str) -> bool:
    return bool(_HYPHENATED.search(text) and _LOWER.match(line) and not _KEEPS.search(text))


def _between(text: str, line: str) -> str:
    if not text or text.endswith(("-", "/")):
        return ""
    if _BROKEN_NUMBER.search(f"{text[-24:]}\n{line[:5]}"):
        return ""
    if WIDE_END.search(text) or _WIDE_START.match(line):
        return ""
    return " "
