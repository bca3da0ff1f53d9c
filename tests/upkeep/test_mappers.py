"""What tables become facts, and what of them: every shape in fixtures/mappers with every fact it gives."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.upkeep.mappers.load import Mappers
from hermes_memory_plugin.upkeep.mappers.reader import Read, read

FILE = Path(__file__).parents[2] / "fixtures" / "mappers" / "shapes.jsonl"
SHAPES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
BUILT_IN = Mappers(Path("/nowhere"))


def read_shape(shape: dict[str, Any]) -> Read:
    trace = ToolTrace(
        tool_call_id="c1",
        tool_name=shape["tool"],
        args=shape["args"],
        result=shape["result"],
        at=datetime.fromisoformat(shape["at"]),
    )
    return read(trace, BUILT_IN.of(trace.tool_name, trace.args))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_table_gives_exactly_its_figures(shape: dict[str, Any]) -> None:
    found = read_shape(shape)
    told = [
        [f.subject, f.metric, f.period, f.basis, f.value, f.unit, f"{f.as_of:%Y-%m-%d}"] for f in found.facts
    ]
    assert sorted(map(repr, told)) == sorted(map(repr, shape["facts"]))
    assert sum(found.refused.values()) == shape.get("refused", 0), found.refused
    assert ("beginning" in found.bounded) == shape.get("cut", False)
