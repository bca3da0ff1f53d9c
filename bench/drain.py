"""How fast the drain takes journal records into the ledgers, beside what DuckDB alone costs here.

python bench/drain.py [--sizes 1000,100000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from hermes_memory_plugin.layers.facts import fact_key, rank_of, resolve
from hermes_memory_plugin.store.drain import Drain
from hermes_memory_plugin.store.journal import Journal
from hermes_memory_plugin.store.ledger import CONFIG
from hermes_memory_plugin.store.ledger_facts import FactsLedger
from hermes_memory_plugin.store.ledger_logs import LogsLedger

NOW = time.time_ns() // 1000
Records = Iterator[tuple[str, dict[str, Any], str, str | None, int | None]]


def traces(start: int, count: int) -> Records:
    row = "2026-04-%02d 收盘 %d.50 元，成交 31,200 手，换手 0.25%%，PE(TTM) 28.4 倍\n"
    for number in range(start, start + count):
        result = "".join(row % (day, 1400 + number % 97 + day) for day in range(1, 15))
        data = {
            "call": f"call_{number:08d}",
            "tool": "get_kline",
            "args": {"code": f"{600000 + number % 4000}.SH", "days": 14},
            "result": result,
            "status": "ok",
            "ms": 35,
            "session": f"s{number // 50}",
            "turn": f"t{number // 5}",
            "origin": "tool",
        }
        yield "trace", data, "local", None, NOW + number


def facts(start: int, count: int) -> Records:
    for number in range(start, start + count):
        code = f"{600000 + number % 4000}.SH"
        data = {
            "id": f"call_{number // 8:08d}:{number % 8}",
            "statement": f"{code} 2026Q1 市盈率 {number % 60}.4 倍",
            "subject": code,
            "metric": ("PE", "PB", "ROE", "revenue", "margin")[number % 5],
            "period": f"{2000 + number // 20000}Q{number % 4 + 1}",
            "value": number % 60 + 0.4,
            "unit": "倍",
            "as_of": NOW + number,
            "basis": "TTM",
            "source": "choice",
            "tool_call_id": f"call_{number // 8:08d}",
            "origin": "tool",
            "trust": 4,
            "created_at": NOW + number,
        }
        yield "fact", data, "local", None, NOW + number


KINDS: dict[str, Callable[[int, int], Records]] = {"traces": traces, "facts": facts}


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def visit(path: Path, *, write: bool) -> None:
    """What no DuckDB program can do without: open, one statement, close."""
    connection = duckdb.connect(str(path), read_only=not write, config=dict(CONFIG))
    connection.execute("INSERT INTO bare VALUES (1)" if write else "SELECT count(*) FROM bare").fetchall()
    connection.close()


def bare(folder: Path, rounds: int = 21) -> dict[str, float]:
    path = folder / "bare.db"
    with duckdb.connect(str(path), config=dict(CONFIG)) as connection:
        connection.execute("CREATE TABLE bare (a BIGINT)")
    return {
        "bare_read_ms": statistics.median(timed(lambda: visit(path, write=False)) for _ in range(rounds))
        * 1e3,
        "bare_write_ms": statistics.median(timed(lambda: visit(path, write=True)) for _ in range(rounds))
        * 1e3,
    }


def measure(kind: str, count: int, folder: Path) -> dict[str, Any]:
    journal = Journal(folder / "journal")
    ledgers = [
        FactsLedger(
            folder,
            key_of=fact_key,
            resolve=lambda rows: resolve({id: rank_of(row) for id, row in rows.items()}),
        ),
        LogsLedger(folder),
    ]
    drain = Drain(folder, ledgers)
    drain.run(force=True)  # the tables are there
    appended = timed(lambda: journal.append_many(KINDS[kind](0, count)))
    size = sum(path.stat().st_size for path in (folder / "journal").iterdir())
    report = []
    backlog = timed(lambda: report.append(drain.run(force=True)))
    assert report[0].complete and report[0].records["facts"] == count, report
    small = []
    for step in range(11):
        journal.append_many(KINDS[kind](count + 10 * step, 10))
        small.append(timed(lambda: drain.run(force=True)))
    journal.close()
    return {
        "kind": kind,
        "rows": count,
        "journal_mb": size / 1e6,
        "append_rows_s": count / appended,
        "drain_s": backlog,
        "drain_rows_s": count / backlog,
        "drain_10_more_ms": statistics.median(small) * 1e3,
        "file_mb": sum(ledger.size() for ledger in ledgers) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,100000")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "duckdb": duckdb.__version__,
        "machine": platform.platform(),
        "rows": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        found |= bare(Path(folder))
        for size in map(int, options.sizes.split(",")):
            for kind in KINDS:
                found["rows"].append(measure(kind, size, Path(folder) / f"{kind}-{size}"))
    names = [
        "kind",
        "rows",
        "journal_mb",
        "append_rows_s",
        "drain_s",
        "drain_rows_s",
        "drain_10_more_ms",
        "file_mb",
    ]
    print(
        f"DuckDB {found['duckdb']} alone: read {found['bare_read_ms']:.1f} ms, write {found['bare_write_ms']:.1f} ms"
    )
    print("  ".join(f"{name:>16}" for name in names))
    for row in found["rows"]:
        cells = [row[name] if isinstance(row[name], str) else f"{row[name]:,.1f}" for name in names]
        print("  ".join(f"{cell:>16}" for cell in cells))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
