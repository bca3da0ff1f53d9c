"""One thread for what need not be done at once: it comes with the first job and goes when there is none left."""

from __future__ import annotations

import atexit
import contextvars
import threading
import weakref
from collections import deque
from collections.abc import Callable

PATIENCE = 2.0
"""Seconds the end of the process waits for what is under way."""


class Worker:
    """Runs jobs one after the other, in the background. A job that fails costs itself alone."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._jobs: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._known_at_exit = False
        self._closed = False

    def soon(self, job: Callable[[], object]) -> None:
        """Do it when the jobs before it are done; in the caller's context, for one process may serve several homes."""
        context = contextvars.copy_context()
        with self._lock:
            if self._closed:
                return
            self._jobs.append(lambda: context.run(job))
            if not self._known_at_exit:
                self._known_at_exit = True
                atexit.register(_settle, weakref.ref(self))
            if self._thread is None or not self._thread.is_alive():  # a forked child has none of its own
                self._thread = threading.Thread(target=self._work, name="hermes-memory-worker", daemon=True)
                self._thread.start()

    def settle(self, timeout: float = PATIENCE) -> bool:
        """Wait until nothing is left to do; False when that takes longer."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def close(self) -> None:
        """Take no more jobs; those that wait are dropped when they are not done in time."""
        self.settle()
        with self._lock:
            self._closed = True
            self._jobs.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._thread = None
                    return
                job = self._jobs.popleft()
            try:
                job()
            except Exception as error:
                self._failed(error)


def _settle(worker: weakref.ref[Worker]) -> None:
    found = worker()
    if found is not None:
        found.settle()
