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
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench import cases, finance, sets
from bench.case_file import Case, Item, Result, Shown, read_bank, read_cases, score
from bench.figures import evenly, grid, machine, machine_line, means, publish, quantile, ranked
from hermes_memory_plugin.recall.budget import tokens
from hermes_memory_plugin.recall.segment import tokens as words_of

DRIVER = Path(__file__).with_name("peer_driver.py")
SLICE, ASKED = 500, 150
LARGEST = 10_000
_LETTERS = re.compile(r"\W+")
_ESCAPE = re.compile(r'\\[nrt"]')


@dataclass(frozen=True, slots=True)
class Peer:
    """A system, and what a home of it needs before its first start."""

    name: str
    package: str = ""
    """What pip installs beside the host; empty for those that run in our own interpreter."""
    entry: str = ""
    setup: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    """The tool that stores a row, for a system whose turns are not found in another session."""


PEERS = (
    Peer("ours"),
    Peer("bm25"),
    Peer("plain"),
    Peer("nyx", "nyx-memory==7.16.0", "nyx"),
    Peer(
        "scope-recall",
        "hermes-scope-recall==3.15.1",
        "scope-recall",
        (
            "-m", "scope_recall.maintenance.cli", "apply-install", "--host", "hermes", "--instance-root", "{home}",
            "--target-plugin-dir", "{home}/plugins/scope-recall", "--agent-id", "default", "--python", "{python}",
        ),
    ),
    Peer("mnemosyne", "mnemosyne-hermes==0.7.6", "mnemosyne", tool=("mnemosyne_remember", "content", "scope", "global")),
)  # fmt: skip
HOST = "hermes-agent==0.19.0"


class Running:
    """One process of one system on one home."""

    def __init__(self, peer: Peer, python: Path, home: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [str(python), str(DRIVER), peer.entry or peer.name, str(home), *peer.tool],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            env=environment | {"HERMES_HOME": str(home)},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._ask({"close": True})
            self._process.wait(30)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def add(self, rows: Sequence[str], seconds: float = 1e9) -> list[float]:
        """Milliseconds of each row taken before the time was over."""
        taken: list[float] = self._ask({"add": list(rows), "seconds": seconds})["ms"]
        return taken

    def cpu(self) -> float:
        """Seconds of processor time it has used; 0.0 where nobody tells."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self, most: float = 60.0) -> None:
        """Wait until what it does in the background is done: less than a tenth of a core for a second."""
        stop, before = time.perf_counter() + most, -1.0
        while time.perf_counter() < stop and (now := self.cpu()) - before > 0.1:
            before = now
            time.sleep(1)

    def recall(self, question: str, *, wide: bool = False) -> tuple[list[str], float]:
        """What came back, and the milliseconds it took."""
        words = [word for word in words_of(question) if word.isalnum() and len(word) > 1]
        got = self._ask({"recall": question, "words": words, "wide": wide})
        return got["blocks"], got["ms"]

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the system ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Seen:
    """Which rows a text shows, in the order they stand in it."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._ids: dict[str, list[str]] = {}
        for id_, text in rows.items():
            self._ids.setdefault(_plain(text)[:120], []).append(id_)

    def ids(self, blocks: Sequence[str], wanted: Sequence[str] = ()) -> list[str]:
        """One id for each row seen: of equal rows the one that is wanted."""
        shown = _plain("\n".join(blocks))
        places: dict[str, int] = {}
        for key, ids in self._ids.items():
            place = shown.find(key) if key else -1
            if place < 0 and len(key) > 40:  # cut by the system
                place = shown.find(key[:40]) if self._one(key[:40]) else -1
            if place >= 0:
                places[next((id_ for id_ in ids if id_ in wanted), ids[0])] = place
        return sorted(places, key=lambda id_: places[id_])

    def _one(self, head: str) -> bool:
        return sum(key.startswith(head) for key in self._ids) == 1


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


def interpreters(venvs: Path | None, only: Sequence[str]) -> Iterator[tuple[Peer, Path]]:
    """The systems that can run here."""
    for peer in PEERS:
        if only and peer.name not in only:
            continue
        python = (
            Path(sys.executable)
            if venvs is None or not peer.package
            else venvs / peer.name / "bin" / "python"
        )
        if peer.package and (venvs is None or not python.exists()):
            print(
                f"{peer.name}: not installed, left out (--make DIR installs {peer.package})", file=sys.stderr
            )
            continue
        yield peer, python


def make(venvs: Path) -> None:
    """A venv for each peer, with the host beside it."""
    for peer in PEERS:
        folder = venvs / peer.name
        if peer.package and not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", HOST, peer.package]
            if subprocess.run(pip, check=False).returncode:
                shutil.rmtree(folder)
                print(f"{peer.package} cannot be installed here", file=sys.stderr)


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


def _plain(text: str) -> str:
    return _LETTERS.sub("", _ESCAPE.sub(" ", text)).casefold()


if __name__ == "__main__":
    sys.exit(main())
