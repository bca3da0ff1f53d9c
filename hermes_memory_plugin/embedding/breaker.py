"""A circuit breaker: who failed several times in a row is left alone for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Breaker:
    """Thread-safe. Closed, it lets everybody through; open, nobody; after its rest, one to try."""

    def __init__(
        self, *, failures: int = 3, rest: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = failures
        self._rest = rest
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._until = 0.0

    def wait(self) -> float:
        """0.0 when a call may go on; else the seconds until one may."""
        with self._lock:
            now = self._clock()
            if now < self._until:
                return self._until - now
            if self._failed >= self._most:
                self._until = now + self._rest  # the others wait for what becomes of this one
            return 0.0

    def worked(self) -> None:
        """The call came back with something."""
        with self._lock:
            self._failed, self._until = 0, 0.0

    def failed(self, rest: float = 0.0) -> None:
        """The call failed; `rest` is how many seconds the other side asked to be left alone, however often it failed."""
        with self._lock:
            self._failed += 1
            if self._failed >= self._most:
                rest = max(rest, self._rest)
            if rest:
                self._until = self._clock() + rest
