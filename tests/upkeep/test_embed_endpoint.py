"""An OpenAI-compatible endpoint as encoder: whatever it answers, recall by words goes on and the status says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_plugin import Memory
from hermes_memory_plugin.upkeep.embed import EmbeddingBehind
from tests.embedding.conftest import Scripted, send, vectors
from tests.upkeep.embed_lab import configure, held, texts

Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]
LOANS = "招商银行的不良贷款率下降到0.95%"


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.stop()


def use(home: Path, server: Scripted, **more: Any) -> None:
    configure(home, backend="openai", base_url=server.url, model="m", attempts=1, timeout=2.0, **more)


WRONG: dict[str, tuple[Answer, str]] = {
    "a web page": (send(200, "<html>sign in</html>"), "web page"),
    "no vectors": (send(200, json.dumps({"error": {"message": "no such model"}})), "no such model"),
    "not allowed": (send(401, json.dumps({"error": {"message": "bad key"}})), "401"),
    "too many": (send(429, "slow down", {"Retry-After": "60"}), "429"),
    "out of order": (send(503, "maintenance"), "503"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_named_and_words_go_on(home: Path, server: Scripted, name: str) -> None:
    server.answer, says = WRONG[name]
    use(home, server)
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        with pytest.raises(EmbeddingBehind, match=says):
            memory.flush()
        assert texts(memory, "不良贷款率") == [LOANS]
        assert any(says in problem for problem in memory.status()["problems"])


def test_an_endpoint_that_is_not_there_is_named(home: Path, server: Scripted) -> None:
    server.stop()
    use(home, server)
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        with pytest.raises(EmbeddingBehind, match=server.url):
            memory.flush()
        assert texts(memory, "不良贷款率") == [LOANS]


def test_vectors_of_another_length_are_refused_and_the_old_ones_stay(home: Path, server: Scripted) -> None:
    use(home, server)
    server.answer = vectors(4)
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        memory.flush()
        server.answer = vectors(6)
        memory.remember("宁德时代海外建厂进度加快")
        with pytest.raises(EmbeddingBehind, match="6 numbers"):
            memory.flush()
        assert len(held(memory)) == 1
        assert texts(memory, "海外建厂")[0] == "宁德时代海外建厂进度加快"


def test_an_endpoint_that_comes_back_is_used_again(home: Path, server: Scripted) -> None:
    use(home, server)
    server.answer = send(503, "maintenance")
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        with pytest.raises(EmbeddingBehind):
            memory.flush()
        server.answer = vectors(4)
        memory.flush()
        assert len(held(memory)) == 1
        assert memory.status()["problems"] == []


def test_rows_go_in_batches(home: Path, server: Scripted) -> None:
    use(home, server, batch=5)
    with Memory.open(home) as memory:
        memory.remember_many([{"statement": f"某公司更换审计机构，第{n}次"} for n in range(12)])
        memory.flush()
        sizes = [len(asked["input"]) for asked in server.asked if "审计" in asked["input"][0]]
        assert sorted(sizes) == [2, 5, 5]


def test_a_password_in_the_address_is_not_written_down(home: Path, server: Scripted) -> None:
    url = server.url.replace("http://", "http://me:s3cret@")
    configure(home, backend="openai", base_url=url, model="m", attempts=1, timeout=2.0)
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        try:
            memory.flush()
        except EmbeddingBehind as error:
            assert "s3cret" not in str(error)
        files = [path for path in memory.folder.rglob("*") if path.is_file()]
        assert not any(b"s3cret" in path.read_bytes() for path in files)
