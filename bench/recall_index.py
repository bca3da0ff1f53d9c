"""The read index at 1k, 10k and 100k rows, beside tantivy where that is installed (decision 0002).

    python bench/recall_index.py [--rows 1000,10000,100000] [--json FILE]

Rows are synthetic facts (15 to 50 words, Zipf), queries ten words; both engines answer for one owner, live and unexpired
rows only, and fetch the best twenty. Times in milliseconds; rows/s: added and committed per second of processor time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory_plugin.recall.index import Add, Change, Index, JournalTail, Row
from hermes_memory_plugin.recall.index_writer import IndexWriter
from hermes_memory_plugin.store.journal import Journal

NOW = 1_790_000_000_000_000
VOCABULARY = 50_000
OWNERS = ("local", "local", "local", "telegram:1", "shared")
MINE = frozenset({"local", "shared"})
QUERIES = 200


def words(count: int, seed: int = 1) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, VOCABULARY + 1) ** 1.05
    steps = np.cumsum(share / share.sum())
    lengths = rng.integers(15, 51, count)
    flat = np.searchsorted(steps, rng.random(int(lengths.sum()))).tolist()
    rows, at = [], 0
    for length in lengths.tolist():
        counted = Counter(f"w{word}" for word in flat[at : at + length])
        rows.append({word: float(times) for word, times in counted.items()})
        at += length
    return rows


def queries() -> list[list[str]]:
    rng = np.random.default_rng(7)
    ranks = np.exp(rng.uniform(np.log(5), np.log(20_000), (QUERIES, 10))).astype(int)
    return [[f"w{rank}" for rank in row] for row in ranks.tolist()]


def row(number: int, weights: dict[str, float], rows: int, id_: str = "") -> Row:
    return Row(
        id=id_ or f"r{number}",
        layer="L1",
        text="贵州茅台 2025 年营业收入 1741 亿元，同比增长 15.7%",
        owner=OWNERS[number % len(OWNERS)],
        source="get_financials",
        weights=weights,
        created=NOW + number,
        as_of=NOW + number,
        expires=NOW - 1 if number % 50 == 0 else None,
        fact_key=f"k{number % max(1, rows * 3 // 4)}",
        trust=4,
        extra={"subject": "600519.SH", "metric": "revenue", "period": "2025"},
    )


def quantiles(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "p50": round(statistics.median(ordered), 3),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
    }


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1_000


def processor_time(action: Callable[[], object]) -> float:
    """Seconds of processor time, all threads together: the same whatever else runs."""
    start = time.process_time()
    action()
    return time.process_time() - start


def times(action: Callable[[Any], object], items: Iterable[Any]) -> list[float]:
    """How long the action took for each item."""
    taken = []
    for item in items:
        start = time.perf_counter()
        action(item)
        taken.append((time.perf_counter() - start) * 1_000)
    return taken


def size_mb(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 2)


def child(code: str, *arguments: str) -> dict[str, Any]:
    """What a fresh process prints as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


def cold(code: str, *arguments: str) -> dict[str, float]:
    """Median of five fresh processes."""
    runs = [child(code, *arguments) for _ in range(5)]
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


# -- ours ----------------------------------------------------------------------------------------------------------

_COLD_OURS = """
import json, sys, time
from pathlib import Path
t0 = time.perf_counter()
import numpy
t1 = time.perf_counter()
from hermes_memory_plugin.recall.index import Index, JournalTail
t2 = time.perf_counter()
index = Index.open(Path(sys.argv[1]), tail=JournalTail(Path(sys.argv[1]).parent / "journal", lambda record: []))
index.refresh()
t3 = time.perf_counter()
view = index.view({"local", "shared"}, now_us=int(sys.argv[2]))
view.rows(view.top(view.bm25(sys.argv[3].split()), 20))
t4 = time.perf_counter()
print(json.dumps({"library": (t1 - t0) * 1e3, "module": (t2 - t1) * 1e3, "open": (t3 - t2) * 1e3, "first": (t4 - t3) * 1e3}))
"""

_FOLLOW_OURS = """
import json, sys, time
from pathlib import Path
from hermes_memory_plugin.recall.index import Add, Index, JournalTail, Row
rows_of = lambda record: [Add(Row(id=record.data["id"], layer="L1", text="", weights={record.data["id"]: 1.0}, created=record.at))]
index = Index.open(Path(sys.argv[1]), tail=JournalTail(Path(sys.argv[1]).parent / "journal", rows_of))
print("ready", flush=True)
late = []
for number in range(int(sys.argv[2])):
    while True:
        index.refresh(budget_ms=50)
        row = index.find(f"fresh{number}", None)
        if row is not None:
            late.append((time.time_ns() // 1000 - row.created) / 1000)
            break
        time.sleep(0.01)
print(json.dumps(late))
"""


