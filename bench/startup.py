"""What the plugin adds to starting Hermes: import and register, `hermes --version`, `hermes -z`.

    python bench/startup.py [--runs N] [--json FILE]

Ratios only mean something within one run: everything is measured in turns, beside a bare interpreter.
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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lab.hermes_lab import Lab

# Inside the host: it is loaded before any plugin, so its own modules do not count.
REGISTER = """
import time
from hermes_cli.plugins import PluginContext, PluginManager, PluginManifest
import hermes_cli.commands, tools.registry
context = PluginContext(PluginManifest(name="hermes-memory", key="hermes-memory", source="entrypoint"), PluginManager())
start = time.perf_counter()
from hermes_memory_plugin.hermes import entry
loaded = time.perf_counter()
entry.register(context)
print(1000 * (loaded - start), 1000 * (time.perf_counter() - loaded))
import sys
heavy = {"duckdb", "numpy", "jieba", "rjieba", "pydantic", "lancedb", "tantivy", "rich", "click", "sqlite3"} & set(sys.modules)
print(",".join(sorted(heavy)))
"""


def timed(command: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU milliseconds of one call, its processes counted."""
    start, before = time.perf_counter(), os.times()
    command()
    after = os.times()
    cpu = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return 1000 * (time.perf_counter() - start), 1000 * cpu


def measure(runs: int) -> dict[str, Any]:
    """Every figure, median of `runs`."""
    times: dict[str, list[float]] = {}
    heavy: set[str] = set()
    with Lab(sys.executable) as on, Lab(sys.executable, plugins=()) as off:
        (on.work / "nothing").write_text("")
        python = str(on.python)
        commands: dict[str, Callable[[], Any]] = {
            "python -c pass": lambda: subprocess.run([python, "-c", "pass"], check=True),
            "hermes --version, off": lambda: off.cli("--version"),
            "hermes --version, on": lambda: on.cli("--version"),
            "hermes -z, off": lambda: off.oneshot("hi"),
            "hermes -z, on": lambda: on.oneshot("hi"),
        }
        for warm in (on, off):
            warm.oneshot("hi")
        for _ in range(runs):
            for name, command in commands.items():
                wall, cpu = timed(command)
                times.setdefault(name, []).append(wall)
                times.setdefault(f"{name}, CPU", []).append(cpu)
            lines = on.run([python, "-c", REGISTER]).stdout.splitlines()
            loaded, registered = (float(number) for number in lines[0].split())
            times.setdefault("import entry", []).append(loaded)
            times.setdefault("register", []).append(registered)
            times.setdefault("import + register", []).append(loaded + registered)
            heavy |= set(filter(None, lines[1].split(",")))
    median = {name: statistics.median(values) for name, values in times.items()}
    bare = median["python -c pass"]
    return {
        "runs": runs,
        "milliseconds": {name: round(value, 1) for name, value in median.items()},
        "ratio": {
            "import + register / python -c pass": round(median["import + register"] / bare, 2),
            **{
                f"{name} on / off{unit}": round(median[f"{name}, on{unit}"] / median[f"{name}, off{unit}"], 3)
                for name in ("hermes --version", "hermes -z")
                for unit in ("", ", CPU")
            },
        },
        "heavy modules after register": sorted(heavy),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    figures = measure(arguments.runs)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    width = max(len(name) for name in (*figures["milliseconds"], *figures["ratio"]))
    print(f"median of {figures['runs']} runs, milliseconds")
    for name, value in figures["milliseconds"].items():
        print(f"  {name:{width}} {value:10.1f}")
    print("ratios")
    for name, value in figures["ratio"].items():
        print(f"  {name:{width}} {value:10.2f}")
    print(
        f"heavy modules loaded by import + register: {', '.join(figures['heavy modules after register']) or 'none'}"
    )


if __name__ == "__main__":
    main()
