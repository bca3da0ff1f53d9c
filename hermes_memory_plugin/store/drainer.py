"""The thread that drains: woken when something was journalled, never in anybody's way."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref

from hermes_memory_plugin.errors import LedgerBusy
from hermes_memory_plugin.store.drain import PAUSE, Drain, Drained

_LONGEST_PAUSE = 60.0


class Drainer:
    """Runs a `Drain` on a daemon thread of its own, begun by the first `notify`, anew in a forked child."""

    def __init__(self, drain: Drain) -> None:
        self._drain = drain
        self.errors = 0
        """Consumers that failed, counted over all runs."""
        self.last: Drained | None = None
        """What the last run that did something reported."""
        self._begin()
        _drainers.add(self)

    def notify(self) -> None:
        """Something was journalled: it reaches the consumers within a second or so. Costs some microseconds."""
        if not self._wanted.is_set():
            self._wanted.set()
            self._wake()

    def flush(self, timeout: float = 30.0) -> Drained:
        """Wait until everything acknowledged so far is with every consumer.

        Raises LedgerBusy when `timeout` seconds did not suffice, and what a consumer raised.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._asked += 1
            ticket = self._asked
        self._wanted.set()
        self._hurry.set()
        if not self._wake():
            self._round(force=True, wait=timeout)  # the interpreter is going down: no more threads
        with self._changed:
            while self._answered < ticket and not self._stopped:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise LedgerBusy(self._drain.folder, timeout)
            drained = self._answer
        if drained is None:
            raise LedgerBusy(self._drain.folder, timeout)
        for error in drained.errors.values():
            raise error
        return drained

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread after its present run; a later `notify` begins another one."""
        thread = self._thread
        self._stopped = True
        self._wanted.set()
        self._hurry.set()
        with self._changed:
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        self._begin()

    def _begin(self) -> None:
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._wanted = threading.Event()
        self._hurry = threading.Event()
        self._changed = threading.Condition()
        self._asked = self._answered = 0
        self._answer: Drained | None = None
        self._stopped = False

    def _wake(self) -> bool:
        """Make sure that the thread runs; False when it cannot be started any more."""
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._work, name="hermes-memory-drain", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
        return True

    def _work(self) -> None:
        failures = 0
        while True:
            self._wanted.wait()
            pause = min(PAUSE * 2**failures, _LONGEST_PAUSE) if failures else 0.0
            self._hurry.wait(pause)
            if self._stopped:
                return
            force = self._hurry.is_set()
            self._hurry.clear()
            self._wanted.clear()
            drained = self._round(force=force, wait=PAUSE)
            if drained.errors:
                failures += 1
                self._wanted.set()
            else:
                failures = 0
                if not drained.complete:  # somebody else just drained, perhaps before our records
                    self._wanted.set()
                self._hurry.wait(PAUSE)

    def _round(self, *, force: bool, wait: float) -> Drained:
        with self._changed:
            ticket = self._asked
        try:
            drained = self._drain.run(force=force, wait=wait if force else 0.0)
        except Exception as error:  # a drain must survive anything, and say so
            drained = Drained("done", errors={"drain": error})
        self.errors += len(drained.errors)
        if drained.state == "done":
            self.last = drained
        if force and drained.state == "done":
            with self._changed:
                self._answered, self._answer = ticket, drained
                self._changed.notify_all()
        elif force:
            self._hurry.set()  # another process had the lock all the time: those who wait still do
        return drained


_drainers: weakref.WeakSet[Drainer] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for drainer in list(_drainers):
        drainer._begin()


def _at_exit() -> None:
    """End the threads before the interpreter does: one that is killed inside DuckDB takes the process down with it."""
    for drainer in list(_drainers):
        drainer.stop()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
