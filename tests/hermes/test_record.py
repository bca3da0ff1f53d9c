"""Paused, or off the record for one turn: nothing of it is stored, and it is said once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli.chat import answer
from hermes_memory_plugin.hermes import pairing
from hermes_memory_plugin.hermes.bridge import Bridge
from hermes_memory_plugin.pauses import Pauses
from hermes_memory_plugin.plugin import Runtime
from hermes_memory_plugin.recall import block

SECRET = "客户编号七七四九"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text(
        "plugins: {entries: {hermes-memory: {settings: {offload: {enabled: true}, recall: {deadline_ms: 10000}}}}}"
    )
    return tmp_path


@pytest.fixture
def bridge(home: Path) -> Iterator[Bridge]:
    made = Bridge(Runtime())
    yield made
    for memory in made.runtime.plugin.memories():
        memory.close()


def turn(bridge: Bridge, text: str, *, number: int = 1, session: str = "s1", end: bool = True) -> str:
    """One turn with a tool call; returns what stood beside the message."""
    common: dict[str, Any] = {"session_id": session, "task_id": "t", "turn_id": f"{session}:t:{number}"}
    beside = bridge.pre_llm_call(
        **common, user_message=text, conversation_history=[{"role": "user", "content": text}], platform="cli"
    )
    call = {**common, "tool_name": "get_quote", "tool_call_id": f"c{session}{number}", "args": {"q": text}}
    bridge.pre_tool_call(**call)
    result = f"{text} " * 2_000
    bridge.transform_tool_result(**call, result=result)
    bridge.post_tool_call(**call, result=result, duration_ms=3)
    bridge.tool("remember", {"action": "recall", "query": text}, common)
    if end:
        bridge.post_llm_call(**common, user_message=text, assistant_response=f"好的，{text}")
        bridge.on_session_end(**common, completed=True, interrupted=False)
    return (beside or {}).get("context", "")


def on_disk(home: Path) -> bytes:
    """Every byte below memory/ once all is drained."""
    with Memory.open(home) as memory:
        memory.flush()
    return b"".join(path.read_bytes() for path in (home / "memory").rglob("*") if path.is_file())


def words(bridge: Bridge) -> list[str]:
    memory = bridge.runtime.plugin.memories()[0]
    memory.flush()
    return [row["user_text"] for row in reversed(memory.archive.logs.turns())]


def test_of_a_turn_off_the_record_nothing_reaches_any_file(bridge: Bridge, home: Path) -> None:
    turn(bridge, "茅台怎么看")
    beside = turn(bridge, f"别记：{SECRET}", number=2)
    turn(bridge, "五粮液怎么看", number=3)
    assert "不入记忆" in beside and block.strip(beside) == ""
    assert words(bridge) == ["茅台怎么看", "五粮液怎么看"]
    assert SECRET.encode() not in on_disk(home)


def test_only_that_turn_is_off_the_record_also_when_it_is_interrupted(bridge: Bridge, home: Path) -> None:
    turn(bridge, f"off the record: {SECRET}", end=False)
    assert "off the record" not in turn(bridge, "茅台怎么看", number=2)
    bridge.on_session_finalize(session_id="s1")
    assert words(bridge) == ["茅台怎么看"] and SECRET.encode() not in on_disk(home)


def test_a_late_tool_result_of_that_turn_is_not_stored_either(bridge: Bridge, home: Path) -> None:
    turn(bridge, f"别记 {SECRET}")
    turn(bridge, "茅台怎么看", number=2)
    bridge.post_tool_call(
        session_id="s1", turn_id="s1:t:1", tool_name="get_quote", tool_call_id="late", args={}, result=SECRET
    )
    assert SECRET.encode() not in on_disk(home)


def test_the_model_cannot_save_what_is_off_the_record(bridge: Bridge, home: Path) -> None:
    turn(bridge, f"别记 {SECRET}", end=False)
    save = {"action": "save", "title": "客户", "content": SECRET}
    assert '"refused"' in bridge.tool("remember", save, {"session_id": "s1", "turn_id": "s1:t:1"})
    assert SECRET.encode() not in on_disk(home)


def test_a_subagent_sent_off_in_such_a_turn_leaves_nothing(bridge: Bridge, home: Path) -> None:
    turn(bridge, "别记，去查一下", end=False)
    bridge.subagent_start(parent_session_id="s1", child_session_id="child")
    turn(bridge, SECRET, session="child")
    assert SECRET.encode() not in on_disk(home)


def test_a_pause_holds_across_processes_until_it_is_ended_and_is_said_once(
    bridge: Bridge, home: Path
) -> None:
    turn(bridge, "茅台怎么看")
    memory = bridge.runtime.plugin.memories()[0]
    assert answer("pause", home=home, owner=Owner(), memory=memory).startswith("Paused")
    said = [turn(bridge, f"{SECRET}{number}", number=number) for number in (2, 3)]
    assert "已暂停" in said[0] and "已暂停" not in said[1]
    assert "PAUSED" in answer("status", home=home, owner=Owner(), memory=memory)
    assert any("PAUSED for local" in notice for notice in memory.status()["notices"])
    again = Bridge(Runtime())  # another process
    assert "已暂停" in turn(again, SECRET, session="s2")
    for one in again.runtime.plugin.memories():
        assert answer("resume", home=home, owner=Owner(), memory=one).startswith("Resumed")
        one.close()
    turn(bridge, "五粮液怎么看", number=4)
    assert words(bridge) == ["茅台怎么看", "五粮液怎么看"] and SECRET.encode() not in on_disk(home)


def test_a_turn_begun_in_a_pause_is_not_kept_though_the_pause_ends_within_it(
    bridge: Bridge, home: Path
) -> None:
    Pauses(_folder(home)).pause("local")
    turn(bridge, SECRET, end=False)
    Pauses(_folder(home)).resume({"local"})
    bridge.post_llm_call(session_id="s1", turn_id="s1:t:1", user_message=SECRET, assistant_response=SECRET)
    assert SECRET.encode() not in on_disk(home)


def test_recall_goes_on_in_a_pause(bridge: Bridge, home: Path) -> None:
    with Memory.open(home) as memory:
        memory.remember("贵州茅台批价 2200 元")
        memory.pauses.pause("local")
    assert "2200" in turn(bridge, "茅台批价多少")


def test_one_owner_s_pause_is_nobody_else_s(home: Path) -> None:
    pauses, bob = Pauses(_folder(home)), Owner(platform="telegram", user_id="7")
    with Memory.open(home) as memory:
        assert "Paused" in pairing.answer(home, bob, "hermes-memory  Pause")
        assert memory.paused(bob) and not memory.paused(Owner())
        assert "Resumed" in pairing.answer(home, bob, "hermes-memory resume")
        memory.pauses.pause(Owner.ANY.key)
        assert memory.paused(bob) and memory.paused(Owner())
        assert "for everybody" in pairing.answer(home, bob, "hermes-memory resume")
    assert set(pauses.all()) == {"any"}


def test_a_damaged_pause_file_counts_as_a_pause(home: Path) -> None:
    (_folder(home) / "paused.json").write_text("{", encoding="utf-8")
    with Memory.open(home) as memory:
        assert memory.paused(Owner())
        memory.pauses.resume(memory.pauses.all())
        assert not memory.paused(Owner())


def _folder(home: Path) -> Path:
    with Memory.open(home) as memory:
        return memory.folder
