"""owners list | link | unlink on the command line, and between the command line and a chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli.chat import answer
from hermes_memory_plugin.hermes import pairing

from .conftest import Command

PHONE = Owner(platform="telegram", user_id="123")


def test_two_sides_become_one_person_and_stand_apart_again(cli: Command) -> None:
    assert cli("remember", "宁德时代 毛利率 24.9%", "--owner", PHONE.key).code == 0
    assert cli("recall", "宁德时代 毛利率").code == 1
    offered = cli("owners", "link", "--json")
    assert offered.code == 0
    code = offered.json["code"]
    assert len(code) == 6
    joined = cli("owners", "link", code, "--owner", PHONE.key, "--json")
    assert (joined.code, joined.json["linked"]) == (0, ["local", PHONE.key])
    assert cli("recall", "宁德时代 毛利率").code == 0
    listed = cli("owners", "list", "--json")
    assert listed.json["owners"] == [
        {"owner": "local", "rows": 0, "linked": [PHONE.key]},
        {"owner": PHONE.key, "rows": 1, "linked": ["local"]},
    ]
    assert PHONE.key in cli("owners", "list").out
    assert cli("owners", "unlink", PHONE.key, "--json").json["unlinked"] == ["local"]
    assert cli("recall", "宁德时代 毛利率").code == 1
    assert cli("owners", "unlink").code == 1


@pytest.mark.parametrize("code", ["WRONG2", "", "x" * 500])
def test_a_wrong_code_is_one_line_and_exit_one(cli: Command, code: str) -> None:
    cli("owners", "link")
    ran = cli("owners", "link", code, "--owner", PHONE.key)
    assert (ran.code, ran.out) == (1, "")
    assert "wrong" in ran.err


@pytest.mark.parametrize("key", ["any", "shared", "telegram:group:-100"])
def test_a_group_and_everybody_cannot_be_linked(cli: Command, key: str) -> None:
    assert cli("owners", "link", "--owner", key).code == 1


def test_nobody_has_rows_yet(cli: Command) -> None:
    ran = cli("owners", "list")
    assert ran.code == 1
    assert "No owner" in ran.out


def test_a_code_of_the_command_line_is_typed_in_a_chat(cli: Command, home: Path) -> None:
    cli("remember", "宁德时代 毛利率 24.9%")
    code = cli("owners", "link", "--json").json["code"]
    with Memory.open(home) as memory:
        said = answer(f"owners link {code.lower()}", home=home, owner=PHONE, memory=memory)
        assert "local, telegram:123 are one person" in said
        assert "24.9" in answer("recall 宁德时代 毛利率", home=home, owner=PHONE, memory=memory)


def test_the_message_it_says_to_send_in_the_chat_pairs(cli: Command, home: Path) -> None:
    said = cli("owners", "link").out
    assert "/memory" not in said
    (message,) = [line for line in said.splitlines() if "owners link" in line]
    assert "local, telegram:123 are one person" in pairing.answer(home, PHONE, message)


def test_a_code_of_a_chat_is_typed_on_the_command_line(cli: Command, home: Path) -> None:
    with Memory.open(home) as memory:
        code = answer("owners link", home=home, owner=PHONE, memory=memory).splitlines()[0]
    assert cli("owners", "link", code).code == 0


def test_a_damaged_registry_is_named_and_the_rows_stay_apart(cli: Command, home: Path) -> None:
    cli("remember", "宁德时代 毛利率 24.9%", "--owner", PHONE.key)
    code = cli("owners", "link", "--json").json["code"]
    assert cli("owners", "link", code, "--owner", PHONE.key).code == 0
    (home / "memory" / "owners.json").write_bytes(b"{")
    assert cli("recall", "宁德时代 毛利率").code == 1
    assert "owners.json" in "".join(cli("owners", "list", "--json").json["problems"])
    assert any("owners.json" in problem for problem in cli("status", "--json").json["problems"])
