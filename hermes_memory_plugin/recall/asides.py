"""What people say to an assistant without wanting their memory: chat, moods, general knowledge, any assistant's chores.

The phrases of ``data/asides.txt`` stand for it, those of ``data/matters.txt`` for what people do want remembered. A
message that is nearer to one of the first than to all of the second is an aside, as far as it is near (see `gate`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def phrases(name: str = "asides") -> tuple[str, ...]:
    """The phrases of a file: asides or matters."""
    text = files("hermes_memory_plugin.recall.data").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and line[0] != "#")


class Asides:
    """The vectors of all phrases; `vector` gives that of one text, or None."""

    def __init__(self, vector: Callable[[str], Any]) -> None:
        import numpy as np

        some = {name: [vector(phrase) for phrase in phrases(name)] for name in ("asides", "matters")}
        self._asides, self._matters = (
            np.stack([row for row in rows if row is not None]) for rows in some.values()
        )

    def near(self, vector: Any) -> float:
        """How near a message comes to the nearest aside; 0 when something people want remembered is nearer."""
        aside, matter = float((self._asides @ vector).max()), float((self._matters @ vector).max())
        return aside if aside > matter else 0.0
