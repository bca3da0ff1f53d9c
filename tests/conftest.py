"""What several tests share: a Hermes home of their own and the memory in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from hermes_memory_plugin import Memory

# A build says the same of the same tree; new examples are tried where people work.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

# Single-threaded maths: on two cores a second BLAS thread only spins.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty Hermes home."""
    folder = tmp_path / "hermes"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    """The memory of that home, open."""
    with Memory.open(home) as opened:
        yield opened
