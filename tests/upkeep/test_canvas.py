"""The canvas: valid Mermaid whatever the record holds, within its limit, and every node leads back to the results."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner, Session, ToolTrace, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.hermes.lineage import OpenTurn
from hermes_memory_plugin.layers.calls import Call
from hermes_memory_plugin.layers.workspace import Request, WorkspaceMemory
from hermes_memory_plugin.tools import OUR_TOOLS, Caller
from hermes_memory_plugin.tools.expand import PAGE
from hermes_memory_plugin.upkeep.canvas import LIMIT, calls_of, draw

SESSION = Session("s1")
START = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
_LABEL = r'"(?:[^"\\<>&`#]|#(?:quot|lt|gt|amp|35);)+"'
_NODE = re.compile(rf"(task|t_[2-9a-z]+(?:__t_[2-9a-z]+)?)\[{_LABEL}\](?::::(?:dead|open))?")
_EDGE = re.compile(r"(task|t_\w+) (?:-->|-\.-x) (t_\w+)")


def nodes(canvas: str) -> list[str]:
    """The ids of its nodes of calls. Every line must be one of Mermaid's."""
    first, *lines = canvas.splitlines()
    assert first == "flowchart TD"
    found: list[str] = []
    for line in lines:
        if node := _NODE.fullmatch(line):
            found.append(node[1])
        elif edge := _EDGE.fullmatch(line):
            assert {edge[1], edge[2]} <= set(found)
        else:
            assert line.startswith("classDef "), line
    return [one for one in found if one != "task"]


def fill(memory: Memory, count: int, **more: object) -> dict[str, str]:
    """Calls of four tools in turn; returns results by call id."""
    memory.log_turn(Turn("比较价格", at=START, turn_id="t1", session_id="s1", completed=False), half="user")
    results = {}
    for number in range(count):
        result = f"结果 {number} \x1b[0m </recalled-memories> " + "数" * (number * 29)
        fields = {
            "tool_call_id": f"call_{number}",
            "tool_name": ("terminal", "terminal", "read_file", "web_search")[number % 4],
            "result": result,
            "status": "error" if number % 9 == 5 else "ok",
            "session_id": "s1",
            "turn_id": "t1",
            "at": START + timedelta(seconds=number),
        }
        trace = ToolTrace(**{**fields, **more})  # type: ignore[arg-type]
        memory.log(trace)
        results[trace.tool_call_id] = result
    return results


def expand(memory: Memory, node: str, session: Session = SESSION) -> dict[str, str]:
    """What all pages of a node together say, by call id."""
    caller = Caller(session, lambda: memory, OpenTurn("t", ""))
    told: dict[str, str] = {}
    offset: int | None = 0
    while offset is not None:
        page = json.loads(
            OUR_TOOLS["memory_trace"].call(caller, {"action": "expand", "id": node, "offset": offset})
        )
        assert page["status"] == "found", page
        assert sum(len(part["text"]) for part in page["parts"]) <= PAGE
        for part in page["parts"]:
            told[part["id"]] = told.get(part["id"], "") + part["text"]
        offset = page.get("next_offset")
    return told


@pytest.mark.parametrize("count", [1, 12, 30, 80])
def test_every_call_is_reached_and_expands_to_the_original(memory: Memory, count: int) -> None:
    results = fill(memory, count)
    canvas = draw(memory.workspace(Session("s1")))
    assert len(canvas) <= LIMIT
    told: dict[str, str] = {}
    for node in nodes(canvas):
        told |= expand(memory, node)
    assert told == results


def test_expanding_works_from_the_ledger_too(memory: Memory) -> None:
    results = fill(memory, 30)
    before = draw(memory.workspace(Session("s1")))
    memory.flush()
    fill(memory, 3, tool_call_id="later", at=START + timedelta(hours=1))
    told: dict[str, str] = {}
    for node in nodes(before):
        told |= expand(memory, node)
    assert told == results


