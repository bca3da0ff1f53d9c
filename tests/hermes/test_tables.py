"""A vendor's table on the real Hermes: its figures are beside the next session's question, and what nobody reads is said."""

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

FETCH, WIND, LATER = "取一下贵州茅台的每日指标", "用万得再取一遍", "贵州茅台的PE TTM是多少倍？"
DAY = f"{datetime.now(UTC) - timedelta(days=1):%Y%m%d}"

VENDOR = """
import json
DAY = {day!r}
def basic(args=None, **kw):
    names = ["ts_code", "trade_date", "close", "pe", "pe_ttm", "pb", "total_mv"]
    return json.dumps({{"code": 0, "data": {{"fields": names, "items": [["600519.SH", DAY, 1438.2, 23.04, 22.17, 7.41, 180601200.0]]}}}})
def wind(args=None, **kw):
    return json.dumps({{"Codes": ["600519.SH"], "Fields": ["CLOSE"], "Times": [DAY], "Data": [[1438.2]]}})
def register(ctx):
    for name, handler in (("tushare_daily_basic", basic), ("wind_wsd", wind)):
        ctx.register_tool(
            name=name, toolset="market", description="Market data", handler=handler,
            schema={{"name": name, "description": "Market data", "parameters": {{"type": "object", "properties": {{"ts_code": {{"type": "string"}}}}}}}},
        )
"""


def _tool(name: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": {"ts_code": "600519.SH"}}]}


RULES = [
    {"match": f"^{FETCH}", "where": "last", "reply": _tool("tushare_daily_basic")},
    {"match": f"^{WIND}", "where": "last", "reply": _tool("wind_wsd")},
]


@dataclass
class Run:
    """What all tests of this file look at."""

    lab: Lab


@pytest.fixture(scope="module", params=hosts(), ids=str)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    host: HermesHost = request.param
    with Lab(
        host.python, script={"rules": RULES, "default": "好"}, plugins=["hermes-memory", "vendor"]
    ) as lab:
        folder = lab.home / "plugins" / "vendor"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: vendor\nversion: 1.0.0\ndescription: market data\n")
        (folder / "__init__.py").write_text(VENDOR.format(day=DAY))
        lab.agent(
            [{"text": FETCH, "new": True, "finalize": True}, {"text": WIND, "new": True, "finalize": True}]
        )
        with Memory.open(lab.home) as memory:
            memory.flush()
        lab.agent([{"text": LATER, "new": True}])
        yield Run(lab)


def test_the_figure_stands_beside_the_next_sessions_question(run: Run) -> None:
    block = story.given(story.asked(run.lab, LATER)[0])
    (line,) = [line for line in block.splitlines() if "市盈率（TTM） 22.17 倍" in line]
    assert line.startswith("- [f-") and "tushare_daily_basic" in line
    assert f"{DAY[:4]}-{DAY[4:6]}-{DAY[6:]}" in line


def test_every_figure_has_its_unit_its_basis_and_its_call(run: Run) -> None:
    (call,) = [call for call in story.calls(run.lab.home) if call["tool_name"] == "tushare_daily_basic"]
    with Memory.open(run.lab.home) as memory:
        memory.flush()
        rows = memory.archive.facts.from_call(call["tool_call_id"])
    assert {(row["metric"], row["basis"], row["value"], row["unit"]) for row in rows} == {
        ("pe", "TTM", 22.17, "x"),
        ("pe", "LYR", 23.04, "x"),
        ("pb", "", 7.41, "x"),
        ("market_cap", "", 1_806_012_000_000.0, "CNY"),
        ("price", "", 1438.2, "CNY"),
    }


def test_the_tool_that_nobody_reads_is_named_and_read_once_a_mapper_is_there(run: Run) -> None:
    told = json.loads(run.lab.memory("status", "--json").stdout)
    assert told["tables"]["unread"] == [{"tool": "wind_wsd", "calls": 1}]
    assert "wind_wsd: 1 calls, 0 facts" in run.lab.memory("status").stdout
    (call,) = [call for call in story.calls(run.lab.home) if call["tool_name"] == "wind_wsd"]
    done = run.lab.memory("mappers", "suggest", call["tool_call_id"], "--yes", "--json")
    told = json.loads(done.stdout)
    assert told["ok"] and told["facts_by_tool"] == {"wind_wsd": 1}, done
    assert not json.loads(run.lab.memory("status", "--json").stdout)["tables"]["unread"]
