"""Who sees what: chats, strangers, jobs, subagents, the review fork and other profiles, in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from tests.hermes import story
from tests.hermes_env import HermesHost, hosts
from tests.lab.hermes_lab import Lab, last_user

pytestmark = [pytest.mark.hermes, pytest.mark.slow]

QUESTION = "宁德时代的PE是多少？"
REVIEW = "Review the conversation"
# Each owner's own figure for the same question.
LOCAL, PERSON, GROUP, OTHER_PROFILE = "11.1", "22.2", "33.3", "44.4"
FIGURES = (LOCAL, PERSON, GROUP, OTHER_PROFILE)

RULES = [
    {"match": REVIEW, "where": "last", "reply": "Nothing to save."},
    {
        "match": "^派一个帮手", "where": "last", "times": 1,
        "reply": {"tool_calls": [{"name": "delegate_task", "arguments": {"goal": f"帮手：{QUESTION}", "context": "无"}}]},
    },
    {
        "match": "^帮手：", "where": "last", "times": 1,
        "reply": {"tool_calls": [{"id": "call_helper", "name": "remember", "arguments": {
            "action": "save", "title": "帮手的笔记", "content": "帮手觉得宁德时代便宜", "type": "project"}}]},
    },
    {
        "match": "^嵌套", "where": "last", "times": 1,
        "reply": {"tool_calls": [{"name": "execute_code", "arguments": {
            "code": "from hermes_tools import terminal\nprint(terminal('echo nested-call'))"}}]},
    },
    {"match": "^慢慢来", "where": "last", "reply": {"content": "太晚了", "delay": 4}},
    {
        "match": "^记不住", "where": "last", "times": 1,
        "reply": {"tool_calls": [{"name": "remember", "arguments": {
            "action": "save", "title": "t", "content": "c"}}]},
    },
    {
        "match": "^乙记住", "where": "last", "times": 1,
        "reply": {"tool_calls": [{"name": "remember", "arguments": {
            "action": "save", "title": "乙的规矩", "content": "乙只看港股", "type": "user"}}]},
    },
]  # fmt: skip


def _chat(chat: str, kind: str, user: str = "77") -> dict[str, Any]:
    key = f"agent:main:telegram:{kind}:{chat}"
    return {"platform": "telegram", "chat_id": chat, "user_id": user, "session_key": key, "user_name": "Li"}


@dataclass
class People:
    """The run all tests of this file look at."""

    host: HermesHost
    lab: Lab
    out: dict[str, Any]
    turns: list[dict[str, Any]]
    calls: list[dict[str, Any]]

    def figures(self, question: str) -> list[str]:
        """Whose figures stand beside that message."""
        body = story.asked(self.lab, question)[0]
        return [figure for figure in FIGURES if figure in story.given(body)]

    def turn(self, words: str) -> dict[str, Any]:
        """The one stored turn that begins with these words."""
        (found,) = [turn for turn in self.turns if turn["user_text"].startswith(words)]
        return found


@pytest.fixture(scope="module", params=hosts(), ids=str)
def people(request: pytest.FixtureRequest) -> Iterator[People]:
    host: HermesHost = request.param
    script = {"rules": RULES, "default": "好"}
    with Lab(
        host.python, script=script, config={"memory": {"nudge_interval": 1}}, profiles=["b", "broken"]
    ) as lab:
        fact: dict[str, Any] = {"subject": "300750.SZ", "metric": "PE", "as_of": "2026-04-30"}
        with Memory.open(lab.home) as memory:
            memory.remember(f"宁德时代 PE {LOCAL} 倍", **fact)
            memory.remember(f"宁德时代 PE {PERSON} 倍", owner=Owner("telegram", "77"), **fact)
            memory.remember(
                f"宁德时代 PE {GROUP} 倍", owner=Owner("telegram", chat_id="-100", chat_type="group"), **fact
            )
        with Memory.open(lab.profile("b")) as memory:
            memory.remember(f"宁德时代 PE {OTHER_PROFILE} 倍", **fact)
        (lab.profile("broken") / "memory").write_text("a file where the folder should be")
        telegram = {"platform": "telegram", "user_id": "77"}
        out = lab.agent(
            [
                {"text": f"甲：{QUESTION}", "wait": "bg-review"},
                {"text": f"乙：{QUESTION}", "new": True, "home": str(lab.profile("b"))},
                {"text": "乙记住：只看港股", "home": str(lab.profile("b"))},
                {"text": f"坏：{QUESTION}", "new": True, "home": str(lab.profile("broken"))},
                {"text": "记不住也没关系", "home": str(lab.profile("broken"))},
                {"text": f"私：{QUESTION}", "new": True, "agent": telegram, "chat": _chat("77", "dm")},
                {"text": f"群：{QUESTION}", "new": True, "agent": telegram, "chat": _chat("-100", "group")},
                {"text": f"生：{QUESTION}", "new": True, "agent": {"platform": "telegram"}},
                {"text": f"网：{QUESTION}", "new": True, "agent": {"platform": "api_server"}},
                {
                    "cron": {
                        "prompt": f"任务甲：{QUESTION}",
                        "schedule": "every 1h",
                        "origin": {"platform": "telegram", "chat_id": "77", "user_id": "77"},
                        "deliver": "local",
                    }
                },
                {"cron": {"prompt": f"任务乙：{QUESTION}", "schedule": "every 1h", "deliver": "local"}},
                {"text": "派一个帮手去看", "new": True},
                "嵌套调用一下",
                {"text": "慢慢来，不急", "interrupt": 1.0},
            ]
        )
        yield People(host, lab, out, story.turns(lab.home), story.calls(lab.home))


def test_profile_wall(people: People) -> None:
    """Two profiles served by one process never meet, in what is read and in what is written."""
    assert people.figures("甲：") == [LOCAL]
    assert people.figures("乙：") == [OTHER_PROFILE]
    assert not any(turn["user_text"].startswith("乙") for turn in people.turns)
    there = story.turns(people.lab.profile("b"))
    assert [turn["user_text"][:2] for turn in there] == ["乙：", "乙记"]
    assert list((people.lab.profile("b") / "memory" / "notes").glob("user_*.md"))
    with Memory.open(people.lab.home) as memory:
        assert not any("港股" in item.text for item in memory.recall("港股", mode="explicit").items)


def test_a_private_chat_sees_its_person_and_a_group_sees_the_group(people: People) -> None:
    assert people.figures("私：") == [PERSON]
    assert people.figures("群：") == [GROUP]
    assert people.turn("私：")["owner"] == "telegram:77"
    assert people.turn("群：")["owner"] == "telegram:group:-100"
    assert people.turn("群：")["speaker"] == "Li"


def test_who_is_not_known_sees_nobodys_memory(people: People) -> None:
    for mark, platform in (("生：", "telegram"), ("网：", "api_server")):
        assert people.figures(mark) == []
        assert people.turn(mark)["owner"].startswith(f"{platform}:~session-")


def test_cron_not_user(people: People) -> None:
    """A job reads what the chat it was made in may read, and its prompt is nobody's words."""
    for mark, figure, owner in (("任务甲", PERSON, "telegram:77"), ("任务乙", LOCAL, "local")):
        (body,) = [body for body in people.lab.main_requests() if f"{mark}：" in last_user(body)]
        assert [one for one in FIGURES if one in story.given(body)] == [figure]
        (turn,) = [turn for turn in people.turns if f"{mark}：" in turn["user_text"]]
        assert (turn["kind"], turn["owner"]) == ("cron", owner)


