"""Secrets masked before anything is written: `[masked:api-key]` instead of the key, never a part of it."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from hermes_memory_plugin.store.mask_find import Span, find_secrets, suspicious
from hermes_memory_plugin.store.mask_personal import personal_kind
from hermes_memory_plugin.store.mask_rules import is_value, kind_of

RULES_VERSION = 2
"""Grows whenever a text masked before may be masked further now."""

_PASSES = 6
_DEEPEST = 300
_FULL_WIDTH = re.compile("[０-９Ａ-Ｚａ-ｚ]")
_NARROWED = {0xFEE0 + code: code for code in range(0x21, 0x7F) if chr(code).isalnum() or chr(code) in "-_.="}


def might_hold_secret(data: str | bytes) -> bool:
    """Whether a text (or JSON, or its UTF-8 bytes) may hold something to mask; a few fast passes, no expression.

    False means `mask_text` leaves it alone. What it lets pass is a random token broken into short pieces that has no
    digit between two letters; among real tokens that is less than one in a thousand.
    """
    return suspicious(_narrow(data.decode("utf-8", "replace") if isinstance(data, bytes) else data))


def mask_text(text: str) -> str:
    """`text` with secrets and personal numbers replaced; masking twice changes nothing more. JSON stays JSON."""
    if len(text) < 6:
        return text
    masked = _mask_plain(text)
    # Escapes such as \\u5bc6 hide telling words, and a masked number needs quotes.
    if (masked != text or "\\u" in text) and text.lstrip()[:1] in ("{", "["):
        return _mask_document(text, masked)
    return masked


def _mask_plain(text: str) -> str:
    for _ in range(_PASSES):
        seen = _narrow(text)
        if not suspicious(seen):
            return text
        spans = find_secrets(seen)
        if not spans:
            return text
        text = _replace(text, spans)
    return text


def _narrow(text: str) -> str:
    """The text with full-width letters and digits as plain ones; every place stays where it is."""
    return text.translate(_NARROWED) if not text.isascii() and _FULL_WIDTH.search(text) else text


def _mask_document(text: str, masked: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return masked
    if "\\u" not in text:
        with contextlib.suppress(ValueError):
            json.loads(masked)
            return masked
    safe = mask_json(value)
    if safe == value:
        return masked
    comma, colon = (", ", ": ") if '": ' in text else (",", ":")
    return json.dumps(
        safe, ensure_ascii="\\u" in text, separators=(comma, colon), indent=2 if "\n" in text else None
    )


def mask_json(value: Any) -> Any:
    """A JSON value with secrets masked in strings and keys; a value under a telling key goes by its key."""
    return _mask(value, 0)


def _mask(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return mask_text(value)
    if depth > _DEEPEST:
        return "[masked:too-deep]" if isinstance(value, dict | list | tuple) else value
    if isinstance(value, dict):
        masked: dict[Any, Any] = {}
        for key, item in value.items():
            item = _mask_named(key, item, depth) if isinstance(key, str) else _mask(item, depth + 1)
            name = mask_text(key) if isinstance(key, str) else key
            while name in masked:
                name = f"{name}'"  # two secrets as keys: neither value is lost
            masked[name] = item
        if isinstance(name := value.get("name", value.get("key")), str) and "value" in value:
            masked["value"] = _mask_named(name, value["value"], depth)
        return masked
    if isinstance(value, list | tuple):
        return [_mask(item, depth + 1) for item in value]
    return value


def _mask_named(name: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | dict):
        return _mask(value, depth + 1)
    if isinstance(value, list | tuple):
        return [
            _mask_named(name, item, depth + 1) if isinstance(item, str | int) else _mask(item, depth + 1)
            for item in value
        ]
    text = value if isinstance(value, str) else str(value)[:64]
    kind = kind_of(name[-80:])
    if kind and is_value(kind, name, text, quoted=True) and not (kind == "password" and " " in text.strip()):
        return (
            text
            if text.startswith("[masked:")
            else f"[masked:{'password' if kind == 'password' else 'secret'}]"
        )
    if label := personal_kind(name, text):
        return f"[masked:{label}]"
    return _mask(value, depth + 1)


def _replace(text: str, spans: list[Span]) -> str:
    spans.sort()
    parts: list[str] = []
    position = 0
    start, end, label = spans[0]
    for begin, stop, name in [*spans[1:], (len(text) + 1, 0, "")]:
        if begin < end:
            end = max(end, stop)
            continue
        parts += (text[position:start], f"[masked:{label}]")
        position = end
        start, end, label = begin, stop, name
    parts.append(text[position:])
    return "".join(parts)
