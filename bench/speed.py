"""What the facade costs: recall, first recall of a process, storing, logging a tool call, draining, memory.

    python bench/speed.py                                    1k, 10k and 100k facts, 100k tool calls
    python bench/speed.py --sizes 1000,10000 --rows 1000000 --report bench/results/speed

Facts and questions are made up (bench/finance.py). Every size is measured in a process of its own, beside the machine's
own reference in the same run: a bare `os.write` of the same bytes, DuckDB alone, `python -c pass`. Lower levels have
scripts of their own: hook_cost.py (journal), drain.py, recall_index.py, masking.py, startup.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench import finance
from bench.figures import disk_mb, grid, machine, machine_line, peak_mb, publish, quantile
from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import LedgerBusy

NOW = "2026-06-01"
RESULTS = (200, 1_000, 16_000, 100_000, 5_000_000)
QUESTIONS = 300
DRAINED = 10_000
COLD = """
import sys, time
start, cpu = time.perf_counter(), time.process_time()
from hermes_memory_plugin import Memory
imported = time.perf_counter()
memory = Memory.open(sys.argv[1])
opened = time.perf_counter()
recall = memory.recall(sys.argv[2], now=sys.argv[3])
done, used = time.perf_counter(), time.process_time()
import json, os
print(json.dumps({
    "import_ms": 1e3 * (imported - start), "open_ms": 1e3 * (opened - imported), "recall_ms": 1e3 * (done - opened),
    "all_ms": 1e3 * (done - start), "cpu_ms": 1e3 * (used - cpu), "items": len(recall.items),
    "lancedb": float("lancedb" in sys.modules), "vectors": float(any("meaning" in r for i in recall.items for r in i.reasons)),
}), flush=True)
os._exit(0)
"""


def recall(home: Path, size: int) -> dict[str, Any]:
    """Store so many facts, then ask, in a memory that is open and warm."""
    known = list(finance.facts(size))
    with Memory.open(home) as memory:
        acknowledged = timed(partial(memory.remember_many, known))
        findable = acknowledged + timed(partial(catch_up, memory))
    stored = peak_mb()
    asked = finance.questions(QUESTIONS)
    figures: dict[str, Any] = {
        "facts": size,
        "remember_many_s": round(acknowledged / 1e3, 2),
        "findable_s": round(findable / 1e3, 2),
        "disk_mb": disk_mb(home),
        "peak_storing_mb": stored,
    }
    del known
    gc.collect()
    with Memory.open(home) as memory:
        for question in asked[:10]:
            memory.recall(question, now=NOW)
        for mode in ("automatic", "explicit"):
            times = [clocked(partial(memory.recall, q, mode=mode, now=NOW)) for q in asked]
            figures[mode] = spread([wall for wall, _ in times])
            figures[f"{mode}_cpu"] = spread([cpu for _, cpu in times])
        figures["answered"] = (
            sum(bool(memory.recall(question, now=NOW).items) for question in asked[:100]) / 100
        )
    return figures


def recalling_mb(home: Path) -> float:
    """Peak memory of a process that only asks."""
    with Memory.open(home) as memory:
        for question in finance.questions(50):
            memory.recall(question, now=NOW)
    return peak_mb()


def cold(home: Path, runs: int) -> dict[str, float]:
    """The first recall of a fresh process: import, open, recall; with and without the interpreter's own start."""
    found: list[dict[str, float]] = []
    for number, question in enumerate(finance.questions(runs + 1)):
        start = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-c", COLD, str(home), question, NOW], capture_output=True, text=True, check=True
        )
        whole = (time.perf_counter() - start) * 1e3
        if number:  # the first one fills the file cache
            found.append(json.loads(run.stdout.splitlines()[-1]) | {"with_start_ms": whole})
    return {name: round(statistics.median(one[name] for one in found), 1) for name in found[0]}