def ours(home: Path, documents: list[dict[str, float]], vectors: bool) -> dict[str, Any]:
    count = len(documents)
    tail = JournalTail(home / "journal", _fresh)
    index = Index.open(home / "index", tail=tail)
    writer = IndexWriter(index)
    result: dict[str, Any] = {"rows": count}
    rows = [row(number, weights, count) for number, weights in enumerate(documents)]
    if vectors:
        rng = np.random.default_rng(5)
        for one in rows:
            object.__setattr__(one, "vector", rng.integers(-127, 128, 256, dtype=np.int8))
            object.__setattr__(one, "vector_scale", 1 / 1170)

    def add_all() -> None:
        index.change([Add(one) for one in rows], stamp=NOW)
        index.corpus.flush()

    def add_and_commit() -> None:
        add_all()
        start = time.perf_counter()
        writer.commit()
        result["commit_all"] = round((time.perf_counter() - start) * 1_000, 1)

    result["rows_per_s"] = round(count / processor_time(add_and_commit))
    result["disk_mb"] = size_mb(home / "index")

    def answer(query: list[str]) -> None:
        index.refresh(budget_ms=50)
        view = index.view(MINE, now_us=NOW)
        view.rows(view.top(view.bm25(query), 20))

    asked = queries()
    for query in asked[:20]:
        answer(query)
    result["query"] = quantiles(times(answer, asked))
    if vectors:
        ray = np.random.default_rng(6).standard_normal(256).astype(np.float32)
        ray /= np.linalg.norm(ray)

        def both(query: list[str]) -> None:
            view = index.view(MINE, now_us=NOW)
            view.rows(view.top(view.bm25(query) + 0.2 * view.cosine(ray), 20))

        result["query_with_cosine"] = quantiles(times(both, asked[:60]))

    def show_one(number: int) -> None:
        index.change([Add(row(number * 5, documents[number], count, f"own{number}"))])
        index.view(MINE, now_us=NOW)

    committed = []
    for number in range(30):
        index.change([Add(row(number * 5, documents[number], count, f"late{number}"))])
        committed.append(timed(writer.commit))
    result["add_one_visible"] = quantiles(times(show_one, range(30)))
    result["add_one_on_disk"] = quantiles(committed)
    result["cold"] = cold(_COLD_OURS, str(home / "index"), str(NOW), " ".join(asked[0]))
    journal = Journal(home / "journal")
    result["follow_other_process"] = _follow(
        _FOLLOW_OURS, str(home / "index"), lambda id_: journal.append("fact", {"id": id_})
    )
    return result


def _fresh(record: Any) -> Iterable[Change]:
    return [
        Add(
            Row(
                id=record.data["id"], layer="L1", text="", weights={record.data["id"]: 1.0}, created=record.at
            )
        )
    ]


def _follow(code: str, folder: str, write: Callable[[str], object], count: int = 30) -> dict[str, float]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, folder, str(count)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    rng = random.Random(3)
    for number in range(count):
        write(f"fresh{number}")
        time.sleep(rng.uniform(0.03, 0.06))
    out, _ = process.communicate(timeout=120)
    return quantiles(json.loads(out.splitlines()[-1]))


# -- tantivy -------------------------------------------------------------------------------------------------------

_COLD_TANTIVY = """
import json, sys, time
t0 = time.perf_counter()
import tantivy
t1 = time.perf_counter()
sys.path.insert(0, sys.argv[4])
index = tantivy.Index.open(sys.argv[1])
searcher = index.searcher()
t3 = time.perf_counter()
Query, Occur, schema = tantivy.Query, tantivy.Occur, index.schema
must = Query.boolean_query([(Occur.Should, Query.term_query(schema, "tok", word, "freq")) for word in sys.argv[3].split()])
[searcher.doc(at) for _, at in searcher.search(must, 20).hits]
t4 = time.perf_counter()
print(json.dumps({"library": (t1 - t0) * 1e3, "module": 0.0, "open": (t3 - t1) * 1e3, "first": (t4 - t3) * 1e3}))
"""

_FOLLOW_TANTIVY = """
import json, sys, time
import tantivy
index = tantivy.Index.open(sys.argv[1])
print("ready", flush=True)
late = []
for number in range(int(sys.argv[2])):
    while True:
        index.reload()
        searcher = index.searcher()
        hits = searcher.search(tantivy.Query.term_query(index.schema, "id", f"fresh{number}", "basic"), 1).hits
        if hits:
            late.append((time.time_ns() // 1000 - searcher.doc(hits[0][1])["created"][0]) / 1000)
            break
        time.sleep(0.01)
print(json.dumps(late))
"""


