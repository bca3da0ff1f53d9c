"""Host messages as plain text: what the user wrote, and what of ours is still in the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_memory_plugin.recall import block, budget

_MARK = f"<{block.TAG}"


@dataclass(frozen=True, slots=True)
class Alive:
    """Our text that the model still sees."""

    handles: frozenset[str] = frozenset()
    tokens: int = 0


def text_of(content: object) -> str:
    """The text of a message: the content itself, or the text parts of a list (images say nothing)."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = content.get("content", content.get("text", ""))
        return content if isinstance(content, str) else text_of(content)
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        texts = (part if isinstance(part, str) else _part(part) for part in content)
        return "\n".join(text for text in texts if text)
    return ""


def own_words(content: object) -> str:
    """The text without anything we put beside it: what we said is never taken for the user's words again."""
    text = text_of(content)
    return block.strip(text) if _MARK in text else text


def alive(history: Iterable[object]) -> Alive:
    """Our blocks in a history, by their own fences. Hermes 0.19 keeps sent text in `api_content`; before that
    nothing of ours outlives its turn, and nothing is found."""
    handles: set[str] = set()
    tokens = 0
    for message in history:
        if not isinstance(message, Mapping) or message.get("role") != "user":
            continue
        text = text_of(message.get("api_content") or message.get("content"))
        if _MARK in text:
            for found in block.find(text):
                handles.update(found.handles)
                tokens += budget.tokens(found.text)
    return Alive(frozenset(handles), tokens)


def users_words(history: Iterable[object]) -> list[str]:
    """What the user wrote in each message of a history."""
    return [
        own_words(message.get("content"))
        for message in history
        if isinstance(message, Mapping) and message.get("role") == "user"
    ]


def copied(history: Iterable[object]) -> list[dict[str, Any]]:
    """The history as dicts of its own: the host's are live, and nobody may change them."""
    return [dict(message) for message in history if isinstance(message, Mapping)]


def _part(part: object) -> str:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    return ""


def fenced(text: str) -> str:
    """Other text of ours inside the fence that marks it as ours."""
    lines = [f"{block.OURS}{block.harmless(line)}" for line in text.splitlines() if line.strip()]
    return "\n".join([f"<{block.TAG}>", *lines, f"</{block.TAG}>"])
