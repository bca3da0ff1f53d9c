"""The links of an answer in logs.db: one set per answer, nobody else's, gone with what they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Owner, ToolTrace, Turn
from hermes_memory_plugin import Memory

ANN, BOB = (Owner(platform="telegram", user_id=name) for name in ("1", "2"))


@pytest.fixture
def turn(memory: Memory) -> Iterator[str]:
    memory.log(ToolTrace(tool_call_id="c1", tool_name="daily_basic", result='{"pe": 28.1}'))
    yield memory.log_turn(
        Turn("茅台PE多少", "PE 28.1 倍。", datetime.now(UTC), turn_id="t1", session_id="s1")
    )


def keep(memory: Memory, answer: str, *links: dict[str, Any], owner: Owner = Owner()) -> None:
    data = {"id": answer, "session": "s1", "turn": "t1", "links": list(links)}
    memory.journal.append("answer", data, owner=owner.key)
    memory.flush()


def test_an_answer_read_again_has_its_links_once(memory: Memory, turn: str) -> None:
    for call in ("c0", "c1"):
        keep(memory, turn, {"number": "28.1 倍", "value": 28.1, "kind": "call", "call": call, "metric": "pe"})
    rows = memory.archive.logs.links(metric="pe", between=(28, 28.2))
    assert [(row["number"], row["call"], row["place"]) for row in rows] == [("28.1 倍", "c1", 0)]


@pytest.mark.parametrize("gone", ["the answer", "the call", "the fact"])
def test_links_go_with_what_they_are_of(memory: Memory, turn: str, gone: str) -> None:
    fact = memory.remember("贵州茅台 PE 28.1 倍")
    keep(memory, turn, {"number": "28.1", "kind": "fact", "call": "c1", "fact": fact, "words": "PE 28.1"})
    memory.reader.refresh()
    row = {"the answer": turn, "the call": "", "the fact": fact}[gone]
    if not row:
        row = memory.reader.index.scan(None, now_us=0, kinds=("call",))[0].id
    memory.forget(row)
    memory.flush()
    assert memory.archive.logs.links() == []


@pytest.mark.parametrize("gone", ["the answer", "the fact"])
def test_what_was_forgotten_comes_back_by_no_later_record(memory: Memory, turn: str, gone: str) -> None:
    fact = memory.remember("贵州茅台 PE 28.1 倍")
    memory.forget(turn if gone == "the answer" else fact)
    keep(memory, turn, {"number": "28.1", "kind": "fact", "fact": fact, "words": "PE 28.1"})
    assert memory.archive.logs.links() == []


def test_a_call_of_another_owner_with_the_same_id_keeps_its_links(memory: Memory) -> None:
    for owner in (ANN, BOB):
        memory.log(ToolTrace(tool_call_id="same", tool_name="quote", result="28.1", owner=owner))
        keep(memory, f"turn:{owner.key}", {"number": "28.1", "kind": "call", "call": "same"}, owner=owner)
    (mine,) = memory.reader.index.scan({ANN.key}, now_us=0, kinds=("call",))
    memory.forget(mine.id, owner=ANN)
    memory.flush()
    assert [row["owner"] for row in memory.archive.logs.links()] == [BOB.key]


def test_a_ledger_of_the_first_schema_gets_the_table(tmp_path: Path) -> None:
    import duckdb

    from hermes_memory_plugin.store.ledger_logs import LogsLedger
    from hermes_memory_plugin.store.migrations import steps

    ledger = LogsLedger(tmp_path)
    ledger.path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(ledger.path)) as connection:
        connection.execute(steps("logs")[0])
        connection.execute("CREATE TABLE meta (name VARCHAR, value VARCHAR)")
        connection.execute("INSERT INTO meta VALUES ('schema', '1')")
    assert ledger.links() == []
