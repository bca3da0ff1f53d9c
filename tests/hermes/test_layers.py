"""Scenes and persona on the real Hermes: two research sessions become a scene, a third one is given it; nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hermes_memory_plugin import Memory
from tests.hermes import story
from tests.hermes_env import HermesHost, hosts
from tests.lab.hermes_lab import Lab, last_user
from tests.lab.mock_llm import Script, last_message, text_of

pytestmark = [pytest.mark.hermes, pytest.mark.slow]

PE, MARGIN, VALUED = "贵州茅台2026Q1的PE多少？", "它的毛利率呢？", "所以估值如何？"
AGAIN, DELEGATE, NOTE, LOST, HIDDEN = (
    "再聊聊贵州茅台的估值",
    "派一个帮手去看看",
    "记到你的笔记里",
    "再记一条长的",
    "看看行情",
)
PERSONA, ENTRY = "用户要先结论后论据", "用户在上海"
TOO_LONG = "宁德时代 PE(TTM) 24.6 倍（2026-04-30），储能占比上升，" + "海外工厂进展顺利，" * 20
MODEL = "贵州茅台 PE(TTM) 28.1 倍，估值处于低位。"


def _tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


RULES = [
    {"match": f"^{re.escape(PE)}", "where": "last", "reply": _tool("terminal", command="printf 'pe_ttm 28.1'")},
    {"match": f"^{re.escape(MARGIN)}", "where": "last", "reply": _tool("terminal", command="printf 'gross_margin 91.8'")},
    {"match": "gross_margin", "where": "last", "reply": "毛利率 91.8%，同比持平。"},
    {"match": "pe_ttm", "where": "last", "reply": "贵州茅台 PE(TTM) 28.1 倍，低于五年均值 32 倍。"},
    {"match": f"^{re.escape(VALUED)}", "where": "last", "reply": "结论：估值处于五年低位，主要风险是动销放缓。"},
    {"match": f"^{DELEGATE}", "where": "last", "reply": _tool("delegate_task", goal="帮手：看看行情数据", context="无")},
    {"match": f"^{NOTE}", "where": "last", "reply": _tool("memory", action="add", target="user", content=ENTRY)},
    {"match": f"^{LOST}", "where": "last", "reply": _tool("memory", action="add", target="memory", content=TOO_LONG)},
]  # fmt: skip


class Scribe(Script):
    """The scripted model; asked for scenes it cites what it was shown."""

    asked = 0

    def choose(self, body: dict[str, Any]) -> dict[str, Any]:
        text = text_of(last_message(body).get("content"))
        if "records of one research session" not in json.dumps(body, ensure_ascii=False):
            return super().choose(body)
        self.asked += 1
        cites = re.findall(r"\[([a-z]-\w+)\]", text)
        scene = {"topic": "贵州茅台", "sentences": [{"text": MODEL, "kind": "said", "cites": cites}]}
        return {
            "content": "Here you are:\n```json\n"
            + json.dumps({"scenes": [scene]}, ensure_ascii=False)
            + "\n```"
        }


@dataclass
class Run:
    """What all tests of this file look at."""

    host: HermesHost
    lab: Lab
    script: Scribe

    def first(self, question: str) -> dict[str, Any]:
        """The first request made for a question."""
        return story.asked(self.lab, question)[0]


@pytest.fixture(scope="module", params=hosts(), ids=str)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    host: HermesHost = request.param
    script = Scribe({"rules": RULES, "default": "好"})
    over = {"memory": {"memory_char_limit": 200}}
    with Lab(
        host.python,
        script=script,
        config=over,
        memory={"USER.md": PERSONA},
        profiles=["quiet"],
    ) as lab:
        quiet = lab.profile("quiet")
        settings = {"llm": {"extract": True}}
        config = lab.config | {
            "memory": {"memory_enabled": False, "user_profile_enabled": False, "nudge_interval": 0}
        }
        config["plugins"] = config["plugins"] | {"entries": {"hermes-memory": {"settings": settings}}}
        (quiet / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        (quiet / "memories").mkdir()
        (quiet / "memories" / "MEMORY.md").write_text(PERSONA, encoding="utf-8")
        worker, away = "hermes-memory-worker", str(quiet)
        lab.agent(
            [
                {"text": PE, "new": True}, MARGIN, {"text": VALUED, "finalize": True, "wait": worker},
                {"text": PE, "new": True}, MARGIN, {"text": VALUED, "finalize": True, "wait": worker},
                {"text": AGAIN, "new": True},
                DELEGATE,
                {"text": NOTE, "wait": worker},
                {"text": LOST, "wait": worker},
                {"text": HIDDEN, "new": True, "home": away},
                {"text": PE, "home": away},
                {"text": VALUED, "home": away, "finalize": True, "wait": worker},
            ]
        )  # fmt: skip
        yield Run(host, lab, script)


def test_two_sessions_become_a_scene_the_third_is_given_with_citations_that_resolve(run: Run) -> None:
    given = story.given(run.first(AGAIN))
    (line,) = [line for line in given.splitlines() if "scenarios/" in line]
    assert "估值处于五年低位" in line and re.search(r"截至 \d{4}-\d{2}-\d{2}", line)
    cites = re.findall(r"\[([dtf]-\w+)\]", line)
    assert cites
    with Memory.open(run.lab.home) as memory:
        (scene,) = memory.scenes
        assert scene.status == "active" and scene.tickers == ("600519.SH",)
        for cite in {*cites, *re.findall(r"\b([dtf]-\w+)\b", scene.note.body)}:
            assert memory.reader.named(cite, None), cite
        calls = [memory.trace(call) for call in re.findall(r"\b(t-\w+)\b", scene.note.body)]
    assert {trace.tool_name for trace in calls if trace} == {"terminal"}
    assert any("28.1" in trace.result for trace in calls if trace)


def test_persona_reaches_prompt(run: Run) -> None:
    """Once, wherever it comes from: from Hermes itself, or from us where Hermes does not show it."""
    main = json.dumps(run.first(AGAIN)["messages"], ensure_ascii=False)
    assert main.count(PERSONA) == 1 and PERSONA not in story.given(run.first(AGAIN))
    (helper, *_) = [body for body in run.lab.main_requests() if last_user(body).startswith("帮手：")]
    assert PERSONA not in json.dumps(helper["messages"][0], ensure_ascii=False)
    assert PERSONA in story.given(helper)
    quiet = run.first(HIDDEN)
    assert PERSONA not in json.dumps(quiet["messages"][0], ensure_ascii=False)
    assert PERSONA in story.given(quiet)


def test_a_write_of_the_hosts_memory_tool_is_mirrored(run: Run) -> None:
    assert ENTRY in (run.lab.home / "memories" / "USER.md").read_text(encoding="utf-8")
    with Memory.open(run.lab.home) as memory:
        found = [item for item in memory.recall(ENTRY, mode="explicit").items if item.text == ENTRY]
    assert [item.layer for item in found] == ["L3"]


def test_what_the_host_had_no_room_for_is_kept(run: Run) -> None:
    path = run.lab.home / "memories" / "MEMORY.md"
    assert not path.exists() or TOO_LONG not in path.read_text(encoding="utf-8")
    with Memory.open(run.lab.home) as memory:
        items = memory.recall("宁德时代 PE 储能", mode="explicit").items
    assert any(item.layer == "L1" and item.text == TOO_LONG for item in items)


def test_the_hosts_own_model_writes_the_scene_when_it_is_lent(run: Run) -> None:
    with Memory.open(run.lab.profile("quiet")) as memory:
        (scene,) = memory.scenes
        counted = memory.status()["scenes"]
    assert MODEL in scene.note.body and run.script.asked == 1
    assert counted["model_calls"] == 1 and counted["model_tokens"] > 0 and counted["model_failed"] == 0