def log_by_size(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """`Memory.log`, its background drain running, and a bare write of the same bytes, in turns."""
    rows = []
    for size in RESULTS:
        home = folder / str(size)
        home.mkdir()
        ours, cpu, bare = in_turns(home, size, seconds)
        log, used, write = spread(ours), spread(cpu), spread(bare)
        rows.append(
            {
                "bytes": size,
                "n": len(ours),
                "log": log,
                "log_cpu": used,
                "write": write,
                "ratio": log["p50"] / write["p50"],
            }
        )
    return rows


def in_turns(home: Path, size: int, seconds: float) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of each call by the clock and of processor time, and of each bare write."""
    text = finance.result(size)
    ours: list[float] = []
    cpu: list[float] = []
    bare: list[float] = []
    with Memory.open(home) as memory:
        memory.log(trace(text, 0))
        line = next((home / "memory" / "journal").glob("*.jsonl")).read_bytes().split(b"\n", 1)[0] + b"\n"
        target = os.open(home / "bare", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        stop, most = time.perf_counter() + seconds, max(30, min(3_000, (300 << 20) // size))
        while len(ours) < most and (len(ours) < 30 or time.perf_counter() < stop):
            wall, used = clocked(partial(memory.log, trace(text, len(ours) + 1)))
            ours.append(wall)
            cpu.append(used)
            bare.append(timed(partial(os.write, target, line)))
            time.sleep(0.001)  # tool calls do not come in a row
        os.close(target)
    return ours, cpu, bare


def log_by_rows(home: Path, rows: int) -> list[dict[str, Any]]:
    """The same of 1 KB after so many calls; up to `DRAINED` of them the drain is waited for, then it lies behind."""
    text = finance.result(1_000)
    steps = [step for step in (1_000, 10_000, 100_000, 1_000_000) if step < rows] + [rows]
    found: list[dict[str, Any]] = []
    done = 0
    with Memory.open(home) as memory:
        for step in steps:
            start = time.perf_counter()
            for number in range(done, step):
                memory.log(trace(text, number))
            filled = time.perf_counter() - start
            behind = timed(partial(catch_up, memory)) / 1e3 if step <= DRAINED else None
            times = []
            for number in range(500):
                times.append(timed(partial(memory.log, trace(text, step + number))))
                time.sleep(0.001)
            drained = round((step - done) / (filled + behind)) if behind is not None else None
            found.append(
                {
                    "rows": step,
                    "log": spread(times),
                    "logged_per_s": round((step - done) / filled),
                    "drained_per_s": drained,
                    "disk_mb": disk_mb(home),
                }
            )
            done = step
        found[-1]["peak_mb"] = peak_mb()
    return found


def reference(folder: Path) -> dict[str, float]:
    """What no program here can do without."""
    import duckdb

    path = str(folder / "bare.db")
    duckdb.connect(path).close()
    duck = [timed(lambda: duckdb.connect(path).close()) for _ in range(11)]
    python = [timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(11)]
    target = os.open(folder / "bare", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    write = [timed(partial(os.write, target, b"x" * 1_000)) for _ in range(2_000)]
    os.close(target)
    return {
        "os.write of 1 KB, ms": round(statistics.median(write), 4),
        "DuckDB open and close, ms": round(statistics.median(duck), 1),
        "python -c pass, ms": round(statistics.median(python), 1),
    }


def trace(result: str, number: int) -> ToolTrace:
    return ToolTrace(
        tool_call_id=f"call_{number:08d}",
        tool_name="get_quotes",
        args={"codes": ["600519.SH", "000858.SZ"], "day": NOW},
        result=result,
        duration_ms=120,
        session_id=f"s{number // 50}",
        turn_id=f"t{number // 5}",
    )


def catch_up(memory: Memory) -> None:
    """Wait for the drain, however long it takes."""
    while True:
        try:
            memory.flush()
            return
        except LedgerBusy:
            continue


def timed(action: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def clocked(action: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of processor time of this thread: other work on the machine adds to the first alone."""
    start, cpu = time.perf_counter(), time.thread_time()
    action()
    return (time.perf_counter() - start) * 1e3, (time.thread_time() - cpu) * 1e3


def spread(times: Sequence[float]) -> dict[str, float]:
    return {f"p{share}": round(quantile(times, share / 100), 4) for share in (50, 95, 99)}


def table(figures: Mapping[str, Any]) -> str:
    recalls = [
        [one["facts"], *(one[mode][p] for mode in ("automatic", "automatic_cpu", "explicit") for p in ("p50", "p95")), one["answered"],
         one["remember_many_s"], one["findable_s"], one["peak_storing_mb"], one["peak_recalling_mb"], one["disk_mb"]]
        for one in figures["recall"]
    ]  # fmt: skip
    first = [
        [one["facts"], *(one["cold"][n] for n in ("import_ms", "open_ms", "recall_ms", "all_ms", "cpu_ms",
         "with_start_ms")), "yes" if one["cold"]["lancedb"] else "no"]
        for one in figures["recall"]
    ]  # fmt: skip
    sizes = [
        [one["bytes"], one["n"], one["log"]["p50"], one["log"]["p99"], one["log_cpu"]["p50"], one["log_cpu"]["p99"],
         one["write"]["p50"], one["write"]["p99"], one["ratio"]]
        for one in figures["log_by_size"]
    ]  # fmt: skip
    rows = [
        [
            one["rows"],
            one["log"]["p50"],
            one["log"]["p99"],
            one["logged_per_s"],
            one["drained_per_s"],
            one["disk_mb"],
        ]
        for one in figures["log_by_rows"]
    ]
    parts = [
        "## Recall, warm (ms)\n",
        grid(
            ["facts", "automatic p50", "p95", "its CPU p50", "p95", "explicit p50", "p95", "share answered",
             "remember_many s", "until findable s", "MB peak storing", "MB peak recalling", "MB disk"], recalls
        ),
        "\n## First recall of a fresh process (ms, median)\n",
        grid(["facts", "import", "open", "recall", "all three", "CPU", "with interpreter start", "lancedb imported"],
             first),
        "\n## One tool call, logged (ms)\n",
        grid(["bytes of result", "n", "Memory.log p50", "p99", "its CPU p50", "p99", "os.write p50", "p99", "p50 ratio"], sizes),
        "",
        grid(["rows before", "Memory.log p50", "p99", "logged in a row /s", "drained too /s", "MB disk"], rows),
        f"\nMost memory of the process that logged: {figures['log_by_rows'][-1]['peak_mb']} MB",
        "\n## The machine's own reference, same run\n",
        grid(["what", "ms"], [[name.removesuffix(", ms"), value] for name, value in figures["reference"].items()]),
    ]  # fmt: skip
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000", help="facts to recall from")
    parser.add_argument("--rows", type=int, default=100_000, help="tool calls to log (1000000 takes a while)")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each size of a tool's result")
    parser.add_argument("--runs", type=int, default=7, help="fresh processes for the first recall")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--report", type=Path, metavar="STEM", help="write STEM.md and STEM.json")
    options = parser.parse_args(argv)
    figures: dict[str, Any] = {"machine": machine(), "recall": []}
    with (
        tempfile.TemporaryDirectory(prefix="speed-") as name,
        ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        folder = Path(name)
        figures["reference"] = pool.submit(reference, folder).result()
        for size in map(int, options.sizes.split(",")):
            home = folder / f"facts-{size}"
            home.mkdir()
            one = pool.submit(recall, home, size).result()
            one["cold"] = cold(home, options.runs)
            one["peak_recalling_mb"] = pool.submit(recalling_mb, home).result()
            figures["recall"].append(one)
            print(
                f"{size} facts: automatic {one['automatic']}, first {one['cold']['all_ms']} ms",
                file=sys.stderr,
            )
        calls = folder / "calls"
        calls.mkdir()
        (calls / "rows").mkdir()
        figures["log_by_size"] = pool.submit(log_by_size, calls, options.seconds).result()
        figures["log_by_rows"] = pool.submit(log_by_rows, calls / "rows", options.rows).result()
    text = f"{table(figures)}\n\n{machine_line(figures['machine'], machine())}"
    print(text)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.report:
        publish(options.report, f"# Speed\n\n{text}", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
