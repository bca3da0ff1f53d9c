"""Finding the host's summary in a request, and giving every request the same state, whatever happens around it."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Compaction, Session, hookimpl
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.hermes import compaction, host
from hermes_memory_plugin.hermes.bridge import Bridge
from hermes_memory_plugin.plugin import Runtime
from hermes_memory_plugin.recall import block
from tests.lab.mock_llm import text_of

END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
HEAD = "Current agent state:"


def summary(words: str = "Prices were read.") -> str:
    return f"[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted …:\n{words}"


def message(content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


ALONE = f"{summary()}\n\n{END}"
OLD = f"{summary('An older one.')}\n\n{END}"
SYSTEM = message(f"A note on summaries: {ALONE}", "system")
PARTS = [
    {"type": "text", "text": "hello"},
    {"type": "text", "text": ALONE, "cache_control": {"type": "ephemeral"}},
    {"type": "image_url", "image_url": {"url": "data:…"}},
]

FOUND: dict[str, tuple[dict[str, Any], str]] = {
    "user": ({"messages": [SYSTEM, message("hi"), message(ALONE), message("go on")]}, summary()),
    "assistant": ({"messages": [SYSTEM, message(ALONE, "assistant"), message("go on")]}, summary()),
    "merged, 0.19": ({"messages": [message(f"[PRIOR CONTEXT]\nhi\n\n{MERGED}\n\n{ALONE}")]}, summary()),
    "merged, before": ({"messages": [message(f"{ALONE}\n\nwhat now?\n\n<memory-context>")]}, summary()),
    "two at once": ({"messages": [message(OLD), message("a"), message(ALONE, "assistant")]}, summary()),
    "an old one inside": ({"messages": [message(f"{OLD}\n\n{MERGED}\n\n{ALONE}")]}, summary()),
    "parts": ({"messages": [message(PARTS)]}, summary()),
    "bedrock parts": ({"messages": [message([{"text": ALONE}])]}, summary()),
    "input": ({"input": [{"type": "function_call"}, message([{"type": "input_text", "text": ALONE}])]}, summary()),
    "input text": ({"input": [message(ALONE)], "model": "m"}, summary()),
    "no end mark": ({"messages": [message(summary())]}, summary()),
    "a quoted beginning": ({"messages": [message(ALONE), message(summary("what does this mean?"))]}, summary()),
    "old prefix": ({"messages": [message(f"[CONTEXT SUMMARY]: x\n\n{END}")]}, "[CONTEXT SUMMARY]: x"),
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "no summary": {"messages": [message("hi"), message("hello", "assistant")]},
    "system only": {"messages": [SYSTEM, message("hi")]},
    "a tool shows one": {"messages": [message(ALONE, "tool")]},
    "in the middle of words": {"messages": [message(f"I saw this: {ALONE}")]},
    "no messages": {"model": "m"},
    "text": {"input": ALONE},
    "odd": {"messages": [None, 7, {}, {"role": "user"}, message(None), message([None, 3, {"text": 4}])]},
    "nothing": None,
    "a list": [],
}


@pytest.mark.parametrize(("request_", "body"), FOUND.values(), ids=FOUND)
def test_the_last_summary_is_found(request_: dict[str, Any], body: str) -> None:
    found = compaction.find(request_)
    assert found is not None
    assert found.body == body


@pytest.mark.parametrize("request_", NOTHING.values(), ids=NOTHING)
def test_what_is_no_summary_is_left_alone(request_: Any) -> None:
    assert compaction.find(request_) is None


@pytest.mark.parametrize("request_", [one for one, _ in FOUND.values()], ids=FOUND)
def test_the_state_stands_at_the_end_of_the_summary_and_nothing_else_changes(
    request_: dict[str, Any],
) -> None:
    before = copy.deepcopy(request_)
    found = compaction.find(request_)
    assert found is not None
    after = compaction.with_state(request_, found, "STATE")
    assert request_ == before
    told, said = (json.dumps(one, ensure_ascii=False) for one in (after, before))
    assert told.replace("\\n\\nSTATE", "") == said
    assert f"{json.dumps(found.body, ensure_ascii=False)[1:-1]}\\n\\nSTATE" in told


def test_a_part_keeps_its_cache_mark() -> None:
    request = {"messages": [message(PARTS)]}
    found = compaction.find(request)
    assert found is not None
    part = compaction.with_state(request, found, "STATE")["messages"][0]["content"][1]
    assert part["cache_control"] == {"type": "ephemeral"}
    assert part["text"] == f"{summary()}\n\nSTATE\n\n{END}"


_words = st.text(max_size=80).filter(lambda text: "[CONTEXT" not in text and "END OF" not in text)


@given(_words, _words, st.lists(_words, max_size=4), st.sampled_from(("user", "assistant")), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_key_is_the_summarys_alone(
    words: str, beside: str, others: list[str], role: str, parts: bool
) -> None:
    """Neither what it was merged with nor what comes later changes which summary it is."""
    body = summary(words).rstrip()
    whole = f"{body}\n\n{END}"
    texts = [whole, f"{whole}\n\n{beside}", f"{beside}\n\n{MERGED}\n\n{whole}", f"\n {whole}"]
    for text in texts:
        content: Any = [{"type": "text", "text": text}] if parts else text
        request = {"messages": [message("first"), message(content, role), *map(message, others)]}
        found = compaction.find(request)
        assert found is not None
        assert found.body == body
        after = compaction.with_state(request, found, "STATE")
        again = compaction.find(after)
        assert again is not None
        assert text_of(after["messages"][1]["content"]) == text.replace(body, f"{body}\n\nSTATE", 1)


# -- as Hermes calls it ------------------------------------------------------------------------------------------------


class Other:
    """Another package's plugin with something to add after a compaction."""

    def __init__(self) -> None:
        self.says: Any = None
        self.told: list[Compaction] = []

    @hookimpl
    def on_compact(self, session: Session, compaction: Compaction) -> str | None:
        self.told.append(compaction)
        if isinstance(self.says, Exception):
            raise self.says
        said: str | None = self.says
        return said


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def other() -> Other:
    return Other()


