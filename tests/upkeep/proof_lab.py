"""A researcher's record to hold claims against: fundamentals of April and November, a year's accounts, an odd tool."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hermes_memory_hookspecs import Owner, ToolTrace, Turn
from hermes_memory_plugin import Memory

NOW = "2026-11-30"
APRIL, NOVEMBER = datetime(2026, 4, 30, 8, tzinfo=UTC), datetime(2026, 11, 27, 8, tzinfo=UTC)


def call(
    memory: Memory,
    id: str,
    tool: str,
    args: dict[str, Any],
    result: object,
    at: datetime,
    *,
    owner: Owner = Owner(),
) -> None:
    """Record a tool call."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    memory.log(
        ToolTrace(
            tool_call_id=id,
            tool_name=tool,
            args=args,
            result=text,
            at=at,
            session_id=f"s-{id}",
            turn_id=f"t-{id}",
            owner=owner,
        )
    )


def daily(day: str, pe: float, close: float, value: float) -> list[dict[str, Any]]:
    """What `daily_basic` returns; the market value in 万元."""
    return [
        {
            "ts_code": "600519.SH",
            "trade_date": day,
            "close": close,
            "pe_ttm": pe,
            "pb": 8.9,
            "total_mv": value,
        }
    ]


def fill(memory: Memory) -> None:
    """Everything on record."""
    code = {"ts_code": "600519.SH"}
    call(
        memory,
        "c-april",
        "daily_basic",
        {**code, "trade_date": "20260430"},
        daily("20260430", 28.06, 1523.5, 188_123_456),
        APRIL,
    )
    call(
        memory,
        "c-november",
        "daily_basic",
        {**code, "trade_date": "20261127"},
        daily("20261127", 26.1, 1405.0, 176_000_000),
        NOVEMBER,
    )
    income = {
        "fields": ["ts_code", "ann_date", "end_date", "revenue", "n_income_attr_p"],
        "items": [
            ["600519.SH", "20260330", "20251231", 174_144_069_958.25, 86_228_146_421.62],
            ["600519.SH", "20250330", "20241231", 150_560_330_316.0, 74_734_071_550.0],
        ],
    }
    call(memory, "c-income", "income", code, income, APRIL)
    call(memory, "c-odd", "house_quotes", {"symbol": "五粮液"}, {"市盈率": 15.2, "市净率": 3.1}, NOVEMBER)
    memory.remember("宁德时代 毛利率 24.4%", as_of="2026-10-30")
    memory.flush()


def answered(
    memory: Memory, turn: str, question: str, answer: str, at: datetime, session: str = "s-talk"
) -> str:
    """Record a turn of a conversation; returns its row id."""
    return memory.log_turn(Turn(question, answer, at, turn, session))
