"""JSON that was cut off: what came whole is kept, what was cut is left out."""

from __future__ import annotations

import json
import re
from typing import Any

_DEEPEST = 12
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
_NOTHING = object()


def loads(text: str) -> tuple[Any, bool]:
    """(value, whether it came whole). Raises ValueError where nothing of it did.

    An entry of a list that was cut is left out, because half a row is no row; of an object the members that came
    whole are kept.
    """
    try:
        return json.loads(text, strict=False), True
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        pass
    value, _, whole = _value(text, _after_space(text, 0), 0)
    if value is _NOTHING or not value:
        raise ValueError("no JSON")
    return value, whole


def _value(text: str, at: int, depth: int) -> tuple[Any, int, bool]:
    """(value, end, whole); `_NOTHING` when not even a part of it can be read."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        return _NOTHING, at, False
    except ValueError:
        pass
    else:
        # A number at the very end may have had more digits.
        cut = end == len(text) and text[at : at + 1] not in ("{", "[", '"')
        return (_NOTHING, at, False) if cut else (value, end, True)
    if depth < _DEEPEST and text[at : at + 1] == "{":
        return _object(text, at + 1, depth)
    if depth < _DEEPEST and text[at : at + 1] == "[":
        return _list(text, at + 1, depth)
    return _NOTHING, at, False


def _list(text: str, at: int, depth: int) -> tuple[Any, int, bool]:
    found: list[Any] = []
    while True:
        at = _after_space(text, at)
        value, at, whole = _value(text, at, depth + 1)
        if not whole:
            # The rows of a table that is itself an entry count; a row that was cut does not.
            if not found and isinstance(value, list | dict) and _holds_rows(value):
                found.append(value)
            return found, at, False
        found.append(value)
        at = _after_space(text, at)
        if text[at : at + 1] != ",":
            return found, at, text[at : at + 1] == "]"
        at += 1


def _object(text: str, at: int, depth: int) -> tuple[Any, int, bool]:
    found: dict[str, Any] = {}
    while True:
        at = _after_space(text, at)
        try:
            key, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, at, False
        at = _after_space(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            return found, at, False
        value, at, whole = _value(text, _after_space(text, at + 1), depth + 1)
        if value is not _NOTHING:
            found[key] = value
        if not whole:
            return found, at, False
        at = _after_space(text, at)
        if text[at : at + 1] != ",":
            return found, at + 1, text[at : at + 1] == "}"
        at += 1


def _holds_rows(value: list[Any] | dict[str, Any]) -> bool:
    inside = value if isinstance(value, list) else list(value.values())
    return any(isinstance(one, list | dict) and one for one in inside)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