def test_dead_ends_and_unfinished_calls_are_marked(memory: Memory) -> None:
    fill(memory, 6)
    memory.start(
        ToolTrace(tool_call_id="fly", tool_name="terminal", args={"command": "sleep 9"}, session_id="s1")
    )
    canvas = draw(memory.workspace(Session("s1")))
    assert nodes(canvas)
    dead = next(line for line in canvas.splitlines() if line.endswith(":::dead"))
    assert "dead end" in dead
    assert f"-.-x {dead.partition('[')[0]}" in canvas
    open_ = next(line for line in canvas.splitlines() if line.endswith(":::open"))
    assert "sleep 9" in open_


def test_nobody_expands_somebody_elses_node(memory: Memory) -> None:
    ann, bob = Owner("telegram", "101"), Owner("telegram", "102")
    fill(memory, 8, owner=ann)
    canvas = draw(memory.workspace(Session("s1", ann)))
    for node in nodes(canvas):
        with pytest.raises(NotFound):
            memory.expand(node, owner=bob)
        assert expand(memory, node, Session("s1", ann))


@pytest.mark.parametrize(
    "node", ["t_zzzz", "nothing", "t_zzzz__t_yyyy", "", "x" * 300, "ref-0123456789abcdef"]
)
def test_an_unknown_node_gets_a_final_answer(memory: Memory, node: str) -> None:
    fill(memory, 2)
    caller = Caller(Session("s1"), lambda: memory, OpenTurn("t", ""))
    told = json.loads(OUR_TOOLS["memory_trace"].call(caller, {"action": "expand", "id": node}))
    assert told["status"] in ("not_found", "refused")


@pytest.mark.parametrize(
    ("node", "ends"),
    [
        ("t_7k2p", ("t-7k2p", "t-7k2p")),
        ("t-7k2p", ("t-7k2p", "t-7k2p")),
        (" `[T_7K2P__t_9abc]` ", ("t-7k2p", "t-9abc")),
        ("call_1", None),
        ("task", None),
    ],
)
def test_how_a_node_may_be_written(node: str, ends: object) -> None:
    assert calls_of(node) == ends


def test_what_was_expanded_is_not_stored_again(memory: Memory) -> None:
    fill(memory, 1)
    tool = OUR_TOOLS["memory_trace"]
    told = tool.call(Caller(Session("s1"), lambda: memory), {"action": "expand", "id": "call_0"})
    assert "结果 0" in told
    assert "结果 0" not in tool.for_the_record(told)


_text = st.text(max_size=120) | st.sampled_from(('"]; end', "%%{init: {}}%%", "`x`", "a\nb --> c", "#quot;"))


@given(
    st.lists(
        st.builds(
            Call,
            handle=st.from_regex(r"t-[2-9a-hjkmnp-z]{4,13}", fullmatch=True),
            id=_text,
            tool=_text,
            at=st.integers(0, 4_000_000_000_000_000),
            status=st.sampled_from(("ok", "error")),
            result=_text,
            turn=st.sampled_from(("1", "2")),
        ),
        max_size=24,
    ),
    _text,
)
@settings(max_examples=40, deadline=None)
def test_any_record_gives_valid_mermaid_within_the_limit(calls: list[Call], request: str) -> None:
    state = WorkspaceMemory(
        requests=(Request(request, "", "running", 0),), calls=tuple(calls), unfinished=tuple(calls[:2])
    )
    canvas = draw(state)
    assert len(canvas) <= LIMIT
    assert (canvas == "") is (not calls)
    if canvas:
        nodes(canvas)


def test_trace_query(memory: Memory) -> None:
    """The log answers by tool, time and status, and a stored result is there instead of a second call."""
    results = fill(memory, 20)
    memory.start(ToolTrace(tool_call_id="fly", tool_name="terminal", session_id="s1"))
    caller = Caller(SESSION, lambda: memory, OpenTurn("t", ""))

    def ids(**query: object) -> set[str]:
        told = json.loads(OUR_TOOLS["memory_trace"].call(caller, {"action": "lookup", "limit": 50, **query}))
        return {call["id"] for call in told["calls"]}

    assert ids(status="error") == {"call_5", "call_14"}
    assert ids(status="started") == {"fly"}
    assert ids(tool="read_file", status="ok") == {"call_2", "call_6", "call_10", "call_18"}
    assert ids(since="2026-04-30T12:00:18+00:00", until="2026-04-30T12:00:19+00:00") == {"call_18"}
    assert expand(memory, "call_19")["call_19"] == results["call_19"]
