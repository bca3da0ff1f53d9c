"""Facts from calls that were stored before their mapper was there; the same call gives the same rows, however often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.upkeep.mappers.model import canonical_tool
from hermes_memory_plugin.upkeep.mappers.printed import TOOLS

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Fact
    from hermes_memory_plugin.memory import Memory

_SHOWN = 10


@dataclass(slots=True)
class Filled:
    """What old calls gave."""

    calls: Counter[str] = field(default_factory=Counter)
    """Calls that were looked at, by tool."""
    facts: Counter[str] = field(default_factory=Counter)
    """Facts they gave, by tool."""
    examples: list[Fact] = field(default_factory=list)


def backfill(memory: Memory, *, tool: str = "", dry_run: bool = False) -> Filled:
    """Read every stored call that a mapper reads (of that tool alone, when one is named); tables that a program printed
    are read where its source says whose they are. `dry_run` stores nothing."""
    from hermes_memory_plugin.upkeep.extract import as_json

    memory.archive.flush()
    extraction = memory.extraction
    name = canonical_tool(tool)

    def wanted(row: Mapping[str, Any]) -> bool:
        own = canonical_tool(str(row["tool_name"]))
        if (name and own != name) or row["status"] != "ok":
            return False
        return own in TOOLS or bool(_arguments_matter(own) or extraction.mappers.of(own, {}))

    filled = Filled()
    before: Counter[str] = Counter()
    for trace in memory.archive.calls(wanted):
        filled.calls[trace.tool_name] += 1
        found = list(extraction.facts_of(trace, printed=True))
        if not found:
            continue
        filled.facts[trace.tool_name] += len(found)
        filled.examples += found[: _SHOWN - len(filled.examples)]
        if not dry_run:
            ids = [fact.id for fact in found]
            before[trace.tool_name] += len(memory.archive.facts.by_ids(ids))
            memory.journal.append_many(("fact", as_json(fact), trace.owner.key, None, None) for fact in found)
    if not dry_run and filled.facts:
        memory.archive.flush()
        for tool_name, count in filled.facts.items():
            extraction.credit(tool_name, count - before[tool_name])
    return filled


def _arguments_matter(tool: str) -> bool:
    """Whether one tool serves many functions, so that its name alone does not say what it gave."""
    return "tushare" in tool or "akshare" in tool
