"""The story of one turn: the lifecycle hooks as this package implements them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import (
    Compaction,
    Fact,
    Injection,
    Session,
    ToolTrace,
    Turn,
    UserMessage,
    hookimpl,
)
from hermes_memory_plugin.extensions import OURS, Hooks

if TYPE_CHECKING:
    from hermes_memory_plugin.layers.persona import Target
    from hermes_memory_plugin.memory import Memory
    from hermes_memory_plugin.upkeep.scene_model import Ask


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What the host knows about the running turn and the hookspecs do not carry."""

    home: Path
    window: int = 64_000
    """Tokens the model's context window holds."""
    project: str = ""
    present: frozenset[str] = frozenset()
    """Handles of our items still alive in the transcript."""
    already: int = 0
    """Tokens of ours still alive in the transcript."""
    first: bool = True
    """Whether nothing of ours was injected in this lineage yet."""
    characters: int | None = None
    """The host's own limit for one injection, when it is below the setting."""
    shown_by_host: tuple[str, ...] = field(default=())
    """Entries of MEMORY.md and USER.md the model sees anyway."""
    hidden: frozenset[Target] = frozenset()
    """Which of the two files the host does not show this session."""
    recorded: bool = True
    """Whether anything of the turn may be kept."""
    ask: Ask | None = None
    """The host's own model, where it lends it."""


current: ContextVar[TurnContext] = ContextVar("hermes_memory_turn")


class MemoryPlugin:
    """One process's hook implementations, for every home it serves."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._memories: dict[Path, Memory] = {}
        self._lock = threading.Lock()

    def memory_of(self, home: Path) -> Memory:
        """The open memory of a home; opened once per process."""
        memory = self._memories.get(home)
        if memory is None:
            from hermes_memory_plugin.memory import Memory

            with self._lock:
                memory = self._memories.get(home)
                if memory is None:
                    memory = self._memories[home] = Memory.open(home, hooks=self._hooks)
        return memory

    def memories(self) -> list[Memory]:
        """Every memory this process has opened."""
        with self._lock:
            return list(self._memories.values())

    @hookimpl
    def on_session_start(self, session: Session) -> None:
        """Freeze what the session may rely on and warm what the first recall needs."""
        turn = current.get()
        self.memory_of(turn.home).begin(session, ask=turn.ask)

    @hookimpl
    def before_user_message(
        self, session: Session, message: UserMessage, transcript: Sequence[Mapping[str, Any]]
    ) -> Injection | None:
        """Find what is worth knowing beside this message, or nothing."""
        turn = current.get()
        recall = self.memory_of(turn.home).recall_for_turn(session, message, transcript, turn)
        return Injection(recall.block, recall.tokens, recall.items) if recall.block else None

    @hookimpl
    def after_tool_call(self, session: Session, trace: ToolTrace) -> None:
        """Persist one tool call to L0 before the agent goes on."""
        memory = self.memory_of(current.get().home)
        memory.log(trace, kind=session.kind)
        memory.provenance.called(trace)

    @hookimpl
    def on_compact(self, session: Session, compaction: Compaction) -> str | None:
        """Tell what the agent was doing, from the record alone; whoever asked keeps the text as it is."""
        turn = current.get()
        return self.memory_of(turn.home).compacted(session, compaction, folder=turn.project) or None

    @hookimpl
    def on_turn_end(self, session: Session, turn: Turn) -> None:
        """Complete the turn whose first half was journalled before recall."""
        memory = self.memory_of(current.get().home)
        memory.log_turn(turn, kind=session.kind)
        memory.provenance.ended(turn)

    @hookimpl
    def on_session_end(self, session: Session) -> None:
        """Hand everything acknowledged to the ledgers, and let what was found out become a scene."""
        turn = current.get()
        self.memory_of(turn.home).end(session, ask=turn.ask)

    @hookimpl
    def extract_facts(self, trace: ToolTrace) -> list[Fact]:
        """Read a tool's tables by the mappers; called in the drain, by nobody's turn."""
        from hermes_memory_plugin.upkeep.mappers.running import facts_of

        return facts_of(trace)


class Runtime:
    """The process's hooks with our plugin and every discovered one registered."""

    def __init__(self) -> None:
        self.hooks = Hooks(self._report)
        self.plugin = MemoryPlugin(self.hooks)
        self.hooks.register(self.plugin, OURS)
        self._discovered = False

    def call(self, hook: str, turn: TurnContext, /, **arguments: Any) -> list[Any]:
        """Call a lifecycle hook for the home and turn in `turn`; never raises."""
        if not self._discovered:
            self._discovered = True
            self.hooks.discover()
        token = current.set(turn)
        try:
            return self.hooks.call(hook, **arguments)
        finally:
            current.reset(token)

    def journal_user(self, turn: TurnContext, session: Session, message: UserMessage) -> None:
        """Keep the user's words before anything else may go wrong with the turn."""
        self.plugin.memory_of(turn.home).log_turn(
            Turn(
                user=message.text,
                at=message.at,
                turn_id=message.turn_id,
                session_id=session.id,
                owner=session.owner,
                completed=False,
            ),
            kind=session.kind,
            half="user",
        )

    def count(self, home: Path, name: str, detail: str = "", n: int = 1) -> None:
        """Count something that went wrong or late; `status` and `doctor` show it. Never raises."""
        with contextlib.suppress(Exception):  # counting must not cost the turn it counts
            self.plugin.memory_of(home).count(name, detail, n)

    def _report(self, name: str, detail: str) -> None:
        turn = current.get(None)
        if turn is not None:
            self.count(turn.home, name, detail)


_runtime: Runtime | None = None
_runtime_lock = threading.Lock()


def runtime() -> Runtime:
    """The one runtime of this process."""
    global _runtime
    if _runtime is None:
        with _runtime_lock:
            if _runtime is None:
                _runtime = Runtime()
    return _runtime
