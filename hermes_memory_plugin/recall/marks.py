"""Identifiers in running text: versions, error codes, paths, snake_case names, numbers without a unit.

They are names, not quantities: 1.2.3 is not 1.2.13, ERR_5021 is not ERR_5012, session_store.ts is not session_score.ts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARK = re.compile(
    r"(?<![a-z0-9_.])(?P<path>[~.]?(?:[a-z0-9_.-]*/)+[a-z0-9_-]*\.?[a-z0-9_.-]*[a-z0-9_])"
    r"|(?<![a-z0-9_.])v?(?P<version>\d+(?:\.\d+){1,3}(?:[-.]?(?:rc|beta|alpha)\d*)?)(?![a-z0-9_%]|\s?[%万亿元倍块美港个]|\.\d)"
    r"|(?<![a-z0-9_.,$¥-])(?P<number>\d{3,12})(?![a-z0-9_%,]|\.\d|\s?(?:[%万亿元倍块股年月日手张吨人次家个米辆台点百千]|bps?\b|million|billion|yuan|usd|shares))"
    r"|(?<![a-z0-9_-])(?P<code>[a-z0-9_]+\.(?:py|js|ts|tsx|go|rs|c|h|cpp|java|md|json|yaml|yml|toml|sh|sql|css|html|pdf|xlsx?|csv|txt)|[a-z]{1,8}[-_#]?\d{2,}[a-z0-9]*|[a-z]+(?:_[a-z0-9]+)+)(?![a-z0-9_-])"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_PERIOD = re.compile(r"[qh][1-4]|fy\d\d(?:\d\d)?|\d[qh]\d\d")
_AHEAD = re.compile(r"[\d_/]|\.[a-z]{1,4}\b")


def find(text: str) -> dict[str, str]:
    """{identifier: its kind} of a normalised text."""
    found: dict[str, str] = {}
    if not _AHEAD.search(text):
        return found
    for match in _MARK.finditer(text):
        kind = str(match.lastgroup)
        mark = match[kind].strip(".-")
        if (kind == "number" and _YEAR.fullmatch(mark)) or (kind == "code" and _PERIOD.fullmatch(mark)):
            continue
        if kind == "path" and not re.search(r"[a-z]", mark):
            continue
        found[mark] = kind
    return found


def agree(one: str, other: str, kind: str) -> bool:
    """Whether two identifiers of a kind mean the same thing: 1.2 and 1.2.3 do, a path and its end do."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if kind == "version":
        return long.startswith(f"{short}.")
    if kind in ("path", "code"):
        return long.endswith(f"/{short}") or (kind == "path" and long.startswith(f"{short}/"))
    return False


def compare(asked: dict[str, str], told: dict[str, str]) -> str:
    """ "same" when the text holds an identifier that was asked for, "other" when it holds another of that kind, else ""."""
    other = False
    for mark, kind in asked.items():
        for own, own_kind in told.items():
            if _kin(kind, own_kind):
                if agree(mark, own, "path" if "path" in (kind, own_kind) else kind):
                    return "same"
                other = True
    return "other" if other else ""


def lookalikes(asked: Iterable[str], entities: Iterable[str]) -> bool:
    """Whether one of the numbers asked for only looks like the code of one of these entities."""
    digits = {entity.partition(".")[0] for entity in entities}
    return any(digit in mark for mark in asked for digit in digits if digit.isdigit() and len(digit) >= 5)


def _kin(one: str, other: str) -> bool:
    return one == other or {one, other} == {"path", "code"}
