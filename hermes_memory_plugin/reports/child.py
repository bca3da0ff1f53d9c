"""The process that reads files for `worker.Worker`: one JSON line in for each file, JSON lines out.

In:   {"path", "password", "plain"}; `plain` leaves native code out of it.
Out:  {"at": pages read, "of": pages} as it goes on, then {"report": …, "spent": whether to start a new process}.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes_memory_plugin.reports.limits import Limits
from hermes_memory_plugin.reports.reader import read
from hermes_memory_plugin.reports.worker import OUT_OF_MEMORY, too_much_memory

_MOST_FILES = 100


def main() -> None:
    """Serve until standard input ends."""
    limits = Limits(**json.loads(sys.argv[1]))
    # What libraries print must not come between our lines.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    _load()
    limit_memory(limits.memory_bytes)
    for count, line in enumerate(sys.stdin.buffer, start=1):
        request = json.loads(line)
        limit_time(limits)
        spent = False
        try:
            report = read(
                Path(request["path"]),
                password=request["password"],
                limits=limits,
                plain=request["plain"],
                on_page=_telling(out),
            )
        except MemoryError:
            report = too_much_memory(limits)
            spent = True
        spent = spent or count >= _MOST_FILES or peak_memory() > limits.memory_bytes // 2
        _send(out, {"report": report.as_json(), "spent": spent})


def _send(out: Any, message: dict[str, Any]) -> None:
    data = memoryview(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    while data:
        data = data[out.write(data) :]


def _telling(out: Any) -> Callable[[int, int], None]:
    last = 0.0

    def tell(at: int, of: int) -> None:
        nonlocal last
        now = time.monotonic()
        if at == 0 or at == of or now - last > 0.2:
            last = now
            _send(out, {"at": at, "of": of})

    return tell


def _load() -> None:
    """Import what reading takes before the limit counts: a library is not the file's memory."""
    import pdfplumber
    import pypdfium2  # noqa: F401

    _ = pdfplumber


def peak_memory() -> int:
    """The most memory this process has held, bytes."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def limit_memory(most: int) -> None:
    """Let this process hold at most so many bytes."""
    import resource

    statm = Path("/proc/self/statm")
    if statm.exists():
        page = resource.getpagesize()
        mapped, resident = (int(part) * page for part in statm.read_text().split()[:2])
        resource.setrlimit(resource.RLIMIT_AS, (mapped - resident + most,) * 2)
        return
    # Where the system does not bound it, we look ourselves.
    threading.Thread(target=_watch_memory, args=(most,), name="memory", daemon=True).start()


def _watch_memory(most: int) -> None:
    while peak_memory() < most:
        time.sleep(0.1)
    os._exit(OUT_OF_MEMORY)


def limit_time(limits: Limits) -> None:
    """Should the parent be gone, a file that never ends must not run for ever."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + limits.seconds_for(limits.pages)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main()
