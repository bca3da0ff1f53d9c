"""doctor: liveness by a real probe, and every trouble named with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_hookspecs import ToolTrace, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli import gateway
from hermes_memory_plugin.cli.views import PROBE
from hermes_memory_plugin.owners import Owners

from .conftest import Command

pytestmark = pytest.mark.slow


def said(cli: Command, name: str) -> list[tuple[str, str]]:
    """(status, text) of each check of that name."""
    return [
        (check["status"], f"{check['said']} {check['todo']}")
        for check in cli("doctor", "--json").json["checks"]
        if check["name"] == name
    ]


def test_the_probe_goes_through_the_real_path_and_leaves_nothing(cli: Command, home: Path) -> None:
    cli("remember", "长江电力 股息率 3.6%")
    ran = cli.process("doctor", "--json")
    probes = [check for check in ran.json["checks"] if check["name"].startswith("probe ")]
    assert [check["name"] for check in probes] == [
        "probe write", "probe recall", "probe owners", "probe ledger", "probe forget",
    ]  # fmt: skip
    assert [check["status"] for check in probes] == ["ok"] * 5
    assert (ran.code, ran.json["failed"]) == (0, 0)
    assert cli("status", "--json").json["owners"] == {"local": 1}
    assert PROBE.key not in cli("owners", "list").out
    assert cli("recall", "probe", "--owner", PROBE.key).code == 1
    with Memory.open(home) as memory:
        memory.flush()
        assert memory.traces(owner=PROBE) == []


def test_a_row_that_another_owner_sees_is_caught_by_the_probe(
    cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Owners.visible_keys
    monkeypatch.setattr(Owners, "visible_keys", lambda self, owner: seen(self, owner) | {PROBE.key})
    ran = cli("doctor", "--json")
    assert ran.code == 1
    failed = {check["name"]: check["said"] for check in ran.json["checks"] if check["status"] == "fail"}
    assert failed == {"probe owners": "another owner's recall finds the fact"}
    monkeypatch.undo()
    assert cli("status", "--json").json["owners"] == {}


def test_the_page_marks_each_check_and_counts(cli: Command) -> None:
    ran = cli("doctor")
    assert "✓ probe recall" in ran.out
    assert "checks, 0 failed" in ran.out


def test_a_setting_that_cannot_be_used_fails_with_key_and_allowed_values(cli: Command, home: Path) -> None:
    (home / "config.yaml").write_text(
        "plugins: {entries: {hermes-memory: {settings: {recall: {share: 1.5, shrae: 1}}}}}"
    )
    ran = cli("doctor")
    assert ran.code == 1
    assert "recall.share = 1.5" in ran.out
    assert "from 0 to 1" in ran.out
    assert "did you mean recall.share?" in ran.out


def test_a_config_that_cannot_be_read_fails(cli: Command, home: Path) -> None:
    (home / "config.yaml").write_text("plugins: [")
    assert [status for status, _ in said(cli, "settings")] == ["fail"]
    assert [status for status, _ in said(cli, "plugin")] == ["fail"]


def test_a_damaged_ledger_is_said(cli: Command, home: Path) -> None:
    cli("remember", "长江电力 股息率 3.6%")
    with Memory.open(home) as memory:
        memory.flush()
    (home / "memory" / "facts.db").write_bytes(b"not a database" * 100)
    ran = cli("doctor", "--json")
    assert "facts.db" in json.dumps(ran.json["checks"])
    assert "warn" in ran.out or "fail" in ran.out
    assert "3.6%" in cli("recall", "长江电力 股息率").out


def test_a_memory_that_cannot_be_opened_fails_and_the_rest_is_still_checked(cli: Command, home: Path) -> None:
    (home / "memory").write_text("in the way")
    ran = cli("doctor", "--json")
    assert ran.code == 4
    status = {check["name"]: check["status"] for check in ran.json["checks"]}
    assert (status["home"], status["memory"], status["settings"]) == ("fail", "fail", "ok")


def test_files_others_may_read_are_named(cli: Command, home: Path) -> None:
    cli("remember", "长江电力 股息率 3.6%", "--title", "长江电力")
    assert said(cli, "modes")[0][0] == "ok"
    (note,) = (home / "memory" / "notes").glob("*.md")
    note.chmod(0o644)
    status, text = said(cli, "modes")[0]
    assert status == "warn"
    assert note.name in text
    assert "chmod" in text


def test_a_synchronised_home_is_warned_about(cli: Command, tmp_path: Path) -> None:
    cli.home = tmp_path / "OneDrive - Fund" / "hermes"
    cli.home.mkdir(parents=True)
    assert "OneDrive" in said(cli, "place")[0][1]


def test_hooks_are_named_by_what_they_left_behind(cli: Command, home: Path) -> None:
    assert said(cli, "hooks") == [("warn", "no hook of Hermes has been heard of yet send Hermes one message")]
    with Memory.open(home) as memory:
        memory.log_turn(Turn(user="茅台贵不贵？", turn_id="t1", session_id="s"), half="user")
        memory.log(ToolTrace(tool_call_id="c1", tool_name="quote", session_id="s"))
    checks = said(cli, "hooks")
    assert [status for status, _ in checks] == ["ok", "ok", "warn", "warn"]
    assert "post_llm_call has never fired" in checks[2][1]
    with Memory.open(home) as memory:
        memory.log_turn(Turn(user="茅台贵不贵？", assistant="28.1 倍", turn_id="t1", session_id="s"))
    assert [status for status, _ in said(cli, "hooks")] == ["ok"] * 4


def test_what_was_counted_as_degraded_is_shown(cli: Command, home: Path) -> None:
    first = said(cli, "degraded")[0]
    assert first[0] == "ok", first
    with Memory.open(home) as memory:
        memory.count("recall_late", "over 400 ms")
    (status, text) = said(cli, "degraded")[0]
    assert status == "warn"
    assert "deadline" in text


def test_enabled_without_a_package_hermes_can_import_fails_with_the_install_line(
    cli: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.yaml").write_text("plugins: {enabled: [hermes-memory]}")
    assert said(cli, "plugin")[0][0] == "ok"
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    script = bare / "bin" / "hermes"
    script.write_text(f"#!{bare}/bin/python\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bare / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    status, text = said(cli, "plugin")[0]
    assert status == "fail"
    assert str(bare) in text
    assert "cannot import" in text
    assert "install" in text


def test_not_enabled_is_a_hint(cli: Command) -> None:
    status, text = said(cli, "plugin")[0]
    assert status == "warn"
    assert "hermes-memory enable" in text


def _gateway_file(home: Path, pid: int, start: int | None) -> None:
    record = {"pid": pid, "kind": "hermes-gateway", "argv": [], "start_time": start}
    (home / "gateway.pid").write_text(json.dumps(record))


def _start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_a_gateway_older_than_the_installation_is_named(
    cli: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(cli, "gateway") == []
    _gateway_file(home, os.getpid(), _start_ticks(os.getpid()))
    assert said(cli, "gateway")[0][0] == "ok"
    found = gateway.running(home)
    assert found is not None
    assert abs(found.started - Path(f"/proc/{os.getpid()}").stat().st_mtime) < 120
    monkeypatch.setattr(gateway, "installed_at", lambda python="": found.started + 60)
    status, text = said(cli, "gateway")[0]
    assert status == "warn"
    assert "older than this installation" in text
    assert "restart" in text


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"pid": "x"}', '{"pid": 0}', '{"pid": -5}', "999999999", "\x00"]
)
def test_a_gateway_file_that_names_no_live_process_is_no_gateway(home: Path, content: str) -> None:
    (home / "gateway.pid").write_text(content)
    assert gateway.running(home) is None


def test_a_process_that_got_the_gateway_s_number_is_not_the_gateway(home: Path) -> None:
    _gateway_file(home, os.getpid(), _start_ticks(os.getpid()) - 1)
    assert gateway.running(home) is None
    (home / "gateway.pid").write_text(str(os.getpid()))
    assert gateway.running(home) is not None


def test_the_installation_of_an_interpreter_is_found_and_of_another_not(tmp_path: Path) -> None:
    assert gateway.installed_at() > 0
    assert gateway.installed_at(sys.executable) == gateway.installed_at()
    assert gateway.installed_at(str(tmp_path / "bin" / "python")) == 0.0
