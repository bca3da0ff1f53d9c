"""A scripted stand-in for an OpenAI-compatible chat-completions server.

It needs nothing but the standard library, listens on 127.0.0.1, answers both
streaming and non-streaming requests from a script, and keeps every request
body so that a test can look at exactly what an agent sent.

The script is a JSON object:

    {
      "replies": [REPLY, ...],          answered in order, one per request
      "rules":   [RULE, ...],           tried first, before "replies"
      "default": REPLY,                 once "replies" has run out
      "context_length": 64000,          reported by /v1/models
      "model": "mock-model"
    }

    RULE  = {"match": REGEX, "where": WHERE, "times": N, "reply": REPLY}
            WHERE is "last" (last message, the default), "system", "user"
            (last user message) or "any" (the whole request as JSON text).
            A rule with "times" stops matching after that many uses.

    REPLY = {"content": TEXT,
             "tool_calls": [{"name": NAME, "arguments": {...}}, ...],
             "prompt_tokens": N,        what "usage" claims; estimated if absent
             "status": CODE, "error": TEXT,     answer with an HTTP error
             "delay": SECONDS,
             "label": NAME}             copied to the record, for the test's use

A reply may also be a plain string, which stands for {"content": that string}.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DEFAULT_REPLY = {"content": "ok"}


def text_of(content: Any) -> str:
    """The text of a message's content, whether a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def last_message(body: dict[str, Any], role: str | None = None) -> Any:
    """The last message of the request, or the last one with the given role."""
    for message in reversed(body.get("messages") or []):
        if role is None or message.get("role") == role:
            return message
    return {}


class Script:
    """Chooses the reply to each request."""

    def __init__(self, spec: dict[str, Any] | None = None):
        spec = spec or {}
        self.model = spec.get("model", "mock-model")
        self.context_length = int(spec.get("context_length", 64_000))
        self._replies = list(spec.get("replies", []))
        self._rules = [dict(rule) for rule in spec.get("rules", [])]
        self._default = spec.get("default", DEFAULT_REPLY)
        self._lock = threading.Lock()

    def add(self, *replies: Any) -> None:
        """Queue more replies while the server runs."""
        with self._lock:
            self._replies.extend(replies)

    def choose(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            reply = self._from_rules(body)
            if reply is None:
                reply = self._replies.pop(0) if self._replies else self._default
        return {"content": reply} if isinstance(reply, str) else dict(reply)

    def _from_rules(self, body: dict[str, Any]) -> Any:
        for rule in self._rules:
            times = rule.get("times")
            if times is not None and times <= 0:
                continue
            if re.search(rule["match"], self._subject(rule, body), re.S):
                if times is not None:
                    rule["times"] = times - 1
                return rule["reply"]
        return None

    @staticmethod
    def _subject(rule: dict[str, Any], body: dict[str, Any]) -> str:
        where = rule.get("where", "last")
        if where == "any":
            return json.dumps(body, ensure_ascii=False)
        if where == "last":
            return text_of(last_message(body).get("content"))
        return text_of(last_message(body, where).get("content"))


class MockServer:
    """The server; use it as a context manager or call start() and stop()."""

    def __init__(
        self, script: dict[str, Any] | Script | None = None, record: Path | str | None = None, port: int = 0
    ):
        self.script = script if isinstance(script, Script) else Script(script)
        self.records: list[dict[str, Any]] = []
        self._record_path = Path(record) if record else None
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), self._handler_class())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> MockServer:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> MockServer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests so far, oldest first."""
        with self._lock:
            return [record["body"] for record in self.records]

    def _keep(self, record: dict[str, Any]) -> None:
        with self._lock:
            record["n"] = len(self.records)
            self.records.append(record)
            if self._record_path:
                with self._record_path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _handler_class(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(_Handler):
            mock = server

        return Handler


class _Handler(BaseHTTPRequestHandler):
    mock: MockServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            script = self.mock.script
            self._send_json(
                200,
                {
                    "object": "list",
                    "data": [
                        {"id": script.model, "object": "model", "context_length": script.context_length}
                    ],
                },
            )
        else:
            self._send_json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.rstrip("/").endswith("/chat/completions"):
            self._send_json(404, {"error": {"message": "not found"}})
            return
        body = json.loads(raw or b"{}")
        reply = self.mock.script.choose(body)
        self.mock._keep({"time": time.time(), "path": self.path, "body": body, "reply": reply})
        if reply.get("delay"):
            time.sleep(float(reply["delay"]))
        if reply.get("status"):
            message = reply.get("error", "scripted error")
            self._send_json(int(reply["status"]), {"error": {"message": message}})
        elif body.get("stream"):
            self._send_stream(body, reply)
        else:
            self._send_json(200, _completion(body, reply))

    def _send_json(self, status: int, payload: dict[str, Any]) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_stream(self, body: dict[str, Any], reply: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in _stream_events(body, reply):
            self.wfile.write(f"data: {event}\n\n".encode())
        self.wfile.flush()


def _usage(body: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    prompt = reply.get("prompt_tokens")
    if prompt is None:
        prompt = len(json.dumps(body, ensure_ascii=False)) // 4
    completion = max(1, len(json.dumps(reply, ensure_ascii=False)) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _tool_calls(reply: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": call.get("id") or f"call_{uuid.uuid4().hex[:12]}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call.get("arguments") or {})},
        }
        for call in reply.get("tool_calls") or []
    ]


def _finish_reason(reply: dict[str, Any]) -> str:
    return reply.get("finish_reason") or ("tool_calls" if reply.get("tool_calls") else "stop")


def _envelope(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex[:12]}",
        "object": kind,
        "created": int(time.time()),
        "model": body.get("model", "mock-model"),
    }


def _completion(body: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.get("content")}
    calls = _tool_calls(reply)
    if calls:
        message["tool_calls"] = calls
    return {
        **_envelope(body, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": _finish_reason(reply)}],
        "usage": _usage(body, reply),
    }


def _stream_events(body: dict[str, Any], reply: dict[str, Any]) -> Iterator[str]:
    base = _envelope(body, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        return json.dumps(
            {
                **base,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
        )

    yield chunk({"role": "assistant", "content": ""})
    content = reply.get("content") or ""
    for start in range(0, len(content), 400):
        yield chunk({"content": content[start : start + 400]})
    for index, call in enumerate(_tool_calls(reply)):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, _finish_reason(reply))
    yield json.dumps({**base, "choices": [], "usage": _usage(body, reply)})
    yield "[DONE]"
