"""How much may be injected."""

from __future__ import annotations

import pytest

from hermes_memory_plugin.recall import budget


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("", 0, 0), ("贵州茅台的市盈率", 8, 12), ("the price to earnings ratio", 6, 12), ("a" * 1000, 300, 500)],
)
def test_tokens_are_estimated_on_the_safe_side(text: str, low: int, high: int) -> None:
    assert low <= budget.tokens(text) <= high


@pytest.mark.parametrize(
    ("already", "first", "expected"),
    [
        pytest.param(0, True, 9_600, id="the first turn has the whole share"),
        pytest.param(0, False, 2_560, id="a later turn adds at most its own share"),
        pytest.param(9_000, False, 600, id="all of ours that is still there counts"),
        pytest.param(20_000, False, 0, id="never below nothing"),
    ],
)
def test_the_budget_is_over_the_live_transcript(already: int, first: bool, expected: int) -> None:
    assert budget.for_turn(64_000, already=already, first=first).tokens == expected


def test_a_block_over_the_hosts_characters_does_not_fit() -> None:
    turn = budget.for_turn(1_000_000, characters=100)
    assert turn.fits("x" * 100) and not turn.fits("x" * 101)
