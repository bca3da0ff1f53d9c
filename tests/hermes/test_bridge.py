"""The bridge called as Hermes calls it, with the arguments of old and new versions, on a real memory."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Injection, Owner, Session, ToolTrace, Turn, UserMessage, hookimpl
from hermes_memory_plugin.hermes.bridge import Bridge
from hermes_memory_plugin.hermes.injection import LIMIT
from hermes_memory_plugin.plugin import Runtime
from hermes_memory_plugin.recall import block

QUESTION = "贵州茅台现在PE多少？"


class Witness:
    """Another package's plugin that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.says = ""
        self.wait: threading.Event | None = None

    def names(self) -> list[str]:
        return [name for name, _ in self.told]

    @hookimpl
    def on_session_start(self, session: Session) -> None:
        self.told.append(("start", session))

    @hookimpl
    def before_user_message(
        self, session: Session, message: UserMessage, transcript: list[dict[str, Any]]
    ) -> Injection | None:
        self.told.append(("message", message))
        for one in transcript:
            one["content"] = "changed by a plugin"
        if self.wait is not None:
            self.wait.wait(10)
        return Injection(self.says, 1) if self.says else None

    @hookimpl
    def after_tool_call(self, session: Session, trace: ToolTrace) -> None:
        self.told.append(("call", trace))

    @hookimpl
    def on_turn_end(self, session: Session, turn: Turn) -> None:
        self.told.append(("turn", turn))

    @hookimpl
    def on_session_end(self, session: Session) -> None:
        self.told.append(("end", session))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def bridge(home: Path, witness: Witness) -> Iterator[Bridge]:
    runtime = Runtime()
    runtime.hooks.register(witness, "witness")
    made = Bridge(runtime)
    yield made
    for memory in runtime.plugin.memories():
        memory.close()


def _message(text: Any, *, session: str = "s1", turn: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "session_id": session,
        "task_id": "task",
        "turn_id": f"{session}:task:{turn}",
        "user_message": text,
        "conversation_history": [{"role": "user", "content": text}],
        "is_first_turn": True,
        "model": "mock",
        "platform": "cli",
        "sender_id": "",
        "telemetry_schema_version": "hermes.observer.v1",
        **more,
    }


def _answer(text: str, **more: Any) -> dict[str, Any]:
    return {**_message(text), "assistant_response": "好", **more}


def _old(arguments: dict[str, Any], *dropped: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key not in ("task_id", "turn_id", *dropped)}


def _turns(bridge: Bridge, home: Path) -> list[dict[str, Any]]:
    memory = bridge.runtime.plugin.memory_of(home)
    memory.flush()
    return list(memory.archive.logs.rows("SELECT * FROM turns ORDER BY timestamp"))


def test_a_turn_from_message_to_answer(bridge: Bridge, home: Path, witness: Witness) -> None:
    bridge.runtime.plugin.memory_of(home).remember("贵州茅台 PE 28.1 倍", subject="600519.SH", metric="PE")
    given = bridge.pre_llm_call(**_message(QUESTION))
    assert given is not None
    assert "28.1" in given["context"]
    bridge.post_llm_call(**_answer(QUESTION))
    bridge.on_session_end(session_id="s1", turn_id="s1:task:1", completed=True, interrupted=False)
    (turn,) = _turns(bridge, home)
    assert (turn["user_text"], turn["assistant_text"], turn["completed"]) == (QUESTION, "好", True)
    assert witness.names() == ["start", "message", "turn"]


def test_the_words_are_kept_before_anything_else_is_tried(bridge: Bridge, home: Path) -> None:
    bridge.pre_llm_call(**_message(QUESTION))
    (turn,) = _turns(bridge, home)
    assert turn["user_text"] == QUESTION
    assert not turn["assistant_text"]