def test_a_subagent_reads_as_its_parent_and_what_it_writes_is_marked(people: People) -> None:
    assert LOCAL in people.figures("帮手：")
    turn = people.turn("帮手：")
    assert (turn["kind"], turn["owner"]) == ("subagent", "local")
    saved = next(call for call in people.calls if call["tool_call_id"] == "call_helper")
    assert saved["kind"] == "subagent"
    note = next((people.lab.home / "memory" / "notes").glob("project_*.md"))
    assert "origin: model" in note.read_text(encoding="utf-8")


def test_the_review_fork_is_neither_heard_nor_answered(people: People) -> None:
    reviews = [body for body in people.lab.requests() if last_user(body).startswith(REVIEW)]
    assert reviews
    assert all(not story.given(body) for body in reviews)
    assert not any(REVIEW in turn["user_text"] for turn in people.turns)
    assert people.turn("甲：")["completed"] is True


def test_nested_tool_ids(people: People) -> None:
    """A call made from within another has no ids of the host; it is kept under one of ours, in its own turn."""
    nested = next(
        call
        for call in people.calls
        if "nested-call" in call["arguments"] and call["tool_name"] == "terminal"
    )
    outer = next(call for call in people.calls if call["tool_name"] == "execute_code")
    assert nested["tool_call_id"].startswith("local-")
    assert nested["session_id"] == outer["session_id"]
    assert nested["turn_id"] == outer["turn_id"]
    assert nested["owner"] == "local"


def test_interrupted_turn(people: People) -> None:
    """Who stops the agent keeps his words; the turn is not taken for a finished one."""
    turn = people.turn("慢慢来")
    assert turn["completed"] is False
    assert "太晚了" not in (turn["assistant_text"] or "")


def test_tool_when_down(people: People) -> None:
    """Without a memory the conversation goes on, and a tool says once and for all that it is no use."""
    assert people.out["turns"][3]["response"] == "好"
    assert people.out["turns"][4]["response"] == "好"
    (result,) = story.tool_results(story.asked(people.lab, "记不住")[-1])
    answer = json.loads(result)
    assert (answer["status"], answer["retry"]) == ("unavailable", False)


def test_nothing_of_ours_is_printed(people: People) -> None:
    assert "hermes-memory" not in people.out["stdout"]
    assert "Traceback" not in people.out["stderr"]
    assert people.out["code"] == 0
