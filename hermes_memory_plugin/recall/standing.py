"""Standing preferences: the owner's active rules and taboos, given whole at the start of a conversation.

They are apart from relevance: "不碰银行股" matters for every recommendation, whatever words the question uses.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.normalise import normalise

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_row import Row

# Only what the user said himself may rule him.
_ORIGINS = frozenset({"user", "import", ""})


def preferences(
    index: Index,
    keys: frozenset[str] | None,
    *,
    now_us: int | None = None,
    project: str = "",
    shown: Iterable[str] = (),
    limit: int = 10,
) -> list[Row]:
    """The live preferences these owners may see, newest first, without what the host shows anyway (`shown`)."""
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    rows = index.scan(
        keys,
        now_us=now_us,
        layers=("L1", "L2", "L3"),
        kinds=("preference",),
        projects=("", project) if project else ("",),
    )
    seen = {plain(text) for text in shown}
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: row.as_of or row.created, reverse=True):
        words = plain(row.text)
        if (
            row.origin not in _ORIGINS
            or not words
            or any(words in text or text in words for text in seen if text)
        ):
            continue
        seen.add(words)
        kept.append(row)
        if len(kept) == limit:
            break
    return kept


def plain(text: str) -> str:
    """Without spaces and punctuation, so that one rule written twice is seen as one."""
    return "".join(character for character in normalise(text) if character.isalnum())
