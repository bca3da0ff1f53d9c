"""What one `Journal.append` costs its caller, masking included, beside a bare `os.write` of the same bytes.

    python bench/hook_cost.py [--rows 100000] [--seconds 1.0] [--folder DIR] [--json FILE]

First by size of the tool result (Chinese and English finance text, and one that holds a key), then as the number of
records grows. Both columns come from the same run, on the same disk, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from hermes_memory_plugin.store.journal import Journal

SIZES = (200, 1_000, 16_000, 100_000, 5_000_000)
CHINESE = '{"ts_code":"600519.SH","净利润":823.5,"营业总收入":"1,505.6亿元","点评":"贵州茅台2024年营收同比增长15%，毛利率91.5%。"},'
ENGLISH = '{"ts_code": "600519.SH", "total_revenue": 150560330000.0, "yoy": 15.2, "note": "Revenue rose from the same quarter"},'
TEXTS = {"zh": CHINESE, "en": ENGLISH}


def text_of(kind: str, size: int) -> str:
    if kind == "key":
        key = "sk" + "-" + "a1B2c3D4" * 5  # made here: no key stands in the repository
        return (text_of("zh", size) + f' api_key="{key}"')[-size:]
    base = TEXTS[kind]
    whole = base * (size // len(base.encode()) + 1)
    return whole.encode()[:size].decode("utf-8", "ignore")


def percentiles(times: list[int]) -> dict[str, float]:
    times = sorted(times)
    return {"p50_us": times[len(times) // 2] / 1e3, "p99_us": times[int(len(times) * 0.99)] / 1e3}


def record(result: str, number: int) -> dict[str, Any]:
    return {
        "call": f"call_{number}",
        "tool": "get_income",
        "args": {"symbol": "600519.SH", "period": "2024"},
        "result": result,
        "status": "ok",
        "ms": 120,
        "session": "s-1",
        "turn": "t-1",
        "origin": "tool",
        "kind": "main",
    }


def by_size(folder: Path, seconds: float) -> list[dict[str, Any]]:
    rows = []
    for size in SIZES:
        for kind in ("zh", "en", "key"):
            target = folder / f"{kind}-{size}"
            journal = Journal(target)
            result = text_of(kind, size)
            journal.append("trace", record(result, 0))
            line = (target / journal.name).read_bytes()
            bare = os.open(target / "bare", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            ours: list[int] = []
            theirs: list[int] = []
            written = 0
            stop = time.perf_counter() + seconds
            while len(ours) < 20 or (time.perf_counter() < stop and len(ours) < 20_000):
                data = record(result, len(ours))
                began = time.perf_counter_ns()
                journal.append("trace", data)
                middle = time.perf_counter_ns()
                os.write(bare, line)
                ours.append(middle - began)
                theirs.append(time.perf_counter_ns() - middle)
                written += len(line)
                if written > 256 << 20:
                    os.ftruncate(bare, 0)
                    for old in target.glob("*.jsonl"):
                        if old.name != journal.name:
                            old.unlink()
                    written = 0
            os.close(bare)
            journal.close()
            for file in target.iterdir():
                file.unlink()
            append, write = percentiles(ours), percentiles(theirs)
            ratio = append["p50_us"] / write["p50_us"]
            rows.append(
                {
                    "bytes": size,
                    "text": kind,
                    "n": len(ours),
                    "append": append,
                    "write": write,
                    "p50_ratio": ratio,
                }
            )
    return rows


def by_rows(folder: Path, rows: int) -> list[dict[str, Any]]:
    journal = Journal(folder / "rows")
    result = text_of("zh", 1_000)
    steps = sorted({step for step in (1_000, 10_000, 100_000, 1_000_000) if step <= rows} | {rows})
    found = []
    times: list[int] = []
    for number in range(rows):
        data = record(result, number)
        began = time.perf_counter_ns()
        journal.append("trace", data)
        times.append(time.perf_counter_ns() - began)
        if number + 1 in steps:
            found.append({"rows": number + 1, **percentiles(times[-1_000:])})
    journal.close()
    return found


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=1.0)
    options.add_argument(
        "--folder", type=Path, help="where to write; the default is the system's temporary folder"
    )
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        sizes = by_size(Path(name), given.seconds)
        rows = by_rows(Path(name), given.rows)
    print(f"{'bytes':>9} text {'append p50':>11} {'p99':>9} {'write p50':>10} {'p99':>9} {'ratio':>6}   (µs)")
    for row in sizes:
        append, write = row["append"], row["write"]
        print(
            f"{row['bytes']:>9} {row['text']:<4} {append['p50_us']:>11.1f} {append['p99_us']:>9.1f}"
            f" {write['p50_us']:>10.1f} {write['p99_us']:>9.1f} {row['p50_ratio']:>6.1f}"
        )
    print(f"\n{'rows':>9} {'p50':>7} {'p99':>7}   (µs, 1 KB, last 1,000)")
    for row in rows:
        print(f"{row['rows']:>9} {row['p50_us']:>7.1f} {row['p99_us']:>7.1f}")
    if given.json:
        machine = {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()}
        given.json.write_text(
            json.dumps({"machine": machine, "by_size": sizes, "by_rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