@pytest.fixture
def bridge(home: Path, other: Other) -> Iterator[Bridge]:
    yield from _bridge(other)


def _bridge(other: Other | None = None) -> Iterator[Bridge]:
    runtime = Runtime()
    if other is not None:
        runtime.hooks.register(other, "other")
    yield Bridge(runtime)
    for memory in runtime.plugin.memories():
        memory.close()


def ask(bridge: Bridge, text: str = "比较价格", session: str = "s1", **more: Any) -> Any:
    return bridge.pre_llm_call(
        session_id=session,
        turn_id=f"{session}:task:{text}",
        task_id="task",
        user_message=text,
        conversation_history=more.pop("history", [message(text)]),
        **{"model": "mock", "platform": "cli", "sender_id": "", **more},
    )


def call(bridge: Bridge, number: int, session: str = "s1", *, ends: bool = True) -> None:
    named = {
        "tool_name": "terminal",
        "args": {"command": f"echo {number}"},
        "session_id": session,
        "tool_call_id": f"call_{number}",
    }
    bridge.pre_tool_call(**named)
    if ends:
        bridge.post_tool_call(**named, result=f"figure {number}", duration_ms=1, status="ok")


def send(bridge: Bridge, request: dict[str, Any], session: str = "s1", turn: str = "s1:task:比较价格") -> str:
    """The text of the last message with a summary, as it goes to the model; "" when nothing was added."""
    before = copy.deepcopy(request)
    given = bridge.llm_request(
        request=request, original_request=request, session_id=session, turn_id=turn, platform="cli"
    )
    assert request == before
    if given is None:
        return ""
    found = compaction.find(given["request"])
    assert found is not None
    return text_of(given["request"][found.shape][found.message]["content"])


REQUEST = FOUND["user"][0]


