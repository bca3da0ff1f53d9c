"""Reads many files with several worker processes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.reports.document import ReadReport
from hermes_memory_plugin.reports.limits import Limits
from hermes_memory_plugin.reports.worker import Worker


@dataclass(frozen=True, slots=True)
class Progress:
    """How far `read_many` has come."""

    files: int
    """Files that are done."""
    of: int
    """Files there are."""
    pages: int
    """Pages read, those of files still under way included."""
    seconds: float

    @property
    def pages_per_second(self) -> float:
        """Over the whole time so far."""
        return self.pages / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds it will go on, by the files done so far; None before the first one."""
        return self.seconds / self.files * (self.of - self.files) if self.files else None


def read_many(
    paths: Iterable[Path],
    *,
    workers: int = 2,
    password: str | None = None,
    limits: Limits | None = None,
    hooks: Hooks | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[tuple[Path, ReadReport]]:
    """(path, what became of it), each file as soon as it is done; every path comes exactly once.

    `progress` is called on the caller's thread, some times a second. Closing the generator ends the processes.
    """
    pool = _Pool(list(paths), max(1, workers), password, limits, hooks)
    try:
        yield from pool.results(progress or (lambda state: None))
    finally:
        pool.close()


class _Pool:
    def __init__(
        self,
        paths: list[Path],
        workers: int,
        password: str | None,
        limits: Limits | None,
        hooks: Hooks | None,
    ) -> None:
        self._of = len(paths)
        self._password = password
        self._hooks = hooks
        self._began = time.monotonic()
        self._todo: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for path in paths:
            self._todo.put(path)
        # Bounded: who takes long to store what was read must not find a library in memory.
        self._done: queue.Queue[tuple[Path, ReadReport]] = queue.Queue(maxsize=2 * workers)
        self._stopped = threading.Event()
        self._pages = [0] * workers
        self._workers = [Worker(limits) for _ in range(min(workers, self._of))]
        self._threads = [
            threading.Thread(
                target=self._work, args=(place,), name=f"hermes-memory-read-{place}", daemon=True
            )
            for place in range(len(self._workers))
        ]

    def results(self, progress: Callable[[Progress], None]) -> Iterator[tuple[Path, ReadReport]]:
        for thread in self._threads:
            thread.start()
        files = 0
        while files < self._of:
            try:
                result = self._done.get(timeout=0.2)
            except queue.Empty:
                progress(self._progress(files))
                continue
            files += 1
            progress(self._progress(files))
            yield result

    def close(self) -> None:
        self._stopped.set()
        for worker in self._workers:
            worker.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(5)

    def _progress(self, files: int) -> Progress:
        return Progress(files, self._of, sum(self._pages), time.monotonic() - self._began)

    def _work(self, place: int) -> None:
        worker = self._workers[place]
        while not self._stopped.is_set():
            try:
                path = self._todo.get_nowait()
            except queue.Empty:
                worker.close()
                return
            before = self._pages[place]

            def on_page(at: int, of: int, before: int = before) -> None:
                self._pages[place] = before + at

            try:
                report = worker.read(path, password=self._password, hooks=self._hooks, on_page=on_page)
            except Exception as error:  # one file's trouble is its own
                report = ReadReport("broken", f"{type(error).__name__}: {error}")
            self._pages[place] = before + len(report.pages)
            while not self._stopped.is_set():
                try:
                    self._done.put((path, report), timeout=0.2)
                    break
                except queue.Full:
                    continue
