"""The tools a model gets: `remember`, `memory_trace` and `search_reports`. Nothing more, because each costs context.

Schemas are plain constants: they are complete before any memory is opened. A tool takes and returns JSON, raises
nothing, and answers a memory that is down with a final message, so that a model does not try again and again.
"""

from __future__ import annotations

from hermes_memory_plugin.tools import remember, search_reports, trace
from hermes_memory_plugin.tools.base import Caller, Tool

TOOLSET = "hermes_memory"

OUR_TOOLS: dict[str, Tool] = {tool.name: tool for tool in (remember.TOOL, trace.TOOL, search_reports.TOOL)}

__all__ = ["OUR_TOOLS", "TOOLSET", "Caller", "Tool"]
