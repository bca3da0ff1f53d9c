"""Work that a turn may wait for, but not long: a few daemon threads and a deadline.

There is no queue. Whoever finds no free worker within its deadline goes without, and a result that comes late is
thrown away; its worker is free again when the work is done.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Late(Exception):
    """The work was not done within the deadline."""


class Busy(Exception):
    """No worker was free within the deadline."""


@dataclass(slots=True)
class _Outcome:
    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    error: BaseException | None = None


class Pool(Generic[T]):
    """At most `size` pieces of work at a time."""

    def __init__(self, size: int = 2, *, name: str = "hermes-memory-recall") -> None:
        self._size = size
        self._name = name
        self._free = threading.BoundedSemaphore(size)
        self._pid = os.getpid()
        self._settled = False

    def run(self, work: Callable[[], T], deadline: float) -> T:
        """`work()` in a copy of the caller's context; raises Busy, Late, or what the work raised.

        deadline    seconds from now, waiting for a worker included
        """
        if (
            os.getpid() != self._pid
        ):  # after a fork the workers of the parent are not there to free their places
            self._free, self._pid = threading.BoundedSemaphore(self._size), os.getpid()
        stop = time.monotonic() + deadline
        free = self._free
        if self._settled or not free.acquire(timeout=max(0.0, deadline)):
            raise Busy
        outcome = _Outcome()
        context = contextvars.copy_context()

        def job() -> None:
            try:
                outcome.value = context.run(work)
            except BaseException as error:  # handed to the caller, who may have gone
                outcome.error = error
            finally:
                free.release()
                outcome.done.set()

        try:
            threading.Thread(target=job, name=self._name, daemon=True).start()
        except BaseException:  # no thread to be had: the place must not stay taken
            free.release()
            raise
        if not outcome.done.wait(max(0.0, stop - time.monotonic())):
            raise Late
        if outcome.error is not None:
            raise outcome.error
        result: T = outcome.value
        return result

    def settle(self, timeout: float) -> bool:
        """Wait until no work is running any more; nobody gets a worker afterwards."""
        self._settled = True
        stop = time.monotonic() + timeout
        return all(self._free.acquire(timeout=max(0.0, stop - time.monotonic())) for _ in range(self._size))
