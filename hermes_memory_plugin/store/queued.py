"""A lock with a queue before it: whoever holds it often cannot keep the others out for ever."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from hermes_memory_plugin.store.locks import LockFile


@contextlib.contextmanager
def queued(path: Path, *, exclusive: bool = True, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock `path` for the length of the block; LockBusy when it is not free within `timeout` seconds.

    The first who waits keeps a second lock, `<path>.queue`, that everybody passes through.
    """
    deadline = time.monotonic() + timeout
    lock = LockFile(path)
    with LockFile(path.with_name(f"{path.name}.queue")).acquire(timeout=timeout):
        lock.acquire(exclusive=exclusive, timeout=max(0.0, deadline - time.monotonic()))
    with lock:
        yield
