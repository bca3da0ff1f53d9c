"""Long results outside the conversation: kept whole, once, for their owner alone, and read on by pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.hermes.bridge import Bridge
from hermes_memory_plugin.hermes.lineage import OpenTurn
from hermes_memory_plugin.plugin import Runtime
from hermes_memory_plugin.recall import budget
from hermes_memory_plugin.store.mask import mask_text
from hermes_memory_plugin.tools import OUR_TOOLS, Caller
from hermes_memory_plugin.upkeep import offload

ANN, BOB = Owner("telegram", "101"), Owner("telegram", "102")
LONG = "# 概要\n茅台 PE 28.1\n" + "价格 " * 3_000 + "\n# 明细\n" + "数字 " * 3_000 + "\n最后一行 END"


def keep(memory: Memory, result: str = LONG, owner: Owner = Owner(), tool: str = "web_extract") -> str:
    shown = offload.keep(memory, result, owner=owner, tool=tool, call="c1", session="s1")
    assert shown is not None
    return shown


def reference(shown: str) -> str:
    found = re.search(r"ref-[0-9a-f]{16}", shown)
    assert found
    return found[0]


def pages(memory: Memory, id: str, owner: Owner = Owner()) -> str:
    text, offset = "", 0
    while True:
        told = json.loads(
            OUR_TOOLS["memory_trace"].call(
                Caller(Session("s1", owner), lambda: memory, OpenTurn("t", "")),
                {"action": "expand", "id": id, "offset": offset},
            )
        )
        assert told["status"] == "found", told
        text += "".join(part["text"] for part in told["parts"])
        if "next_offset" not in told:
            return text
        offset = told["next_offset"]


def test_the_model_sees_beginning_end_contents_and_reference(memory: Memory) -> None:
    shown = keep(memory)
    assert shown.count("# 概要") == 2
    assert shown.endswith("最后一行 END")
    assert f"offset {LONG.index('# 明细')}: # 明细" in shown
    assert len(shown) < 4_000
    assert budget.tokens(shown) < budget.tokens(LONG) / 3


def test_pages_together_are_the_result(memory: Memory) -> None:
    assert pages(memory, reference(keep(memory))) == LONG


def test_one_copy_of_one_content(memory: Memory) -> None:
    assert keep(memory) == keep(memory)
    assert len(list((memory.folder / "refs").glob("*.md"))) == 1


def test_a_file_a_person_can_read(memory: Memory) -> None:
    keep(memory)
    (path,) = (memory.folder / "refs").glob("*.md")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\nreference: ")
    assert 'tool: "web_extract"' in text
    assert text.endswith("最后一行 END")
    assert path.stat().st_mode & 0o077 == 0


def test_nobody_opens_somebody_elses_result(memory: Memory) -> None:
    anns = reference(keep(memory, owner=ANN))
    assert pages(memory, anns, ANN) == LONG
    with pytest.raises(NotFound):
        offload.read(memory.folder, anns, memory.keys(BOB))
    assert reference(keep(memory, owner=BOB)) != anns


@pytest.mark.parametrize("name", ["../config", "ref-0123456789abcdeg", "ref-0123456789abcdef/../x", ""])
def test_a_reference_is_no_path(memory: Memory, name: str) -> None:
    with pytest.raises(NotFound):
        offload.read(memory.folder, name, None)


def test_secrets_are_not_kept(memory: Memory) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 6
    kept = pages(memory, reference(keep(memory, LONG + f"\napi_key={key}\n" + LONG)))
    assert key not in kept


def test_what_was_saved_is_counted_and_shown_in_status(memory: Memory) -> None:
    shown = keep(memory)
    state = memory.status()["offload"]
    assert state == {"results": 1, "tokens_saved": budget.tokens(LONG) - budget.tokens(shown)}


@pytest.mark.parametrize("tool", sorted(offload.INSTRUCTIONS))
def test_what_tells_the_model_what_to_do_stays(memory: Memory, tool: str) -> None:
    assert offload.keep(memory, LONG, owner=Owner(), tool=tool, call="c", session="s") is None


def test_the_contents_of_a_json_result_are_its_outermost_keys() -> None:
    text = json.dumps({"code": "600519", "rows": [{"inner": 1}] * 500, "note": "x" * 5_000})
    assert [title for _, title in offload.table(text)] == ["code", "rows", "note"]
    assert [offset for offset, _ in offload.table(text)] == [
        text.index(f'"{key}"') for key in ("code", "rows", "note")
    ]


@given(st.text(max_size=400), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_any_text_has_a_small_table_with_offsets_inside_it(piece: str, times: int) -> None:
    text = piece * times
    found = list(offload.table(text))
    assert len(found) <= offload.CONTENTS
    assert all(0 <= offset <= len(text) and "\n" not in title for offset, title in found)


@given(st.text(min_size=1, max_size=60), st.text(max_size=200))
@settings(max_examples=8, deadline=None)
def test_any_content_comes_back_as_it_was(piece: str, end: str) -> None:
    import tempfile

    content = piece * (9_000 // len(piece)) + "\n---\n\n" + end
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        shown = offload.keep(memory, content, owner=Owner(), tool="t", call="c", session="s")
        if shown is not None:
            stored = mask_text(content).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
            assert pages(memory, reference(shown)) == stored


# -- as Hermes calls it ------------------------------------------------------------------------------------------------


def _given(result: Any, tool: str = "web_extract") -> dict[str, Any]:
    return {
        "tool_name": tool,
        "args": {},
        "result": result,
        "session_id": "s1",
        "tool_call_id": "c1",
        "status": "ok",
    }


@pytest.fixture
def bridge(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HERMES_HOME", str(home))
    made = Bridge(Runtime())
    yield made
    for memory in made.runtime.plugin.memories():
        memory.close()


def _switch(home: Path, **offload_: Any) -> None:
    tree = {"plugins": {"entries": {"hermes-memory": {"settings": {"offload": offload_}}}}}
    (home / "config.yaml").write_text(json.dumps(tree), encoding="utf-8")


def test_it_is_off_by_default(bridge: Bridge, home: Path) -> None:
    assert bridge.transform_tool_result(**_given(LONG)) is None
    assert not (home / "memory" / "refs").exists() or not list((home / "memory" / "refs").glob("*.md"))


def test_switched_on_it_takes_long_results_only(bridge: Bridge, home: Path) -> None:
    _switch(home, enabled=True, min_chars=9_000)
    assert bridge.transform_tool_result(**_given("x" * 9_000)) is None
    shown = bridge.transform_tool_result(**_given(LONG))
    assert shown is not None
    assert "ref-" in shown


@pytest.mark.parametrize("tool", sorted(OUR_TOOLS))
def test_our_own_pages_are_never_put_outside_again(bridge: Bridge, home: Path, tool: str) -> None:
    _switch(home, enabled=True)
    assert bridge.transform_tool_result(**_given(LONG, tool)) is None


@pytest.mark.parametrize("result", [None, 7, {"a": 1}, ["x"], ""])
def test_results_that_are_no_text_stay(bridge: Bridge, home: Path, result: Any) -> None:
    _switch(home, enabled=True)
    assert bridge.transform_tool_result(**_given(result)) is None


def test_a_full_disk_leaves_the_result_where_it_is(bridge: Bridge, home: Path) -> None:
    _switch(home, enabled=True)
    bridge.pre_llm_call(session_id="s1", user_message="hi", platform="cli", turn_id="s1:1")
    refs = home / "memory" / "refs"
    if refs.is_dir():
        refs.rmdir()
    refs.write_text("in the way")
    assert bridge.transform_tool_result(**_given(LONG)) is None


def test_forgetting_the_call_removes_what_was_kept_of_it(bridge: Bridge, home: Path) -> None:
    _switch(home, enabled=True)
    for call in ("c1", "c2"):
        named = {**_given(f"{LONG} {call}"), "tool_call_id": call}
        bridge.post_tool_call(**named)
        assert bridge.transform_tool_result(**named)
    memory = bridge.runtime.plugin.memory_of(home)
    first, second = (call.handle for call in memory.workspace(Session("s1")).calls)
    memory.forget(first)
    (left,) = (home / "memory" / "refs").glob("*.md")
    assert 'call: "c2"' in left.read_text(encoding="utf-8")
    assert memory.expand(second)[0].result.endswith("c2")
    with pytest.raises(NotFound):
        memory.expand(first)
