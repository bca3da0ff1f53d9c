"""The same rows and questions for this plugin, for other memories that are installed, and for Hermes alone: one run.

    python bench/peers.py --make ~/peers                 make a venv for each peer that has none
    python bench/peers.py --venvs ~/peers --seconds 150 --report bench/results/peers

Every system runs in its own interpreter behind bench/peer_driver.py and goes through its real write and recall paths, no
model, no network. A row is a turn of the user; a question is the first message of a new session; what counts is the text
the model would see. Each part of each system stops after --seconds: what it reached is in the table. Cases of other owners
count for every system although only this plugin is told who asks. Peers without an interpreter are left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import cases, finance, sets
from bench.case_file import Case, Item, Result, Shown, read_bank, read_cases, score
from bench.figures import evenly, grid, machine, machine_line, means, publish, quantile, ranked
from bench.peer_systems import Peer, Running, Seen, interpreters, make
from hermes_memory_plugin.recall.budget import tokens

SLICE, ASKED = 500, 150
LARGEST = 10_000


class Bench:
    """All parts for one system."""

    def __init__(self, peer: Peer, python: Path, folder: Path, seconds: float) -> None:
        self.peer = peer
        self.python = python
        self.home = folder / peer.name / "home"
        self.kept = folder / peer.name / "kept"
        self.seconds = seconds

    def fresh(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        if self.peer.setup:
            command = [part.format(home=self.home, python=self.python) for part in self.peer.setup]
            subprocess.run([str(self.python), *command], check=True, capture_output=True)

    def start(self) -> Running:
        return Running(self.peer, self.python, self.home)

    def cases(self, file: Path, bank: Path) -> dict[str, Any]:
        """Pass and cost over the cases, each in the home the bank was stored in."""
        items, known = read_bank(bank), read_cases(file)
        results: list[Result] = []
        if self.peer.name == "ours":  # its rows have layers, owners and fields
            results = list(cases.run(known, items))
        else:
            self.fresh()
            with self.start() as system:
                system.add([item.text for item in items])
            shutil.rmtree(self.kept, ignore_errors=True)
            shutil.copytree(self.home, self.kept, symlinks=True)
            stop = time.perf_counter() + 2 * self.seconds
            stride = 7  # kinds stand together: a run cut short still has some of each
            for case in [case for start in range(stride) for case in known[start::stride]]:
                if time.perf_counter() > stop:
                    break
                results.append(self._case(case, items))
        figures = cases.summary(results)
        everything = figures["kinds"]["ALL"]
        empty = [one.checks["empty"] for one in results if one.case.expect_empty]
        return {
            "n": len(results),
            "of": len(known),
            **{name: everything[name] for name in ("pass", "recall", "no_bad", "order")},
            "small_talk": statistics.fmean(empty) if empty else None,
            "small_talk_tokens": figures["tokens_on_empty"] / len(empty) if empty else None,
            "tokens": figures["tokens_mean"],
            "kinds": {kind: {"n": row["n"], "pass": row["pass"]} for kind, row in figures["kinds"].items()},
        }

    def _case(self, case: Case, bank: Sequence[Item]) -> Result:
        shutil.rmtree(self.home)
        shutil.copytree(self.kept, self.home, symlinks=True)
        with self.start() as system:
            system.add([item.text for item in case.setup])
            blocks, spent = system.recall(case.query)
        seen = Seen({item.id: item.text for item in (*bank, *case.setup)})
        shown = Shown(
            tuple(seen.ids(blocks, case.must)[:5]), tokens=tokens("\n".join(blocks)), milliseconds=spent
        )
        return Result(case, shown, score(case, shown))

    def dialogue(self, one: sets.Retrieval, most: int) -> dict[str, Any]:
        """Evidence turns found, over the conversations it took in time."""
        each: list[dict[str, float]] = []
        done = 0
        groups = list(one.groups())
        stop = time.perf_counter() + 2 * self.seconds
        for group in groups:
            rows = {str(row["id"]): str(row["text"]) for row in group.rows}
            self.fresh()
            with self.start() as system:
                if len(system.add(list(rows.values()), max(1.0, stop - time.perf_counter()))) < len(rows):
                    break
                seen = Seen(rows)
                for question in evenly(group.questions, most // len(groups)):
                    blocks, _ = system.recall(question["text"], wide=True)
                    each.append(ranked(seen.ids(blocks, question["relevant"])[:10], question["relevant"]))
            done += 1
        return {"conversations": done, "of": len(groups), "questions": len(each), **means(each)}

    def slice(self, rows: Mapping[str, str], asked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A set small enough for every system."""
        self.fresh()
        each = []
        with self.start() as system:
            taken = len(system.add(list(rows.values()), self.seconds))
            seen = Seen(rows)
            stop = time.perf_counter() + self.seconds
            for question in asked if taken == len(rows) else ():
                if time.perf_counter() > stop:
                    break
                blocks, _ = system.recall(question["text"], wide=True)
                each.append(ranked(seen.ids(blocks, question["relevant"]), question["relevant"]))
        return {"rows": taken, "questions": len(each), **means(each)}

    def load(self) -> dict[str, Any]:
        """What one more row and one recall cost as rows grow, and the first recall of a new process on 1,000."""
        rows = [str(fact["statement"]) for fact in finance.facts(LARGEST)]
        asked = finance.questions(30)
        self.fresh()
        writes: list[float] = []
        recalls: dict[int, float] = {}
        first: list[float] = []
        used: list[float] = []
        for stage in (100, 1_000, LARGEST):
            with self.start() as system:
                left = self.seconds - sum(writes) / 1e3
                if left > 0:
                    writes += system.add(rows[len(writes) : stage], left)
                system.settle()
                for question in asked[:3]:
                    system.recall(question)
                recalls[len(writes)] = quantile([system.recall(question)[1] for question in asked], 0.5)
            if stage == 1_000:
                for question in asked[:5]:
                    start = time.perf_counter()
                    with self.start() as system:
                        system.recall(question)
                        first.append((time.perf_counter() - start) * 1e3)
                        used.append(system.cpu() * 1e3)
        return {
            "rows": len(writes),
            "write_100_ms": statistics.median(writes[:100]),
            "write_largest_ms": statistics.median(writes[-100:]),
            "recall_ms": recalls,
            "first_ms": statistics.median(first),
            "first_cpu_ms": statistics.median(used),
        }


