"""The contract between hermes-memory-plugin and anybody who extends it.

    from hermes_memory_hookspecs import Fact, ToolTrace, hookimpl

    @hookimpl
    def extract_facts(trace: ToolTrace) -> list[Fact]: ...

A plugin names its module (or an object with such methods) in the entry-point group
``hermes_memory.plugins``. Needs nothing but pluggy.
"""

from hermes_memory_hookspecs.markers import PROJECT, hookimpl, hookspec
from hermes_memory_hookspecs.specs import Extension, Lifecycle
from hermes_memory_hookspecs.types import (
    Compaction,
    Embedder,
    Entity,
    Fact,
    Injection,
    Owner,
    Recalled,
    ReportChunk,
    ReportDocument,
    Session,
    ToolTrace,
    Turn,
    UserMessage,
    Verdict,
)

__all__ = [
    "PROJECT",
    "Compaction",
    "Embedder",
    "Entity",
    "Extension",
    "Fact",
    "Injection",
    "Lifecycle",
    "Owner",
    "Recalled",
    "ReportChunk",
    "ReportDocument",
    "Session",
    "ToolTrace",
    "Turn",
    "UserMessage",
    "Verdict",
    "hookimpl",
    "hookspec",
]
