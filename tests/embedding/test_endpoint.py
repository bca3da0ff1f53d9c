"""An OpenAI-compatible endpoint and what it may do wrong, against a real HTTP server that does it."""

from __future__ import annotations

import base64
import json
import socket
import struct
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import pytest

from hermes_memory_plugin.embedding import EmbedderUnavailable
from hermes_memory_plugin.embedding.breaker import Breaker
from hermes_memory_plugin.embedding.endpoint import Endpoint
from tests.embedding.conftest import Scripted, send, vectors

KEY = "sk-not-a-real-key-0123456789"


def endpoint(server: Scripted | str, **settings: Any) -> Endpoint:
    url = server if isinstance(server, str) else server.url
    return Endpoint(**{"base_url": url, "model": "m", "pause": 0.01, "timeout": 5.0, **settings})


def test_passages_go_in_batches_and_come_back_in_order_at_unit_length(server: Scripted) -> None:
    texts = ["a" * n for n in range(1, 8)]
    found = endpoint(server, batch=3).passages(texts)
    assert [len(body["input"]) for body in server.asked] == [3, 3, 1]
    wanted = np.array([[3.0 + n, 4.0, 0.0, 0.0] for n in range(1, 8)])
    assert found.dtype == np.float32
    assert np.allclose(found, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)


def test_what_is_sent(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    found = endpoint(server, key_env="MY_KEY", dimension=4).query("估值 cheap")
    assert found.shape == (4,)
    assert server.asked == [
        {"model": "m", "input": ["估值 cheap"], "encoding_format": "float", "dimensions": 4}
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("settings", "query", "passage"),
    [
        ({"model": "text-embedding-3-small"}, "x", "x"),
        ({"model": "BAAI/bge-m3"}, "x", "x"),
        ({"model": "intfloat/multilingual-e5-large"}, "query: x", "passage: x"),
        ({"model": "bge-large-zh-v1.5"}, "为这个句子生成表示以用于检索相关文章：x", "x"),
        ({"model": "nomic-embed-text"}, "search_query: x", "search_document: x"),
        ({"model": "multilingual-e5-small-q4", "input_type": True}, "x", "x"),
        ({"model": "e5-base", "query_prefix": "", "passage_prefix": "P "}, "x", "P x"),
    ],
)
def test_prefixes_are_those_of_the_family_unless_given(
    server: Scripted, settings: dict[str, Any], query: str, passage: str
) -> None:
    embedder = endpoint(server, **settings)
    embedder.query("x")
    embedder.passages(["x"])
    assert [body["input"] for body in server.asked] == [[query], [passage]]
    kinds = [body.get("input_type") for body in server.asked]
    assert kinds == (["query", "passage"] if settings.get("input_type") else [None, None])


def test_blank_texts_are_not_sent_and_have_the_zero_vector(server: Scripted) -> None:
    found = endpoint(server).passages(["", "a", " \n", "bb"])
    assert server.asked[0]["input"] == ["a", "bb"]
    assert [bool(row.any()) for row in found] == [False, True, False, True]


@pytest.mark.parametrize("text", ["a\0b", "\ud800 lone", "x" * 100_000])
def test_any_text_can_be_sent(server: Scripted, text: str) -> None:
    assert endpoint(server).query(text).any()
    assert len(server.asked[0]["input"][0]) <= 6_000


def test_base64_answers_are_read(server: Scripted) -> None:
    packed = base64.b64encode(struct.pack("<2f", 3.0, 4.0)).decode()
    server.answer = send(200, json.dumps({"data": [{"index": 0, "embedding": packed}]}))
    assert endpoint(server).query("x").tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 529])
def test_a_busy_endpoint_is_asked_again(server: Scripted, code: int) -> None:
    server.in_turn(send(code, "later", {"Retry-After": "0"}), send(code, "later"), vectors())
    assert endpoint(server).passages(["x"]).shape == (1, 4)
    assert len(server.asked) == 3


