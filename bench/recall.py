"""How well the real memory finds, on retrieval sets, by words, by meaning and by both.

    python bench/recall.py                                   every set in ../shared/data, hybrid
    python bench/recall.py --mode all --kinds                keyword, vector and hybrid side by side
    python bench/recall.py --only locomo,fineva --maxq 200 --json after.json
    python bench/recall.py --compare before.json after.json  differences with 95 % intervals

Rows are stored with `Memory.remember_many` and `log_turn`, questions asked with `recall(mode="explicit", limit=50)`; each
group of a set has a home of its own, loaded once. `keyword` sets `embedding.backend: none`. The facade has no recall by
meaning alone: `vector` ranks the index's own view by cosine. Each set runs in a fresh process, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench import sets
from bench.figures import (
    METRICS,
    disk_mb,
    evenly,
    grid,
    machine,
    machine_line,
    means,
    paired,
    peak_mb,
    publish,
    quantile,
    ranked,
)
from hermes_memory_plugin import Memory

MODES = ("hybrid", "vector", "keyword")
"""In this order: what `keyword` sets must not reach the others."""
LIMIT = 50


def measure(
    one: sets.Retrieval, modes: Sequence[str], settings: Mapping[str, Any], most: int, limit: int = LIMIT
) -> dict[str, Any]:
    """All figures of one set; `each` holds those of every question, in their order."""
    groups = list(one.groups())
    total = sum(len(group.questions) for group in groups)
    wanted = {id(question) for question in evenly([q for group in groups for q in group.questions], most)}
    each: dict[str, list[dict[str, float]]] = {mode: [] for mode in modes}
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    kinds: list[str] = []
    added = 0.0
    disk = 0.0
    with tempfile.TemporaryDirectory(prefix="recall-") as folder:
        for number, group in enumerate(groups):
            questions = [question for question in group.questions if id(question) in wanted]
            if not questions:
                continue
            kinds += [str(question["kind"]) for question in questions]
            home = Path(folder) / str(number)
            home.mkdir()
            sets.configure(home, settings)
            began = time.perf_counter()
            with Memory.open(home) as memory:
                names = one.tell(memory, group.rows)
                memory.flush()
                added += time.perf_counter() - began
            disk += disk_mb(home)
            for mode in modes:
                sets.configure(
                    home, {**settings, "embedding.backend": "none"} if mode == "keyword" else settings
                )
                with Memory.open(home) as memory:
                    ask(memory, "warm", mode, one.asked(group, questions[0]), limit)
                    for question in questions:
                        now = one.asked(group, question)
                        start = time.perf_counter()
                        found = ask(memory, str(question["text"]), mode, now, limit)
                        times[mode].append((time.perf_counter() - start) * 1_000)
                        ids = list(dict.fromkeys(names.get(id_, id_) for id_ in found))
                        each[mode].append(ranked(ids, set(question["relevant"])))
    return {
        "rows": sum(len(group.rows) for group in groups),
        "questions": len(kinds),
        "of": total,
        "add_s": round(added, 2),
        "disk_mb": round(disk, 2),
        "peak_mb": peak_mb(),
        "modes": {mode: _summary(each[mode], times[mode], kinds) for mode in modes},
        "each": {"kind": kinds}
        | {mode: {m: [row[m] for row in each[mode]] for m in METRICS} for mode in modes},
    }


def ask(memory: Memory, question: str, mode: str, now: datetime, limit: int) -> list[str]:
    """Ids, best first."""
    if mode != "vector":
        return [item.id for item in memory.recall(question, mode="explicit", limit=limit, now=now).items]
    from hermes_memory_plugin.recall.normalise import normalise

    reader = memory.reader
    reader.refresh()
    vector = reader.analyst.vector(normalise(question))
    if vector is None:
        return []
    view = reader.index.view(
        memory.keys(None), now_us=int(now.timestamp() * 1e6), states=("live", "superseded", "expired")
    )
    return [row.id for row in view.rows(view.top(view.cosine(vector), limit))]


def table(figures: Mapping[str, Any], *, kinds: bool = False) -> str:
    """Every set and mode, one line each; with `kinds` the kinds of its questions below it."""
    head = [
        "set",
        "mode",
        "questions",
        *METRICS,
        "median ms",
        "p95 ms",
        "rows",
        "add s",
        "MB disk",
        "MB peak",
    ]
    rows: list[list[object]] = []
    for name, one in figures["sets"].items():
        asked = (
            one["questions"] if one["questions"] == one["of"] else f"{one['questions']:,} of {one['of']:,}"
        )
        for mode in reversed(one["modes"]):
            got = one["modes"][mode]
            cost = [one["rows"], one["add_s"], one["disk_mb"], one["peak_mb"]]
            rows.append(
                [name, mode, asked, *(got[m] for m in METRICS), got["median_ms"], got["p95_ms"], *cost]
            )
            if kinds and len(got["kinds"]) > 1:
                for kind, some in got["kinds"].items():
                    rows.append([f"  {kind}", mode, some["n"], *(some[m] for m in METRICS), *[""] * 6])
    return grid(head, rows)


def halves(figures: Mapping[str, Any]) -> str:
    """What fusing costs or gains against the better of its halves."""
    lines = []
    for name, one in figures["sets"].items():
        if set(MODES) <= set(one["modes"]):
            metric = "hit@1" if name == "finglm-reports" else "R@5"
            got = {mode: one["modes"][mode][metric] for mode in MODES}
            better = max(got["keyword"], got["vector"])
            lines.append(
                [name, metric, got["keyword"], got["vector"], got["hybrid"], f"{got['hybrid'] - better:+.3f}"]
            )
    return (
        grid(["set", "metric", "keyword", "vector", "hybrid", "hybrid − better half"], lines) if lines else ""
    )


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Per set, mode and metric: mean before and after, and the difference with its 95 % interval; * excludes 0."""
    rows: list[list[object]] = []
    for name, one in after["sets"].items():
        other = before["sets"].get(name)
        if other is None or other["each"]["kind"] != one["each"]["kind"]:
            rows.append([name, "", "not the same questions in both files", *[""] * 4])
            continue
        for mode in reversed(one["modes"]):
            for metric in ("R@5", "MRR", "hit@1") if mode in other["modes"] else ():
                old, new = other["each"][mode][metric], one["each"][mode][metric]
                mean, low, high = paired(old, new)
                sure = "*" if low > 0 or high < 0 else ""
                rows.append(
                    [name, mode, metric, sum(old) / len(old), sum(new) / len(new), f"{mean:+.3f}{sure}",
                     f"{low:+.3f} … {high:+.3f}"]
                )  # fmt: skip
    return grid(["set", "mode", "metric", "before", "after", "difference", "95 % interval"], rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=sets.DATA, help="folder of the sets (default ../shared/data)"
    )
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"of {', '.join(sets.SETS)}")
    parser.add_argument("--mode", choices=(*MODES, "all"), default="hybrid")
    parser.add_argument(
        "--maxq", type=int, default=0, metavar="N", help="at most N questions a set, evenly spread"
    )
    parser.add_argument("--limit", type=int, default=LIMIT, help="rows asked for (default 50)")
    parser.add_argument("--kinds", action="store_true", help="also by kind of question")
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE", help="of the plugin")
    parser.add_argument("--json", type=Path, metavar="FILE", help="figures, those of every question included")
    parser.add_argument("--report", type=Path, metavar="STEM", help="write STEM.md and STEM.json, means only")
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="two files of --json"
    )
    options = parser.parse_args(argv)
    if options.compare:
        print(compare(*(json.loads(path.read_text(encoding="utf-8")) for path in options.compare)))
        return 0
    found, missing = sets.find(options.data, [name for name in options.only.split(",") if name])
    for name in missing:
        print(f"{name}: not in {options.data}, left out", file=sys.stderr)
    if not found:
        print(f"no retrieval set in {options.data}; name a folder with --data", file=sys.stderr)
        return 1
    modes = MODES if options.mode == "all" else (options.mode,)
    settings = {key: _value(text) for key, _, text in (pair.partition("=") for pair in options.setting)}
    figures: dict[str, Any] = {"machine": machine(), "settings": settings, "limit": options.limit, "sets": {}}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for one in found:
            work = pool.submit(measure, one, modes, settings, options.maxq, options.limit)
            figures["sets"][one.name] = work.result()
            shown = ", ".join(
                f"{m} {got['R@5']:.3f}" for m, got in figures["sets"][one.name]["modes"].items()
            )
            print(f"{one.name}: R@5 {shown}", file=sys.stderr, flush=True)
    after = machine()
    parts = [table(figures, kinds=options.kinds), halves(figures), machine_line(figures["machine"], after)]
    print("\n\n".join(part for part in parts if part))
    if options.json:
        options.json.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    if options.report:
        for one in figures["sets"].values():
            del one["each"]
        publish(options.report, "\n\n".join(["# Recall on retrieval sets", *filter(None, parts)]), figures)
    return 0


def _summary(
    each: Sequence[Mapping[str, float]], times: Sequence[float], kinds: Sequence[str]
) -> dict[str, Any]:
    by_kind = {
        kind: [row for row, its in zip(each, kinds, strict=True) if its == kind]
        for kind in dict.fromkeys(kinds)
    }
    return {
        **means(each),
        "median_ms": round(quantile(times, 0.5), 2),
        "p95_ms": round(quantile(times, 0.95), 2),
        "kinds": {kind: {"n": len(some), **means(some)} for kind, some in by_kind.items()},
    }


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


if __name__ == "__main__":
    sys.exit(main())
