"""From a hook's arguments to the conversation it belongs to, its owner included."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_hookspecs.types import SessionKind
from hermes_memory_plugin.hermes import host, identity, statedb
from hermes_memory_plugin.hermes.arguments import surrogate, text
from hermes_memory_plugin.hermes.lineage import MOST, Conversation, Lineages

_KINDS: dict[str, SessionKind] = {"cron": "cron", "subagent": "subagent"}


class Sessions:
    """Every conversation this process has met."""

    def __init__(self, lineages: Lineages | None = None) -> None:
        self.lineages = lineages or Lineages()
        self._parent_owner: OrderedDict[tuple[Path, str], Owner] = OrderedDict()

    def met(self, home: Path, arguments: dict[str, Any]) -> Conversation | None:
        """The conversation of a hook call, if an earlier one began it."""
        session_id, task_id = text(arguments, "session_id"), text(arguments, "task_id")
        found = self.lineages.find(home, session_id, task_id=task_id) if session_id or task_id else None
        if found is None and not session_id:
            # Only now: the environment is the process's, and a subagent or another chat may have set it since.
            session_id = host.session_env("HERMES_SESSION_ID")
            found = self.lineages.find(home, session_id)
        if found is None and session_id and text(arguments, "turn_id"):
            self.lineages.root(home, session_id, text(arguments, "turn_id"))
            found = self.lineages.find(home, session_id)
        return found

    def meet(self, home: Path, arguments: dict[str, Any]) -> Conversation:
        """The conversation of a hook call that names its sender, and whether it has just begun.

        The owner is judged anew each time: a session may be resumed by somebody else, in another chat.
        """
        session_id = text(arguments, "session_id") or host.session_env("HERMES_SESSION_ID") or surrogate()
        root = self.lineages.root(home, session_id, text(arguments, "turn_id"))
        platform = text(arguments, "platform").lower()
        kind = _KINDS.get(platform, "user")
        owner = self._owner(home, session_id, root, platform, text(arguments, "sender_id"))
        known = self.lineages.find(home, session_id)
        if known is None or known.session.owner.key != owner.key or known.session.kind != kind:
            self.lineages.end(home, session_id)
            session = Session(
                root, owner, host.profile(home), platform or "cli", text(arguments, "model"), kind
            )
            known = self.lineages.add(Conversation(session, home))
        elif text(arguments, "model") not in ("", known.session.model):
            known.session = replace(known.session, model=text(arguments, "model"))
        if (
            known.shown_for != session_id
        ):  # begun, or renamed by a compaction, which also renews the system prompt
            stored = statedb.row(home, session_id)
            known.shown_by_host = (
                host.native_entries(home, stored.prompt if stored else None) if kind == "user" else ()
            )
            known.hidden = host.hidden_files(kind)
            known.shown_for = session_id
        self.lineages.note_task(text(arguments, "task_id"), known)
        return known

    def note_subagent(self, home: Path, parent_id: str, child_id: str) -> None:
        """A conversation sends a subagent off: it reads what its parent may read."""
        parent = self.lineages.find(home, parent_id)
        if parent is not None and child_id:
            self._parent_owner[home, child_id] = parent.session.owner
            while len(self._parent_owner) > MOST:
                self._parent_owner.popitem(last=False)

    def _owner(self, home: Path, session_id: str, root: str, platform: str, sender_id: str) -> Owner:
        if platform == "subagent":
            return self._owner_of_parent(home, session_id, root)
        if platform == "cron":
            job = host.cron_job(session_id)
            return identity.cron_owner(job, root, lambda where, chat: statedb.chat_type(home, where, chat))
        chat = identity.chat_of(platform, sender_id, host.session_env)
        return identity.owner_of(chat, root, serves_chats=host.serves_chats())

    def _owner_of_parent(self, home: Path, session_id: str, root: str) -> Owner:
        for child in (session_id, root):
            known = self._parent_owner.get((home, child))
            if known is not None:
                return known
        stored = statedb.row(home, root)
        parent = self.lineages.find(home, stored.parent) if stored and stored.delegated else None
        return parent.session.owner if parent is not None else identity.nobody("subagent", root)
