"""How long a page of `hermes-memory web` takes over a large memory, through a real server on the loopback.

    python -m bench.web                            100k facts
    python -m bench.web --facts 10000 --report bench/results/web

The first view is timed from the moment the address is printed; each other line is the median and the 95th percentile of
`--times` requests. Aims: first view at most 1 s, a search at most 300 ms.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from bench import finance
from bench.figures import grid, machine, machine_line, publish, quantile
from hermes_memory_plugin import Memory


def fill(home: Path, size: int) -> None:
    """Store so many made-up facts, and wait until ledgers and index have them."""
    home.mkdir()
    known = list(finance.facts(size))
    with Memory.open(home) as memory:
        for start in range(0, size, 5_000):
            memory.remember_many(known[start : start + 5_000])
        memory.flush(600)


def timed(browser: httpx.Client, path: str, **query: str) -> float:
    """Milliseconds until the whole page is here."""
    start = time.perf_counter()
    browser.get(path, params=query).raise_for_status()
    return 1e3 * (time.perf_counter() - start)


def pages(home: Path, questions: list[str], times: int) -> dict[str, list[float]]:
    """Milliseconds of every view, from a server of its own."""
    command = [sys.executable, "-m", "hermes_memory_plugin.cli", "--home", str(home), "web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = httpx.URL(server.stdout.readline().strip())
            with httpx.Client(
                base_url=address.copy_with(query=None), follow_redirects=True, timeout=120
            ) as browser:
                start = time.perf_counter()
                browser.get(address).raise_for_status()
                took = {"overview, first": [1e3 * (time.perf_counter() - start)]}
                took["facts, first"] = [timed(browser, "/facts")]
                took["search, first"] = [timed(browser, "/facts", q=questions[0])]
                for _ in range(times):
                    took.setdefault("overview", []).append(timed(browser, "/"))
                    took.setdefault("facts", []).append(timed(browser, "/facts"))
                    took.setdefault("facts of a ticker", []).append(
                        timed(browser, "/facts", subject="600519.SH", state="live")
                    )
                for question in questions[:times]:
                    took.setdefault("search", []).append(timed(browser, "/facts", q=question))
                    took.setdefault("ask", []).append(timed(browser, "/ask", q=question))
            return took
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "hermes"
        fill(home, given.facts)
        took = pages(home, finance.questions(given.times), given.times)
    table = grid(
        ("view", "requests", "median ms", "p95 ms"),
        [
            (name, len(each), f"{quantile(each, 0.5):.0f}", f"{quantile(each, 0.95):.0f}")
            for name, each in took.items()
        ],
    )
    text = f"# Pages over {given.facts:,} facts\n\n{table}\n\n{machine_line(before, machine())}\n"
    print(text)
    if given.report:
        figures: dict[str, Any] = {"facts": given.facts, "ms": took, "machine": before}
        publish(given.report, text, figures)


if __name__ == "__main__":
    main()
