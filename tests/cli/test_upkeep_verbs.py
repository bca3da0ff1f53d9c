"""upkeep, pause and resume, and forget with what it cannot reach: through the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin import Memory
from tests.cli.conftest import Command


def test_upkeep_says_what_would_go_and_then_what_went(cli: Command, home: Path) -> None:
    with Memory.open(home) as memory:
        memory.log(
            ToolTrace(tool_call_id="c", tool_name="t", result="r", at=datetime.now(UTC) - timedelta(days=400))
        )
    trial = cli("upkeep", "--dry-run", "--json")
    assert (trial.code, trial.json["calls"], trial.json["dry_run"]) == (0, 1, True)
    ran = cli("upkeep")
    assert ran.code == 0 and "1 logged calls purged" in ran.out and "of retention.max_gb" in ran.out
    purged = cli("upkeep", "--purge", "--json")
    assert (purged.code, purged.json["calls"], purged.json["finished"]) == (0, 0, True)
    assert cli("upkeep", "--purge", "--dry-run").code == 2


def test_pause_and_resume_are_seen_by_status_and_doctor(cli: Command) -> None:
    assert cli("pause").code == 0 and "PAUSED for local" in cli("status").out
    assert "PAUSED" in cli("doctor", "--no-probe").out
    assert cli("resume", "--json").json["resumed"] is True
    assert cli("resume").code == 1 and "PAUSED" not in cli("status").out


def test_a_pause_of_everybody_is_ended_by_the_person_at_the_machine(cli: Command) -> None:
    cli("pause", "--owner", "telegram:7")
    cli("pause", "--owner", "any")
    assert "Still paused: any, telegram:7" in cli("resume").out
    assert cli("resume", "--owner", "any", "--json").json["paused"] == []


def test_forget_lists_what_it_cannot_reach_and_everywhere_reaches_the_host_s_file(
    cli: Command, home: Path
) -> None:
    (home / "memories").mkdir()
    entry = home / "memories" / "MEMORY.md"
    entry.write_text("客户要清仓宁德时代", encoding="utf-8")
    handle = cli("remember", "客户要清仓宁德时代", "--json").json["handle"]
    trial = cli("forget", handle, "--dry-run", "--json")
    assert any("MEMORY.md" in place for place in trial.json["unreached"])
    gone = cli("forget", handle, "--everywhere", "--json")
    assert gone.json["removed_entries"] == ["客户要清仓宁德时代"] and entry.read_text("utf-8") == ""
    assert cli("trash", "--json").json["trash"][0]["layer"] == "facts"
    assert cli("trash", "restore", "客户要清仓宁德时代").code == 0
