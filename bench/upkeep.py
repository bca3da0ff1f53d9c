"""What the upkeep costs others, and how small its files are: a purge of old calls, slice by slice, beside a fresh copy.

python bench/upkeep.py [--rows 1000000] [--keep 0.1] [--bytes 300] [--json FILE]

Rows are spread evenly over as many days as make all but `--keep` of them outlived. A reader beside it asks for one call after the other.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import duckdb

from hermes_memory_plugin.store import compact, purge
from hermes_memory_plugin.store.compact import Pace
from hermes_memory_plugin.store.ids import new_ulid
from hermes_memory_plugin.store.ledger_logs import LogsLedger

DAY = 86_400_000_000
NOW = time.time_ns() // 1000
CUT = 210  # days: the lifetime of a call and its grace


def fill(ledger: LogsLedger, rows: int, days: float, size: int) -> None:
    """Calls of `size` characters each, evenly over `days`, the newest now."""
    step = days * DAY / rows
    with ledger.visit(write=True) as connection:
        for start in range(0, rows, 50_000):
            numbers = range(start, min(rows, start + 50_000))
            moments = [int(NOW - days * DAY + number * step) for number in numbers]
            connection.execute(
                "INSERT INTO logs SELECT u, printf('call_%08d', n), 'get_quote', '{\"code\":\"600519.SH\"}', "
                "rpad(printf('收盘 %d.%d 元，成交 %d 手，', n % 9973, n % 89, hash(n) % 999983), ?, md5(n::VARCHAR)), '', ?, 'ok', '', 35.0, "
                "printf('s%d', n // 50), printf('t%d', n // 5), 'local', 'tool', 'user', make_timestamp(t) FROM "
                "(SELECT unnest(?::BIGINT[]) AS n, unnest(?::VARCHAR[]) AS u, unnest(?::BIGINT[]) AS t)",
                [size, size, list(numbers), [new_ulid(moment) for moment in moments], moments],
            )


def measure(folder: Path, rows: int, keep: float, size: int) -> dict[str, Any]:
    ledger = LogsLedger(folder / "old")
    ledger.path.parent.mkdir()
    fill(ledger, rows, CUT / keep, size)
    before = ledger.size()
    ids = [row["ulid"] for row in ledger.rows("SELECT ulid FROM logs USING SAMPLE 500 ROWS")]
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.05):
            began = time.perf_counter()
            ledger.trace(ids[len(waits) % len(ids)])
            waits.append(time.perf_counter() - began)

    alone = []
    for number in range(20):
        began = time.perf_counter()
        ledger.trace(ids[number])
        alone.append(time.perf_counter() - began)
    reader = threading.Thread(target=ask)
    reader.start()
    pace = Pace()
    began = time.perf_counter()
    edit = purge.Edit(calls=NOW - CUT * DAY)
    compact.compact(ledger, pace, edit)
    total = time.perf_counter() - began
    over.set()
    reader.join()
    fresh = LogsLedger(folder / "fresh")
    fresh.path.parent.mkdir()
    with fresh.visit(write=True) as connection:
        connection.execute(f"ATTACH '{ledger.path}' AS old (READ_ONLY)")
        connection.execute("INSERT INTO logs SELECT * FROM old.logs ORDER BY ulid")
    held = sorted(pace.held)
    return {
        "rows": rows,
        "purged": edit.done["calls"],
        "purge_s": total,
        "slices": len(held),
        "hold_p50_ms": statistics.median(held) * 1e3,
        "hold_p99_ms": held[int(0.99 * (len(held) - 1))] * 1e3,
        "hold_max_ms": held[-1] * 1e3,
        "trace_alone_p50_ms": statistics.median(alone) * 1e3,
        "trace_beside_p50_ms": statistics.median(waits) * 1e3 if waits else 0.0,
        "trace_beside_max_ms": max(waits, default=0.0) * 1e3,
        "before_mb": before / 1e6,
        "after_mb": ledger.size() / 1e6,
        "of_a_fresh_copy": ledger.size() / fresh.size(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", type=float, default=0.1, help="share of the rows that is not outlived")
    parser.add_argument("--bytes", type=int, default=300, help="characters of a result")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.rows, options.keep, options.bytes)
    found |= {
        "python": platform.python_version(),
        "duckdb": duckdb.__version__,
        "machine": platform.platform(),
    }
    for name, value in found.items():
        print(f"{name:>20}  {value:,.2f}" if isinstance(value, float) else f"{name:>20}  {value}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
