"""The state of a conversation, told from its record: what is in it, what stands first, what can never be in it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Compaction, Owner, Session, ToolTrace, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.layers.calls import Call, Step, conclusion, dead_ends, grouped, plan_of
from hermes_memory_plugin.layers.workspace import LIMIT, NAMED, Request, WorkspaceMemory
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.recall.index_row import Change
from hermes_memory_plugin.store.tails import Record
from hermes_memory_plugin.upkeep.canvas import LIMIT as CANVAS
from hermes_memory_plugin.upkeep.canvas import draw

START = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
ANN, BOB = Owner("telegram", "101"), Owner("telegram", "102")
SESSION = Session("s1")


def trace(number: int, tool: str = "terminal", **more: object) -> ToolTrace:
    fields = {
        "tool_call_id": f"call_{number}",
        "tool_name": tool,
        "args": {"command": f"echo {number}"},
        "result": json.dumps({"output": f"line {number}\nmore", "exit_code": 0}),
        "session_id": "s1",
        "turn_id": "t1",
        "at": START + timedelta(seconds=number),
    }
    return ToolTrace(**{**fields, **more})  # type: ignore[arg-type]


def ask(memory: Memory, text: str, turn: str = "t1", minute: int = 0, *, session: str = "s1") -> None:
    at = START + timedelta(minutes=minute)
    memory.log_turn(Turn(text, at=at, turn_id=turn, session_id=session, completed=False), half="user")


def answer(memory: Memory, text: str, turn: str = "t1", *, completed: bool = True) -> None:
    memory.log_turn(Turn("", text, at=START, turn_id=turn, session_id="s1", completed=completed))


def summary(memory: Memory, session: Session = SESSION) -> str:
    return memory.workspace(session, folder="/work/prices").to_summary()


def test_it_begins_with_what_it_is_and_how_old(memory: Memory) -> None:
    ask(memory, "比较贵州茅台和五粮液")
    memory.log(trace(7))
    lines = summary(memory).splitlines()
    handle = memory.workspace(SESSION).calls[-1].handle
    assert lines[0] == "Current agent state:"
    assert lines[1] == f"as of 2026-04-30T12:00:07Z, last call {handle}; later messages are newer"
    assert memory.trace(handle) is not None


def test_it_tells_request_folder_counters_steps_and_calls(memory: Memory) -> None:
    ask(memory, "比较贵州茅台和五粮液")
    todos = [
        {"id": "1", "content": "读价格", "status": "completed"},
        {"id": "2", "content": "写结论", "status": "in_progress"},
        {"id": "3", "content": "画图", "status": "pending"},
    ]
    memory.log(trace(1, "todo", args={"todos": todos}, result=json.dumps({"todos": todos})))
    memory.log(trace(2))
    memory.log(trace(3, status="error", error="no such file"))
    text = summary(memory)
    assert "not answered yet): 比较贵州茅台和五粮液" in text
    assert "Working directory: /work/prices" in text
    assert "Calls so far: 3: terminal 2 (1 failed), todo 1" in text
    assert text.index("doing: 写结论") < text.index("open: 画图") < text.index("done: 读价格")
    assert "line 2" in text
    assert "no such file" in text


@pytest.mark.parametrize("took", [0, 60], ids=["short", "long"])
@pytest.mark.parametrize("drained", [False, True], ids=["fresh", "drained"])
def test_inflight_trace(memory: Memory, took: int, drained: bool) -> None:
    """A call in flight is on record from its start, listed as unfinished, and one row when it ends."""
    ask(memory, "跑一个长任务")
    began = datetime.now(UTC) - timedelta(seconds=took)
    memory.start(trace(1, args={"command": "sleep 600"}, status="started", at=began))
    state = memory.workspace(SESSION)
    assert [call.id for call in state.unfinished] == ["call_1"]
    assert "sleep 600" in state.to_summary()
    assert "Unfinished calls" in state.to_summary()
    if drained:
        memory.flush()
        assert memory.archive.logs.rows("SELECT status FROM logs") == [{"status": "started"}]
    time.sleep(0.002)
    memory.log(trace(1, at=datetime.now(UTC)))
    after = memory.workspace(SESSION)
    assert (len(after.calls), after.unfinished) == (1, ())
    assert after.calls[0].handle == state.unfinished[0].handle
    assert [call.status for call in memory.traces(session="s1")] == ["ok"]
    memory.flush()
    assert memory.archive.logs.rows("SELECT status FROM logs") == [{"status": "ok"}]
    assert [call.status for call in memory.traces(session="s1")] == ["ok"]


def test_a_call_forgotten_in_flight_stays_forgotten_when_it_ends(memory: Memory) -> None:
    memory.start(trace(1, status="started", at=datetime.now(UTC)))
    memory.flush()
    memory.forget(memory.workspace(SESSION).unfinished[0].handle)
    memory.flush()
    memory.log(trace(1, at=datetime.now(UTC)))
    assert memory.workspace(SESSION).empty
    memory.flush()
    assert memory.archive.logs.rows("SELECT status FROM logs") == []


def test_an_unfinished_call_survives_the_process_the_drain_and_a_new_index(home: Path) -> None:
    with Memory.open(home) as memory:
        memory.start(trace(1, status="started"))
    with Memory.open(home) as memory:
        memory.flush()
        before = summary(memory)
        assert "Unfinished calls" in before
        assert memory.reader.rebuild()
        assert summary(memory) == before
        found = memory.trace("call_1")
        assert found is not None
        assert (found.status, found.result) == ("started", "")


def test_long_arguments_are_left_out_of_the_start_not_cut(memory: Memory) -> None:
    """Half a secret is none the masks recognise."""
    key = "sk-" + "a1B2" * 12
    memory.start(trace(1, args={"text": "x" * 390 + key, "n": 1}, status="started"))
    found = memory.trace("call_1")
    assert found is not None
    assert found.args == {"text": f"({390 + len(key)} characters)", "n": 1}


def test_no_task_regression(memory: Memory) -> None:
    """What is done is called done, and only the last request is the running one."""
    ask(memory, "先查茅台的PE", "t1")
    answer(memory, "PE 是 28.1 倍", "t1")
    ask(memory, "再查五粮液的PE", "t2", 1)
    text = summary(memory)
    assert "not answered yet): 再查五粮液的PE" in text
    assert "answered: 先查茅台的PE → PE 是 28.1 倍" in text
    answer(memory, "17.2 倍", "t2")
    assert "answered): 再查五粮液的PE" in summary(memory)


def test_of_many_earlier_requests_the_newest_are_told(memory: Memory) -> None:
    for number in range(9):
        ask(memory, f"第{number}问", f"t{number}", number)
    told = summary(memory).partition("Earlier requests")[2].splitlines()
    assert [line.rpartition(" ")[2] for line in told[1:-1]] == [f"第{number}问" for number in (7, 6, 5, 4, 3)]
    assert told[-1] == "* … and 3 more"


def test_an_interrupted_request_is_called_so(memory: Memory) -> None:
    ask(memory, "查一下", "t1")
    ask(memory, "算了，换一个", "t2", 1)
    assert "interrupted: 查一下" in summary(memory)


def test_calls_an_answer_named_are_listed(memory: Memory) -> None:
    ask(memory, "PE")
    for number in (1, 2, 3):
        memory.log(trace(number))
    first, _, third = (call.handle for call in memory.workspace(SESSION).calls)
    answer(memory, f"28.1（来源 {third}，另见 call_2，{first}；t-zzzz 不是我们的）")
    assert memory.workspace(SESSION).cited == (third, "call_2", first)


def test_a_new_session_begins_with_nothing(memory: Memory) -> None:
    memory.log(trace(1))
    assert memory.workspace(Session("s2")).empty
    assert summary(memory, Session("s2")) == ""
    assert memory.compacted(Session("s2"), Compaction("x")) == ""


def test_nobody_elses_calls_are_looked_at(memory: Memory) -> None:
    memory.log(trace(1, owner=ANN, result="Ann's figure"))
    memory.log(trace(2, owner=BOB, result="Bob's figure"))
    text = summary(memory, Session("s1", ANN))
    assert "Ann's figure" in text
    assert "Bob's figure" not in text


def test_the_same_record_gives_the_same_text_in_any_process(home: Path) -> None:
    with Memory.open(home) as memory:
        ask(memory, "比较")
        for number in range(40):
            memory.log(trace(number, ("terminal", "read_file")[number % 2]))
        fresh = memory.compacted(SESSION, Compaction("x"))
        memory.flush()
        assert memory.compacted(SESSION, Compaction("x")) == fresh
    with Memory.open(home) as memory:
        assert memory.compacted(SESSION, Compaction("x")) == fresh


def test_a_long_session_is_told_by_its_end_and_all_of_it_can_be_expanded(memory: Memory) -> None:
    memory.start(trace(0, args={"command": "never ended"}, status="started"))
    for number in range(1, NAMED + 60):
        memory.log(trace(number, ("terminal", "read_file", "web_search")[number % 3]))
    state = memory.workspace(SESSION)
    assert "never ended" in state.to_summary()
    assert f"and {NAMED + 59 - 12} more" in state.to_summary()
    canvas = draw(state)
    older = next(line.partition("[")[0] for line in canvas.splitlines() if "earlier calls" in line)
    assert len(canvas) <= CANVAS
    assert memory.expand(older)[0].tool_call_id == "call_1"
    assert "__" in older


def test_secrets_never_reach_the_text(memory: Memory) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 6
    ask(memory, f"用这个 api_key={key}")
    memory.start(trace(1, args={"command": f"curl -H 'Authorization: Bearer {key}'"}, status="started"))
    memory.log(trace(2, result=f"key {key}"))
    assert key not in memory.compacted(SESSION, Compaction("x"))


_text = st.text(max_size=120)
_calls = st.lists(
    st.builds(
        Call,
        handle=st.just("t-7k2p"),
        id=_text,
        tool=_text,
        at=st.integers(0, 4_000_000_000_000_000),
        status=st.sampled_from(("ok", "error", "timeout")),
        arguments=_text,
        result=_text,
        turn=st.sampled_from(("1", "2")),
        steps=st.none() | st.lists(st.builds(Step, _text, st.sampled_from(("open", "done")))).map(tuple),
    ),
    max_size=14,
).map(tuple)
_states = st.builds(
    WorkspaceMemory,
    folder=_text,
    requests=st.lists(
        st.builds(Request, _text, _text, st.sampled_from(("running", "answered", "interrupted")), st.just(1)),
        max_size=8,
    ).map(tuple),
    calls=_calls,
    unfinished=_calls,
    cited=st.lists(_text, max_size=5).map(tuple),
)


@given(_states, st.sampled_from((400, 1_500, LIMIT)))
@settings(max_examples=40, deadline=None)
def test_any_record_gives_a_bounded_harmless_text(state: WorkspaceMemory, limit: int) -> None:
    text = state.to_summary(limit)
    assert len(text) <= limit
    assert (text == "") is state.empty
    for line in text.splitlines():
        assert all(one.isprintable() or one.isspace() for one in line)
        assert "```" not in line
        assert not any(mark in line for mark in (f"<{block.TAG}", f"</{block.TAG}", "<|", "[INST]"))


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ('{"output": "28.1\\nmore", "exit_code": 0}', "28.1"),
        ('{"error": "no such file", "output": ""}', "no such file"),
        ('{"success": true, "value": 28.1}', "28.1"),
        ('{"content": "一行 \\"引号\\" 后', '一行 "引号" 后'),
        ("\n\n  first words\nsecond", "first words"),
        ('{"output": "two\\nlines", "exit_code": 3}', "exit 3: two"),
        ('{"output": "", "exit_code": -9}', "exit -9: output: , exit_code: -9"),
        ('{"status": "saved", "title": "不碰银行"}', "status: saved, title: 不碰银行"),
        ('{"a": 1}', "a: 1"),
        ("```json\n---\n价格 28.1\n```", "价格 28.1"),
        ("---\n| --- | --- |\n价格 28.1", "价格 28.1"),
        ("", ""),
        ("[]", "[]"),
    ],
)
def test_the_line_that_says_most(result: str, line: str) -> None:
    assert conclusion(result) == line


@given(st.text() | st.from_regex(r'\{"(output|error)": ".*', fullmatch=False))
@settings(max_examples=80, deadline=None)
def test_any_result_has_a_line(result: str) -> None:
    assert "\n" not in conclusion(result)


@pytest.mark.parametrize(
    ("arguments", "result", "plan"),
    [
        ({}, '{"todos": [{"content": "a", "status": "completed"}]}', [["a", "done"]]),
        ({"todos": [{"id": "7", "status": "odd"}]}, "broken", [["7", "open"]]),
        ({"todos": "text"}, "{}", None),
        (None, '{"todos": [1, null, {"content": "b", "status": "cancelled"}]}', [["b", "dropped"]]),
        (None, "", None),
    ],
)
def test_the_plan_of_the_hosts_todo_tool(arguments: object, result: str, plan: object) -> None:
    assert plan_of(arguments, result) == plan


def test_a_failure_put_right_at_once_is_no_dead_end() -> None:
    def call(status: str, tool: str = "t") -> Call:
        return Call("t-7k2p", "c", tool, 0, status)

    groups = grouped([call("error"), call("ok"), call("error"), call("ok", "other"), call("timeout")])
    assert dead_ends(groups) == {2, 4}


def test_a_record_another_thread_is_taking_in_is_waited_for(memory: Memory) -> None:
    memory.workspace(SESSION)
    memory.log(trace(1))
    index = memory.reader.index
    rows_of, taking, go_on = index.tail.rows_of, threading.Event(), threading.Event()

    def slow(record: Record) -> Iterable[Change]:
        taking.set()
        go_on.wait(10)
        return rows_of(record)

    index.tail.rows_of = slow
    other = threading.Thread(target=index.refresh)
    other.start()
    assert taking.wait(10)
    threading.Timer(0.2, go_on.set).start()
    assert len(memory.workspace(SESSION).calls) == 1
    other.join()
