"""How much may be injected: token estimates and the two shares of the context window."""

from __future__ import annotations

from dataclasses import dataclass

SLACK = 1.10
"""The estimate errs a few percent either way; the cap keeps this much room."""


def tokens(text: str) -> int:
    """Estimated tokens of `text` (no vocabulary needed; a few percent high on Chinese, more on English).

    1.3 a character of a script that takes three bytes, one for 2.5 characters of the rest.
    """
    characters = len(text)
    wide = (len(text.encode("utf-8", "replace")) - characters) / 2
    return max(0, round(1.3 * wide + (characters - wide) / 2.5))


@dataclass(frozen=True, slots=True)
class Budget:
    """What the block of one turn may cost."""

    tokens: int
    characters: int

    def fits(self, text: str) -> bool:
        return len(text) <= self.characters and tokens(text) * SLACK <= self.tokens


def for_turn(
    window: int,
    *,
    share: float = 0.15,
    later_share: float = 0.04,
    already: int = 0,
    first: bool = True,
    characters: int = 9_500,
) -> Budget:
    """The budget of one turn.

    window       the model's context window, tokens
    share        of the window for everything of ours still alive in the transcript
    later_share  of the window that one turn after the first may add
    already      tokens of ours still alive in the transcript
    characters   what the host takes from one callback before it spills to a file
    """
    left = int(window * share) - already
    if not first:
        left = min(left, int(window * later_share))
    return Budget(max(0, left), max(0, characters))
