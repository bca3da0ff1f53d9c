"""JSON as small models write it: in fences, between prose, with trailing commas, single quotes or a missing end."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

LONGEST = 400_000
"""Characters of an answer that are looked at."""

_FENCE = re.compile(r"```[a-zA-Z0-9_-]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(\s*[}\]])', re.DOTALL)


def loads(text: str) -> Any:
    """The first object or array in the text. Raises ValueError when there is none that can be made out."""
    text = _THINKING.sub("", text[:LONGEST]).removeprefix("\ufeff")
    for candidate in _candidates(text):
        for repaired in (candidate, _repaired(candidate), _closed(_repaired(candidate))):
            try:
                found = json.loads(repaired, strict=False)
            except (ValueError, RecursionError):
                found = _literal(repaired)
            if isinstance(found, dict | list):
                return found
    raise ValueError("no JSON object in the answer")


def _candidates(text: str) -> list[str]:
    fenced = [match.strip() for match in _FENCE.findall(text)]
    found = []
    for part in (*fenced, text):
        starts = [at for at in (part.find("{"), part.find("[")) if at >= 0]
        if starts:
            start = min(starts)
            end = max(part.rfind("}"), part.rfind("]"))
            found.append(part[start : end + 1] if end > start else part[start:])
            found.append(part[start:])
    return list(dict.fromkeys(found))


def _repaired(text: str) -> str:
    text = text.replace("“", '"').replace("”", '"') if '"' not in text else text
    text = _COMMENT.sub(lambda match: match[1] or "", text)
    return _TRAILING.sub(lambda match: match[1] or match[2], text)


def _closed(text: str) -> str:
    """The text with what was left open closed: an answer that ran into its limit keeps what it said."""
    open_, quoted, good = _scan(text)
    if not open_:
        return text[:good] if good else text
    # Back to the last complete member where there is one, then close what encloses it.
    head = text[:good] if good else text + ('"' if quoted else "")
    open_, _, _ = _scan(head)
    return head.rstrip().rstrip(",") + "".join(reversed(open_))


def _scan(text: str) -> tuple[list[str], bool, int]:
    """(brackets left open, as their closing ones; whether a string is open; end of the last bracket closed)."""
    open_: list[str] = []
    quoted = escaped = False
    good = 0
    for place, character in enumerate(text):
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "{[":
            open_.append("}" if character == "{" else "]")
        elif character in "}]":
            if not open_ or open_.pop() != character:
                break
            good = place + 1
            if not open_:
                break
    return open_, quoted, good


def _literal(text: str) -> Any:
    """Python's own notation: single quotes, True, None."""
    if len(text) > 100_000:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes Python does not know
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
