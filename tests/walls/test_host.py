"""Where our walls end: with more than one sender, `status` and `doctor` name what Hermes itself shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli.checks import of_memory
from hermes_memory_plugin.owners import Owners
from hermes_memory_plugin.upkeep.host_walls import notices

from .people import JIA, YI

TWO = ["local", "telegram:111"]
CLOSED = "memory:\n  memory_enabled: false\n  user_profile_enabled: false\nagent:\n  disabled_toolsets: [session_search]\n"


def test_two_senders_are_told_of_by_status_and_doctor(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.remember("茅台渠道库存偏高", owner=JIA.owner)
        assert not any("senders" in notice for notice in memory.status()["notices"])
        memory.remember("五粮液渠道库存偏低", owner=YI.owner)
        told = [notice for notice in memory.status()["notices"] if "2 senders" in notice]
        assert len(told) == 1
        assert all(name in told[0] for name in ("MEMORY.md", "USER.md", "session search"))
        assert [check.status for check in of_memory(memory) if check.name == "walls"] == ["warn"]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (None, {"MEMORY.md", "USER.md", "session search"}),
        ("memory: [", {"MEMORY.md", "USER.md", "session search"}),
        ("memory: 3\nagent: x\n", {"MEMORY.md", "USER.md", "session search"}),
        ("memory: {memory_enabled: false}\n", {"USER.md", "session search"}),
        ("agent: {disabled_toolsets: [session_search]}\n", {"MEMORY.md", "USER.md"}),
        (CLOSED, set()),
    ],
)
def test_what_config_yaml_closes_is_not_named(tmp_path: Path, config: str | None, named: set[str]) -> None:
    if config is not None:
        (tmp_path / "config.yaml").write_text(config, encoding="utf-8")
    said = " ".join(notices(tmp_path, TWO, Owners(tmp_path)))
    assert {name for name in ("MEMORY.md", "USER.md", "session search") if name in said} == named


@pytest.mark.parametrize(
    "keys", [[], ["local"], ["local", "shared"], ["local", "api_server:~session-1", "doctor:~probe"]]
)
def test_one_sender_is_told_nothing(tmp_path: Path, keys: list[str]) -> None:
    assert notices(tmp_path, keys, Owners(tmp_path)) == []


def test_two_keys_of_one_person_are_one_sender(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    owners.accept("telegram:111", owners.offer("local").code)
    assert notices(tmp_path, TWO, owners) == []