def slices(data: Path) -> Iterator[tuple[str, dict[str, str], list[dict[str, Any]]]]:
    """finglm with the same companies' other years, and paraphrases among their like: (name, rows, questions)."""
    found, _ = sets.find(data, ["finglm-reports", "paraphrase-fin"])
    for one in found:
        rows: dict[str, str] = {}
        asked: list[dict[str, Any]] = []
        corpus = {row["id"]: row for group in one.groups() for row in group.rows}
        by_code: dict[str, list[str]] = {}
        for id_, row in corpus.items():
            by_code.setdefault(str(row.get("code") or id_), []).append(id_)
        for question in evenly([q for group in one.groups() for q in group.questions], ASKED):
            wanted = [
                near for id_ in question["relevant"] for near in by_code[str(corpus[id_].get("code") or id_)]
            ]
            if len(rows.keys() | set(wanted)) <= SLICE:
                rows |= {id_: corpus[id_]["text"] for id_ in wanted}
                asked.append(dict(question))
        for id_ in evenly(list(corpus), SLICE):
            if len(rows) < SLICE:
                rows.setdefault(id_, corpus[id_]["text"])
        yield one.name, rows, asked


def table(figures: Mapping[str, Any]) -> str:
    """All systems side by side."""
    head = [
        "system", "cases", "pass", "recall", "no_bad", "order", "nothing on small talk", "tokens there", "tokens",
    ]  # fmt: skip
    parts = []
    for name in ("fixtures", "open"):
        rows = []
        for system, one in figures["systems"].items():
            if got := one.get(f"cases {name}"):
                asked = got["n"] if got["n"] == got["of"] else f"{got['n']} of {got['of']}"
                fields = ("pass", "recall", "no_bad", "order", "small_talk", "small_talk_tokens", "tokens")
                rows.append([system, asked, *(got[field] for field in fields)])
        if rows:
            title = "fixtures/cases.jsonl" if name == "fixtures" else "cases-open"
            parts += [f"## Cases, {title}\n", grid(head, rows), ""]
    rows = []
    for system, one in figures["systems"].items():
        talk, load = one.get("locomo") or {}, one["load"]
        recalls = [f"{ms:.1f} at {count:,}" for count, ms in load["recall_ms"].items()]
        rows.append(
            [system, talk.get("R@5"), talk.get("MRR"), f"{talk.get('conversations', 0)} of {talk.get('of', 0)}",
             (one.get("finglm-reports") or {}).get("hit@1"), (one.get("paraphrase-fin") or {}).get("R@5"),
             load["write_100_ms"], load["write_largest_ms"], load["rows"], "; ".join(recalls), load["first_ms"], load["first_cpu_ms"]]
        )  # fmt: skip
    head = [
        "system", "LoCoMo R@5", "MRR@10", "conversations", "finglm hit@1", "paraphrase R@5", "write p50 ms, 100 rows",
        "at the largest", "rows reached", "recall p50 ms", "first recall with start, ms", "of it CPU",
    ]  # fmt: skip
    return "\n".join([*parts, "## Retrieval, time\n", grid(head, rows)])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--venvs", type=Path, help="folder of the peers' venvs, one by name")
    parser.add_argument("--make", type=Path, metavar="DIR", help="make those venvs, and end")
    parser.add_argument("--data", type=Path, default=sets.DATA)
    parser.add_argument("--seconds", type=float, default=150, help="most for each part of each system")
    parser.add_argument("--maxq", type=int, default=200, help="questions of LoCoMo")
    parser.add_argument("--only", default="", help="systems, by name")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--report", type=Path, metavar="STEM", help="write STEM.md and STEM.json")
    options = parser.parse_args(argv)
    if options.make:
        make(options.make)
        return 0
    figures: dict[str, Any] = {"machine": machine(), "seconds": options.seconds, "systems": {}}
    talk, missing = sets.find(options.data, ["locomo"])
    small = list(slices(options.data))
    opened = [options.data / "cases-open.jsonl", options.data / "cases-open-bank.jsonl"]
    for name in [*missing, *(path.stem for path in opened[:1] if not path.exists())]:
        print(f"{name}: not in {options.data}, left out", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        for peer, python in interpreters(options.venvs, [name for name in options.only.split(",") if name]):
            bench = Bench(peer, python, Path(folder), options.seconds)
            got = figures["systems"][peer.name] = {"load": bench.load()}
            got["cases fixtures"] = bench.cases(
                cases.FIXTURES / "cases.jsonl", cases.FIXTURES / "cases-bank.jsonl"
            )
            if opened[0].exists():
                got["cases open"] = bench.cases(*opened)
            for one in talk:
                got["locomo"] = bench.dialogue(one, options.maxq)
            for name, rows, asked in small:
                got[name] = bench.slice(rows, asked)
            print(f"{peer.name}: {json.dumps(got, ensure_ascii=False)[:300]}", file=sys.stderr, flush=True)
    text = f"{table(figures)}\n\n{machine_line(figures['machine'], machine())}"
    print(text)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.report:
        publish(options.report, f"# Side by side\n\n{text}", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