def test_a_query_is_asked_once_because_somebody_waits(server: Scripted) -> None:
    server.in_turn(send(503, "later"), vectors())
    with pytest.raises(EmbedderUnavailable, match="503"):
        endpoint(server).query("x")
    assert len(server.asked) == 1


def test_the_endpoint_may_say_how_long_to_wait(server: Scripted) -> None:
    clock = [0.0]
    server.in_turn(send(429, "quota", {"Retry-After": "600"}), vectors())
    embedder = endpoint(server, breaker=Breaker(clock=lambda: clock[0]))
    with pytest.raises(EmbedderUnavailable, match="429: quota"):
        embedder.passages(["x"])
    with pytest.raises(EmbedderUnavailable, match="600 s"):
        embedder.query("x")
    assert len(server.asked) == 1
    clock[0] = 601.0
    assert embedder.query("x").any()


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        (200, "<!doctype html><title>Sign in</title>", "web page"),
        (200, "not json", "no JSON"),
        (200, "", "no JSON"),
        (200, '{"data": [{"index": 0, "emb', "no JSON"),
        (200, "[" * 100_000, "no JSON"),
        (200, "[]", "no vectors"),
        (200, "null", "no vectors"),
        (200, '{"error": {"message": "model m is not loaded"}}', "model m is not loaded"),
        (200, '{"data": {"a": 1}}', "no vectors"),
        (200, '{"data": [{"index": 0}]}', "no vectors"),
        (200, '{"data": []}', "0 vectors came back for 1"),
        (200, '{"data": [{"embedding": [1]}, {"embedding": [1]}]}', "2 vectors came back for 1"),
        (200, '{"data": [{"index": 7, "embedding": [1]}]}', "order"),
        (200, '{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "NaN"),
        (200, '{"data": [{"index": 0, "embedding": [1e999, 1]}]}', "infinity"),
        (200, '{"data": [{"index": 0, "embedding": [0, 0]}]}', "zeros"),
        (200, '{"data": [{"index": 0, "embedding": []}]}', "shape"),
        (200, '{"data": [{"index": 0, "embedding": null}]}', "shape|list"),
        (200, '{"data": [{"index": 0, "embedding": "!!"}]}', "base64"),
        (200, '{"data": [{"index": 0, "embedding": {"a": 1}}]}', "list"),
        (401, f'{{"error": "Incorrect API key: {KEY}"}}', "refuses the key"),
        (403, "", "refuses the key"),
        (404, "no such model", "404: no such model"),
        (400, "unknown field", "400: unknown field"),
    ],
)
def test_a_wrong_answer_is_named_once_and_never_shows_the_key(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, code: int, body: str, reason: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.answer = send(code, body)
    with pytest.raises(EmbedderUnavailable, match=reason) as caught:
        endpoint(server, key_env="MY_KEY").passages(["x"])
    assert KEY not in str(caught.value)
    assert caught.value.advice
    assert len(server.asked) == 1


def test_a_redirect_is_not_followed_so_that_the_key_stays_with_its_server(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.answer = send(307, "", {"Location": f"{server.url}/elsewhere"})
    with pytest.raises(EmbedderUnavailable, match=r"points to .*elsewhere"):
        endpoint(server, key_env="MY_KEY").query("x")
    assert len(server.asked) == 1


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-one sk-two", "sk-two密钥", "sk-two\x07"])
def test_what_cannot_be_a_key_is_named_without_showing_it(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(EmbedderUnavailable, match="MY_KEY") as caught:
        endpoint(server, key_env="MY_KEY").query("x")
    assert "sk-" not in str(caught.value)
    assert server.asked == []


def test_another_dimension_than_set_or_than_before_is_refused(server: Scripted) -> None:
    with pytest.raises(EmbedderUnavailable, match="4 numbers came back, 1024 were expected"):
        endpoint(server, dimension=1024).query("x")
    embedder = endpoint(server)
    assert embedder.dimension == 4
    server.answer = vectors(8)
    with pytest.raises(EmbedderUnavailable, match="8 numbers came back, 4 were expected"):
        embedder.passages(["x"])


def test_an_endpoint_that_is_down_is_named() -> None:
    with socket.socket() as taken:  # bound, not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        down = endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        with pytest.raises(EmbedderUnavailable, match="cannot be reached") as caught:
            down.passages(["x"])
    assert "embedding.backend" in caught.value.advice


@pytest.mark.parametrize("part", ["nothing", "headers", "drops"])
def test_a_slow_endpoint_is_given_up(server: Scripted, part: str) -> None:
    def slow(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if part == "nothing":
            time.sleep(1.5)
            return
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        for _ in range(30):
            if part == "headers":
                time.sleep(1.5)
                return
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.05)

    server.answer = slow
    with pytest.raises(EmbedderUnavailable, match=r"no answer within 0\.3 s"):
        endpoint(server, timeout=0.3, attempts=1).passages(["x"])


def test_a_connection_that_breaks_off_is_tried_again(server: Scripted) -> None:
    def cut(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"data": [')

    server.in_turn(cut, vectors())
    assert endpoint(server).passages(["x"]).any()
    assert len(server.asked) == 2


def test_a_batch_too_large_is_halved_and_stays_smaller(server: Scripted) -> None:
    def at_most_two(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if len(body["input"]) > 2:
            send(400, "batch size is invalid, it should not be larger than 2")(handler, body)
        else:
            vectors()(handler, body)

    server.answer = at_most_two
    texts = ["a" * n for n in range(1, 17)]
    found = endpoint(server, batch=8).passages(texts)
    assert np.allclose(found[:, 1] / found[:, 0], [4 / (3 + n) for n in range(1, 17)], atol=1e-5)
    assert [len(body["input"]) for body in server.asked[-4:]] == [2, 2, 2, 2]


def test_a_text_too_long_is_cut_until_it_fits(server: Scripted) -> None:
    def at_most_1000(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if max(map(len, body["input"])) > 1_000:
            send(413, "")(handler, body)
        else:
            vectors()(handler, body)

    server.answer = at_most_1000
    assert endpoint(server).passages(["x" * 5_000]).any()
    server.answer = send(400, "maximum context length is 0 tokens")
    with pytest.raises(EmbedderUnavailable, match="even for"):
        endpoint(server).passages(["x" * 5_000])


def test_after_failures_in_a_row_nobody_is_asked_until_it_has_rested(server: Scripted) -> None:
    clock = [0.0]
    embedder = endpoint(server, breaker=Breaker(failures=2, rest=30, clock=lambda: clock[0]))
    server.answer = send(500, "")
    for _ in range(4):
        with pytest.raises(EmbedderUnavailable):
            embedder.query("x")
    assert len(server.asked) == 2
    clock[0] = 31.0
    with pytest.raises(EmbedderUnavailable, match="500"):
        embedder.query("x")
    with pytest.raises(EmbedderUnavailable, match=r"left alone.*500"):
        embedder.query("x")
    server.answer = vectors()
    clock[0] = 62.0
    assert embedder.query("x").any()
    assert embedder.query("x").any()


def test_while_one_call_tries_a_rested_endpoint_the_others_wait() -> None:
    clock = [0.0]
    breaker = Breaker(failures=1, rest=30, clock=lambda: clock[0])
    breaker.failed()
    clock[0] = 31.0
    assert [breaker.wait() > 0 for _ in range(3)] == [False, True, True]
    breaker.worked()
    assert breaker.wait() == 0


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://localhost:8000/v1", "openai:m"),
        ("http://127.0.0.1:9/v1/", "openai:m"),
        ("https://API.example.com/v1", "openai:m@api.example.com"),
    ],
)
def test_the_name_tells_models_apart_not_ports(url: str, name: str) -> None:
    assert endpoint(url).name == name
    assert endpoint(url, query_prefix="Q ").name not in (name, endpoint(url, query_prefix="R ").name)


def test_a_proxy_is_not_used_for_this_machine(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert endpoint(server).query("x").any()
