"""What people say to an assistant without wanting their memory: chat, moods, general knowledge, any assistant's chores.

The phrases of ``data/asides.txt`` stand for it; `gate` asks how near a message comes to one of them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def phrases() -> tuple[str, ...]:
    """The phrases of the file."""
    text = files("hermes_memory_plugin.recall.data").joinpath("asides.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and line[0] != "#")


def matrix(vector: Any) -> Any:
    """The vectors of all phrases, float32 [n, dimension]; `vector` gives that of one text, or None."""
    import numpy as np

    rows = [found for phrase in phrases() if (found := vector(phrase)) is not None]
    return np.stack(rows) if rows else None
