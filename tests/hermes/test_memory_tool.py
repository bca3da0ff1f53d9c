"""The host's own `memory` tool as the bridge sees it, in a turn and in the review fork."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import skill_provenance

from hermes_memory_plugin import Memory
from hermes_memory_plugin.hermes.bridge import Bridge
from hermes_memory_plugin.plugin import Runtime

ENTRY = "宁德时代 PE(TTM) 24.6 倍（2026-04-30）"
FULL = json.dumps({"success": False, "error": "Memory at 2,190/2,200 chars. Adding this entry (30 chars) would exceed the limit."})  # fmt: skip


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    made = Bridge(Runtime())
    made.pre_llm_call(
        session_id="s1", turn_id="s1:1", user_message="记一下", conversation_history=[], platform="cli"
    )
    yield made
    for memory in made.runtime.plugin.memories():
        memory.close()


def ended(bridge: Bridge, result: str, **arguments: Any) -> None:
    given = {"action": "add", "target": "memory", "content": ENTRY, **arguments}
    bridge.post_tool_call(
        tool_name="memory", args=given, result=result, session_id="s1", turn_id="s1:1", tool_call_id="c1"
    )


def rows(bridge: Bridge, home: Path) -> list[tuple[str, str]]:
    memory: Memory = bridge.runtime.plugin.memory_of(home)
    assert memory.worker.settle(20)
    return [
        (item.layer, item.text)
        for item in memory.recall(ENTRY, mode="explicit").items
        if item.layer in ("L1", "L3")
    ]


def test_a_write_that_succeeded_is_a_row_of_l3(bridge: Bridge, tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir(exist_ok=True)
    (tmp_path / "memories" / "MEMORY.md").write_text(ENTRY, encoding="utf-8")
    ended(bridge, '{"success": true}')
    assert rows(bridge, tmp_path) == [("L3", ENTRY)]


def test_a_write_that_found_no_room_is_a_row_of_l1(bridge: Bridge, tmp_path: Path) -> None:
    ended(bridge, FULL)
    assert rows(bridge, tmp_path) == [("L1", ENTRY)]


def test_the_review_fork_loses_nothing_either_and_leaves_no_trace_of_its_own(
    bridge: Bridge, tmp_path: Path
) -> None:
    token = skill_provenance.set_current_write_origin("background_review")
    try:
        ended(bridge, FULL)
    finally:
        skill_provenance.reset_current_write_origin(token)
    assert rows(bridge, tmp_path) == [("L1", ENTRY)]
    memory = bridge.runtime.plugin.memory_of(tmp_path)
    memory.flush()
    assert list(memory.archive.logs.rows("SELECT * FROM logs")) == []


@pytest.mark.parametrize("result", ["", "null", '{"success": "no"}', "{" * 500])
def test_strange_answers_do_no_harm(bridge: Bridge, tmp_path: Path, result: str) -> None:
    ended(bridge, result, content=None)
    assert rows(bridge, tmp_path) == []
    assert bridge.runtime.plugin.memory_of(tmp_path).events["hook_failed"] == 0
