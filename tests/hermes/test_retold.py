"""The provider's hint to the host's summary: told from the messages, and only while nothing better is on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.hermes import provider, retold


def _call(id_: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id_, "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}


TODOS = [{"content": "读价格", "status": "completed"}, {"content": "写结论", "status": "pending"}]
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are …"},
    {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] …\n\n--- END OF CONTEXT SUMMARY ---"},
    {"role": "user", "content": "先查茅台"},
    {"role": "assistant", "content": "28.1 倍"},
    {"role": "user", "content": [{"type": "text", "text": "比较价格"}]},
    {"role": "assistant", "content": "", "tool_calls": [_call("c1", "todo", todos=TODOS)]},
    {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"todos": TODOS})},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [_call("c2", "terminal", command="cat p"), _call("c3", "t")],
    },
    {"role": "tool", "tool_call_id": "c2", "content": '{"output": "", "error": "no such file"}'},
]


def test_the_messages_tell_requests_plan_calls_and_what_is_in_flight() -> None:
    state = retold.workspace(MESSAGES, "/work")
    assert [(one.text, one.state) for one in state.requests] == [
        ("先查茅台", "answered"),
        ("比较价格", "running"),
    ]
    assert [call.id for call in state.unfinished] == ["c3"]
    assert state.counters == {"terminal": (1, 1), "todo": (1, 0)}
    assert [(step.text, step.state) for step in state.steps] == [("读价格", "done"), ("写结论", "open")]
    text = state.to_summary()
    assert text.startswith("Current agent state:\nas of ")
    assert "no such file" in text
    assert "memory_trace" not in text


@pytest.mark.parametrize("enabled", [True, False])
def test_the_hint_is_given_only_while_the_hooks_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    monkeypatch.setattr(provider, "plugin_role_on", lambda: enabled)
    hint = provider.Provider().on_pre_compress(MESSAGES)
    assert ("比较价格" in hint) is not enabled


_odd = st.none() | st.integers() | st.text(max_size=30) | st.lists(st.text(max_size=5), max_size=2)


@given(
    st.lists(
        _odd
        | st.fixed_dictionaries(
            {"role": st.sampled_from(("user", "assistant", "tool", 7)), "content": _odd},
            optional={"tool_calls": st.none() | st.lists(_odd, max_size=2), "tool_call_id": _odd},
        ),
        max_size=8,
    )
)
@settings(max_examples=50, deadline=None)
def test_any_messages_are_survived(messages: list[Any]) -> None:
    assert len(retold.workspace(messages).to_summary()) <= 4_000
