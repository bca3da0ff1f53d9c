"""One POST with JSON and a hard time limit; every way it can fail as one of three exceptions."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from hermes_memory_plugin.embedding.errors import EmbedderUnavailable

_LARGEST = 64 << 20
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_SIZE = re.compile(r"token|length|too (?:long|large|many)|maximum|batch|exceed", re.IGNORECASE)
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Again(Exception):
    """It may work later; `after` is how many seconds the server asks to wait, or 0."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class TooMuch(Exception):
    """The server refuses so much text at once."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Client:
    """`base_url`/embeddings, with the key of the environment variable `key_env`. Follows no redirect."""

    def __init__(self, base_url: str, key_env: str) -> None:
        host = _host(base_url)
        base = base_url.strip().rstrip("/")
        self.url = base if base.endswith("/embeddings") else f"{base}/embeddings"
        self._key_env = key_env
        self._key()
        handlers: list[Any] = [_NoRedirect]
        if host in LOCAL:  # a proxy in the environment is for the world outside
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def post(self, payload: Mapping[str, object], timeout: float) -> bytes:
        """The body of the answer. Raises Again, TooMuch or EmbedderUnavailable; never later than `timeout` or so."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        body = json.dumps(payload, ensure_ascii=False).encode()
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        until = time.monotonic() + timeout
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return _read(response, until)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error) from None
        except TimeoutError as error:
            raise Again(f"no answer within {timeout:g} s") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise Again(f"no answer within {timeout:g} s") from error
            raise Again(f"it cannot be reached: {self.shown(str(error.reason))}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Again(f"the connection broke: {self.shown(f'{type(error).__name__}: {error}')}") from error

    def shown(self, text: str) -> str:
        """`text` for a message: one short line without the key."""
        key = os.environ.get(self._key_env, "").strip() if self._key_env else ""
        if key:
            text = text.replace(key, "***")
        text = " ".join(text.split())
        return text if len(text) <= 200 else f"{text[:200]}…"

    def _key(self) -> str:
        if not self._key_env:
            return ""
        key = os.environ.get(self._key_env, "").strip()
        if not key:
            raise EmbedderUnavailable(
                "openai",
                f"the environment variable {self._key_env} is not set",
                "embedding.key_env names the variable that holds the key (not the key itself): set that variable.",
            )
        if (
            not key.isascii() or not key.isprintable() or " " in key
        ):  # http.client would show it in its complaint
            raise EmbedderUnavailable(
                "openai",
                f"the environment variable {self._key_env} holds something that cannot be a key",
                "Set it to the key alone: one line, no blanks.",
            )
        return key

    def _refused(self, error: urllib.error.HTTPError) -> Exception:
        try:
            said = error.read(4_096).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            said = ""
        shown = self.shown(said)
        reason = f"it answered {error.code}" + (f": {shown}" if shown else "")
        if error.code in _BUSY:
            return Again(reason, _retry_after(error.headers.get("Retry-After")))
        if error.code == 413 or (error.code in (400, 422) and _SIZE.search(said)):
            return TooMuch(reason)
        if 300 <= error.code < 400:
            target = self.shown(error.headers.get("Location") or "")
            return self._wrong(
                f"it answered {error.code} and points to {target}: set embedding.base_url to that"
            )
        if error.code in (401, 403):
            return self._wrong(f"it refuses the key ({reason})")
        return self._wrong(reason)

    def _wrong(self, reason: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            "openai",
            f"{self.url}: {reason}",
            "Check embedding.base_url (it usually ends in /v1), embedding.model and embedding.key_env.",
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """The key goes to the server it was set for, and to no other."""


def _host(base_url: str) -> str:
    advice = "Set embedding.base_url to something like http://localhost:8000/v1."
    try:
        parts = urlsplit(base_url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise EmbedderUnavailable("openai", f"the base_url cannot be read: {error}", advice) from None
    if parts.scheme not in ("http", "https") or not host:
        raise EmbedderUnavailable("openai", "the base_url is missing or not http(s)", advice)
    if parts.username is not None:
        raise EmbedderUnavailable(
            "openai", "the base_url holds a name or password", "Name the key's variable in embedding.key_env."
        )
    return host


def _read(response: http.client.HTTPResponse, until: float) -> bytes:
    parts, size = [], 0
    while part := response.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > _LARGEST:
            raise Again("the answer is larger than 64 MB")
        if time.monotonic() > until:
            raise TimeoutError
    if response.length:  # read1 keeps quiet about a connection that ended early
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _retry_after(value: str | None) -> float:
    if not value:
        return 0.0
    try:
        return max(0.0, min(float(value), 3_600.0))
    except ValueError:
        pass
    try:
        return max(0.0, min(parsedate_to_datetime(value).timestamp() - time.time(), 3_600.0))
    except (TypeError, ValueError, OverflowError):
        return 0.0
