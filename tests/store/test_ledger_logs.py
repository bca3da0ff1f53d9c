"""logs.db: tool calls, dialogue turns, audits and events; nothing that was journalled is dropped."""

from __future__ import annotations

import json
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.store.intake import LedgerIntake
from hermes_memory_plugin.store.ledger_logs import LogsLedger
from hermes_memory_plugin.store.migrations import steps
from hermes_memory_plugin.store.refs import excerpt
from hermes_memory_plugin.store.tails import Chunk, Record
from tests.store.ledger_lab import DAY, NOW, Lab, table


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "memory")


def turn(
    lab: Lab, half: str, session: str = "s", turn: str = "t1", owner: str = "local", **fields: object
) -> str:
    return lab.journal.append(
        "turn", {"session": session, "turn": turn, "half": half, **fields}, owner=owner
    ).id


def test_every_field_of_a_call_comes_back(lab: Lab) -> None:
    record = lab.journal.append(
        "trace",
        {
            "call": "call-1",
            "tool": "get_quote",
            "args": {"code": "600519.SH", "deep": [1, None, "中"]},
            "result": "价格 1,402.00",
            "status": "error",
            "error": "timeout",
            "ms": 12.5,
            "session": "s1",
            "turn": "t1",
            "origin": "tool",
            "kind": "subagent",
        },
        owner="telegram:1",
        at=NOW,
    )
    lab.drained()
    (row,) = lab.logs.trace("call-1")
    assert json.loads(row.pop("arguments")) == {"code": "600519.SH", "deep": [1, None, "中"]}
    assert row == {
        "ulid": record.id,
        "tool_call_id": "call-1",
        "tool_name": "get_quote",
        "result": "价格 1,402.00",
        "ref": "",
        "result_bytes": len("价格 1,402.00".encode()),
        "status": "error",
        "error": "timeout",
        "duration_ms": 12.5,
        "session_id": "s1",
        "turn_id": "t1",
        "owner": "telegram:1",
        "origin": "tool",
        "kind": "subagent",
        "timestamp": NOW,
    }
    assert lab.logs.trace(record.id) == lab.logs.trace("call-1")


def test_one_call_id_in_two_sessions_is_two_rows_newest_first(lab: Lab) -> None:
    first, second = lab.trace("call-1", session="a"), lab.trace("call-1", session="b")
    lab.drained()
    assert [row["ulid"] for row in lab.logs.trace("call-1")] == [second, first]


def test_trace_query(lab: Lab) -> None:
    for number, (tool, status, owner) in enumerate(
        [
            ("quote", "ok", "local"),
            ("quote", "error", "local"),
            ("news", "ok", "shared"),
            ("quote", "ok", "telegram:1"),
        ]
    ):
        data = {"call": f"c{number}", "tool": tool, "status": status, "session": f"s{number % 2}"}
        lab.journal.append("trace", data, owner=owner, at=NOW + number)
    lab.drained()

    def calls(**filters: object) -> list[str]:
        return [row["tool_call_id"] for row in lab.logs.traces(**filters)]  # type: ignore[arg-type]

    assert calls() == ["c3", "c2", "c1", "c0"]
    assert calls(limit=2) == ["c3", "c2"]
    assert calls(since=NOW + 1, until=NOW + 3) == ["c2", "c1"]
    assert calls(tool="quote", status="ok") == ["c3", "c0"]
    assert calls(session="s1") == ["c3", "c1"]
    assert calls(owners=frozenset({"local", "shared"})) == ["c2", "c1", "c0"]
    assert calls(owners=frozenset()) == []
    assert lab.logs.trace("c3", frozenset({"local"})) == []


HALVES: dict[str, dict[str, Any]] = {
    "user": {"user": "不碰银行股"},
    "full": {"user": "不碰银行股", "assistant": "好的", "completed": True},
    "end": {"completed": True, "speaker": "王"},
}


@pytest.mark.parametrize("order", list(permutations(HALVES)))
@pytest.mark.parametrize("drains", [1, 3])
def test_the_halves_of_a_turn_are_one_row(lab: Lab, order: tuple[str, ...], drains: int) -> None:
    ids = []
    for half in order:
        ids.append(turn(lab, half, **HALVES[half]))
        if drains > 1:
            lab.drained()
    lab.drained()
    (row,) = lab.logs.turns()
    assert row["id"] == ids[0]
    assert (row["user_text"], row["assistant_text"]) == ("不碰银行股", "好的")
    assert (row["completed"], row["speaker"]) == (True, "王")


