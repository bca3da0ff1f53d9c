"""mappers: through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin import Memory

from .conftest import Command

WIND = json.dumps({"Codes": ["600519.SH"], "Fields": ["CLOSE", "ZZZ"], "Times": ["2026-03-31"], "Data": [[1480.5], [3.0]]})  # fmt: skip


@pytest.fixture
def called(home: Path) -> Path:
    """A home in which nobody reads what one tool gave."""
    with Memory.open(home) as memory:
        for n in range(2):
            memory.log(ToolTrace(tool_call_id=f"w{n}", tool_name="wind_wsd", result=WIND))
        memory.log(ToolTrace(tool_call_id="n", tool_name="news", result="没有数据"))
        memory.flush()
    return home


def test_a_draft_is_shown_and_stored_only_when_confirmed(cli: Command, called: Path) -> None:
    file = called / "memory" / "mappers" / "wind_wsd.yaml"
    assert "none yet" in cli("mappers").out
    shown = cli("mappers", "suggest", "w0")
    assert shown.code == 0 and not file.exists()
    assert "CLOSE: {metric: price" in shown.out and "收盘价 1,480.5元" in shown.out and "--yes" in shown.out
    saved = cli("mappers", "suggest", "w0", "--yes", "--json").json
    assert saved["saved"] == str(file) and saved["facts_by_tool"] == {"wind_wsd": 2} and file.exists()
    again = cli("mappers", "suggest", "w0", "--yes")
    assert again.code == 2 and "left as it is" in again.err
    listed = cli("mappers", "list", "--json").json
    assert listed["tools"] == [{"tool": "wind_wsd", "calls": 2, "facts": 2, "read_by": "wind_wsd"}]


@pytest.mark.usefixtures("called")
@pytest.mark.parametrize(("call", "says"), [("nobody", "nobody"), ("n", "holds no table")])
def test_a_call_that_gives_no_draft_is_a_sentence(cli: Command, call: str, says: str) -> None:
    found = cli("mappers", "suggest", call)
    assert found.code == 1 and says in found.err and "Traceback" not in found.err


def test_check_names_file_and_line(cli: Command, home: Path, tmp_path: Path) -> None:
    assert cli("mappers", "check").code == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: x\ntools: ['/(/']\nsubject: code\nfields:\n  a: {metric: pe}\n", encoding="utf-8")
    found = cli("mappers", "check", str(bad))
    assert found.code == 1 and f"{bad}:2: bad pattern" in found.out.replace("\n", "")
    folder = home / "memory" / "mappers"
    folder.mkdir(parents=True)
    (folder / "bad.yaml").write_bytes(bad.read_bytes())
    assert cli("mappers", "check", "--json").json["problems"][0].startswith(str(folder / "bad.yaml:2"))
    assert any("bad.yaml:2" in problem for problem in cli("status", "--json").json["problems"])
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    assert cli("mappers", "check", str(tmp_path / "binary.yaml")).code == 2


@pytest.mark.usefixtures("called")
def test_backfill_without_a_mapper_says_so(cli: Command) -> None:
    found = cli("mappers", "backfill", "--dry-run")
    assert found.code == 1 and "No stored call" in found.out
