"""The hooks. All arguments are passed by keyword; an implementation may take only those it needs."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs.markers import hookspec
from hermes_memory_hookspecs.types import (
    Compaction,
    Embedder,
    Entity,
    Fact,
    Injection,
    ReportDocument,
    Session,
    ToolTrace,
    Turn,
    UserMessage,
)


class Lifecycle:
    """Called as a conversation goes on. A raising or slow implementation never breaks a turn."""

    @hookspec
    def on_session_start(self, session: Session) -> None:
        """A session lineage was seen for the first time."""

    @hookspec
    def before_user_message(
        self, session: Session, message: UserMessage, transcript: Sequence[Mapping[str, Any]]
    ) -> Injection | None:
        """Return what should stand beside the message, or None.

        `transcript` is the live history, oldest first, the message itself included; never change it.
        """

    @hookspec
    def after_tool_call(self, session: Session, trace: ToolTrace) -> None:
        """A tool call ended. Runs on the tool's own thread, possibly beside others."""

    @hookspec
    def on_compact(self, session: Session, compaction: Compaction) -> str | None:
        """The host compressed the conversation; return text the model should still know, or None."""

    @hookspec
    def on_turn_end(self, session: Session, turn: Turn) -> None:
        """The answer is out, or the turn was interrupted (`turn.completed` is False)."""

    @hookspec
    def on_session_end(self, session: Session) -> None:
        """The lineage ended: reset, shut down or idle."""


class Extension:
    """What others may add to the memory."""

    @hookspec
    def extract_facts(self, trace: ToolTrace) -> list[Fact]:
        """Facts a tool result states. Give each a deterministic id, or leave it empty."""

    @hookspec
    def link_entities(self, text: str) -> list[Entity]:
        """Entities the text speaks of, beyond those the lexicon knows."""

    @hookspec(firstresult=True)
    def embedding_backend(self, name: str) -> Embedder | None:
        """The embedder that `embedding.backend: name` asks for."""

    @hookspec(firstresult=True)
    def read_report(self, path: Path) -> ReportDocument | None:
        """Read a report file of a format the built-in readers do not know."""

    @hookspec
    def redact(self, text: str) -> str:
        """Return the text with what must never be stored replaced. Runs after the built-in masks."""

    @hookspec(firstresult=True)
    def fact_lifetime(self, fact: Fact) -> timedelta | None:
        """How long the fact stays in automatic recall, or None for the default."""
