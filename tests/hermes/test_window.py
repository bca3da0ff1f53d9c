"""The window's size, without ever asking the network on the caller's thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_plugin.hermes.window import SMALLEST, Windows

HOME = Path("home")


def _never(settings: Mapping[str, Any], model: str) -> int:
    raise AssertionError("nobody should look this up")


@pytest.mark.parametrize(
    ("config", "model", "window"),
    [
        ({"model": {"default": "m", "context_length": 200_000}}, "m", 200_000),
        ({"model": {"default": "m", "context_length": "200_000"}}, "m", 200_000),
        ({"model": {"context_length": 128_000}}, "m", 128_000),
        ({"model": {"default": "m", "context_length": 200_000}}, "", 200_000),
        ({}, "", SMALLEST),
        ({"model": 7}, "", SMALLEST),
    ],
)
def test_the_config_says_it(config: dict[str, Any], model: str, window: int) -> None:
    assert Windows(_never).of(HOME, model, config) == window


@pytest.mark.parametrize(
    ("found", "then"), [(1_000_000, 1_000_000), (8_000, SMALLEST), (0, SMALLEST), (-5, SMALLEST)]
)
def test_an_unknown_model_has_the_smallest_window_until_it_is_learned(found: int, then: int) -> None:
    asked: list[tuple[str, str]] = []
    caller = threading.current_thread()
    done = threading.Event()

    def look_up(settings: Mapping[str, Any], model: str) -> int:
        assert threading.current_thread() is not caller
        asked.append((settings["base_url"], model))
        done.set()
        return found

    windows = Windows(look_up)
    config = {"model": {"default": "other", "context_length": 99_000, "base_url": "http://h"}}
    assert windows.of(HOME, "m", config) == SMALLEST
    assert done.wait(10)
    for thread in threading.enumerate():
        if thread.name == "hermes-memory-window":
            thread.join(10)
    assert windows.of(HOME, "m", config) == then
    assert asked == [("http://h", "m")]


def test_a_look_up_that_fails_leaves_the_assumption() -> None:
    failed = threading.Event()

    def look_up(settings: Mapping[str, Any], model: str) -> int:
        failed.set()
        raise OSError("no network")

    windows = Windows(look_up)
    assert windows.of(HOME, "m", {}) == SMALLEST
    assert failed.wait(10)
    assert windows.of(HOME, "m", {}) == SMALLEST
