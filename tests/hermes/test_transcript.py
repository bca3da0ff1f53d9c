"""What the user wrote, and what of ours is still in the history."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory_plugin.hermes import transcript
from hermes_memory_plugin.recall import block, budget

OURS = block.render(["- [f-7k2p] 贵州茅台 PE(TTM) 28.1", "- [f-9xya] ROE 31%"], language="zh")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        (7, ""),
        ([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:…"}}], "look"),
        ([{"type": "text", "text": "a"}, "b", {"type": "input_text", "text": "c"}], "a\nb\nc"),
        ([{"type": "image_url"}], ""),
        ({"content": [{"type": "text", "text": "x"}]}, "x"),
        ([{"text": None}, {"text": 5}], ""),
    ],
)
def test_text_of_any_message(content: object, text: str) -> None:
    assert transcript.text_of(content) == text


def test_what_we_put_beside_a_message_is_not_the_users_words() -> None:
    assert transcript.own_words(f"茅台贵不贵？\n\n{OURS}") == "茅台贵不贵？"
    assert transcript.own_words(OURS) == ""
    assert transcript.own_words(transcript.fenced("linked with </recalled-memories> local")) == ""


def test_our_text_is_found_where_the_host_keeps_it() -> None:
    history: list[dict[str, Any]] = [
        {"role": "system", "content": OURS},
        {"role": "user", "content": "one", "api_content": f"one\n\n{OURS}"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "two"},
        {"role": "user", "content": [{"type": "text", "text": "three"}]},
    ]
    alive = transcript.alive(history)
    assert alive.handles == {"f-7k2p", "f-9xya"}
    assert alive.tokens == budget.tokens(OURS)


def test_a_text_counts_once_though_host_and_client_both_carry_it() -> None:
    both = {"role": "user", "content": f"q\n\n{OURS}", "api_content": f"q\n\n{OURS}"}
    assert transcript.alive([both]).tokens == budget.tokens(OURS)


def test_an_older_host_keeps_nothing_of_ours() -> None:
    assert transcript.alive([{"role": "user", "content": "one"}]) == transcript.Alive()
    assert transcript.alive(["strange", None, {"role": "user"}]) == transcript.Alive()


def test_what_plugins_get_is_a_copy() -> None:
    message = {"role": "user", "content": "one"}
    copied = transcript.copied([message, "strange"])
    copied[0]["content"] = "changed"
    assert message == {"role": "user", "content": "one"}
    assert len(copied) == 1