def test_compact_preserves_state(bridge: Bridge, home: Path) -> None:
    """The very next request tells what was asked and done; the host's summary and the text are on record."""
    ask(bridge)
    call(bridge, 1)
    call(bridge, 2, ends=False)
    sent = send(bridge, REQUEST)
    assert HEAD in sent
    assert "figure 1" in sent
    assert "Unfinished calls" in sent
    assert "flowchart TD" in sent
    memory = bridge.runtime.plugin.memory_of(home)
    memory.flush()
    (row,) = memory.archive.logs.rows("SELECT record FROM other WHERE kind = 'compaction'")
    kept = json.loads(row["record"])
    assert kept["summary"] == summary()
    assert kept["text"] in sent


def test_compact_without_llm(bridge: Bridge) -> None:
    """Whatever the host puts in the place of a failed summary, the state comes from the record."""
    ask(bridge)
    call(bridge, 1)
    fallback = summary("Summary generation failed.")
    assert "figure 1" in send(bridge, {"messages": [message(f"{fallback}\n\n{END}")]})


def test_the_bytes_stay_the_same_in_every_later_request_and_process(bridge: Bridge, other: Other) -> None:
    ask(bridge)
    call(bridge, 1)
    first = send(bridge, REQUEST)
    call(bridge, 2)
    ask(bridge, "下一个问题")
    assert send(bridge, REQUEST) == first
    for later in _bridge():
        assert send(later, REQUEST) == first
    for later in _bridge():
        ask(later, "第三个问题")
        call(later, 3)
        assert send(later, REQUEST) == first
    assert len(other.told) == 1


def test_many_threads_and_processes_at_once_agree(home: Path) -> None:
    bridges = [next(_bridge()) for _ in range(3)]
    ask(bridges[0])
    call(bridges[0], 1)
    sent: list[str] = []

    def work(one: Bridge) -> None:
        call(one, 50 + len(sent))
        sent.append(send(one, REQUEST))

    threads = [threading.Thread(target=work, args=(one,)) for one in bridges for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(sent) - {""}) == 1
    assert send(bridges[1], REQUEST) in sent
    for one in bridges:
        for memory in one.runtime.plugin.memories():
            memory.close()


def test_the_next_compaction_gets_a_state_of_its_own(bridge: Bridge) -> None:
    ask(bridge)
    call(bridge, 1)
    first = send(bridge, REQUEST)
    call(bridge, 2)
    second = send(bridge, {"messages": [*REQUEST["messages"], message(f"{summary('Later.')}\n\n{END}")]})
    assert "figure 2" in second
    assert "figure 2" not in first


def test_a_compaction_that_renames_the_session_carries_the_state(bridge: Bridge) -> None:
    ask(bridge)
    call(bridge, 1)
    assert "figure 1" in send(bridge, REQUEST, session="s2-renamed")


def test_a_new_session_with_the_same_summary_has_nothing_of_the_old(bridge: Bridge) -> None:
    ask(bridge)
    call(bridge, 1)
    send(bridge, REQUEST)
    ask(bridge, "别的事", session="s9")
    sent = send(bridge, REQUEST, session="s9", turn="s9:task:别的事")
    assert "别的事" in sent
    assert "figure 1" not in sent


def test_nothing_on_record_adds_nothing(bridge: Bridge, home: Path) -> None:
    assert send(bridge, REQUEST) == ""
    assert not (home / "memory" / "compactions").exists()


def test_the_review_fork_sends_the_same_bytes_and_derives_nothing(bridge: Bridge, other: Other) -> None:
    from tools.skill_provenance import reset_current_write_origin, set_current_write_origin

    ask(bridge)
    call(bridge, 1)
    token = set_current_write_origin("background_review")
    try:
        assert send(bridge, REQUEST) == ""
        bridge.pre_tool_call(tool_name="t", args={}, session_id="s1", tool_call_id="fork")
    finally:
        reset_current_write_origin(token)
    first = send(bridge, REQUEST)
    assert "fork" not in first
    token = set_current_write_origin("background_review")
    try:
        assert send(bridge, REQUEST) == first
    finally:
        reset_current_write_origin(token)
    assert len(other.told) == 1


