"""Reads each file in a process of its own, with limits on time and memory: no file can hang or kill the caller.

    report = read_report(path).checked(path)
    for path, report in read_many(paths, workers=2, progress=show):
        ...

A worker process serves one file after the other and is replaced when it dies, is killed, or has grown.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import ReportDocument
from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.reports.document import ReadReport, from_document, from_json
from hermes_memory_plugin.reports.limits import Limits

START = 20.0
"""Seconds a process may take to start, on top of the time for its file."""
_MOST_ANSWER = 8
"""Bytes of an answer for each character a report may have."""

OnPage = Callable[[int, int], None]
"""on_page(pages read of this file, pages it has)"""


def read_report(
    path: Path, *, password: str | None = None, limits: Limits | None = None, hooks: Hooks | None = None
) -> ReadReport:
    """Read one file. Never raises for what is in the file: `ReadReport.status` and `reason` say what became of it.

    Plugins that implement `read_report` are asked first. The password is used for this call and kept nowhere.
    """
    with Worker(limits) as worker:
        return worker.read(path, password=password, hooks=hooks)


class Worker:
    """One reading process, started when the first file comes. For one thread at a time."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._reading = False
        self._closed = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def read(
        self,
        path: Path,
        *,
        password: str | None = None,
        hooks: Hooks | None = None,
        on_page: OnPage | None = None,
    ) -> ReadReport:
        """Read one file; see `read_report`."""
        began = time.monotonic()
        report = _by_others(path, hooks)
        self._reading = True
        try:
            report = report or self._read(path, password, on_page, plain=False)
            if report is None:
                # pdfium runs native code on hostile bytes; the other reader is slow, and cannot crash.
                report = self._read(path, password, on_page, plain=True)
        finally:
            self._reading = False
            if self._closed:
                self._stop()
        if report is None:
            report = ReadReport("broken", "the reader died over it twice")
        return replace(report, seconds=time.monotonic() - began)

    def close(self) -> None:
        """End the process. A read under way on another thread ends as broken."""
        self._closed = True
        process = self._process
        if self._reading and process is not None:
            process.kill()  # who reads from it cleans up
        else:
            self._stop()

    def _read(
        self, path: Path, password: str | None, on_page: OnPage | None, *, plain: bool
    ) -> ReadReport | None:
        """None when the process died over the file."""
        if self._closed:
            return ReadReport("broken", "reading was stopped")
        request = {"path": os.fspath(path.absolute()), "password": password, "plain": plain}
        try:
            process = self._started()
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self._stop()
            return None
        except OSError as error:
            return ReadReport("broken", f"no process could be started to read it ({error})")
        most = deadline = time.monotonic() + START + self.limits.seconds
        while True:
            answer = self._message(process, deadline)
            if isinstance(answer, ReadReport) or answer is None:
                return answer
            if "report" in answer:
                if answer["spent"]:
                    self._stop()
                with suppress(KeyError, TypeError, ValueError):
                    return from_json(answer["report"])
                return None
            if "of" in answer:
                pages, of = int(answer["at"]), int(answer["of"])
                now = time.monotonic()
                if pages == 0:
                    most = now + self.limits.seconds_for(of)
                # No single page may take what a whole file may.
                deadline = min(most, now + self.limits.seconds)
                if on_page is not None:
                    on_page(pages, of)

    def _message(
        self, process: subprocess.Popen[bytes], deadline: float
    ) -> dict[str, Any] | ReadReport | None:
        """The next message of the process; a report when its time is over; None when it died."""
        assert process.stdout is not None
        most = _MOST_ANSWER * self.limits.characters
        parts = [self._rest]
        size = len(self._rest)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._stop()
                    return ReadReport(
                        "broken", f"reading it took longer than the limit of {self.limits.seconds:.0f} s"
                    )
                if not selector.select(min(left, 1.0)):
                    continue
                data = os.read(process.stdout.fileno(), 1 << 20)
                size += len(data)
                if not data or size > most:
                    return self._died(process)
                parts.append(data)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        with suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict):
                return message
        self._stop()
        return None

    def _died(self, process: subprocess.Popen[bytes]) -> ReadReport | None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
        code = process.returncode
        self._stop()
        if code is not None and code == -signal.SIGXCPU:
            return ReadReport(
                "broken", f"reading it took longer than the limit of {self.limits.seconds:.0f} s"
            )
        if code == OUT_OF_MEMORY:
            return too_much_memory(self.limits)
        return None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hermes_memory_plugin.reports.child", json.dumps(_numbers(self.limits))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # What the host can import, its child must find in the same places.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
            start_new_session=True,
        )
        return self._process

    def _stop(self) -> None:
        process, self._process, self._rest = self._process, None, b""
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)


OUT_OF_MEMORY = 71
"""Exit code of a worker that met its memory limit."""


def too_much_memory(limits: Limits) -> ReadReport:
    """What becomes of a file that wants more memory than a worker may have."""
    return ReadReport(
        "too_big", f"reading it takes more memory than the limit of {limits.memory_bytes >> 20} MB"
    )


def _numbers(limits: Limits) -> dict[str, float]:
    return {name: getattr(limits, name) for name in Limits.__slots__}


def _by_others(path: Path, hooks: Hooks | None) -> ReadReport | None:
    if hooks is None or not hooks.has("read_report", ours=False):
        return None
    for document in hooks.call("read_report", path=path):
        if isinstance(document, ReportDocument):
            return from_document(document)
    return None
