"""How fast tables become facts, beside what reading the same JSON alone costs, and that a giant one stays bounded.

python bench/extract.py [--rows 5000] [--giant MB] [--json FILE] [--report STEM]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.figures import grid, machine, machine_line, publish
from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin import Memory
from hermes_memory_plugin.upkeep.mappers.load import Mappers
from hermes_memory_plugin.upkeep.mappers.reader import read

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
REPEATS = 5


def days(count: int) -> list[str]:
    return [f"{date(2026, 11, 19) - timedelta(days=n):%Y%m%d}" for n in range(count)]


def daily_basic(rows: int) -> tuple[str, dict[str, Any], str]:
    """One stock through time, as Tushare's own answer."""
    names = [
        "ts_code",
        "trade_date",
        "close",
        "turnover_rate",
        "volume_ratio",
        "pe",
        "pe_ttm",
        "pb",
        "ps",
        "ps_ttm",
    ]
    names += ["dv_ratio", "dv_ttm", "total_share", "float_share", "total_mv", "circ_mv"]
    luck = random.Random(1)
    items = [["600519.SH", day, *(round(luck.uniform(1, 2_000), 4) for _ in names[2:])] for day in days(rows)]
    return (
        "tushare_daily_basic",
        {"ts_code": "600519.SH"},
        json.dumps({"data": {"fields": names, "items": items}}),
    )


def hist(rows: int) -> tuple[str, dict[str, Any], str]:
    """One stock through time, as records with Chinese keys."""
    names = ["开盘", "收盘", "最高", "最低", "成交量", "成交额", "振幅", "涨跌幅", "涨跌额", "换手率"]
    luck = random.Random(2)
    found = [
        {"日期": f"{day[:4]}-{day[4:6]}-{day[6:]}", "股票代码": "600519"}
        | {name: round(luck.uniform(1, 2_000), 2) for name in names}
        for day in days(rows)
    ]
    return "akshare_stock_zh_a_hist", {"symbol": "600519"}, json.dumps(found, ensure_ascii=False)


def spot(rows: int) -> tuple[str, dict[str, Any], str]:
    """Every stock of one moment."""
    luck = random.Random(3)
    found = [
        {
            "序号": n + 1, "代码": f"{600000 + n % 4000:06d}", "名称": f"股票{n}", "最新价": round(luck.uniform(1, 200), 2),
            "涨跌幅": round(luck.uniform(-10, 10), 2), "成交量": luck.randint(1, 10**6), "成交额": luck.randint(1, 10**10),
            "换手率": 1.2, "市盈率-动态": round(luck.uniform(-50, 90), 2), "市净率": 2.1, "总市值": luck.randint(10**9, 10**12),
            "流通市值": luck.randint(10**9, 10**12),
        }
        for n in range(rows)
    ]  # fmt: skip
    return "akshare_stock_zh_a_spot_em", {}, json.dumps(found, ensure_ascii=False)


def printed(rows: int) -> tuple[str, dict[str, Any], str]:
    """CSV, all numbers as text."""
    luck = random.Random(4)
    lines = ["ts_code,trade_date,close,pe_ttm,pb,total_mv"]
    lines += [
        f"600519.SH,{day},{luck.uniform(1, 2_000):.2f},{luck.uniform(1, 60):.2f},{luck.uniform(1, 9):.2f},{luck.uniform(1e6, 1e8):.2f}"
        for day in days(rows)
    ]
    return "tushare_daily_basic", {}, "\n".join(lines)


SHAPES: dict[str, Callable[[int], tuple[str, dict[str, Any], str]]] = {
    "fields and items, one stock": daily_basic,
    "records, Chinese keys, one stock": hist,
    "records, all stocks": spot,
    "CSV text": printed,
}


def reading(rows: int, home: Path) -> list[dict[str, Any]]:
    """Rows a second from result to facts, and how many times the cost of json.loads alone (a split for CSV)."""
    mappers = Mappers(home)
    out = []
    for name, make in SHAPES.items():
        tool, args, result = make(rows)
        trace = ToolTrace(tool_call_id="c", tool_name=tool, args=args, result=result, at=NOW)
        found = read(trace, mappers.of(tool, args))
        parse = (
            json.loads if result[:1] in "[{" else lambda text: [line.split(",") for line in text.splitlines()]
        )
        alone, whole = _best(lambda: parse(result)), _best(lambda: read(trace, mappers.of(tool, args)))  # noqa: B023
        out.append(
            {
                "shape": name, "rows": rows, "MB": round(len(result) / 1e6, 2), "facts": len(found.facts),
                "rows/s": int(rows / whole), "ms": round(whole * 1e3, 1), "x parsing alone": round(whole / alone, 1),
            }
        )  # fmt: skip
    return out


def draining(rows: int, home: Path, calls: int = 8) -> dict[str, Any]:
    """Rows a second through the whole drain: journal, facts, both ledgers and the index."""
    tool, args, result = daily_basic(rows)
    with Memory.open(home) as memory:
        memory.remember("warm")
        memory.flush()
        began = time.perf_counter()
        for n in range(calls):
            memory.log(ToolTrace(tool_call_id=f"c{n}", tool_name=tool, args=args, result=result, at=NOW))
        memory.flush(300)
        spent = time.perf_counter() - began
        stored = len(memory.archive.facts.scan())
    return {
        "calls": calls,
        "rows": rows * calls,
        "facts": stored - 1,
        "s": round(spent, 2),
        "rows/s": int(rows * calls / spent),
    }


def giant(megabytes: int, home: Path) -> dict[str, Any]:
    """One frame of that size: time and memory of reading it."""
    tool, args, result = hist(7_000)
    body = result[1:-1]
    text = "[" + ",".join([body] * max(1, megabytes * 1_000_000 // len(body.encode()))) + "]"
    mappers = Mappers(home)
    trace = ToolTrace(tool_call_id="c", tool_name=tool, args=args, result=text, at=NOW)
    began = time.perf_counter()
    found = read(trace, mappers.of(tool, args))
    spent = time.perf_counter() - began
    tracemalloc.start()  # a second time, because counting makes it slower
    read(trace, mappers.of(tool, args))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "MB": round(len(text.encode()) / 1e6), "s": round(spent, 2), "memory MB": round(peak / 1e6),
        "facts": len(found.facts), "said": found.bounded,
    }  # fmt: skip


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--giant", type=int, default=100, metavar="MB")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--report", type=Path, metavar="STEM", help="write STEM.md and STEM.json")
    given = parser.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        read_ = reading(given.rows, Path(folder))
        drained = draining(given.rows, Path(folder))
        big = giant(given.giant, Path(folder)) if given.giant else {}
    heads = list(read_[0])
    text = "\n\n".join(
        [
            "# Tables to facts",
            machine_line(before, machine()),
            "Result to facts (target: 5,000 rows/s):",
            grid(heads, [[one[head] for head in heads] for one in read_]),
            "Through the whole drain, index included:",
            grid(list(drained), [list(drained.values())]),
            *(
                [
                    "A giant frame (its beginning is read, and said to be):",
                    grid(list(big), [list(big.values())]),
                ]
                if big
                else []
            ),
        ]
    )
    print(text)
    figures = {"machine": before, "reading": read_, "drain": drained, "giant": big}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if given.report:
        publish(given.report, text, figures)


if __name__ == "__main__":
    main()
