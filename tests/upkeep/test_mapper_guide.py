"""The guide's worked example gives the facts it says it gives."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.upkeep.mappers import model
from hermes_memory_plugin.upkeep.mappers.facts import MOST
from hermes_memory_plugin.upkeep.mappers.load import built_in
from hermes_memory_plugin.upkeep.mappers.reader import read

GUIDE = (Path(__file__).parents[2] / "docs" / "mappers.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    return found[1]


def test_the_worked_example_gives_the_facts_it_says() -> None:
    (mapper,), problems = model.parse(block("yaml"), "guide.yaml", own=True)
    assert not problems and mapper.fits_tool("mcp_desk_prices")
    found = read(
        ToolTrace(
            tool_call_id="c",
            tool_name="desk_quote",
            result=block("json"),
            at=datetime(2026, 4, 30, tzinfo=UTC),
        ),
        [mapper],
    )
    assert [fact.statement for fact in found.facts] == block("text").splitlines()
    assert sum(found.refused.values()) == 1


def test_every_key_is_explained_and_none_that_is_not_there() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))
    assert told | {"vendor", "api"} == model._KEYS
    assert all(f"`{name}" in GUIDE for name in model._FIELD_KEYS)
    assert {field.name for field in fields(model.Mapper)} - model._KEYS == {"place", "own"}


def test_the_numbers_of_the_guide_are_those_of_the_code() -> None:
    assert f"{len(built_in())} are built in" in GUIDE and f"Up to {MOST} facts a call" in GUIDE