def test_an_interrupted_turn_keeps_the_users_words(lab: Lab) -> None:
    turn(lab, "user", user="先结论后论据")
    turn(lab, "end", completed=False)
    lab.drained()
    (row,) = lab.logs.turns()
    assert (row["user_text"], row["completed"]) == ("先结论后论据", False)


def test_turns_of_other_sessions_and_owners_stay_apart(lab: Lab) -> None:
    turn(lab, "user", "s1", user="one")
    turn(lab, "user", "s2", user="two")
    turn(lab, "user", "s1", owner="telegram:1", user="three")
    turn(lab, "user", "s1", turn="", user="four")
    turn(lab, "user", "s1", turn="", user="five")
    lab.drained()
    assert {row["user_text"] for row in lab.logs.turns()} == {"one", "two", "three", "four", "five"}
    assert {row["user_text"] for row in lab.logs.turns(session="s1", owners={"local"})} == {
        "one",
        "four",
        "five",
    }


def test_a_turn_is_found_under_the_id_it_was_given(lab: Lab) -> None:
    turn(lab, "user", id="turn:s:t1", user="one")
    lab.drained()
    turn(lab, "full", id="turn:s:t1", assistant="two")
    lab.drained()
    (row,) = lab.logs.turns(ids=["turn:s:t1"])
    assert (row["user_text"], row["assistant_text"]) == ("one", "two")


def test_scans_go_through_all_rows_in_steps(lab: Lab) -> None:
    for number in range(7):
        lab.trace(f"c{number}")
        turn(lab, "full", turn=f"t{number}", user=str(number))
    lab.drained()
    for scan, key in ((lab.logs.scan_traces, "ulid"), (lab.logs.scan_turns, "id")):
        seen: list[str] = []
        while rows := scan(seen[-1] if seen else "", limit=3):
            seen += [row[key] for row in rows]
        assert len(seen) == len(set(seen)) == 7


def test_audits_are_kept_for_thirty_days(lab: Lab) -> None:
    for age, question in ((31, "too old"), (29, "old"), (0, "new")):
        items = [{"id": "f1", "score": 1.5, "reasons": ["code"]}]
        data = {"question": question, "session": f"s{age}", "tokens": 120, "ms": 3.5, "items": items}
        lab.journal.append("audit", data, at=NOW - age * DAY)
    lab.drained()
    assert [row["question"] for row in lab.logs.audits(5)] == ["new", "old"]
    assert [row["question"] for row in lab.logs.audits(5, session="s29")] == ["old"]
    assert json.loads(lab.logs.audits()[0]["items"])[0]["reasons"] == ["code"]


def test_a_clock_that_jumps_ahead_does_not_empty_the_audits(lab: Lab) -> None:
    lab.journal.append("audit", {"question": "now"}, at=NOW)
    lab.journal.append("audit", {"question": "a year ahead"}, at=NOW + 365 * DAY)
    lab.drained()
    assert [row["question"] for row in lab.logs.audits(5)] == ["a year ahead", "now"]


def test_events_are_summed_by_name(lab: Lab) -> None:
    for name, n, at in (("late", 1, NOW - DAY), ("late", 2, NOW), ("failed", 1, NOW)):
        lab.journal.append("event", {"name": name, "n": n, "detail": "x"}, at=at)
    lab.drained()
    assert lab.logs.events() == {"failed": 1, "late": 3}
    assert lab.logs.events(NOW) == {"failed": 1, "late": 2}


def test_a_record_nobody_knows_is_kept_whole(lab: Lab) -> None:
    lab.journal.append("holiday", {"name": "春节", "half": "\ud800"}, owner="shared", at=NOW)
    lab.drained()
    ((kind, owner, record),) = table(lab.logs.path, "SELECT kind, owner, record FROM other")
    assert (kind, owner, json.loads(record)) == ("holiday", "shared", {"name": "春节", "half": "\ud800"})


def test_a_long_result_is_kept_beside_the_ledger_and_comes_back_identical(lab: Lab) -> None:
    result = "".join(f"第{number}行，营收 {number * 7919 % 1000}.5 亿元\n" for number in range(160_000))
    assert len(result.encode()) > 5 << 20
    lab.trace("c1", result)
    lab.trace("c2", result)
    lab.drained()
    first, second = lab.logs.scan_traces()
    assert first["result"] == excerpt(result)
    assert first["result_bytes"] == len(result.encode())
    assert lab.logs.refs.read(first["ref"]) == result
    assert list(lab.logs.refs.stored()) == [first["ref"]] == [second["ref"]]
    assert lab.logs.size() < 2 << 20


