"""Facts with proof on the real Hermes: a figure of spring, another of now, and a question that leads back to the first call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermes_memory_plugin import Memory
from tests.hermes import story
from tests.hermes_env import HermesHost, hosts
from tests.lab.hermes_lab import Lab

pytestmark = [pytest.mark.hermes, pytest.mark.slow]

SPRING, NOW = "贵州茅台当时的估值？", "贵州茅台现在的估值？"
DOUBT = "你上个月说茅台PE 28倍，怎么算的？"
SKILL = "按个股研究的规矩来"
_TODAY = datetime.now(UTC)
THEN_DAY, NOW_DAY = (_TODAY - timedelta(days=210), _TODAY - timedelta(days=2))

# A folder plugin of the user's own, as people write them around a vendor's client.
VENDOR = """
import json
ROWS = {rows}
def daily_basic(args=None, **kw):
    args = args or {{}}
    return json.dumps([{{"ts_code": args.get("ts_code"), "trade_date": args.get("trade_date"), **ROWS[args.get("trade_date")]}}])
def register(ctx):
    ctx.register_tool(
        name="daily_basic", toolset="market", description="Daily multiples of a stock",
        schema={{"name": "daily_basic", "description": "Daily multiples of a stock", "parameters": {{"type": "object", "properties": {{
            "ts_code": {{"type": "string"}}, "trade_date": {{"type": "string"}}}}}}}},
        handler=daily_basic,
    )
"""


def _tool(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def _daily(day: datetime) -> dict[str, Any]:
    return _tool("daily_basic", ts_code="600519.SH", trade_date=f"{day:%Y%m%d}")


RULES = [
    {"match": f"^{SPRING}", "where": "last", "reply": _daily(THEN_DAY)},
    {"match": f"^{NOW}", "where": "last", "reply": _daily(NOW_DAY)},
    {"match": f"^{DOUBT}", "where": "last", "reply": _tool("memory_trace", action="verify", text=DOUBT)},
    {"match": f"^{SKILL}", "where": "last", "reply": _tool("skill_view", name="hermes-memory:stock-research")},
    {"match": r'pe_ttm": 28\.06', "where": "last", "reply": "贵州茅台 PE(TTM) 28.1 倍，总市值 1.88 万亿元，PEG 1.9。"},
    {"match": r'pe_ttm": 26\.1', "where": "last", "reply": "贵州茅台 PE(TTM) 26.1 倍。\n\n— 9 个数字：9 个来自工具调用"},
]  # fmt: skip
"""The second answer ends in a line that imitates ours."""


@dataclass
class Run:
    """What all tests of this file look at."""

    lab: Lab
    done: list[dict[str, Any]]

    def result(self, question: str) -> dict[str, Any]:
        """The result of the tool that was called for a question."""
        (text,) = story.tool_results(story.asked(self.lab, question)[-1])
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture(scope="module", params=hosts(), ids=str)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    host: HermesHost = request.param
    settings = {"answers": {"footer": True}}
    over = {"plugins": {"entries": {"hermes-memory": {"settings": settings}}}}
    with Lab(host.python, script={"rules": RULES, "default": "好"}, plugins=["hermes-memory", "vendor"], config=over) as lab:  # fmt: skip
        folder = lab.home / "plugins" / "vendor"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: vendor\nversion: 1.0.0\ndescription: market data\n")
        rows = {
            f"{THEN_DAY:%Y%m%d}": {"close": 1523.5, "pe_ttm": 28.06, "total_mv": 188_123_456.78},
            f"{NOW_DAY:%Y%m%d}": {"close": 1405.0, "pe_ttm": 26.1, "total_mv": 176_000_000.0},
        }
        (folder / "__init__.py").write_text(VENDOR.format(rows=json.dumps(rows)))
        turns = [{"text": text, "new": True, "finalize": True, "wait": "hermes-memory-worker"} for text in (SPRING, NOW, DOUBT, SKILL)]  # fmt: skip
        yield Run(lab, lab.agent(turns)["turns"])


def test_the_question_leads_to_the_call_of_then_and_the_verdict_is_changed(run: Run) -> None:
    verdict = run.result(DOUBT)
    assert verdict["status"] == "changed", verdict
    with Memory.open(run.lab.home) as memory:
        first, second = (memory.trace(call) for call in verdict["tool_call_ids"])
    assert first and second
    assert (
        first.args["trade_date"] == f"{THEN_DAY:%Y%m%d}" and second.args["trade_date"] == f"{NOW_DAY:%Y%m%d}"
    )
    for told in (
        "28.06",
        "26.1",
        f"{THEN_DAY:%Y-%m-%d}",
        f"{NOW_DAY:%Y-%m-%d}",
        "daily_basic",
        "pe_ttm: 28.06",
    ):
        assert told in verdict["said"]


def test_the_command_line_says_the_same_in_another_process(run: Run) -> None:
    done = run.lab.memory("verify", "茅台 PE 28 倍", "--json")
    told = json.loads(done.stdout)
    assert (told["status"], done.code) == ("changed", 1)
    assert [call["args"]["trade_date"] for call in told["calls"]] == [
        f"{THEN_DAY:%Y%m%d}",
        f"{NOW_DAY:%Y%m%d}",
    ]
    assert run.lab.memory("verify", "茅台 PE 26.1 倍").code == 0


def test_the_one_invented_number_is_flagged_under_the_answer(run: Run) -> None:
    shown = run.done[0]["response"]
    assert shown.endswith("PEG 1.9。\n\n— 3 个数字：2 个来自工具调用，1 个没有来源"), shown
    assert run.done[1]["response"].endswith("26.1 倍。\n\n— 1 个数字：1 个来自工具调用")
    assert "个数字" not in run.done[3]["response"]


def test_the_line_is_no_part_of_what_is_kept(run: Run) -> None:
    kept = [turn["assistant_text"] for turn in story.turns(run.lab.home)]
    assert not [text for text in kept if "个数字" in text]


def test_the_sources_of_an_answer_are_there_for_a_later_session(run: Run) -> None:
    (spring,) = [turn for turn in story.turns(run.lab.home) if turn["user_text"] == SPRING]
    told = json.loads(run.lab.memory("sources", spring["id"], "--json").stdout)
    assert [(link["number"], link["kind"]) for link in told["links"]] == [
        ("28.1 倍", "call"),
        ("1.88 万亿元", "call"),
        ("1.9", "none"),
    ]
    (call,) = [call for call in story.calls(run.lab.home) if f"{THEN_DAY:%Y%m%d}" in call["arguments"]]
    assert {link["call"] for link in told["links"]} == {call["tool_call_id"], ""}


def test_the_host_loads_the_skill(run: Run) -> None:
    (text,) = story.tool_results(story.asked(run.lab, SKILL)[-1])
    assert "有出处的个股研究" in text and "Stock research with proof" in text
