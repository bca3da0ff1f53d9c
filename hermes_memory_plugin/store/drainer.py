"""The thread that drains: woken when something was journalled, never in anybody's way."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable

from hermes_memory_plugin.errors import LedgerBusy
from hermes_memory_plugin.store.drain import PAUSE, Drain, Drained, Halted

_LONGEST_PAUSE = 60.0
_LOOK = 0.25
"""Seconds between two looks at whether a run goes on."""
_AT_EXIT = 30.0
"""Seconds the interpreter waits for the batch under way; killed inside DuckDB, the thread would take the process with it."""


class _Life:
    """What a thread and those who wait for it share; a fork or a stop begins another one."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.starting = threading.Lock()
        self.wanted = threading.Event()
        self.hurry = threading.Event()
        self.changed = threading.Condition()
        self.asked = 0  # flushes so far
        self.answered = 0  # flushes that came before a run that began after them
        self.answer: Drained | None = None
        self.over = False


class Drainer:
    """Runs a `Drain` on a daemon thread of its own, begun by the first `notify`, anew in a forked child."""

    def __init__(self, drain: Drain) -> None:
        self._drain = drain
        self.errors = 0
        """Consumers that failed, counted over all runs."""
        self.last: Drained | None = None
        """What the last run that did something reported."""
        self._life = _Life()
        _drainers.add(self)

    def notify(self) -> None:
        """Something was journalled: it reaches the consumers within a second or so. Costs some microseconds."""
        life = self._life
        if not life.wanted.is_set():
            life.wanted.set()
            self._wake(life)

    def flush(self, timeout: float = 30.0, *, progress: Callable[[], object] | None = None) -> Drained:
        """Wait until everything acknowledged so far is with every consumer.

        Raises LedgerBusy when `timeout` seconds did not suffice, and what a consumer raised. With `progress`, the seconds
        begin anew whenever it gives another value: a large import takes as long as it takes.
        """
        life = self._life
        deadline = time.monotonic() + timeout
        with life.changed:
            life.asked += 1
            ticket = life.asked
        life.wanted.set()
        life.hurry.set()
        if not self._wake(life):
            self._round(life, force=True, wait=timeout)  # the interpreter is going down: no more threads
        moved = progress() if progress is not None else None
        with life.changed:
            while life.answered < ticket and not life.over:
                if progress is not None and (now := progress()) != moved:
                    moved, deadline = now, time.monotonic() + timeout
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LedgerBusy(self._drain.folder, timeout, self._drain.blocked_by)
                life.changed.wait(left if progress is None else min(left, _LOOK))
            drained = life.answer if life.answered >= ticket else None
        if drained is None:
            raise LedgerBusy(self._drain.folder, timeout, self._drain.blocked_by)
        for error in drained.errors.values():
            raise error
        return drained

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread after its present run; a later `notify` begins another one."""
        life, self._life = self._life, _Life()
        life.over = True
        self._drain.halted = True
        life.wanted.set()
        life.hurry.set()
        with life.changed:
            life.changed.notify_all()
        if life.thread is not None and life.thread is not threading.current_thread():
            life.thread.join(timeout)
        self._drain.halted = False

    def _wake(self, life: _Life) -> bool:
        """Make sure that the thread runs; False when it cannot be started any more."""
        with life.starting:
            if _ending:
                return False
            if life.thread is None or not life.thread.is_alive():
                thread = threading.Thread(
                    target=self._work, args=(life,), name="hermes-memory-drain", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    return False
                life.thread = thread
        return True

    def _work(self, life: _Life) -> None:
        failures = 0
        while True:
            life.wanted.wait()
            if failures:
                life.hurry.wait(min(PAUSE * 2**failures, _LONGEST_PAUSE))
            if life.over:
                return
            force = life.hurry.is_set()
            life.hurry.clear()
            life.wanted.clear()
            drained = self._round(life, force=force, wait=PAUSE)
            failures = failures + 1 if drained.errors else 0
            if not drained.complete:  # an error, or somebody else just drained, perhaps before our records
                life.wanted.set()
            if not failures:
                life.hurry.wait(PAUSE)

    def _round(self, life: _Life, *, force: bool, wait: float) -> Drained:
        with life.changed:
            ticket = life.asked
        try:
            drained = self._drain.run(force=force, wait=wait if force else 0.0)
        except Exception as error:  # the thread must survive anything, and say so
            drained = Drained("done", errors={"drain": error})
        self.errors += sum(not isinstance(error, Halted) for error in drained.errors.values())
        if drained.state == "done":
            self.last = drained
        if not force:
            return drained
        if drained.state == "done":
            with life.changed:
                life.answered, life.answer = ticket, drained
                life.changed.notify_all()
        else:
            life.hurry.set()  # another process had the lock all the time: those who wait still do
        return drained


_drainers: weakref.WeakSet[Drainer] = weakref.WeakSet()
_ending = False
"""Whether the interpreter is going down. A thread that it kills inside DuckDB takes the process with it (SIGABRT)."""


def _at_exit() -> None:
    global _ending
    _ending = True
    for drainer in list(_drainers):
        drainer.stop(_AT_EXIT)


atexit.register(_at_exit)


def _after_fork_in_child() -> None:
    for drainer in list(_drainers):
        drainer._life = _Life()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