class Tantivy:
    """The same rows in tantivy: words joined by blanks, whole term frequencies, filters as scoreless musts."""

    def __init__(self, folder: Path) -> None:
        import tantivy

        self.lib = tantivy
        builder = tantivy.SchemaBuilder()
        for name in ("id", "owner", "layer"):
            builder.add_text_field(name, stored=name == "id", tokenizer_name="raw", index_option="basic")
        builder.add_boolean_field("live", indexed=True)
        builder.add_integer_field("expires", indexed=True, fast=True)
        builder.add_integer_field("created", stored=True, fast=True)
        builder.add_text_field("body", stored=True, tokenizer_name="raw", index_option="basic")
        builder.add_text_field("tok", tokenizer_name="whitespace", index_option="freq")
        folder.mkdir(parents=True)
        self.index = tantivy.Index(builder.build(), str(folder))
        self.writer = self.index.writer(50_000_000, 1)

    def add(self, one: Row, *, live: bool = True) -> None:
        text = " ".join(word for word, times in one.weights.items() for _ in range(max(1, round(times))))
        self.writer.add_document(
            self.lib.Document(
                id=one.id, owner=one.owner, layer=one.layer, live=live, created=one.created, body=one.text, tok=text,
                expires=2**62 if one.expires is None else one.expires,
            )
        )  # fmt: skip

    def commit(self) -> None:
        self.writer.commit()
        self.index.reload()

    def query(self, asked: Iterable[str], owners: Iterable[str]) -> Any:
        query, occur, schema = self.lib.Query, self.lib.Occur, self.index.schema
        filters = [
            query.term_set_query(schema, "owner", list(owners)),
            query.term_query(schema, "live", True, "basic"),
            query.range_query(schema, "expires", self.lib.FieldType.Integer, lower_bound=NOW + 1),
        ]
        any_word = [(occur.Should, query.term_query(schema, "tok", word, "freq")) for word in asked]
        return query.boolean_query(
            [(occur.Must, query.const_score_query(one, 0.0)) for one in filters]
            + [(occur.Must, query.boolean_query(any_word))]
        )

    def answer(self, asked: Iterable[str], owners: Iterable[str] = MINE) -> list[tuple[float, str]]:
        searcher = self.index.searcher()
        hits = searcher.search(self.query(asked, owners), 20).hits
        return [(score, searcher.doc(at)["id"][0]) for score, at in hits]


