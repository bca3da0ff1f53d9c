"""How processes begin, end and meet: hard exits, Ctrl-C, kill -9, a gateway with a command line beside it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from tests.hermes import story
from tests.hermes_env import CURRENT, HermesHost, hosts
from tests.lab.hermes_lab import PLUGIN, Lab, last_user, summary_rule

pytestmark = [pytest.mark.hermes, pytest.mark.slow]

QUESTION = "贵州茅台现在PE多少？"
CALL = {"tool_calls": [{"id": "call_lab_1", "name": "terminal", "arguments": {"command": "printf 28.1"}}]}
EACH_HOST = pytest.mark.parametrize("host", hosts(), ids=str)


def _seed(home: Any, figure: str, owner: Owner = Owner()) -> None:
    with Memory.open(home) as memory:
        memory.remember(
            f"贵州茅台 PE {figure} 倍", subject="600519.SH", metric="PE", as_of="2026-04-30", owner=owner
        )


@dataclass
class Ends:
    """Runs of the command line in one home."""

    lab: Lab
    done: dict[str, Any] = field(default_factory=dict)
    interrupted: str = ""


@pytest.fixture(scope="module", params=hosts(), ids=str)
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    rules = [
        {"match": f"^{QUESTION}", "where": "last", "times": 1, "reply": CALL},
        {"match": "^慢慢来", "where": "last", "reply": {"content": "太晚了", "delay": 8}},
    ]
    with Lab(request.param.python, script={"rules": rules, "default": "好"}) as lab:
        _seed(lab.home, "28.1")
        run = Ends(lab)
        run.done["oneshot"] = lab.oneshot(QUESTION)
        run.done["status"] = lab.cli("memory-layers", "status", "--json")
        slow = lab.start(lab.hermes("chat", "-q", "慢慢来，我先记一句：不碰银行股", "--quiet"))
        deadline = time.monotonic() + 60
        while not story.asked(lab, "慢慢来") and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(slow.pid, signal.SIGINT)
        run.interrupted, _ = slow.communicate(timeout=60)
        yield run


def test_a_cold_first_turn_recalls(ends: Ends) -> None:
    assert "28.1" in story.given(story.asked(ends.lab, QUESTION)[0])


def test_a_hard_exit_loses_nothing(ends: Ends) -> None:
    assert (ends.done["oneshot"].code, ends.done["oneshot"].stdout.strip()) == (0, "好")
    assert [call["tool_call_id"] for call in story.calls(ends.lab.home)] == ["call_lab_1"]
    first = story.turns(ends.lab.home)[0]
    assert (first["user_text"], first["assistant_text"], first["completed"]) == (QUESTION, "好", True)


def test_ctrl_c_keeps_the_users_words(ends: Ends) -> None:
    last = story.turns(ends.lab.home)[-1]
    assert last["user_text"] == "慢慢来，我先记一句：不碰银行股"
    assert last["completed"] is False
    assert not last["assistant_text"]
    assert "hermes_memory" not in ends.interrupted


def test_the_verbs_are_reachable_through_hermes(ends: Ends) -> None:
    assert ends.done["status"].code == 0, ends.done["status"].stderr
    assert json.loads(ends.done["status"].stdout)["ok"] is True


@pytest.fixture(scope="module", params=hosts(), ids=str)
def rotated(request: pytest.FixtureRequest) -> Iterator[tuple[Lab, dict[str, Any]]]:
    compression = {"in_place": False, "protect_first_n": 1, "protect_last_n": 2}
    script = {"rules": [summary_rule("Earlier turns.")], "default": "好 " * 300}
    with Lab(request.param.python, script=script, config={"compression": compression}) as lab:
        with Memory.open(lab.home) as memory:
            memory.remember("用户不碰银行股", title="不碰银行股", type="user")
        talk = [f"第{number}轮 " + "说 " * 300 for number in range(6)]
        out = lab.agent([*talk, {"text": "第七轮，推荐几只股票", "compress": True}, "第八轮，再推荐几只股票"])
        lab.chat("第九轮，还有什么股票", "--resume", out["turns"][-1]["session_id"])
        yield lab, out


def test_a_compaction_that_renames_the_session_does_not_begin_another(
    rotated: tuple[Lab, dict[str, Any]],
) -> None:
    lab, out = rotated
    first, last = out["turns"][0]["session_id"], out["turns"][-1]["session_id"]
    assert first != last
    turns = story.turns(lab.home)
    assert len(turns) == 9
    assert {turn["session_id"] for turn in turns} == {first}


def test_off_means_as_if_it_were_not_there() -> None:
    """Disabled, Hermes sends what a Hermes that loads no plugin at all sends."""
    sent = []
    for plugins, env in (((PLUGIN,), {"HERMES_SAFE_MODE": "1"}), ((), {})):
        with Lab(CURRENT.python, plugins=plugins, env=env, script={"default": "好"}) as lab:
            _seed(lab.home, "28.1")
            assert lab.oneshot(QUESTION).code == 0
            assert story.turns(lab.home) == []
            sent.append(re.sub(re.escape(str(lab.folder)), "LAB", json.dumps(lab.requests(), sort_keys=True)))
    assert _undated(sent[0]) == _undated(sent[1])


def _undated(text: str) -> str:
    return re.sub(r"\d{8}_\d{6}_[0-9a-f]+|\d\d?:\d\d(:\d\d)?( [AP]M)?", "WHEN", text)


@dataclass
class Served:
    """What a gateway and the command line beside it did."""

    host: HermesHost
    lab: Lab
    beside: list[Any] = field(default_factory=list)
    answered: str = ""


@pytest.fixture(scope="module", params=hosts(), ids=str)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    host: HermesHost = request.param
    config = {"gateway": {"multiplex_profiles": True}}
    with Lab(host.python, script={"default": "好"}, config=config, profiles=["b"]) as lab:
        figures = lab.work / "figures.txt"
        figures.write_text("PE 28.1", encoding="utf-8")
        read = {"id": "call_lab_2", "name": "read_file", "arguments": {"path": str(figures)}}
        lab.server.script.add({"tool_calls": [read]})
        # An HTTP caller has no name: what he may see belongs to his session.
        owner = Owner("api_server", "~session-s1")
        _seed(lab.home, "28.1", owner)
        _seed(lab.profile("b"), "99.9", owner)
        run = Served(host, lab)
        with lab.gateway() as gateway:
            gateway.post(f"一：{QUESTION}", "s1")
            key = ("--owner", owner.key)
            run.beside.append(lab.memory("trace", "call_lab_2", "--json", *key))
            run.beside.append(lab.memory("remember", "五粮液 PE 17.2 倍", "--json", *key))
            gateway.post("二：五粮液的PE呢？", "s1")
            if host.serves_profiles:
                gateway.post(f"三：{QUESTION}", "s1", profile="b")
            gateway.post(f"四：{QUESTION}", "another")
            run.answered, _ = gateway.post("五：记下来，我只看消费股", "s1")
            gateway.kill()
        yield run


def _figures(served: Served, mark: str) -> list[str]:
    given = story.given(story.asked(served.lab, mark)[0])
    return [figure for figure in ("28.1", "99.9", "17.2") if figure in given]


def test_reader_beside_writer(served: Served) -> None:
    """A second process reads and writes while a gateway runs, and each sees the other's records."""
    trace, remembered = served.beside
    assert trace.code == 0, trace.stdout + trace.stderr
    assert "PE 28.1" in trace.stdout
    assert remembered.code == 0, remembered.stdout + remembered.stderr
    assert _figures(served, "二：") == ["17.2"]


def test_sessions_of_unnamed_callers_stay_apart(served: Served) -> None:
    assert _figures(served, "一：") == ["28.1"]
    assert _figures(served, "四：") == []


def test_kill_after_turn(served: Served) -> None:
    """Killed the moment after it answered, a gateway has lost nothing."""
    assert served.answered == "好"
    last = story.turns(served.lab.home)[-1]
    assert last["user_text"] == "五：记下来，我只看消费股"
    assert (last["assistant_text"], last["completed"]) == ("好", True)


def test_a_multiplexing_gateway_keeps_its_profiles_apart(served: Served) -> None:
    there = [turn["user_text"] for turn in story.turns(served.lab.profile("b"))]
    here = [turn["user_text"] for turn in story.turns(served.lab.home)]
    if served.host.serves_profiles:
        assert _figures(served, "三：") == ["99.9"]
        assert there == [f"三：{QUESTION}"]
    assert not any(text.startswith("三：") for text in here)


def test_users_words_are_clean_in_what_the_gateway_stored(served: Served) -> None:
    assert all(
        "recalled-memories" not in json.dumps(turn, default=str) for turn in story.turns(served.lab.home)
    )
    assert last_user(story.asked(served.lab, "一：")[0]).startswith(f"一：{QUESTION}")
