"""One tool result to its facts, by the mappers of the memory that is being fed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.upkeep.mappers import facts, rows, shapes
from hermes_memory_plugin.upkeep.mappers.facts import Mapped
from hermes_memory_plugin.upkeep.mappers.model import Mapper


@dataclass(frozen=True, slots=True)
class Read:
    """What the mappers made of one result."""

    facts: Sequence[Mapped] = ()
    mapper: Mapper | None = None
    rows: int = 0
    bounded: str = ""
    refused: Counter[str] = field(default_factory=Counter)
    """Why rows or figures were left out, and how many."""


def read(trace: ToolTrace, mappers: Sequence[Mapper]) -> Read:
    """The facts of a result, by the first mapper that has facts to tell. No mapper, no facts: nothing is guessed."""
    if not mappers or not trace.result:
        return Read()
    reading = shapes.read(trace.result)
    best = Read()
    for mapper in mappers:
        for table in reading.tables:
            frame = rows.frame(mapper, table, trace)
            if frame is None:
                continue
            made = facts.make(frame, trace, cut=reading.cut)
            found = Read(made.facts, mapper, len(frame.rows), made.bounded, frame.refused)
            if made.facts:
                return found
            if best.mapper is None:
                best = found
    return best