def test_what_another_plugin_adds_is_harmless_and_bounded(bridge: Bridge, other: Other) -> None:
    ask(bridge)
    other.says = "Tax notes </recalled-memories>\n```\n" + "x" * 9_000
    sent = send(bridge, REQUEST)
    assert sent.index(HEAD) < sent.index("Tax notes")
    assert "</recalled" not in sent
    assert len(sent) < 9_000


def test_a_failing_plugin_costs_nobody_else_anything(bridge: Bridge, other: Other) -> None:
    ask(bridge)
    other.says = RuntimeError("no")
    assert HEAD in send(bridge, REQUEST)


def test_a_state_that_comes_late_is_left_out_counted_and_there_next_time(
    bridge: Bridge, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(bridge)
    memory = bridge.runtime.plugin.memory_of(home)
    gate, derive = threading.Event(), memory.compacted

    def slow(*arguments: Any, **named: Any) -> str:
        gate.wait(10)
        return derive(*arguments, **named)

    monkeypatch.setattr(memory, "compacted", slow)
    monkeypatch.setattr(compaction, "DEADLINE", 0.02)
    assert send(bridge, REQUEST) == ""
    assert memory.events["compaction_late"] == 1
    gate.set()
    for _ in range(200):
        if list((home / "memory").glob("compactions/*.md")):
            break
        threading.Event().wait(0.02)
    assert HEAD in send(bridge, REQUEST)


def test_a_failure_is_counted_and_the_request_goes_out_as_it_is(
    bridge: Bridge, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(bridge)
    memory = bridge.runtime.plugin.memory_of(home)

    def broken(*_: Any, **__: Any) -> str:
        raise HermesMemoryError("no index")

    monkeypatch.setattr(memory, "compacted", broken)
    assert send(bridge, REQUEST) == ""
    assert memory.events["plugin_failed"] == 1


def test_a_state_that_cannot_be_kept_still_stands_for_this_process(bridge: Bridge, home: Path) -> None:
    ask(bridge)
    call(bridge, 1)
    (home / "memory" / "compactions").write_text("a file where the folder should be")
    first = send(bridge, REQUEST)
    assert HEAD in first
    call(bridge, 2)
    assert send(bridge, REQUEST) == first
    assert bridge.runtime.plugin.memory_of(home).events["compaction_failed"] == 1


def test_reinject_after_compact(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without middleware gets the state beside the next message, the same bytes as long as it compacts no more."""
    monkeypatch.setattr(host, "has_middleware", lambda: False)
    ask(bridge)
    call(bridge, 1)
    history = [message(ALONE, "assistant"), message("继续")]
    first = ask(bridge, "继续", history=history)
    assert first is not None
    (found,) = block.find(first["context"])
    assert HEAD in found.text
    assert "figure 1" in found.text
    call(bridge, 2)
    again = ask(bridge, "再来", history=[*history, message("好", "assistant"), message("再来")])
    assert again is not None
    assert block.find(again["context"])[0].text == found.text
    monkeypatch.setattr(host, "has_middleware", lambda: True)
    assert HEAD not in str(ask(bridge, "又来", history=history))


def test_what_was_forgotten_is_told_no_more(bridge: Bridge, home: Path) -> None:
    """Also not by a process that has the old text in its hands; other conversations keep theirs."""
    ask(bridge)
    call(bridge, 1)
    call(bridge, 2)
    ask(bridge, "别的事", session="s9")
    others = send(bridge, REQUEST, session="s9", turn="s9:task:别的事")
    first = send(bridge, REQUEST)
    for later in _bridge():
        assert send(later, REQUEST) == first
        memory = bridge.runtime.plugin.memory_of(home)
        assert memory.forget(memory.workspace(Session("s1")).calls[0].handle)
        ask(later, "下一个问题")
        again = send(later, REQUEST)
        assert "figure 1" not in again
        assert "figure 2" in again
        assert send(bridge, REQUEST) == again
        assert send(later, REQUEST, session="s9", turn="s9:task:别的事") == others
        memory.flush()
        kept = [row["record"] for row in memory.archive.logs.rows("SELECT record FROM other")]
        assert any("figure 2" in one for one in kept) and not any("figure 1" in one for one in kept)
