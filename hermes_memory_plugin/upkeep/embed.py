"""The thread that gives rows the vectors of a real encoder, and what answers questions with them.

Nothing here runs inside a hook: encoders and LanceDB are loaded, asked and written to on the one thread of this
module. Any process may embed; the holder of `embed.lock` does it for all, whoever wrote the rows.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.store.vectors import Vectors, VectorsDamaged
from hermes_memory_plugin.upkeep.embed_plan import EmbeddingBehind, Plan, Serving, plan_of
from hermes_memory_plugin.upkeep.embed_worker import Worker

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Embedder
    from hermes_memory_plugin.recall.index import Index

__all__ = ["Embedding", "EmbeddingBehind", "Plan", "Serving", "plan_of"]

PAUSE = 2.0
"""Seconds in which new rows gather before they are embedded, unless somebody waits for them."""
LOOK = 30.0
"""Seconds between two looks at what other processes wrote."""
_LONGEST_REST = 300.0
_QUIET = 1.0  # seconds for which "no encoder is configured" is taken for granted


class _Life:
    """What the thread and those who wait for it share; a fork or a stop begins another one."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.starting = threading.Lock()
        self.wanted = threading.Event()
        self.hurry = threading.Event()
        self.changed = threading.Condition()
        self.asked = self.answered = 0
        self.error: Exception | None = None
        self.over = False


