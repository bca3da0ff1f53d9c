"""Answer provenance: every number led back to its call, fact or page; an invented one, and only that, has no source."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner, Session, ToolTrace, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers import footers
from hermes_memory_plugin.plugin import MemoryPlugin, Runtime, TurnContext
from hermes_memory_plugin.recall.gist import Analyst
from hermes_memory_plugin.upkeep import answers
from tests.upkeep import answers_lab, proof_lab
from tests.upkeep.proof_lab import APRIL, NOVEMBER

ANN = Owner(platform="telegram", user_id="1")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[answers_lab.Lab]:
    with Memory.open(tmp_path) as memory:
        yield answers_lab.Lab(memory)


def test_the_numbers_of_a_hundred_answers_lead_to_their_sources(memory: Memory) -> None:
    found = answers_lab.tally(memory)
    links = found.right_links + found.wrong_links
    flags = found.right_flags + found.wrong_flags
    marked = links + flags + found.missed
    assert marked >= 170 and found.right_flags >= 20
    assert found.right_links >= 0.95 * links, found.wrong
    assert found.right_flags >= 0.9 * flags, found.wrong
    assert found.right_links + found.right_flags >= 0.95 * marked, found.wrong


def test_exactly_the_one_invented_number_is_flagged(lab: answers_lab.Lab) -> None:
    (answer,) = [one for one in lab.answers if "PEG" in one.text]
    assert [(one.number, one.kind) for one in lab.links(answer)] == [
        ("26.1倍", "call"),
        ("8.42倍", "call"),
        ("1.9", "none"),
    ]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("PE 26.1 倍，目标价 1,850 元，PEG 1.9", "— 3 个数字：1 个来自工具调用，1 个来自研报（第 7 页），1 个没有来源"),
        ("Moutai's PE is 26.1x and its PEG 1.9.", "— 2 numbers: 1 call, 1 without source"),
        ("好的，三天后再说。", ""),
    ],
)  # fmt: skip
def test_the_footer_counts_in_the_answers_language(lab: answers_lab.Lab, answer: str, line: str) -> None:
    written = answers_lab.Answer(("daily", "reports"), "茅台", answer, ())
    assert answers.footer(lab.links(written), answer) == line


@pytest.mark.parametrize(
    "line", ["— 3 个数字：1 个来自工具调用，2 个没有来源", "— 1 number: 1 call", "— 12 numbers: 12 calls"]
)
def test_a_footer_is_known_again_whoever_wrote_it(memory: Memory, line: str) -> None:
    assert footers.without(f"PE 26.1 倍。\n\n{line}") == "PE 26.1 倍。"
    memory.log_turn(Turn("茅台PE", f"PE 26.1 倍。\n\n{line}", NOVEMBER, "t1", "s1"))
    assert memory.sources("t1").text == "PE 26.1 倍。"


def test_a_line_of_the_answer_itself_is_no_footer() -> None:
    assert footers.without("结论：\n— 3 个数字里有 2 个不可靠") == "结论：\n— 3 个数字里有 2 个不可靠"


# -- over a turn, and later --------------------------------------------------------------------------------------------


def _turn(runtime: Runtime, home: Path, turn: str, question: str, answer: str, result: str = "", *, owner: Owner = Owner()) -> None:  # fmt: skip
    """A turn as the host's hooks tell it, and what it sets off."""
    session, context = Session("s1", owner), TurnContext(home)
    if result:
        trace = ToolTrace(tool_call_id=f"c-{turn}", tool_name="daily_basic", args={"ts_code": "600519.SH"}, result=result, session_id="s1", turn_id=turn, owner=owner)  # fmt: skip
        runtime.call("after_tool_call", context, session=session, trace=trace)
    runtime.call(
        "on_turn_end",
        context,
        session=session,
        turn=Turn(question, answer, datetime.now(UTC), turn, "s1", owner),
    )
    assert runtime.plugin.memory_of(home).worker.settle(30)


@pytest.fixture
def runtime(home: Path) -> Iterator[Runtime]:
    found = Runtime()
    yield found
    plugin: MemoryPlugin = found.plugin
    for memory in plugin.memories():
        memory.close()


PE = '{"ts_code": "600519.SH", "trade_date": "20261127", "pe_ttm": 26.1, "pb": 8.42}'


