"""Whatever happens in whatever order, the index answers as a plain list of rows would."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.layers.facts import KeyRank, resolve
from hermes_memory_plugin.recall.index import Index
from hermes_memory_plugin.recall.index_writer import IndexWriter
from hermes_memory_plugin.store.tails import Record

from .index_kit import NOW, Home, open_index

WORDS = ("pe", "茅台", "~2025q1", "dividend", "银行")
OWNERS = ("local", "telegram:1", "shared")

facts = st.fixed_dictionaries(
    {
        "id": st.sampled_from([f"f{number}" for number in range(12)]),
        "owner": st.sampled_from(OWNERS),
        "words": st.dictionaries(
            st.sampled_from(WORDS), st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), min_size=1
        ),
        "fact_key": st.sampled_from(["", "", "k1", "k2"]),
        "as_of": st.sampled_from([None, 1, 2, 3]),
        "trust": st.sampled_from([1, 5]),
        "value": st.sampled_from([None, 1.0, 2.0]),
        "approximate": st.booleans(),
        "expires": st.sampled_from([None, None, NOW - 1, NOW + 1]),
        "layer": st.sampled_from(["L0", "L1", "L2"]),
    }
)
some_ids = st.lists(st.sampled_from([f"f{number}" for number in range(14)]), min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("fact"), facts),
    st.tuples(st.just("fact"), facts),
    st.tuples(st.just("fact"), facts),
    st.tuples(st.just("forget"), some_ids),
    st.tuples(st.just("restore"), facts),
    st.tuples(st.just("drop"), some_ids),
    st.tuples(
        st.sampled_from(["commit", "purge", "follow", "look", "reopen", "replay", "drain elsewhere"]),
        st.none(),
    ),
)


@dataclass
class Oracle:
    """The same rules over a dict."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)

    def take(self, kind: str, data: Any, record: Record) -> None:
        if kind == "restore":
            self.forgotten.discard(data["id"])
        if kind in ("fact", "restore"):
            owner = self.rows.get(data["id"], data)["owner"]
            if data["id"] not in self.forgotten and owner == data["owner"]:  # an id never changes hands
                self.rows[data["id"]] = data | {"created": record.at}
            return
        for id_ in data:
            self.rows.pop(id_, None)
        if kind == "forget":
            self.forgotten.update(data)

    def superseded(self) -> set[str]:
        groups: dict[tuple[str, str], dict[str, KeyRank]] = {}
        for row in self.rows.values():
            if row["fact_key"]:
                rank = KeyRank(row["trust"], row["as_of"], row["created"], row["value"], row["approximate"])
                groups.setdefault((row["owner"], row["fact_key"]), {})[row["id"]] = rank
        return {id_ for group in groups.values() for id_ in resolve(group)}

    def states(self) -> dict[str, str]:
        over = self.superseded()
        return {
            id_: "superseded" if id_ in over else "expired" if (row["expires"] or NOW + 1) <= NOW else "live"
            for id_, row in self.rows.items()
        }

    def visible(self, owners: set[str], states: set[str]) -> list[dict[str, Any]]:
        state = self.states()
        return [row for id_, row in self.rows.items() if row["owner"] in owners and state[id_] in states]


def bm25(rows: list[dict[str, Any]], query: dict[str, float]) -> dict[str, float]:
    lengths = {row["id"]: sum(row["words"].values()) for row in rows}
    average = sum(lengths.values()) / max(1, len(rows))
    scores: dict[str, float] = {}
    for word, weight in query.items():
        hits = [row for row in rows if word in row["words"]]
        idf = math.log(1 + (len(rows) - len(hits) + 0.5) / (len(hits) + 0.5))
        for row in hits:
            tf = row["words"][word]
            b = 0.4 if row["layer"] == "L0" else 0.75
            gain = idf * tf * 2.5 / (tf + 1.5 * (1 - b + b * lengths[row["id"]] / average))
            scores[row["id"]] = scores.get(row["id"], 0.0) + weight * gain
    return scores


def check(index: Index, oracle: Oracle) -> None:
    for owners, states in (
        ({"local", "shared"}, {"live"}),
        ({"telegram:1"}, {"live", "superseded", "expired"}),
    ):
        rows = oracle.visible(owners, states)
        view = index.view(frozenset(owners), now_us=NOW, states=states)
        assert sorted(view.row(number).id for number in view.numbers()) == sorted(row["id"] for row in rows)
        assert view.n == len(rows)
        for word in WORDS:
            assert view.df(word) == sum(word in row["words"] for row in rows)
        query = {"pe": 1.0, "茅台": 0.6, "银行": 2.0, "nowhere": 1.0}
        expected = bm25(rows, query)
        scores = view.bm25(query)
        top = view.top(scores, 100)
        assert {view.row(n).id: pytest.approx(float(scores[n]), rel=1e-4) for n in top} == expected
        assert [scores[n] for n in top] == sorted((scores[n] for n in top), reverse=True)
        assert {view.row(n).id: view.state(n) for n in view.numbers()} == {
            row["id"]: oracle.states()[row["id"]] for row in rows
        }


FACT = {
    "id": "f0", "owner": "local", "words": {"pe": 1.0}, "fact_key": "", "as_of": None, "trust": 1,
    "value": None, "approximate": False, "expires": None, "layer": "L1",
}  # fmt: skip


@settings(max_examples=60, deadline=None)
@example(
    [
        ("fact", FACT),
        ("drop", ["f0"]),
        ("fact", FACT),
        ("drain elsewhere", None),
        ("drop", ["f0"]),
        ("commit", None),
    ]
)
@example(
    [
        ("fact", FACT),
        ("forget", ["f0"]),
        ("commit", None),
        ("restore", FACT),
        ("drain elsewhere", None),
        ("replay", None),
        ("forget", ["f0"]),
        ("follow", None),
        ("restore", FACT),
    ]
)
@given(st.lists(steps, max_size=40))
def test_index_answers_as_a_plain_list_would(story: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        reader = open_index(home.path)
        oracle = Oracle()
        said: list[Record] = []
        for kind, data in story:
            match kind:
                case "fact":
                    record = home.fact(**data)
                case "forget" | "drop":
                    record = home.forget(*data, kind=kind)
                case "restore":
                    while said and time.time_ns() // 1000 <= said[-1].at:
                        pass
                    record = home.fact(**data, restored=time.time_ns() // 1000)
                case "commit":
                    IndexWriter(home.index).commit()
                case "purge":
                    IndexWriter(home.index).purge()
                case "drain elsewhere":
                    IndexWriter(reader).commit()
                case "follow":
                    reader.refresh()
                    check(reader, oracle)
                case "look":
                    home.index.refresh()
                    check(home.index, oracle)
                case "reopen":
                    home.index = open_index(home.path)
                    home.index.refresh()
                case "replay":
                    home.index.apply(*said)
            if kind in ("fact", "restore", "forget", "drop"):
                said.append(record)
                oracle.take(kind, data, record)
        check(home.index, oracle)
        reader.refresh()
        check(reader, oracle)
        late = open_index(home.path)
        late.refresh()
        check(late, oracle)
