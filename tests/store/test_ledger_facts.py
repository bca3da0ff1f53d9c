"""facts.db: one row for each id, what stands follows from the others of its key, forgotten stays forgotten."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.store.intake import LedgerIntake
from hermes_memory_plugin.store.journal import Chunk, Record
from hermes_memory_plugin.store.ledger_facts import FactsLedger
from hermes_memory_plugin.store.migrations import steps
from tests.store.ledger_lab import DAY, NOW, Lab, key_of, newest_stands, table

PE = {"subject": "600519.SH", "metric": "PE"}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "memory")


def test_every_field_comes_back(lab: Lab) -> None:
    fields: dict[str, Any] = {
        "id": "f1",
        "kind": "conclusion",
        "statement": "茅台 PE 为 28.4 倍",
        "subject": "600519.SH",
        "metric": "PE",
        "period": "2026Q1",
        "value": 28.4,
        "unit": "倍",
        "as_of": NOW - DAY,
        "basis": "TTM",
        "holder": "中金",
        "currency": "CNY",
        "source": "choice",
        "tool_call_id": "call-1",
        "origin": "tool",
        "trust": 4,
        "title": "PE",
        "project": "白酒",
        "approximate": True,
        "created_at": NOW,
        "expires_at": NOW + DAY,
    }
    record = lab.journal.append("fact", fields, owner="telegram:1", at=NOW)
    lab.drained()
    (row,) = lab.facts.by_ids(["f1"])
    derived = {name: row.pop(name) for name in ("key", "superseded_by", "confirmed_at", "extra", "record")}
    assert row == fields | {"owner": "telegram:1", "recorded_at": NOW}
    assert derived["record"] == record.id
    assert derived["superseded_by"] == derived["extra"] == ""
    assert lab.facts.from_call("call-1")[0]["id"] == "f1"


def test_a_stranger_reads_times_as_times(lab: Lab) -> None:
    lab.fact("f1", as_of=1_700_000_000_000_000)
    lab.drained()
    assert table(lab.facts.path, "SELECT as_of::VARCHAR FROM facts") == [("2023-11-14 22:13:20",)]


def test_only_the_owners_asked_for_are_read(lab: Lab) -> None:
    for owner in ("local", "shared", "telegram:1"):
        lab.fact(f"of {owner}", owner=owner, **PE)
    lab.drained()
    seen = frozenset({"local", "shared"})
    assert [row["id"] for row in lab.facts.scan(owners=seen)] == ["of local", "of shared"]
    assert lab.facts.by_ids(["of telegram:1"], seen) == []
    assert lab.facts.by_key("telegram:1", PE | {"period": ""}, seen) == []
    assert lab.facts.scan(owners=frozenset()) == []
    assert len(lab.facts.scan()) == 3


def test_a_scan_goes_through_all_rows_in_steps(lab: Lab) -> None:
    for number in range(25):
        lab.fact(f"f{number:02d}")
    lab.drained()
    seen: list[str] = []
    while rows := lab.facts.scan(seen[-1] if seen else "", limit=10):
        seen += [row["id"] for row in rows]
    assert seen == [f"f{number:02d}" for number in range(25)]


def test_the_newer_figure_takes_the_place_of_the_older(lab: Lab) -> None:
    lab.fact("old", as_of=NOW - DAY, **PE)
    lab.drained()
    lab.fact("new", as_of=NOW, **PE)
    lab.fact("of another", owner="telegram:1", as_of=NOW + DAY, **PE)
    lab.fact("about another", as_of=NOW, subject="000858.SZ", metric="PE")
    lab.drained()
    assert {row["id"]: row["superseded_by"] for row in lab.facts.scan()} == {
        "about another": "",
        "new": "",
        "of another": "",
        "old": "new",
    }
    assert [row["id"] for row in lab.facts.by_key("local", PE | {"period": ""})] == ["new", "old"]


def test_what_was_superseded_stands_again_when_its_successor_goes(lab: Lab) -> None:
    lab.fact("old", as_of=NOW - DAY, **PE)
    lab.fact("new", as_of=NOW, **PE)
    lab.drained()
    lab.forget("new")
    lab.drained()
    assert [(row["id"], row["superseded_by"]) for row in lab.facts.scan()] == [("old", "")]


def test_a_fact_that_changes_its_subject_frees_the_old_key(lab: Lab) -> None:
    lab.fact("old", as_of=NOW - DAY, **PE)
    lab.fact("new", as_of=NOW, **PE)
    lab.drained()
    lab.fact("new", as_of=NOW, subject="000858.SZ", metric="PE")
    lab.drained()
    assert {row["id"]: row["superseded_by"] for row in lab.facts.scan()} == {"new": "", "old": ""}


def test_the_same_id_again_replaces(lab: Lab) -> None:
    lab.fact("f1", "first")
    lab.fact("f1", "second")
    lab.drained()
    lab.fact("f1", "third")
    lab.drained()
    assert [row["statement"] for row in lab.facts.scan()] == ["third"]


def test_of_two_versions_the_one_written_later_stands_whichever_is_drained_first(tmp_path: Path) -> None:
    one, other = Lab(tmp_path), Lab(tmp_path)
    one.fact("f1", "filler of the older journal")
    other.fact("f1", "older")
    one.fact("f1", "newer")
    one.drained()  # reads the older journal, with the newer version, first
    assert [row["statement"] for row in one.facts.scan()] == ["newer"]


def test_a_clock_that_was_ahead_does_not_freeze_a_fact(lab: Lab) -> None:
    ahead = NOW + 400 * DAY
    lab.journal.append("fact", {"id": "f1", "statement": "from the future"}, id="7" + "Z" * 25, at=ahead)
    lab.drained()
    lab.fact("f1", "after the clock was set right")
    lab.drained()
    assert [row["statement"] for row in lab.facts.scan()] == ["after the clock was set right"]


def test_a_confirmation_counts_also_when_it_is_read_before_its_fact(tmp_path: Path) -> None:
    one, other = Lab(tmp_path), Lab(tmp_path)
    one.fact("first")
    one.journal.append("confirm", {"ids": ["f1"]}, at=NOW)
    one.drained()
    other.fact("f1")
    other.drained()
    assert one.facts.by_ids(["f1"])[0]["confirmed_at"] == NOW


def test_a_field_of_the_wrong_type_is_kept_and_harms_nobody(lab: Lab) -> None:
    lab.fact("f1", value="about thirty", as_of="yesterday", trust=2**80, note={"deep": [1]})
    lab.fact("f2", "sound")
    report = lab.drained()
    assert report.refused == 0
    row = lab.facts.by_ids(["f1"])[0]
    assert (row["value"], row["as_of"], row["trust"]) == (None, None, 0)
    assert '"about thirty"' in row["extra"]
    assert '"deep":[1]' in row["extra"]


NASTY = [
    "nul \0 inside",
    "half \ud800 of a pair",
    "\udcff",
    "'; DROP TABLE facts; --",
    "𝄞 中文 🙂",
    "\u2028",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_any_text_can_be_stored(lab: Lab, text: str) -> None:
    lab.fact(text, text, subject=text, owner=text)
    lab.fact("beside it")
    report = lab.drained()
    assert report.refused == 0
    (row,) = [row for row in lab.facts.scan() if row["id"] != "beside it"]
    assert (
        row["statement"]
        == row["id"]
        == row["owner"]
        == "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    )


def test_forgetting_cascades_and_a_replay_does_not_resurrect(lab: Lab) -> None:
    lab.fact("f1", "the secret plan")
    lab.fact("f2", "something else")
    lab.drained()
    lab.forget("f1")
    lab.drained()
    assert lab.fact_ids() == ["f2"]
    assert lab.facts.buried(["f1", "f2"]) == {"f1"}
    lab.fact("f1", "the secret plan, imported again")
    lab.drained()
    assert lab.fact_ids() == ["f2"]
    lab.facts.path.unlink()  # a replay of everything
    lab.drained()
    assert lab.fact_ids() == ["f2"]


# -- however the records are cut into drains, and however often they come ------------------------------------------

IDS = st.sampled_from(["a", "b", "c"])
OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("fact"),
            "id": IDS,
            "as_of": st.integers(0, 3),
            "subject": st.sampled_from(["S", "T", ""]),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("forget"), "ids": st.lists(IDS, max_size=1)}),
    st.fixed_dictionaries({"kind": st.just("confirm"), "ids": st.lists(IDS, max_size=2)}),
)


def _record(number: int, operation: dict[str, Any]) -> Record:
    data = {name: value for name, value in operation.items() if name != "kind"}
    if operation["kind"] == "fact":
        data |= {"statement": f"said at {number}", "metric": "PE"}
    return Record(f"{number:026d}", operation["kind"], "local", 1_000 + number, data)


def _state(parts: list[list[Record]]) -> list[list[tuple[Any, ...]]]:
    ledger = FactsLedger(Path("unused"), key_of=key_of, resolve=newest_stands)
    with duckdb.connect() as connection:
        for step in steps("facts"):
            connection.execute(step)
        intake = LedgerIntake(ledger, connection)
        for number, part in enumerate(parts):
            intake.apply([Chunk("j", number, number + 1, tuple(part), 0, True, 0)])
        assert connection.execute('SELECT "offset" FROM offsets').fetchall() == [(len(parts),)]
        return [
            connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
            for name in ("facts", "confirmations", "tombstones")
        ]


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=10), st.lists(st.integers(0, 10), max_size=3))
def test_cuts_and_repetitions_do_not_change_the_outcome(
    operations: list[dict[str, Any]], cuts: list[int]
) -> None:
    records = [_record(number, operation) for number, operation in enumerate(operations)]
    marks = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    parts = [records[start:end] for start, end in pairwise(marks)]
    whole = _state([records])
    assert _state(parts) == whole
    assert _state([*parts, records]) == whole
