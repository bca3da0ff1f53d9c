"""A memory behind the page, and a browser's half of the talk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hermes_memory_plugin import Memory
from hermes_memory_plugin.web.app import build

TOKEN, PORT = "a-token-of-this-test", 8123
ORIGIN = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty memory."""
    home = tmp_path / "hermes"
    home.mkdir()
    with Memory.open(home) as memory:
        yield memory


@pytest.fixture
def stranger(memory: Memory) -> TestClient:
    """Somebody on this machine who has no token."""
    return TestClient(build(memory, token=TOKEN, port=PORT), base_url=ORIGIN, follow_redirects=False)


@pytest.fixture
def browser(stranger: TestClient) -> TestClient:
    """The browser that opened the address with the token."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 303
    return stranger
