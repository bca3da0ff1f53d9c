"""history and competences on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from tests.cli.conftest import Command

YAML = "- id: nim\n  statement: 净息差低于 1.5% 时分红率难提高\n  topics: 银行\n"


def test_a_competence_file_is_taken_in_and_its_drift_decided(cli: Command, tmp_path: Path) -> None:
    file = tmp_path / "house.yaml"
    file.write_text(YAML, encoding="utf-8")
    assert cli("competences", "diff", str(file), "--json").json["counts"] == {"new": 1}
    assert cli("competences", "import", str(file), "--json").json["counts"] == {"new": 1}
    assert cli("competences", "diff", str(file), "--json").json["counts"] == {"same": 1}
    file.write_text(YAML.replace("1.5%", "1.4%") + "  mood: 好\n", encoding="utf-8")
    taken = cli("competences", "import", str(file), "--json").json
    assert taken["counts"] == {"changed": 1} and taken["ignored"] == ["mood"]
    (listed,) = cli("competences", "list", "--about", "银行", "--json").json["competences"]
    assert listed["conflict"] and "1.5%" in listed["statement"]
    (conflict,) = cli("competences", "conflicts", "--json").json["conflicts"]
    assert "1.4%" in conflict["offered"]
    assert cli("competences", "resolve", "nim").code == 2
    assert "1.4%" in cli("competences", "resolve", "nim", "--take", "--json").json["statement"]
    versions = cli("history", "nim", "--owner", "shared", "--json").json["versions"]
    assert [one["state"] for one in versions] == ["superseded", "live"]
    page = cli("history", "nim", "--owner", "shared").out
    assert "replaced by f-" in page and "1.4%" in page
    assert "nim" in cli("competences").out


def test_a_broken_registry_names_file_and_line(cli: Command, tmp_path: Path) -> None:
    file = tmp_path / "registry.py"
    file.write_text("registry.register(\n", encoding="utf-8")
    found = cli("competences", "import", str(file))
    assert found.code == 2 and f"{file}:1: not Python" in found.err
    assert cli("competences", "list", "--json").json["competences"] == []


def test_history_of_nothing_says_so(cli: Command) -> None:
    assert cli("history", "f-aaaa").code == 1


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_contradictions_are_said(cli: Command, home: Path, flag: list[str]) -> None:
    with Memory.open(home) as memory:
        for value in (28.1, 27.4):
            row = memory.remember(
                f"茅台 PE {value}", subject="600519.SH", metric="pe", value=value, as_of="2026-11-20"
            )
    assert "contradicts" in cli("history", row, *flag).out
