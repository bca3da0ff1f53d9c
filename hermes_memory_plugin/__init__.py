"""Layered, local, auditable memory for Hermes Agent.

from hermes_memory_plugin import Memory

with Memory.open(home) as memory:
    memory.remember("贵州茅台 PE(TTM) 28.1", source="tushare", as_of="2026-04-30")
    print(memory.recall("茅台贵不贵？").block)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_memory_plugin._version import __version__

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory

__all__ = ["Memory", "__version__"]


def __getattr__(name: str) -> object:
    # Hermes imports this package at start-up: the facade comes only when somebody asks for it.
    if name == "Memory":
        from hermes_memory_plugin.memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
