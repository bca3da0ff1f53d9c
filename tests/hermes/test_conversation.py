"""One conversation on the real Hermes: what the model gets beside a message, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall import block
from tests.hermes import story
from tests.hermes_env import HermesHost, hosts
from tests.lab.hermes_lab import Lab, common_prefix, last_user

pytestmark = pytest.mark.hermes

MOUTAI, WULIANGYE, THANKS = "贵州茅台现在PE多少？", "五粮液的PE呢？", "谢谢"
SAVE, AGAIN, PICK, LOOP = "记住：不碰银行股", "再看一下贵州茅台的PE", "推荐几只股票", "翻遍记忆找宁德时代"
PICTURE: list[dict[str, Any]] = [
    {"type": "text", "text": "看图：五粮液的PE"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
]
ODD = "贵州茅台\x00的PE？" + "长" * 3_000

RECALL = {"tool_calls": [{"name": "remember", "arguments": {"action": "recall", "query": "宁德时代"}}]}
RULES = [
    {
        "match": MOUTAI, "where": "last", "times": 1,
        "reply": {"tool_calls": [{"id": "call_lab_1", "name": "terminal", "arguments": {"command": "printf 28.1"}}]},
    },
    {
        "match": SAVE, "where": "last", "times": 1,
        "reply": {"tool_calls": [{"name": "remember", "arguments": {
            "action": "save", "title": "不碰银行股", "content": "用户不碰银行股", "type": "user"}}]},
    },
    {"match": LOOP, "where": "last", "times": 1, "reply": RECALL},
    {"match": r'"status": "(found|nothing)"', "where": "last", "times": 8, "reply": RECALL},
]  # fmt: skip


@dataclass
class Talk:
    """The run all tests of this file look at."""

    host: HermesHost
    lab: Lab
    out: dict[str, Any]
    turns: list[dict[str, Any]]
    calls: list[dict[str, Any]]

    def first(self, question: str) -> dict[str, Any]:
        """The first request made for a question."""
        return story.asked(self.lab, question)[0]


@pytest.fixture(scope="module", params=hosts(), ids=str)
def talk(request: pytest.FixtureRequest) -> Iterator[Talk]:
    host: HermesHost = request.param
    broken = {"plugins": {"entries": {"hermes-memory": {"settings": {"recall": {"share": 7}}}}}}
    native = {"USER.md": "先结论后论据"}
    with Lab(host.python, script={"rules": RULES, "default": "好"}, config=broken, memory=native) as lab:
        with Memory.open(lab.home) as memory:
            common: dict[str, Any] = {"metric": "PE", "source": "tushare", "as_of": "2026-04-30"}
            memory.remember("贵州茅台 PE(TTM) 28.1 倍", subject="600519.SH", value=28.1, **common)
            memory.remember("五粮液 PE(TTM) 17.2 倍", subject="000858.SZ", value=17.2, **common)
            memory.remember("用户要先结论后论据", title="先结论后论据", type="user")
        out = lab.agent(
            [
                MOUTAI,
                {"text": WULIANGYE, "fresh": True},
                THANKS,
                SAVE,
                {"text": AGAIN, "fresh": True},
                {"text": PICK, "new": True},
                LOOP,
                {"text": PICTURE},
                {"text": ODD, "new": True},
            ]
        )
        yield Talk(host, lab, out, story.turns(lab.home), story.calls(lab.home))


def test_facts_reach_the_model_inside_the_user_message(talk: Talk) -> None:
    message = last_user(talk.first(MOUTAI))
    assert message.startswith(MOUTAI)
    assert "PE(TTM) 28.1" in story.given(talk.first(MOUTAI))
    assert "tushare" in story.given(talk.first(MOUTAI))
    assert "17.2" not in message


def test_no_turn_lag(talk: Talk) -> None:
    """Recall answers the running question, not the one before."""
    assert "17.2" in story.given(talk.first(WULIANGYE))
    assert "28.1" not in story.given(talk.first(WULIANGYE))


def test_small_talk_gets_nothing(talk: Talk) -> None:
    assert last_user(talk.first(THANKS)) == THANKS


def test_prefix_stable(talk: Talk) -> None:
    """The system prompt stays as it is; what was sent once is sent again, byte for byte, where the host keeps it."""
    session = [body for body in talk.lab.main_requests() if body["messages"][1]["content"].startswith(MOUTAI)]
    assert len(session) == 7
    for earlier, later in pairwise(session):
        assert later["messages"][0] == earlier["messages"][0]
        if talk.host.keeps_injections:
            assert common_prefix(earlier, later) == len(earlier["messages"])


def test_injection_is_the_same_within_a_turn_and_lives_as_long_as_the_host_keeps_it(talk: Talk) -> None:
    first, after_tool = story.asked(talk.lab, MOUTAI)
    assert last_user(first) == last_user(after_tool)
    later = json.dumps(talk.first(AGAIN)["messages"][:-1], ensure_ascii=False)
    assert (f"<{block.TAG}>" in later) is talk.host.keeps_injections


def test_nothing_is_injected_twice_while_the_model_still_sees_it(talk: Talk) -> None:
    assert ("28.1" in story.given(talk.first(AGAIN))) is not talk.host.keeps_injections
    whole = json.dumps(talk.first(AGAIN), ensure_ascii=False)
    assert whole.count("贵州茅台 PE(TTM) 28.1 倍") == 1


def test_agent_recreated_each_turn(talk: Talk) -> None:
    """A gateway that lost its cache builds a new agent; the conversation stays one."""
    session = talk.out["turns"][0]["session_id"]
    assert {turn["session_id"] for turn in talk.turns if turn["user_text"] in (MOUTAI, WULIANGYE, AGAIN)} == {
        session
    }
    assert len(story.stored(talk.lab.home, f"SELECT * FROM turns WHERE session_id = '{session}'")) == 5


def test_the_tool_call_is_on_record_with_its_own_id(talk: Talk) -> None:
    with Memory.open(talk.lab.home) as memory:
        trace = memory.trace("call_lab_1")
    assert trace is not None
    assert trace.tool_name == "terminal"
    assert trace.args["command"] == "printf 28.1"
    assert "28.1" in trace.result
    assert trace.status == "ok"
    assert trace.duration_ms is not None
    assert trace.turn_id == next(turn["turn_id"] for turn in talk.turns if turn["user_text"] == MOUTAI)


def test_a_rule_learned_in_one_session_stands_in_the_next(talk: Talk) -> None:
    assert "不碰银行股" in story.given(talk.first(PICK))
    note = next((talk.lab.home / "memory" / "notes").glob("user_*不碰银行股*.md"))
    assert "owner: local" in note.read_text(encoding="utf-8")


def test_what_the_host_itself_shows_is_not_said_again(talk: Talk) -> None:
    assert "先结论后论据" in json.dumps(talk.first(PICK)["messages"][0], ensure_ascii=False)
    assert "先结论后论据" not in story.given(talk.first(PICK))


def test_turn_idempotent(talk: Talk) -> None:
    """A turn is one row, however many requests and tool calls it took."""
    words = [turn["user_text"] for turn in talk.turns]
    assert words == [MOUTAI, WULIANGYE, THANKS, SAVE, AGAIN, PICK, LOOP, PICTURE[0]["text"], words[-1]]
    assert words[-1].startswith("贵州茅台")
    assert all(turn["completed"] is True and turn["assistant_text"] == "好" for turn in talk.turns)
    assert {turn["owner"] for turn in talk.turns} == {"local"}
    assert {turn["kind"] for turn in talk.turns} == {"user"}


def test_no_recapture(talk: Talk) -> None:
    """What we told the model is never taken for the user's words, an answer or a tool's result."""
    for row in (*talk.turns, *talk.calls):
        assert block.TAG not in json.dumps(row, ensure_ascii=False, default=str)
    recalls = [row for row in talk.calls if row["tool_name"] == "remember" and "recall" in row["arguments"]]
    assert recalls
    with Memory.open(talk.lab.home) as memory:
        found = memory.recall("贵州茅台 PE", mode="explicit", limit=20).items
    assert sum("28.1" in item.text for item in found if item.layer == "L1") == 1


def test_recall_call_cap(talk: Talk) -> None:
    """A model that asks the memory again and again is told that there is nothing more, and answers."""
    results = [json.loads(text) for text in story.tool_results(story.asked(talk.lab, LOOP)[-1])]
    assert [result["status"] for result in results][-1] == "nothing_more"
    assert len(results) == 4
    assert results[-1]["retry"] is False


def test_degraded_notice(talk: Talk) -> None:
    """What is wrong is said once a session, in an injection, and never on the screen."""
    assert "recall.share" in story.given(talk.first(MOUTAI))
    assert "recall.share" not in story.given(talk.first(WULIANGYE))
    assert "recall.share" in story.given(talk.first(PICK))
    assert "hermes-memory" not in talk.out["stdout"] + talk.out["stderr"]


def test_a_message_with_an_image_is_answered_and_its_words_are_kept(talk: Talk) -> None:
    assert talk.out["turns"][7]["response"] == "好"


def test_odd_characters_and_length_do_no_harm(talk: Talk) -> None:
    assert talk.out["turns"][8]["response"] == "好"
    assert talk.out["code"] == 0
