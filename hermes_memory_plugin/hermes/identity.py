"""Whose conversation it is. When in doubt it is nobody else's: an owner of its own session.

A row is shown to its owner and to nobody else, so a wrong guess here would show one person's memory to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hermes_memory_hookspecs import Owner

LOCAL = frozenset({"", "cli", "tui", "acp", "desktop", "local"})
"""Platforms of the person at the machine."""
ANONYMOUS = frozenset({"api_server", "webhook", "msgraph_webhook"})
"""Platforms whose callers are not told apart by a user id we may trust."""

_PRIVATE = frozenset({"dm", "private"})


@dataclass(frozen=True, slots=True)
class Chat:
    """Where a message came from, as far as the host tells."""

    platform: str = ""
    user_id: str = ""
    chat_id: str = ""
    chat_type: str = ""
    """"" when the host did not say."""


def nobody(platform: str, lineage: str) -> Owner:
    """The owner of one conversation whose sender is not known."""
    return Owner(platform=platform or "unknown", user_id=f"~session-{lineage}")


def owner_of(chat: Chat, lineage: str, *, serves_chats: bool) -> Owner:
    """The owner of a conversation.

    serves_chats    whether the process is a gateway: there a call that names no chat proves nothing
    """
    platform = chat.platform
    if platform in LOCAL:
        return nobody(platform, lineage) if serves_chats and platform == "" else Owner()
    if platform in ANONYMOUS or not (chat.user_id or chat.chat_id):
        return nobody(platform, lineage)
    if chat.chat_type in _PRIVATE:
        return Owner(platform=platform, user_id=chat.user_id or chat.chat_id)
    if chat.chat_id and (chat.chat_type or chat.chat_id != chat.user_id):
        # A group, or a chat of a kind we were not told: what is known there belongs to the chat.
        return Owner(platform, chat.user_id, chat.chat_id, chat.chat_type or "group")
    if chat.chat_type or (serves_chats and not chat.chat_id):
        return nobody(platform, lineage)
    return Owner(platform=platform, user_id=chat.user_id)


def chat_of(platform: str, sender_id: str, env: Callable[[str], str]) -> Chat:
    """The chat of a hook call: its own arguments first, then the session values of the call."""
    key = parse_key(env("HERMES_SESSION_KEY"))
    named = env("HERMES_SESSION_PLATFORM").strip().lower()
    platform = (platform or "").strip().lower() or named
    if named != platform:  # values of another conversation that this call merely inherited
        return Chat(platform, sender_id)
    chat_id = env("HERMES_SESSION_CHAT_ID")
    kind = key.chat_type if key.platform == platform else ""
    return Chat(platform, sender_id or env("HERMES_SESSION_USER_ID"), chat_id, kind)


def parse_key(key: str) -> Chat:
    """Read `agent:<profile>:<platform>:<chat type>:<chat>…`; an empty Chat for any other text."""
    parts = key.split(":")
    if len(parts) < 4 or parts[0] != "agent":
        return Chat()
    return Chat(platform=parts[2], chat_type=parts[3], chat_id=parts[4] if len(parts) > 4 else "")


def cron_owner(job: Mapping[str, Any] | None, lineage: str, chat_type: Callable[[str, str], str]) -> Owner:
    """Whose rows a scheduled job may read: those of the chat it was made in.

    chat_type   (platform, chat id) -> the recorded kind of that chat, or ""
    """
    if job is None:
        return nobody("cron", lineage)
    origin = job.get("origin")
    if not origin:
        return Owner()  # made at the machine: no chat was there to record
    if not isinstance(origin, Mapping):
        return nobody("cron", lineage)
    platform = str(origin.get("platform") or "").strip().lower()
    chat_id, user_id = str(origin.get("chat_id") or ""), str(origin.get("user_id") or "")
    kind = str(origin.get("chat_type") or "") or chat_type(platform, chat_id)
    if not platform:
        return nobody("cron", lineage)
    return owner_of(Chat(platform, user_id, chat_id, kind), lineage, serves_chats=True)
