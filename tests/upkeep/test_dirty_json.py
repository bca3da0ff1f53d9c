"""JSON as models write it: what can be made out is, and anything else is an error, never a crash."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.upkeep import dirty_json

WANTED = {"scenes": [{"topic": "贵州茅台", "n": 28.1}]}
PLAIN = json.dumps(WANTED, ensure_ascii=False)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"```json\n{PLAIN}\n```",
        f"好的，结果如下：\n\n```\n{PLAIN}\n```\n希望有帮助！",
        f"Sure! Here it is: {PLAIN} Anything else?",
        f"<think>The user wants {{JSON}} …</think>{PLAIN}",
        PLAIN.replace("}]}", "},]}"),
        str(WANTED),
        "// the scenes\n" + PLAIN.replace('"n"', '/* PE */ "n"'),
        "\ufeff" + PLAIN,
        PLAIN[:-1],
        PLAIN[:-2],
        PLAIN[:-2] + ', {"topic": "五粮',
    ],
)
def test_what_was_meant_is_read(text: str) -> None:
    assert dirty_json.loads(text) == WANTED


@pytest.mark.parametrize("text", ["", "I cannot do that.", "28.1", '"text"', "{not json at all", "}"])
def test_prose_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        dirty_json.loads(text)


@settings(max_examples=80, deadline=None)
@given(
    value=st.dictionaries(st.text(max_size=8), JSON, min_size=1, max_size=3),
    before=st.sampled_from(["", "Here: ", "答：\n"]),
)
def test_sound_json_comes_back_as_it_is(value: dict[str, Any], before: str) -> None:
    assert dirty_json.loads(before + json.dumps(value, ensure_ascii=False)) == value


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="{}[]\",:\\ab1 '`\n/*", max_size=60))
def test_no_text_does_more_than_fail(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(dirty_json.loads(text), dict | list)