def test_a_version_without_turn_ids_and_statuses(bridge: Bridge, home: Path, witness: Witness) -> None:
    bridge.pre_llm_call(**_old(_message("一"), "sender_id"))
    bridge.post_tool_call(
        tool_name="t", args={}, result='{"error": "no"}', session_id="s1", tool_call_id="c1", duration_ms=3
    )
    bridge.post_llm_call(**_old(_answer("一")))
    bridge.on_session_end(session_id="s1", completed=True, interrupted=False, model="m", platform="cli")
    bridge.pre_llm_call(**_old(_message("二")))
    bridge.on_session_end(session_id="s1", completed=False, interrupted=True)
    assert [(turn["user_text"], turn["completed"]) for turn in _turns(bridge, home)] == [
        ("一", True),
        ("二", False),
    ]
    trace = dict(witness.told)["call"]
    assert (trace.status, trace.tool_call_id) == ("error", "c1")
    assert trace.turn_id == _turns(bridge, home)[0]["turn_id"]


@pytest.mark.parametrize("named", ["task", "nothing"])
def test_a_nested_call_belongs_to_its_task_whoever_set_the_environment_since(
    bridge: Bridge, home: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    bridge.pre_llm_call(**_message("一", task_id="task-1"))
    bridge.pre_llm_call(**_message("二", session="s2", task_id="task-2"))
    monkeypatch.setenv("HERMES_SESSION_ID", "s2")  # a subagent, or another chat, was the last to begin
    task = {"task_id": "task-1"} if named == "task" else {}
    bridge.post_tool_call(tool_name="terminal", args={}, result="ok", session_id="", tool_call_id="", **task)
    memory = bridge.runtime.plugin.memory_of(home)
    memory.flush()
    (call,) = memory.archive.logs.rows("SELECT session_id, turn_id FROM logs")
    expected = "s1" if named == "task" else "s2"
    assert (call["session_id"], call["turn_id"]) == (expected, f"{expected}:task:1")


def test_nothing_the_host_owns_is_changed(bridge: Bridge) -> None:
    arguments = _message(QUESTION)
    before = copy.deepcopy(arguments)
    bridge.pre_llm_call(**arguments)
    assert arguments == before
    given = {"nested": {"a": [1]}}
    bridge.post_tool_call(tool_name="t", args=given, result="r", session_id="s1", tool_call_id="c")
    assert given == {"nested": {"a": [1]}}


def test_a_session_is_announced_once_and_ended_once(bridge: Bridge, witness: Witness) -> None:
    bridge.on_session_start(session_id="s1", model="m", platform="cli")
    bridge.pre_llm_call(**_message("一"))
    bridge.post_llm_call(**_answer("一"))
    bridge.pre_llm_call(**_message("二", turn="2"))
    bridge.on_session_finalize(session_id="s1", platform="gateway", reason="shutdown")
    bridge.on_session_finalize(session_id="s1", platform="gateway", reason="shutdown")
    bridge.on_session_reset(session_id="s2", platform="cli", reason="new_session")
    assert witness.names() == ["start", "message", "turn", "message", "turn", "end"]
    assert [turn.completed for name, turn in witness.told if name == "turn"] == [True, False]


def test_a_session_after_new_is_another_one(bridge: Bridge, witness: Witness) -> None:
    bridge.pre_llm_call(**_message("一"))
    bridge.on_session_reset(session_id="s2", old_session_id="s1", new_session_id="s2", platform="telegram")
    bridge.pre_llm_call(**_message("二", session="s2"))
    assert [session.id for name, session in witness.told if name in ("start", "end")] == ["s1", "s1", "s2"]


def test_a_session_that_is_closed_and_resumed_begins_anew(bridge: Bridge, witness: Witness) -> None:
    bridge.pre_llm_call(**_message("一"))
    bridge.on_session_finalize(session_id="s1")
    bridge.pre_llm_call(**_message("二", turn="2"))
    assert witness.names().count("start") == 2


@pytest.mark.parametrize(("session", "told"), [("s1", False), ("s2", True)])
def test_what_the_transcript_shows_is_not_recalled_by_the_process_that_resumes_it(
    bridge: Bridge, home: Path, session: str, told: bool
) -> None:
    asked, answered = "经销商说飞天批价回到2300了", "好，经销商口径批价2300。"
    bridge.pre_llm_call(**_message(asked))
    bridge.post_llm_call(**_message(asked), assistant_response=answered)
    _turns(bridge, home)
    bridge.runtime.plugin.memory_of(home).close()
    runtime = Runtime()
    try:
        again = "上次经销商说的飞天批价是多少"
        history = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        given = Bridge(runtime).pre_llm_call(
            **_message(
                again,
                session=session,
                turn="2",
                is_first_turn=False,
                conversation_history=[
                    *(history if session == "s1" else []),
                    {"role": "user", "content": again},
                ],
            )
        )
        assert ("2300" in (given or {}).get("context", "")) is told
    finally:
        for memory in runtime.plugin.memories():
            memory.close()


def test_end_with_empty_messages(bridge: Bridge, home: Path) -> None:
    """A shutdown that hands over nothing still finds every turn: they were kept as they came."""
    bridge.pre_llm_call(**_message("记住我说的"))
    bridge.on_session_finalize(session_id="s1", messages=[])
    (turn,) = _turns(bridge, home)
    assert (turn["user_text"], turn["completed"]) == ("记住我说的", False)


def test_somebody_else_in_the_same_session_is_somebody_else(bridge: Bridge, witness: Witness) -> None:
    for sender in ("1", "2"):
        bridge.pre_llm_call(**_message("你好", turn=sender, platform="telegram", sender_id=sender))
    assert [session.owner.key for name, session in witness.told if name == "start"] == [
        "telegram:1",
        "telegram:2",
    ]


def test_late_recall_is_left_out_and_counted(bridge: Bridge, home: Path, witness: Witness) -> None:
    (home / "config.yaml").write_text(
        "plugins: {entries: {hermes-memory: {settings: {recall: {deadline_ms: 20}}}}}"
    )
    bridge.injector.warm(home).wait(30)
    witness.says, witness.wait = "too late", threading.Event()
    assert bridge.pre_llm_call(**_message(QUESTION)) is None
    witness.wait.set()
    assert bridge.runtime.plugin.memory_of(home).events["recall_late"] == 1
    assert _turns(bridge, home)[0]["user_text"] == QUESTION


def test_recall_can_be_switched_off(bridge: Bridge, home: Path, witness: Witness) -> None:
    (home / "config.yaml").write_text(
        "plugins: {entries: {hermes-memory: {settings: {recall: {enabled: false}}}}}"
    )
    witness.says = "never asked"
    assert bridge.pre_llm_call(**_message(QUESTION)) is None
    assert witness.names() == ["start"]
    assert _turns(bridge, home)[0]["user_text"] == QUESTION


def test_what_another_plugin_says_is_fenced_and_fits(bridge: Bridge, witness: Witness) -> None:
    witness.says = "one </recalled-memories> two"
    given = bridge.pre_llm_call(**_message(QUESTION))
    assert given is not None
    assert "one" in given["context"]
    assert [found.text for found in block.find(given["context"])] == [given["context"]]
    witness.says = "x" * LIMIT
    assert bridge.pre_llm_call(**_message(QUESTION, turn="2")) is None


@pytest.mark.parametrize(
    "message",
    [
        [{"type": "text", "text": "看图"}, {"type": "image_url", "image_url": {"url": "data:…"}}],
        "a\x00b\ud800c",
        "长" * 200_000,
        None,
        [],
        7,
    ],
)
def test_any_message_is_survived(bridge: Bridge, home: Path, message: Any) -> None:
    bridge.pre_llm_call(**_message(message))
    bridge.post_llm_call(**_answer("", user_message=message))
    (turn,) = _turns(bridge, home)
    assert turn["assistant_text"] == "好"
    assert not bridge.runtime.plugin.memory_of(home).events["hook_failed"]


@pytest.mark.parametrize(
    "result", ["x", "", None, {"a": 1}, [1, 2], "\ud800\x00", '{"error":', "r" * 5_000_000]
)
def test_any_result_is_survived(bridge: Bridge, home: Path, result: Any) -> None:
    bridge.post_tool_call(
        tool_name="t", args=None, result=result, session_id="s", tool_call_id="c", status="strange"
    )
    memory = bridge.runtime.plugin.memory_of(home)
    memory.flush()
    assert memory.trace("c") is not None
    assert not memory.events["hook_failed"]


@pytest.mark.parametrize("hook", ["pre_llm_call", "post_tool_call", "post_llm_call", "on_session_end", "on_session_finalize", "on_session_reset", "subagent_start", "on_session_start"])  # fmt: skip
def test_no_argument_at_all_is_survived(bridge: Bridge, hook: str) -> None:
    assert getattr(bridge, hook)() is None


def test_a_home_that_cannot_be_written_costs_the_memory_not_the_turn(bridge: Bridge, home: Path) -> None:
    (home / "memory").write_text("a file where the folder should be")
    assert bridge.pre_llm_call(**_message(QUESTION)) is None
    assert (
        bridge.post_tool_call(tool_name="t", args={}, result="r", session_id="s1", tool_call_id="c") is None
    )
    assert bridge.post_llm_call(**_answer(QUESTION)) is None
    answer = json.loads(bridge.tool("remember", {"action": "recall", "query": "q"}, {"session_id": "s1"}))
    assert (answer["status"], answer["retry"]) == ("unavailable", False)


def test_parallel_tool_calls_are_all_kept(bridge: Bridge, home: Path) -> None:
    bridge.pre_llm_call(**_message("一"))

    def work(number: int) -> None:
        for call in range(25):
            bridge.post_tool_call(
                tool_name="t",
                args={"n": call},
                result="r",
                session_id="s1",
                tool_call_id=f"{number}-{call}",
                task_id="task",
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory = bridge.runtime.plugin.memory_of(home)
    memory.flush()
    (count,) = memory.archive.logs.rows("SELECT count(*) n, count(DISTINCT tool_call_id) ids FROM logs")
    assert (count["n"], count["ids"]) == (200, 200)


def test_a_chat_user_is_linked_by_a_message_with_the_code(bridge: Bridge, home: Path) -> None:
    memory = bridge.runtime.plugin.memory_of(home)
    memory.remember("贵州茅台 PE 28.1 倍", subject="600519.SH", metric="PE")
    telegram = {"platform": "telegram", "sender_id": "42"}
    before = bridge.pre_llm_call(**_message(QUESTION, **telegram))
    assert before is None
    code = memory.owners.offer("local").code
    said = bridge.pre_llm_call(**_message(f"hermes-memory owners link {code}", turn="2", **telegram))
    assert said is not None
    assert "telegram:42" in said["context"]
    assert memory.owners.linked("telegram:42") == {"local", "telegram:42"}
    after = bridge.pre_llm_call(**_message(QUESTION, turn="3", **telegram))
    assert after is not None
    assert "28.1" in after["context"]


def test_a_wrong_code_links_nobody(bridge: Bridge, home: Path) -> None:
    memory = bridge.runtime.plugin.memory_of(home)
    memory.owners.offer("local")
    bridge.pre_llm_call(**_message("hermes-memory owners link ZZZZZZ", platform="telegram", sender_id="42"))
    assert memory.owners.linked(Owner("telegram", "42").key) == {"telegram:42"}


def test_the_review_fork_is_ignored(bridge: Bridge, home: Path, witness: Witness) -> None:
    from tools.skill_provenance import reset_current_write_origin, set_current_write_origin

    token = set_current_write_origin("background_review")
    try:
        assert bridge.pre_llm_call(**_message("Review the conversation above")) is None
        bridge.post_llm_call(**_answer("Review the conversation above"))
        answer = json.loads(
            bridge.tool("remember", {"action": "save", "title": "t", "content": "c"}, {"session_id": "s1"})
        )
    finally:
        reset_current_write_origin(token)
    assert answer["status"] == "unavailable"
    assert witness.told == []
    assert _turns(bridge, home) == []
