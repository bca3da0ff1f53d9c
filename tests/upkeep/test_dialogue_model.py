"""The lent model points at sentences; it adds none."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Session, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.upkeep import dialogue_model
from hermes_memory_plugin.upkeep.scene_model import Answer

MESSAGE = "短线我真的没精力做，长期拿着就好。他说“只买银行股”。明天涨吗？"


@pytest.fixture
def lent(home: Path) -> Memory:
    settings = {"llm": {"extract": True}, "scenes": {"draft": False}}
    config = {"plugins": {"entries": {"hermes-memory": {"settings": settings}}}}
    (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return Memory.open(home)


class Model:
    """Answers with what it was told, with the handle of the last message."""

    def __init__(self, *statements: tuple[str, str] | object) -> None:
        self.statements = statements
        self.shown: list[str] = []

    def __call__(self, instructions: str, text: str, schema: Mapping[str, Any]) -> Answer:
        self.shown.append(text)
        if self.statements and isinstance(self.statements[0], Exception):
            raise self.statements[0]
        if self.statements and isinstance(self.statements[0], str):
            return Answer(self.statements[0])
        handle = text.rpartition("[")[2].partition("]")[0]
        said = [{"id": handle, "text": text, "kind": kind} for text, kind in self.statements]  # type: ignore[misc]
        return Answer(json.dumps({"statements": said}, ensure_ascii=False), None, 100, 20)


def told(memory: Memory, model: Model, *messages: str) -> list[str]:
    """What is kept of a session of these messages."""
    for number, message in enumerate(messages or (MESSAGE,)):
        memory.log_turn(Turn(message, "好", datetime.now(UTC), f"t{number}", "s"))
    memory.end(Session("s"), ask=model)
    assert memory.worker.settle(30)
    memory.reader.refresh()
    rows = memory.reader.index.scan(None, now_us=time.time_ns() // 1000, layers=("L1",), newest_first=False)
    assert all(row.origin == "user" and row.extra["turn"] for row in rows)
    return [row.text for row in rows]


def test_a_sentence_it_points_at_is_kept_in_the_users_words(lent: Memory) -> None:
    with lent as memory:
        model = Model(("短线我真的没精力做，长期拿着就好", "preference"))
        assert told(memory, model) == ["短线我真的没精力做，长期拿着就好"]
        assert "银行" not in model.shown[0] and "涨吗" not in model.shown[0]
        assert memory.events["dialogue_model_tokens"] == 120
        assert told(memory, Model(("长期拿着就好", "preference")), "谢谢你帮忙") == [
            "短线我真的没精力做，长期拿着就好"
        ]


@pytest.mark.parametrize(
    "answer",
    [
        ("我只买银行股", "preference"), ("只买银行股", "preference"), ("短线我真的没精力做，只买茅台", "preference"), ("短线我真的没精力做", "order"),
        ("成本价1500买的茅台", "holding"), ("短线我真的没精力做", "holding"), ("短", "preference"),
        "not json", RuntimeError("429"), '{"statements": 7}', '[1, {"id": 3}]',
    ],
    ids=str,
)  # fmt: skip
def test_what_the_user_did_not_write_is_not_believed(lent: Memory, answer: object) -> None:
    with lent as memory:
        assert told(memory, Model(answer)) == []


def test_what_the_rules_found_is_not_found_twice(lent: Memory) -> None:
    with lent as memory:
        assert told(memory, Model(("不碰银行股", "preference")), "不碰银行股") == ["不碰银行股"]


def test_it_goes_with_its_turn(lent: Memory) -> None:
    with lent as memory:
        assert told(memory, Model(("短线我真的没精力做", "preference")))
        memory.forget("turn:s:t0")
        assert told(memory, Model(), "谢谢") == []


def test_nobody_is_asked_unless_the_user_wants_it(memory: Memory) -> None:
    model = Model(("短线我真的没精力做", "preference"))
    assert told(memory, model) == [] and model.shown == []


def test_no_sentence_no_question(lent: Memory) -> None:
    with lent as memory:
        model = Model()
        assert told(memory, model, "今天怎么样？") == [] and model.shown == []
        assert dialogue_model.extract(memory, Session("other"), model) == []