def test_the_links_of_a_turn_are_kept_for_every_later_session(runtime: Runtime, home: Path) -> None:
    _turn(runtime, home, "t1", "茅台PE", "茅台 PE 26.1 倍，PEG 1.9。", PE)
    runtime.plugin.memory_of(home).close()
    with Memory.open(home) as memory:
        found = memory.sources()
        assert [(one.number, one.kind, one.call) for one in found.links] == [
            ("26.1 倍", "call", "c-t1"),
            ("1.9", "none", ""),
        ]
        assert memory.verify("你说的26.1倍").tool_call_ids == ("c-t1",)


def test_a_conversation_that_ends_at_once_keeps_its_links(runtime: Runtime, home: Path) -> None:
    memory = runtime.plugin.memory_of(home)
    begun, held = threading.Event(), threading.Event()
    memory.worker.soon(lambda: begun.set() or held.wait(30))
    assert begun.wait(30)
    session, context = Session("s1"), TurnContext(home)
    trace = ToolTrace(
        tool_call_id="c1", tool_name="daily_basic", args={}, result=PE, session_id="s1", turn_id="t1"
    )
    runtime.call("after_tool_call", context, session=session, trace=trace)
    turn = Turn("茅台PE", "茅台 PE 26.1 倍。", datetime.now(UTC), "t1", "s1")
    runtime.call("on_turn_end", context, session=session, turn=turn)
    memory.end(session)
    held.set()
    assert memory.worker.settle(30)
    assert [one.call for one in memory.sources("t1").links] == ["c1"]


def test_what_an_earlier_turn_called_still_counts(runtime: Runtime, home: Path) -> None:
    _turn(runtime, home, "t1", "茅台PE", "茅台 PE 26.1 倍。", PE)
    _turn(runtime, home, "t2", "PB呢", "茅台 PB 8.42 倍。")
    links = runtime.plugin.memory_of(home).sources("t2").links
    assert [(one.number, one.kind, one.call) for one in links] == [("8.42 倍", "call", "c-t1")]


def test_a_turn_nobody_came_to_read_is_read_when_asked_for(memory: Memory) -> None:
    proof_lab.call(memory, "c1", "daily_basic", {}, PE, NOVEMBER)
    proof_lab.answered(memory, "t-c1", "茅台PE", "茅台 PE 26.1 倍。", NOVEMBER, "s-c1")
    assert [one.call for one in memory.sources().links] == ["c1"]
    memory.flush()
    assert [row["call"] for row in memory.archive.logs.links()] == ["c1"]
    assert memory.provenance.catch_up() == 0


def test_a_fact_that_was_put_beside_the_question_is_the_source(runtime: Runtime, home: Path) -> None:
    from hermes_memory_hookspecs import UserMessage

    memory = runtime.plugin.memory_of(home)
    row = memory.remember(
        "贵州茅台 PE(TTM) 28.1 倍", subject="600519.SH", metric="pe", basis="TTM", value=28.1, as_of=APRIL
    )
    session = Session("s1")
    runtime.call("before_user_message", TurnContext(home), session=session, message=UserMessage("茅台PE多少", turn_id="t1"), transcript=[])  # fmt: skip
    _turn(runtime, home, "t1", "茅台PE多少", "茅台 PE 28.1 倍。")
    assert [(one.kind, one.fact) for one in memory.sources("t1").links] == [("fact", row)]


def test_an_answer_is_shown_to_nobody_else(runtime: Runtime, home: Path) -> None:
    _turn(runtime, home, "t1", "茅台PE", "茅台 PE 26.1 倍。", PE, owner=ANN)
    memory = runtime.plugin.memory_of(home)
    assert memory.sources(owner=ANN).links
    for turn in ("", "t1"):
        with pytest.raises(NotFound):
            memory.sources(turn)


def test_an_interrupted_turn_has_no_answer_to_read(runtime: Runtime, home: Path) -> None:
    _turn(runtime, home, "t1", "茅台PE", "", PE)
    with pytest.raises(NotFound):
        runtime.plugin.memory_of(home).sources()


ANALYST = Analyst(Path("nowhere"))


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_answer_over_any_result_is_read(answer: str, result: str) -> None:
    call = ToolTrace(tool_call_id="c", tool_name="t", result=result, at=NOVEMBER)
    for link in answers.read(answer, ANALYST, NOVEMBER, calls=[call]):
        assert link.kind in ("call", "report", "computed", "none")
