"""The memory-provider role, for a Hermes that finds providers by entry point (0.21) or through a shim folder.

The hooks of `entry` do everything this package does. The provider is there for those who want its name in
`memory.provider`: it hands over nothing of its own while the hooks are on, because one of the two recalls, never both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.hermes import host

NAME = "hermes-memory"

if TYPE_CHECKING:
    _Base = object
else:
    try:
        from agent.memory_provider import MemoryProvider as _Base
    except ImportError:  # read outside Hermes
        _Base = object


class Provider(_Base):
    """Hermes' provider contract; recalls only where the plugin role is off."""

    def __init__(self) -> None:
        self._session: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The value of `memory.provider` that selects it."""
        return NAME

    def is_available(self) -> bool:
        """It needs no key, no service and no network."""
        return True

    def initialize(self, session_id: str = "", **facts: Any) -> None:
        """A session begins; `facts` say whose it is."""
        self._session = {"session_id": session_id, **facts}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """None: the plugin role offers the tools."""
        return []

    def handle_tool_call(self, name: str, arguments: Mapping[str, Any], **call: Any) -> str:
        """Nobody can call what is not offered."""
        return '{"error": "this provider has no tools; use the plugin\'s"}'

    def system_prompt_block(self) -> str:
        """Nothing: the prompt stays as it is."""
        return ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What is worth knowing beside the message; "" while the hooks of the plugin role give it."""
        if plugin_role_on():
            return ""
        with suppress(Exception):  # a turn never fails for its memory
            from hermes_memory_plugin import Memory
            from hermes_memory_plugin.hermes.identity import Chat, owner_of

            known = self._session
            kind = str(known.get("chat_type") or "")
            chat = Chat(
                str(known.get("platform") or "").lower(),
                str(known.get("user_id") or ""),
                str(known.get("chat_id") or ""),
                kind,
            )
            session = session_id or str(known.get("session_id") or "")
            owner = owner_of(chat, session, serves_chats=host.serves_chats())
            with Memory.open(host.home()) as memory:
                return str(memory.recall(query, owner=owner).block)
        return ""

    def sync_turn(self, user: str, assistant: str, **call: Any) -> None:
        """Nothing: turns are kept by the hooks, which see them first."""

    def on_pre_compress(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """A hint for the host's summary; "" while the plugin role puts the state into the requests themselves."""
        if plugin_role_on():
            return ""
        with suppress(Exception):  # a compaction never fails for its memory
            from hermes_memory_plugin.hermes import retold

            return retold.workspace(messages, host.project()).to_summary()
        return ""

    def shutdown(self) -> None:
        """Nothing is held open."""


def plugin_role_on() -> bool:
    """Whether the hooks are enabled for this home."""
    plugins = host.section("plugins")
    enabled, disabled = plugins.get("enabled") or (), plugins.get("disabled") or ()
    return NAME in enabled and NAME not in disabled


def register(ctx: Any) -> None:
    """For Hermes versions that call a provider module with a context."""
    if hasattr(ctx, "register_memory_provider"):
        ctx.register_memory_provider(Provider())


provider = Provider