def tantivy_figures(home: Path, documents: list[dict[str, float]]) -> dict[str, Any]:
    count = len(documents)
    engine = Tantivy(home / "tantivy")
    result: dict[str, Any] = {"rows": count}
    keys = max(1, count * 3 // 4)
    rows = [row(number, weights, count) for number, weights in enumerate(documents)]

    def add_all() -> None:
        for number, one in enumerate(rows):
            engine.add(one, live=number + keys >= count)

    def add_and_commit() -> None:
        add_all()
        engine.commit()

    result["rows_per_s"] = round(count / processor_time(add_and_commit))
    asked = queries()
    for query in asked[:20]:
        engine.answer(query)
    result["query"] = quantiles(times(engine.answer, asked))

    def show_one(number: int) -> None:
        engine.add(row(number * 5, documents[number], count, f"own{number}"))
        engine.commit()

    result["add_one_visible"] = result["add_one_on_disk"] = quantiles(times(show_one, range(30)))
    result["disk_mb"] = size_mb(home / "tantivy")
    result["cold"] = cold(_COLD_TANTIVY, str(home / "tantivy"), str(NOW), " ".join(asked[0]), "")

    def write(id_: str) -> None:
        engine.add(Row(id=id_, layer="L1", text="", weights={id_: 1.0}, created=time.time_ns() // 1000))
        engine.commit()

    result["follow_other_process"] = _follow(_FOLLOW_TANTIVY, str(home / "tantivy"), write)
    return result


def requirements(home: Path) -> list[dict[str, str]]:
    """What each engine does with the same three rows, before and after another owner stores fifty."""
    engine = Tantivy(home / "tantivy")
    index = Index.open(home / "index", tail=JournalTail(home / "journal", lambda record: []))
    mine = [{"pe": 1.0, "moutai": 0.5}, {"pe": 2.0, "bank": 1.0}, {"roe": 1.0}]
    rows = [Row(id=f"r{n}", layer="L1", text="", weights=weights) for n, weights in enumerate(mine)]
    theirs = [Row(id=f"x{n}", layer="L1", text="", owner="other", weights={"pe": 40.0}) for n in range(50)]
    seen = []
    for batch in (rows, theirs):
        for one in batch:
            engine.add(one)
        engine.commit()
        index.change([Add(one) for one in batch])
        view = index.view({"local"}, now_us=NOW)
        scores = view.bm25(["pe"])
        best = [(float(scores[n]), view.row(n).id) for n in view.top(scores, 5)]
        searcher = engine.index.searcher()
        seen.append((best, view.df("pe"), engine.answer(["pe"], ["local"]), searcher.doc_freq("tok", "pe")))

    def text(hits: list[tuple[float, str]]) -> str:
        return ", ".join(f"{id_} {score:.3f}" for score, id_ in hits)

    (own, own_df, lib, lib_df), (own2, own_df2, lib2, lib_df2) = seen
    return [
        {
            "requirement": "scores of my rows once another owner stores 50",
            "ours": f"{text(own)} → {text(own2)}",
            "tantivy": f"{text(lib)} → {text(lib2)}",
        },
        {
            "requirement": "document frequency of a word among my rows",
            "ours": f"{own_df} → {own_df2}",
            "tantivy": f"{lib_df} → {lib_df2}",
        },
        {"requirement": "k1 1.5, b 0.75", "ours": "yes", "tantivy": "k1 1.2 is a constant of the library"},
        {"requirement": "fractional term weights", "ours": "float16", "tantivy": "whole repetitions only"},
        {
            "requirement": "cosine of every row in the same pass",
            "ours": "yes",
            "tantivy": "needs a matrix beside it",
        },
    ]


# -- report --------------------------------------------------------------------------------------------------------


def machine_reference() -> float:
    """A plain product of float32 100,000 × 256 and a vector."""
    matrix = np.ones((100_000, 256), np.float32)
    return min(timed(lambda: matrix @ matrix[0]) for _ in range(5))


def show(results: dict[str, list[dict[str, Any]]], checks: list[dict[str, str]], reference: float) -> None:
    head = f"{'engine':<10}{'rows':>8}{'rows/s':>9}{'query p50/p95':>16}{'+cosine p50/p95':>17}{'+1 visible':>12}{'+1 on disk':>12}{'follow p95':>12}{'open+first':>12}{'import':>9}{'MB':>8}"
    print(head)
    for engine, figures in results.items():
        for one in figures:
            cosine = one.get("query_with_cosine")
            start = one["cold"]
            print(
                f"{engine:<10}{one['rows']:>8}{one['rows_per_s']:>9}"
                f"{one['query']['p50']:>8.2f}/{one['query']['p95']:<7.2f}"
                + (f"{cosine['p50']:>9.2f}/{cosine['p95']:<7.2f}" if cosine else f"{'–':>17}")
                + f"{one['add_one_visible']['p50']:>12.2f}{one['add_one_on_disk']['p50']:>12.2f}"
                f"{one['follow_other_process']['p95']:>12.1f}{start['open'] + start['first']:>12.1f}"
                f"{start['library']:>5.0f}+{start['module']:<3.0f}{one['disk_mb']:>8.1f}"
            )
    print(f"\nreference of this machine: float32 100,000 × 256 times a vector {reference:.1f} ms\n")
    for check in checks:
        print(f"- {check['requirement']}: ours {check['ours']}; tantivy {check['tantivy']}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="1000,10000,100000")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-vectors", action="store_true")
    arguments = parser.parse_args()
    have_tantivy = importlib.util.find_spec("tantivy") is not None
    results: dict[str, list[dict[str, Any]]] = {"ours": []}
    if have_tantivy:
        results["tantivy"] = []
    reference = machine_reference()
    checks: list[dict[str, str]] = []
    for count in (int(number) for number in arguments.rows.split(",")):
        documents = words(count)
        for name in results:
            home = Path(tempfile.mkdtemp(prefix="recall-index-"))
            try:
                figures = (
                    ours(home, documents, not arguments.no_vectors)
                    if name == "ours"
                    else tantivy_figures(home, documents)
                )
                results[name].append(figures)
            finally:
                shutil.rmtree(home)
    if have_tantivy:
        home = Path(tempfile.mkdtemp(prefix="recall-index-"))
        checks = requirements(home)
        shutil.rmtree(home)
    show(results, checks, reference)
    if arguments.json:
        machine = {"cpus": os.cpu_count(), "load": os.getloadavg()[0], "dot_100k_256_ms": round(reference, 2)}
        arguments.json.write_text(
            json.dumps(
                {"machine": machine, "engines": results, "checks": checks}, indent=1, ensure_ascii=False
            )
        )


if __name__ == "__main__":
    main()
