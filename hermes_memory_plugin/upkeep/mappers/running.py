"""Our own `extract_facts`: it reads a result by the mappers of whichever memory is being fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from hermes_memory_hookspecs import Fact, ToolTrace, hookimpl
from hermes_memory_plugin.upkeep.mappers.load import Mappers

_MOST_SAID = 3


@dataclass(frozen=True, slots=True)
class Running:
    """The memory whose journal is being looked at."""

    mappers: Mappers
    count: Callable[[str, str], None]
    printed: bool = False
    """Whether tables that a program printed are read too: only when a person asks for it."""


_running: ContextVar[Running] = ContextVar("hermes_memory_extracting")


@contextmanager
def feeding(running: Running) -> Iterator[None]:
    """For the length of the block, results are read for that memory."""
    token = _running.set(running)
    try:
        yield
    finally:
        _running.reset(token)


def facts_of(trace: ToolTrace) -> list[Fact]:
    """What the mappers of the running memory make of a result; what they leave out is counted and said."""
    running = _running.get(None)
    if running is None:
        return []
    mappers = running.mappers.of(trace.tool_name, trace.args)
    if not mappers and running.printed:
        from hermes_memory_plugin.upkeep.mappers.printed import printed

        trace, mappers = printed(trace, running.mappers.all())
    if not mappers:
        return []
    from hermes_memory_plugin.upkeep.mappers.reader import read

    found = read(trace, mappers)
    name = f"{trace.tool_name} {trace.tool_call_id}"
    if found.bounded:
        running.count("facts_bounded", f"{name}: {found.bounded}")
    for why, many in found.refused.most_common(_MOST_SAID):
        running.count("rows_refused", f"{name}: {many:,} x {why}")
    return list(found.facts)


class BuiltIn:
    """The plugin of a memory that is opened without a host."""

    @hookimpl
    def extract_facts(self, trace: ToolTrace) -> list[Fact]:
        """The facts the mappers find."""
        return facts_of(trace)
