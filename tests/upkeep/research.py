"""A scripted research session of three turns, as the hooks would record it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hermes_memory_hookspecs import Owner, Session, ToolTrace, Turn
from hermes_memory_plugin import Memory

QUESTIONS = ("贵州茅台2026Q1的PE多少？", "它的毛利率呢？", "所以估值如何？")
ENGLISH = ("What is the PE of AAPL now?", "And its gross margin?", "So how is it valued?")


def hold(
    memory: Memory, session: str, pe: float = 28.1, *, owner: Owner = Owner(), english: bool = False
) -> Session:
    """Record the session and return it; it has not ended yet."""
    name, code = ("AAPL", "AAPL") if english else ("贵州茅台2026Q1", "600519.SH")
    answers = (
        (f"AAPL trades at a PE of {pe}.", "Gross margin is 46.2%, higher than last year.", "Conclusion: valuation is above its average, the main risk is China.")
        if english
        else (f"{name} PE(TTM) {pe} 倍，低于五年均值 32 倍。", "毛利率 91.8%，同比持平。", "结论：估值处于五年低位，主要风险是动销放缓。")
    )  # fmt: skip
    for number, (question, answer) in enumerate(zip(ENGLISH if english else QUESTIONS, answers, strict=True)):
        turn = f"{session}:{number}"
        common: dict[str, Any] = {"turn_id": turn, "session_id": session, "owner": owner}
        memory.log_turn(Turn(user=question, at=datetime.now(UTC), completed=False, **common), half="user")
        memory.log(
            ToolTrace(
                tool_call_id=f"call-{session}-{number}",
                tool_name=("daily_basic", "fina_indicator", "news")[number],
                args={"ts_code": code},
                result=json.dumps(
                    {"output": (f"pe_ttm {pe}", "gross_margin 91.8", "动销放缓")[number]}, ensure_ascii=False
                ),
                **common,
            )
        )
        memory.log_turn(Turn(user=question, assistant=answer, at=datetime.now(UTC), **common))
    return Session(session, owner)


def end(memory: Memory, session: Session, ask: object = None) -> None:
    """The session ends, and whatever that sets off is done."""
    memory.end(session, ask=ask)  # type: ignore[arg-type]
    assert memory.worker.settle(30)
