"""The demo: a block, tokens and milliseconds for three questions, nothing for small talk, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .conftest import Command

OFFLINE = """
import socket, sys
def refuse(*a, **k): raise AssertionError("the demo opened a socket")
socket.socket.connect = socket.create_connection = refuse
from hermes_memory_plugin.cli import main
code = main(["demo", "--json"])
assert not any(name.split(".")[0] in ("hermes_cli", "hermes_constants", "gateway", "agent") for name in sys.modules)
sys.exit(code)
"""


def test_three_questions_get_what_they_need_and_small_talk_nothing(cli: Command) -> None:
    ran = cli("demo", "--json")
    assert ran.code == 0
    assert ran.json["as_promised"] is True
    code, name, pick, talk = ran.json["questions"]
    assert "28.1" in code["block"]
    assert "26.0" not in code["block"], "a superseded figure is not given"
    assert "24.9" in name["block"]
    assert "不碰银行股" in pick["block"]
    assert all(
        one["tokens"] > 0 and one["block"].startswith("<recalled-memories>") for one in (code, name, pick)
    )
    assert (talk["block"], talk["tokens"], talk["items"]) == ("", 0, [])
    assert all(one["ms"] >= 0 for one in ran.json["questions"])


@pytest.mark.parametrize(("lang", "label"), [("zh", "长期禁忌"), ("en", "standing taboo")])
def test_the_page_shows_block_tokens_and_milliseconds(cli: Command, lang: str, label: str) -> None:
    page = cli("demo", "--lang", lang).out
    assert label in page
    assert page.count("<recalled-memories>") == 3
    assert page.count(" tokens") >= 3
    assert "0 tokens" in page


@pytest.mark.parametrize(
    ("locale", "label"), [("zh_CN.UTF-8", "临时目录"), ("en_US.UTF-8", "temporary home"), ("C", "temporary")]
)
def test_the_labels_follow_the_locale(cli: Command, locale: str, label: str) -> None:
    assert label in cli.process("demo", LC_ALL=locale, LANG=locale).out


def test_the_demo_needs_no_network_no_hermes_and_no_home(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
        env={"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_temporary_home_is_gone(cli: Command) -> None:
    before = set(Path(tempfile.gettempdir()).glob("hermes-memory-demo-*"))
    cli("demo")
    assert set(Path(tempfile.gettempdir()).glob("hermes-memory-demo-*")) == before
