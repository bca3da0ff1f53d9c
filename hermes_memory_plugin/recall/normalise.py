"""One written form for text that means the same: width, case, script variant, invisible characters.

`normalise` is idempotent, never raises and takes time linear in its input.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path

# Controls, format and bidi characters, lone surrogates, variation selectors, fillers: they carry no meaning a
# search could use, and hide words from it. White space among them becomes a blank instead.
_BLANK = re.compile("[\t\x0b\x0c\x1c-\x1f\x85\u2028\u2029]|\r\n?")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_RARE_SCRIPT = re.compile("[\U00010a00-\U0001efff]")
_LONG = 1_000
_REMEMBERED = 20_000
_MOST_MARKS = 16


def fold(text: str) -> str:
    """Everything `normalise` does except the case: for readers that need it (camelCase)."""
    return _remembered(text) if len(text) <= _REMEMBERED else _fold(text)


def _fold(text: str) -> str:
    text = _BLANK.sub(_blank, text)
    if text.isascii():
        return _INVISIBLE.sub("", text)
    text = _compose(_INVISIBLE.sub("", text))
    return simplified(_INVISIBLE.sub("", text))


# One row's text is folded by everything that reads it.
_remembered = lru_cache(maxsize=32)(_fold)


def lowered(folded: str) -> str:
    """The second half of `normalise`, for a text that went through `fold`."""
    # Lower case may bring letters that compose again (İ), so both run until neither changes anything.
    for _ in range(3):
        lower = folded.lower()
        if lower == folded:
            break
        folded = _compose(lower)
    return folded


def normalise(text: str) -> str:
    """NFKC, lower case, traditional Chinese to simplified, no invisible characters."""
    return lowered(fold(text))


def simplified(text: str) -> str:
    """Each traditional character by the first simplified one of OpenCC's list."""
    traditional, table = _variants()
    return text.translate(table) if traditional.search(text) else text


def _blank(match: re.Match[str]) -> str:
    return "\n" if match[0][0] in "\r\u2028\u2029\x85" else " "


def _compose(text: str) -> str:
    if text.isascii():
        return text
    if len(text) > _LONG:
        # Ordering marks is quadratic in the length of one run of them: no script needs long runs.
        text = _mark_runs(rare=_RARE_SCRIPT.search(text) is not None).sub(
            lambda run: run[0][:_MOST_MARKS], text
        )
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


@cache
def _mark_runs(*, rare: bool) -> re.Pattern[str]:
    # One class within the first plane is a bitmap; beyond it is a list that every character walks through.
    marks = [code for code in range(0x300, 0x1F000 if rare else 0x10000) if unicodedata.combining(chr(code))]
    return re.compile(f"[{_ranges(marks)}]{{{_MOST_MARKS + 1},}}")


def _ranges(codes: list[int]) -> str:
    out, start, last = [], codes[0], codes[0]
    for code in [*codes[1:], -1]:
        if code != last + 1:
            out.append(chr(start) if start == last else f"{chr(start)}-{chr(last)}")
            start = code
        last = code
    return "".join(out)


@cache
def _variants() -> tuple[re.Pattern[str], dict[int, str]]:
    spec = importlib.util.find_spec("opencc")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    table: dict[int, str] = {}
    for folder in folders:
        try:
            lines = (
                (Path(folder) / "dictionary" / "TSCharacters.txt").read_text(encoding="utf-8").splitlines()
            )
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            traditional, _, simple = line.partition("\t")
            first = simple.split(" ", 1)[0]
            # Characters beyond the first plane are left out: they are no one's daily text, and slow the search tenfold.
            if len(traditional) == 1 and len(first) == 1 and first != traditional < "\U00010000":
                table[ord(traditional)] = first
    for code, simple in table.items():
        table[code] = table.get(ord(simple), simple)
    return re.compile(f"[{_ranges(sorted(table))}]" if table else "(?!)"), table