def test_a_result_of_the_limit_stays_in_its_row(lab: Lab) -> None:
    lab.trace("c1", "x" * (256 << 10))
    lab.drained()
    assert lab.logs.trace("c1")[0]["result"] == "x" * (256 << 10)
    assert list(lab.logs.refs.stored()) == []


def test_a_forgotten_call_goes_with_its_long_result(lab: Lab) -> None:
    long = "x" * 300_000
    first, second = lab.trace("c1", long), lab.trace("c2", long)
    lab.drained()
    lab.forget(first)
    lab.drained()
    assert lab.calls() == ["c2"]
    assert len(list(lab.logs.refs.stored())) == 1  # the other call still needs it
    lab.forget(second)
    lab.drained()
    assert list(lab.logs.refs.stored()) == []
    lab.logs.path.unlink()  # a replay of everything
    lab.drained()
    assert lab.calls() == []
    assert list(lab.logs.refs.stored()) == []


@pytest.mark.parametrize(
    ("asking", "left"),
    [
        ("telegram:1", ["telegram:2"]),
        ("telegram:3", ["telegram:1", "telegram:2"]),
        ("any", []),
    ],
)
def test_a_call_id_is_forgotten_for_the_owner_who_asks_and_for_the_shared_rows_he_sees(
    lab: Lab, asking: str, left: list[str]
) -> None:
    owners = ("telegram:1", "telegram:2", "shared")
    for owner in owners:
        lab.trace("call-1", owner=owner)
    lab.drained()
    lab.forget("call-1", owner=asking)
    lab.drained()
    assert sorted(row["owner"] for row in lab.logs.trace("call-1")) == left
    lab.logs.path.unlink()  # a replay of everything
    lab.drained()
    assert sorted(row["owner"] for row in lab.logs.trace("call-1")) == left


@pytest.mark.parametrize("drained_before", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_a_half_that_comes_after_its_turn_was_forgotten_does_not_begin_it_anew(
    lab: Lab, drained_before: bool, named: bool
) -> None:
    given: dict[str, Any] = {"id": "turn:s:t1"} if named else {}
    first = turn(lab, "user", user="a secret", **given)
    if drained_before:
        lab.drained()
    lab.forget("turn:s:t1" if named else first)
    lab.drained()
    turn(lab, "full", user="a secret", assistant="about the secret", **given)
    lab.drained()
    assert lab.logs.turns() == []


# -- however the records are cut into drains, and however often they come ------------------------------------------

CALLS = st.sampled_from(["call-a", "call-b"])
ROW_IDS = st.sampled_from([f"{number:026d}" for number in range(8)] + ["call-a", "turn:s:t"])
OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("trace"), "call": CALLS, "owner": st.sampled_from(["local", "shared"])}
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("turn"),
            "session": st.just("s"),
            "turn": st.sampled_from(["t", "u", ""]),
            "user": st.sampled_from(["", "words"]),
            "assistant": st.sampled_from(["", "an answer", "another"]),
            "completed": st.sampled_from([None, True, False]),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("forget"), "ids": st.lists(ROW_IDS, max_size=2)}),
    st.fixed_dictionaries({"kind": st.sampled_from(["event", "audit", "holiday"])}),
)


def _record(number: int, operation: dict[str, Any]) -> Record:
    data = {name: value for name, value in operation.items() if name not in ("kind", "owner")}
    if operation["kind"] == "turn" and data["turn"] == "t":
        data["id"] = "turn:s:t"
    return Record(f"{number:026d}", operation["kind"], operation.get("owner", "local"), 1_000 + number, data)


def _state(parts: list[list[Record]]) -> list[list[tuple[Any, ...]]]:
    ledger = LogsLedger(Path("unused"))
    with duckdb.connect() as connection:
        for step in steps("logs"):
            connection.execute(step)
        intake = LedgerIntake(ledger, connection)
        for number, part in enumerate(parts):
            intake.apply([Chunk("j", number, number + 1, tuple(part), 0, True, 0)])
        assert intake.refused == 0
        return [
            connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
            for name in ("logs", "turns", "audits", "events", "other")
        ]


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_cuts_and_repetitions_do_not_change_the_outcome(
    operations: list[dict[str, Any]], cuts: list[int]
) -> None:
    records = [_record(number, operation) for number, operation in enumerate(operations)]
    marks = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    parts = [records[start:end] for start, end in pairwise(marks)]
    whole = _state([records])
    assert _state(parts) == whole
    assert _state([*parts, records]) == whole
