"""Tables that a program printed: the call of a vendor's function in its source says which mapper reads them.

Only where the source calls one such function, once, and changes none of the columns that are read: what was computed on
the way is not what the vendor's table says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.upkeep.mappers.model import Mapper

TOOLS = frozenset({"execute_code", "terminal", "process"})
"""The host's tools that run programs."""
_ARGUMENT = re.compile(r"(\w+)\s*=\s*(?:[\"']([^\"'\n]*)[\"']|([\w.]+))")
_LONGEST = 200_000


def printed(trace: ToolTrace, mappers: Sequence[Mapper]) -> tuple[ToolTrace, Sequence[Mapper]]:
    """(the call with the arguments its program gave, the mappers that may read it); no mappers where none may."""
    if trace.tool_name not in TOOLS:
        return trace, ()
    source = _source(trace.args)
    found: dict[str, tuple[Mapper, str]] = {}
    calls = 0
    for mapper in mappers:
        for api in mapper.api:
            if api not in source:
                continue
            form = rf"(?<![\w])(?:{re.escape(api)}\s*\(|query\s*\(\s*[\"']{re.escape(api)}[\"'])([^()]*)"
            told = [match[1] for match in re.finditer(form, source)]
            calls += len(told)
            if told:
                found[mapper.name] = (mapper, told[0])
    if calls != 1:
        return trace, ()
    ((mapper, arguments),) = found.values()
    if _changed(mapper, source):
        return trace, ()
    given: dict[str, Any] = {match[1]: match[2] or match[3] for match in _ARGUMENT.finditer(arguments)}
    return replace(trace, args=given), (mapper,)


def _source(args: dict[str, Any]) -> str:
    return "\n".join(str(value) for value in args.values() if isinstance(value, str))[:_LONGEST]


def _changed(mapper: Mapper, source: str) -> bool:
    columns = {column for field in mapper.fields for column in field.columns}
    names = "|".join(map(re.escape, sorted(columns, key=len, reverse=True)))
    pattern = rf"(?:\[\s*[\"'](?:{names})[\"']\s*\]|\.(?:{names}))\s*[-+*/%]?=(?!=)|\.(?:rename|assign|mul|div|eval|apply)\s*\("
    return re.search(pattern, source, re.IGNORECASE) is not None
