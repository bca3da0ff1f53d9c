"""Off the record and paused on the real Hermes: what was said, called and answered is in none of our files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from tests.hermes import story
from tests.hermes_env import HermesHost, hosts
from tests.lab.hermes_lab import Lab

pytestmark = [pytest.mark.hermes, pytest.mark.slow]

OPEN, OFF, PAUSED, AFTER = (
    "贵州茅台怎么看",
    "别记：客户要清仓，代号红杉七七",
    "内部代号红杉七七是谁",
    "五粮液怎么看",
)
SECRET = "红杉七七"


def call(message: str, id: str) -> dict[str, object]:
    command = {"command": f"printf {SECRET}"}
    return {
        "match": message,
        "where": "last",
        "times": 1,
        "reply": {"tool_calls": [{"id": id, "name": "terminal", "arguments": command}]},
    }


def bytes_of(home: Path) -> bytes:
    with Memory.open(home) as memory:
        memory.flush()
    return b"".join(path.read_bytes() for path in (home / "memory").rglob("*") if path.is_file())


@pytest.mark.parametrize("host", hosts(), ids=str)
def test_nothing_of_a_turn_off_the_record_or_of_a_pause_is_stored(host: HermesHost) -> None:
    rules = [
        call(OFF, "call_off"),
        call(PAUSED, "call_paused"),
        {"match": SECRET, "reply": f"知道了，{SECRET}"},
    ]
    with Lab(host.python, script={"rules": rules, "default": "好"}) as lab:
        out = lab.agent([OPEN, OFF])
        assert SECRET in out["turns"][1]["response"]
        assert "不入记忆" in story.given(story.asked(lab, OFF)[0])
        with Memory.open(lab.home) as memory:
            memory.pauses.pause("local")
        lab.agent([PAUSED, f"再问一遍{SECRET}"])  # another process
        assert "已暂停" in story.given(story.asked(lab, PAUSED)[0])
        assert not story.given(story.asked(lab, "再问一遍")[0])
        assert [row["user_text"] for row in story.turns(lab.home)] == [OPEN]
        assert story.calls(lab.home) == []
        assert SECRET.encode() not in bytes_of(lab.home)
