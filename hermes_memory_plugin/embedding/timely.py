"""A query vector in time, or none: the turn never waits for an encoder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Embedder

T = TypeVar("T")


class Timely:
    """Asks `embedder` on a thread of its own; at most one question is under way."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.late = 0
        """Questions that got no vector because the encoder was too slow, or still busy with an earlier one."""
        self.error: Exception | None = None
        """Why the last question failed; None after one that worked."""
        self._busy = threading.Lock()
        self._pid = os.getpid()

    def query(self, text: str, within: float) -> Any:
        """float32 [dimension], or None when `within` seconds were not enough or the encoder failed."""
        return self.run(lambda: self.embedder.query(text), within)

    def run(self, call: Callable[[], T], within: float) -> T | None:
        """What `call` returns: a question and what is looked up with its vector share one time limit."""
        if self._pid != os.getpid():  # the thread that held the lock stayed in the parent
            self._busy, self._pid = threading.Lock(), os.getpid()
        busy = self._busy
        if not busy.acquire(blocking=False):
            self.late += 1
            return None
        answer: list[T | None] = []

        def ask() -> None:
            try:
                found = call()
                self.error = None
                answer.append(found)
            except Exception as error:  # a backend of another package may raise anything
                self.error = error
                answer.append(None)
            finally:
                busy.release()

        thread = threading.Thread(target=ask, name="hermes-memory-embed", daemon=True)
        thread.start()
        thread.join(within)
        if not answer:
            self.late += 1
            return None
        return answer[0]
