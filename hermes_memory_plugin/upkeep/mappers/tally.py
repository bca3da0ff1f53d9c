"""How many results each data tool gave, and how many facts came of them: what no mapper reads is seen, not guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST = 200
"""Tools that are counted; the one not seen for longest goes first."""
_HOST = frozenset(
    [
        "terminal",
        "process",
        "execute_code",
        "read_file",
        "write_file",
        "patch",
        "search_files",
        "todo",
        "memory",
        "session_search",
        "web_search",
        "web_extract",
        "web_crawl",
        "delegate_task",
        "clarify",
        "vision_analyze",
        "image_generate",
        "video_generate",
        "text_to_speech",
        "cronjob",
        "send_message",
        "remember",
        "memory_trace",
        "search_reports",
        "skill_manage",
        "skill_view",
        "skills_list",
        "mixture_of_agents",
    ]
)
_HOST_PREFIXES = ("browser_", "skill_", "rl_", "ha_", "kanban_")
_DATA = re.compile(r"[\"'|,\t:\[]\s*-?\d")
_HEAD = 4_000


@dataclass(slots=True)
class Tool:
    """One tool's results since it was first seen."""

    name: str
    calls: int = 0
    facts: int = 0
    last: int = 0
    """Epoch microseconds."""


class Tally:
    """The tools by name. Kept beside the drain's offsets, so that each result counts once."""

    def __init__(self, stored: object = None) -> None:
        self._tools: dict[str, Tool] = {}
        for name, one in (stored if isinstance(stored, Mapping) else {}).items():
            if isinstance(one, list) and len(one) == 3 and all(type(number) is int for number in one):
                self._tools[str(name)] = Tool(str(name), *one)

    def add(self, name: str, facts: int, at: int) -> None:
        """One more result of a tool."""
        tool = self._tools.setdefault(name, Tool(name))
        tool.calls += 1
        tool.facts += facts
        tool.last = max(tool.last, at)
        if len(self._tools) > MOST:
            del self._tools[min(self._tools.values(), key=lambda one: one.last).name]

    def credit(self, name: str, facts: int) -> None:
        """Facts that came later of results that were counted before."""
        if name in self._tools:
            self._tools[name].facts += facts

    def tools(self) -> list[Tool]:
        """Those most often called first."""
        return sorted(self._tools.values(), key=lambda one: (-one.calls, one.name))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {one.name: [one.calls, one.facts, one.last] for one in self._tools.values()}


def is_data(tool: str, result: str) -> bool:
    """Whether a result is a data source's: of none of the host's own tools, and with numbers in the places of values."""
    return (
        tool not in _HOST and not tool.startswith(_HOST_PREFIXES) and _DATA.search(result[:_HEAD]) is not None
    )
