"""Any Python value as compact UTF-8 JSON, secrets masked; nothing a tool returns makes it raise."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from hermes_memory_plugin.store.mask import mask_json, might_hold_secret

_DEEPEST = 100  # nested containers; a reader deep in somebody's stack must still be able to parse them
_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
# Lone surrogates have no UTF-8; escaped, they survive.
_ESCAPED = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def encode(
    value: dict[str, Any], *, mask: bool = False, redact: Callable[[str], str] | None = None
) -> tuple[dict[str, Any], bytes]:
    """(the value as stored, its JSON). Values JSON does not know become text, and so do keys, NaN and infinities."""
    try:
        text = _PLAIN.encode(value)
        if _too_deep(value):
            raise RecursionError
    except (TypeError, ValueError, RecursionError):
        value = _plain(value, 0)
        text = _PLAIN.encode(value)
    if mask and (redact is not None or might_hold_secret(text)):
        value = mask_json(json.loads(text))
        if redact is not None:
            value = _each_text(value, redact)
        text = _PLAIN.encode(value)
    try:
        return value, text.encode()
    except UnicodeEncodeError:
        return value, _ESCAPED.encode(value).encode()


def _too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list | tuple)]
        if not level:
            return False
    return True


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [_plain(item, depth + 1) for item in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return _text(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(_plain(key, _DEEPEST))


def _integer(value: int) -> int | str:
    try:
        str(value)
    except ValueError:  # more digits than Python is willing to write
        return hex(value)
    return value


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return value
