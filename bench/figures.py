"""What the measurements share: ranks to figures, the bootstrap, tables, and what the machine was doing meanwhile."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
_Thing = TypeVar("_Thing")
METRICS = ("R@5", "R@10", "MRR", "hit@1", "hit@5")


def ranked(found: Sequence[str], relevant: Collection[str]) -> dict[str, float]:
    """The figures of one question: `found` best first, each id once."""
    places = [place for place, id_ in enumerate(found) if id_ in relevant]
    many = len(relevant) or 1
    return {
        "R@5": sum(place < 5 for place in places) / many,
        "R@10": sum(place < 10 for place in places) / many,
        "MRR": 1 / (places[0] + 1) if places and places[0] < 50 else 0.0,
        "hit@1": float(bool(places) and places[0] == 0),
        "hit@5": float(bool(places) and places[0] < 5),
    }


def means(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every metric over the questions."""
    rows = list(each)
    return {name: round(statistics.fmean(row[name] for row in rows), 4) for name in METRICS} if rows else {}


def evenly(things: Sequence[_Thing], most: int) -> list[_Thing]:
    """At most so many of them, spread over the whole; the same ones every time. 0 takes all."""
    if not most or len(things) <= most:
        return list(things)
    return [things[number * len(things) // most] for number in range(most)]


def quantile(values: Iterable[float], share: float) -> float:
    """The value that this share of all does not exceed; 0.0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def paired(
    before: Sequence[float], after: Sequence[float], rounds: int = 4_000
) -> tuple[float, float, float]:
    """Mean of the differences, and the ends of its 95 % bootstrap interval over the questions."""
    import numpy as np

    difference = np.asarray(after, np.float64) - np.asarray(before, np.float64)
    rng = np.random.default_rng(1)
    drawn = [difference[rng.integers(0, len(difference), len(difference))].mean() for _ in range(rounds)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(difference.mean()), float(low), float(high)


def peak_mb() -> float:
    """The most memory this process has held, in MB."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if platform.system() == "Darwin" else 1 << 10), 1)


def disk_mb(folder: Path) -> float:
    """What the files below a folder hold, in MB."""
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 2)


def machine() -> dict[str, Any]:
    """Where and of what a figure was taken, and how busy the machine was."""
    load = os.getloadavg()
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "--short", "HEAD")
        + ("+" if _git("status", "--porcelain", "-uno") else ""),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": [round(value, 1) for value in load],
    }


def machine_line(machine: Mapping[str, Any], after: Mapping[str, Any] | None = None) -> str:
    """One sentence of that; a `+` behind the commit: with changes that were not committed."""
    load = machine["load"][0]
    busy = f"load {load}" if after is None else f"load {load} before, {after['load'][0]} after"
    return (
        f"{machine['at'][:10]}, commit {machine['commit']}, Python {machine['python']}, {machine['system']}, "
        f"{machine['cpus']} cores, {busy}"
    )


def grid(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table that also reads well as plain text."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(head[n]), *(len(row[n]) for row in cells)) if cells else len(head[n])
        for n in range(len(head))
    ]
    lines = ["| " + " | ".join(name.ljust(width) for name, width in zip(head, widths, strict=True)) + " |"]
    lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    lines += [
        "| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return "\n".join(lines)


def publish(stem: Path, text: str, figures: Any) -> None:
    """Write STEM.md and STEM.json."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".md").write_text(text.rstrip() + "\n", encoding="utf-8")
    body = json.dumps(figures, indent=1, ensure_ascii=False)
    stem.with_suffix(".json").write_text(body + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        if abs(value) <= 1:
            return f"{value:.3f}"
        return (
            f"{value:.2f}" if abs(value) < 10 else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
        )
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip()
