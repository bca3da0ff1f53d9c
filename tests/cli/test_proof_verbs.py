"""`verify` and `sources` on the command line, in a chat and as the model's tool: one answer, and nobody else's rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli import main
from hermes_memory_plugin.cli.chat import answer
from hermes_memory_plugin.tools import OUR_TOOLS, Caller
from tests.upkeep import proof_lab

TODAY = datetime.now(UTC)
LATELY = TODAY - timedelta(days=2)
NOW = f"{TODAY:%Y-%m-%d}"
ANN = Owner(platform="telegram", user_id="1")


@pytest.fixture
def kept(home: Path) -> Path:
    """A home with a record and one answer: two proven numbers and an invented one."""
    with Memory.open(home) as memory:
        proof_lab.call(memory, "c-now", "daily_basic", {"ts_code": "600519.SH"}, proof_lab.daily(f"{LATELY:%Y%m%d}", 26.1, 1405.0, 1.0), LATELY)  # fmt: skip
        proof_lab.answered(
            memory, "t-c-now", "茅台估值？", "贵州茅台 PE 26.1 倍，PB 8.9 倍，PEG 1.9。", LATELY, "s-c-now"
        )
    return home


@pytest.mark.parametrize(
    ("claim", "status", "code"),
    [("茅台PE 26.1倍", "supported", 0), ("茅台PE 35倍", "contradicted", 1), ("比亚迪PE 20倍", "unknown", 1)],
)
def test_only_what_is_supported_ends_in_success(
    kept: Path, capsys: pytest.CaptureFixture[str], claim: str, status: str, code: int
) -> None:
    assert main(["--home", str(kept), "verify", claim, "--now", NOW]) == code
    assert capsys.readouterr().out.splitlines()[0] == status


def test_verify_as_json_has_the_call(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(kept), "--json", "verify", "茅台PE 26.1倍", "--now", NOW]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "supported" and told["new"] is None and told["old"]["value"] == 26.1
    (call,) = told["calls"]
    assert (call["tool"], call["args"]) == ("daily_basic", {"ts_code": "600519.SH"}) and "26.1" in call[
        "result"
    ]


def test_a_date_nobody_knows_is_refused(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(kept), "verify", "茅台PE 28", "--now", "20260230"]) == 2
    assert "20260230" in capsys.readouterr().err


def test_sources_lists_every_number_of_the_newest_answer(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(kept), "sources"]) == 0
    page = capsys.readouterr().out
    assert "茅台估值" in page and "call c-now" in page and "pe_ttm: 26.1" in page and "no source" in page
    assert main(["--home", str(kept), "--json", "sources", "t-c-now"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["number"], one["kind"]) for one in told["links"]] == [("26.1 倍", "call"), ("8.9 倍", "call"), ("1.9", "none")]  # fmt: skip
    assert main(["--home", str(kept), "sources", told["answer"]["handle"]]) == 0


@pytest.mark.parametrize("words", [["sources", "t-unknown"], ["--owner", "telegram:1", "sources"]])
def test_no_answer_is_said_so(kept: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["--home", str(kept), *words]) == 1
    assert capsys.readouterr().out


def test_a_chat_is_told_the_same_of_its_own_rows(kept: Path) -> None:
    with Memory.open(kept) as memory:

        def say(text: str, owner: Owner = Owner()) -> str:
            return answer(text, home=kept, owner=owner, memory=memory)

        assert say("sources").splitlines()[1:] == [
            "26.1 倍: call c-now (pe_ttm: 26.1)",
            "8.9 倍: call c-now (pb: 8.9)",
            "1.9: no source",
        ]
        assert f"26.1倍（{LATELY:%Y-%m-%d}）" in say("verify 茅台PE 26.1倍") and "daily_basic" in say(
            "verify 茅台PE 26.1倍"
        )
        assert say("sources", ANN) == "No answer with numbers is on record here."
        assert "没有记录" in say("verify 茅台PE 26.1倍", ANN)
        assert say("verify").startswith("What?")


def test_the_model_verifies_and_the_record_does_not_repeat_what_it_was_told(kept: Path) -> None:
    tool = OUR_TOOLS["memory_trace"]
    with Memory.open(kept) as memory:
        caller = Caller(Session("s2"), lambda: memory)
        text = tool.call(caller, {"action": "verify", "text": "茅台PE 26.1倍"})
        told = json.loads(text)
        assert (
            told["status"] == "supported"
            and told["tool_call_ids"] == ["c-now"]
            and "pe_ttm: 26.1" in told["said"]
        )
        assert "26.1" not in tool.for_the_record(text)
        refused = json.loads(tool.call(caller, {"action": "verify"}))
    assert refused["status"] == "refused" and "text" in refused["error"]