class Embedding:
    """Keeps the vectors of one home in step with its index. Costs nothing where no encoder is configured."""

    def __init__(
        self,
        folder: Path,
        *,
        plan: Callable[[], Plan | None],
        sure: Callable[[], bool] = lambda: True,
        index: Callable[[], Index],
        normalise: Callable[[str], str],
        digest: Callable[[str], int],
        others: Callable[[str], Embedder | None] | None = None,
        count: Callable[[str, str], None] = lambda name, detail: None,
    ) -> None:
        self.vectors = Vectors(folder)
        self.worker = Worker(
            self.vectors, index=index, normalise=normalise, digest=digest, others=others, count=count
        )
        self.error: Exception | None = None
        """What the last round ended with; None after one that worked."""
        self._lock = LockFile(folder / "embed.lock")
        self._plan = plan
        self._sure = sure  # whether "no plan" is what the user wants, and not what a broken setting left
        self._count = count
        self._life = _Life()
        self._forked = False
        """Forked from a process that has LanceDB loaded, whose threads are not here: it would wait for them for ever."""
        self._idle = False
        """No encoder is configured, and nothing of an earlier one is left."""
        self._quiet = 0.0
        _all.add(self)

    @property
    def left(self) -> int:
        """Rows that have no vector yet, as the last look found."""
        return self.worker.left

    @property
    def done(self) -> int:
        """Rows embedded by this process."""
        return self.worker.done

    # -- for those who write -----------------------------------------------------------------------------------------

    def notify(self) -> None:
        """Something was journalled. Costs microseconds, and nothing more where no encoder is configured."""
        life = self._life
        if life.wanted.is_set() or self._forked or time.monotonic() < self._quiet:
            return
        if self._plan() is None:
            self._idle = self._idle or not self.vectors.exists
            if self._idle:
                self._quiet = time.monotonic() + _QUIET
                return
        life.wanted.set()
        self._wake(life)

    def warm(self) -> None:
        """Load encoder and table in the background, for the questions to come."""
        if self._plan() is not None and not self._forked:
            self._life.wanted.set()
            self._life.hurry.set()
            self._wake(self._life)

    def flush(
        self, stalled: float = 60.0, *, progress: Callable[[int, int], None] = lambda done, left: None
    ) -> None:
        """Return when every row of the index has its vector; at once where no encoder is configured.

        `progress(done, left)` is called about twice a second.

        Raises EmbeddingBehind, naming the reason, when embedding failed or made no progress for `stalled` seconds.
        """
        if self._plan() is None:
            return
        if self._forked:
            raise EmbeddingBehind(
                self.left, "this process was forked from one with LanceDB in it; another embeds"
            )
        life = self._life
        with life.changed:
            life.asked += 1
            ticket = life.asked
        life.wanted.set()
        life.hurry.set()
        self._wake(life)
        start, seen, since = self.done, self.done, time.monotonic()
        with life.changed:
            while life.answered < ticket:
                life.changed.wait(0.5)
                progress(self.done - start, self.left)
                if self.done != seen:
                    seen, since = self.done, time.monotonic()
                if life.over:
                    raise EmbeddingBehind(self.left, "the memory is being closed")
                if time.monotonic() - since > stalled:
                    raise EmbeddingBehind(self.left, str(self.error or "embedding takes its time"))
            if life.error is not None:
                raise EmbeddingBehind(self.left, str(life.error)) from life.error

    def restart(self, *, wait: float = 10.0) -> None:
        """Throw every vector away; they are embedded anew in the background. Raises LockBusy when another process embeds."""
        with LockFile(self._lock.path).acquire(timeout=wait):
            self.vectors.clear()
        self._life.wanted.set()
        self._wake(self._life)

    def stop(self, timeout: float = 10.0) -> None:
        """End the thread after the text it is at; a later `notify` begins another one."""
        life, self._life = self._life, _Life()
        life.over = True
        life.wanted.set()
        life.hurry.set()
        with life.changed:
            life.changed.notify_all()
        if life.thread is not None and life.thread is not threading.current_thread():
            life.thread.join(timeout)

    # -- for those who ask -------------------------------------------------------------------------------------------

    def serving(self, *, patience: float = 0.0) -> Serving | None:
        """What answers questions; None while it is not loaded. Never loads anything on the caller's thread.

        `patience`: seconds a caller who can wait gives a fresh process to load.
        """
        plan = self._plan()
        if plan is None or self._forked:
            return None
        worker = self.worker
        if worker.loaded != worker.wanted(plan):
            self.warm()
            ends = time.monotonic() + patience
            with worker.changed:
                while worker.loaded != worker.wanted(plan) and time.monotonic() < ends:
                    worker.changed.wait(0.05)
        serving = worker.serving
        return serving if serving is None or serving.finds == plan.finds else None

    def status(self) -> dict[str, Any]:
        """Encoder, store, rows and what is wrong, as plain data; `problems` are sentences."""
        plan = self._plan()
        if plan is None:
            return {"backend": "", "problems": []}
        tables = self.vectors.tables()
        problems = []
        if self.error is not None:
            problems.append(str(self.error))
        serving = self.worker.serving
        if serving is not None and serving.timely.error is not None:
            problems.append(f"the last question got no vector: {serving.timely.error}")
        return {
            "backend": plan.encoder.backend,
            "model": tables.serving.model if tables.serving else "",
            "dimension": tables.serving.dimension if tables.serving else 0,
            "building": tables.building.model if tables.building else "",
            "store": self.worker.store or (tables.serving.store if tables.serving else ""),
            "store_reason": self.worker.store_error,
            "left": self.left,
            "done": self.done,
            "late": serving.timely.late if serving else 0,
            "problems": list(dict.fromkeys(problems)),
        }

    # -- the thread --------------------------------------------------------------------------------------------------

    def _wake(self, life: _Life) -> None:
        with life.starting:
            if _ending:
                return
            if life.thread is None or not life.thread.is_alive():
                thread = threading.Thread(
                    target=self._work, args=(life,), name="hermes-memory-vectors", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    return  # too late for a new thread: the next process embeds
                life.thread = thread

    def _work(self, life: _Life) -> None:
        failures = 0
        while not life.over:
            life.wanted.wait(LOOK)
            if not life.hurry.is_set():
                life.hurry.wait(PAUSE if not failures else min(PAUSE * 2**failures, _LONGEST_REST))
            if life.over:
                return
            life.hurry.clear()
            life.wanted.clear()
            with life.changed:
                ticket = life.asked
            complete = False
            try:
                complete = self._round(life, wait=1.0 if ticket > life.answered else 0.0)
                error: Exception | None = None
            except Exception as raised:  # encoders and stores of others may raise anything
                error = raised
                if str(error) != str(self.error):
                    self._count("embed_failed", f"{type(error).__name__}: {error}")
            self.error = error
            failures = failures + 1 if error else 0
            with life.changed:
                if complete or error is not None:
                    life.answered, life.error = ticket, error
                life.changed.notify_all()
            if not complete:
                life.wanted.set()
                if life.asked > life.answered and error is None:
                    life.hurry.set()

    def _round(self, life: _Life, *, wait: float) -> bool:
        """Everything there is to do now; False when another process is at it, or this one was told to stop."""
        plan = self._plan()
        try:
            if plan is None:
                return self._without(wait)
            self._idle = False
            self.worker.load(plan)
            self.worker.look_again()
            with self._lock.acquire(timeout=wait):
                return self.worker.embed(plan, lambda: life.over)
        except LockBusy:
            if plan is not None:
                self.worker.load(plan)
                self.worker.look_around()
            return False
        except VectorsDamaged as damage:
            self.worker.damaged(damage)
            return False

    def _without(self, wait: float) -> bool:
        """No encoder is configured: nobody keeps vectors in step any more, and what is forgotten must go from them."""
        self.worker.begin()
        if self.vectors.exists and self._sure():
            with self._lock.acquire(timeout=wait):
                self.vectors.clear()
        self._idle = True
        return True


_all: weakref.WeakSet[Embedding] = weakref.WeakSet()
_ending = False


def _after_fork_in_child() -> None:
    for embedding in list(_all):
        embedding._life = _Life()
        embedding._lock = LockFile(embedding._lock.path)
        embedding._forked = embedding._forked or "lancedb" in sys.modules
        embedding.worker.begin()


def _at_exit() -> None:
    global _ending
    _ending = True
    # A thread that the end of the interpreter kills inside a compiled library takes the process down with it.
    for embedding in list(_all):
        embedding.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
