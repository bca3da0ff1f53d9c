"""After a compaction: find the host's summary in what goes to the model, and put the agent's state into it.

The state is derived once for each summary and kept in a file of ours; from then on every request of every process
carries the same bytes, so that a provider's prompt cache stays good. The request itself is never changed.
"""

from __future__ import annotations

import atexit
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Compaction
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.extensions import OURS
from hermes_memory_plugin.hermes import host
from hermes_memory_plugin.hermes.pool import Busy, Late, Pool
from hermes_memory_plugin.plugin import TurnContext
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.store.frozen import Frozen
from hermes_memory_plugin.upkeep import handover

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_memory_plugin.hermes.lineage import Conversation
    from hermes_memory_plugin.plugin import Runtime

DEADLINE = 1.5
"""Seconds a request may wait for a state that nobody has derived yet."""

# How Hermes marks its summaries, 0.13 to 0.19; the older prefix comes with sessions that are older still.
_BEGINNINGS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_END = "--- END OF CONTEXT SUMMARY"
_MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
_OTHERS = 2_000  # characters another package's plugin may add


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the host, and where in the request it stands."""

    body: str
    """The summary proper: from its beginning to its end mark."""
    shape: str
    """The key of the request that holds the messages."""
    message: int
    part: int | None
    """Which part of a content that is a list."""
    end: int
    """Where in the text the body ends."""

    @property
    def digest(self) -> str:
        """What stands for this summary in every process."""
        return hashlib.sha1(self.body.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def find(request: object) -> Summary | None:
    """The last summary of a request, in whichever of its shapes; None when there is none."""
    if not isinstance(request, Mapping):
        return None
    for shape in ("messages", "input"):
        messages = request.get(shape)
        if isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
            return find_in(messages, shape)
    return None


def find_in(messages: Sequence[Any], shape: str = "messages") -> Summary | None:
    """The last summary among messages. Only the user's and the assistant's are looked at: a system prompt may speak
    of summaries, and a tool may show one."""
    for ended in (
        True,
        False,
    ):  # one without its end mark only where no whole one is: a person may quote a beginning
        for number in range(len(messages) - 1, -1, -1):
            message = messages[number]
            if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
                continue
            for part, text in reversed(list(_texts(message.get("content")))):
                span = _body(text, ended=ended)
                if span is not None:
                    return Summary(text[slice(*span)], shape, number, part, span[1])
    return None


def with_state(request: Mapping[str, Any], found: Summary, state: str) -> dict[str, Any]:
    """The request with the state at the end of the summary, before the host's end mark. Shares what it leaves alone."""
    messages = list(request[found.shape])
    message = dict(messages[found.message])
    content = message["content"]
    if found.part is None:
        message["content"] = _inserted(content, found.end, state)
    else:
        parts = list(content)
        part = parts[found.part]
        if isinstance(part, str):
            parts[found.part] = _inserted(part, found.end, state)
        else:
            parts[found.part] = {**part, "text": _inserted(part["text"], found.end, state)}
        message["content"] = parts
    messages[found.message] = message
    return {**request, found.shape: messages}


class States:
    """The state that belongs to each summary."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pool: Pool[str] = Pool(2, name="hermes-memory-compaction")
        self._frozen: dict[Path, Frozen] = {}
        atexit.register(self._pool.settle, DEADLINE)

    def request(
        self, conversation: Conversation, request: Mapping[str, Any], found: Summary
    ) -> dict[str, Any] | None:
        """What the middleware returns for a request with that summary; None when there is nothing to add."""
        if host.in_review():  # the fork sends the conversation's own bytes, and derives nothing
            state = self._known(conversation, found) or ""
        else:
            context = TurnContext(conversation.home, project=host.project())
            state = self._of(conversation, context, found, len(request[found.shape]))
        return {"request": with_state(request, found, state), "source": OURS} if state else None

    def beside(self, conversation: Conversation, context: TurnContext, history: Iterable[Any]) -> str:
        """The state, fenced, for a host without middleware: beside the message instead of in the summary."""
        messages = list(history)
        found = find_in(messages)
        state = self._of(conversation, context, found, len(messages)) if found else ""
        return f"<{block.TAG}>\n{state}\n</{block.TAG}>" if state else ""

    def _known(self, conversation: Conversation, found: Summary) -> str | None:
        """The state as it was frozen; None when nobody has derived it yet."""
        return self._store(conversation).get(_key(conversation, found))

    def _of(self, conversation: Conversation, context: TurnContext, found: Summary, messages: int) -> str:
        """The state that belongs to the summary; "" when there is none, or not within the deadline."""
        state = self._known(conversation, found)
        if state is not None:
            return state
        compaction = Compaction(found.body, messages_after=messages, session_id=conversation.session.id)
        try:
            return self._pool.run(lambda: self._derived(conversation, context, found, compaction), DEADLINE)
        except (Late, Busy):
            self._runtime.count(conversation.home, "compaction_late", f"over {DEADLINE * 1000:.0f} ms")
            return ""

    def _derived(
        self, conversation: Conversation, context: TurnContext, found: Summary, compaction: Compaction
    ) -> str:
        told = self._runtime.call("on_compact", context, session=conversation.session, compaction=compaction)
        state = _joined(told)
        if not state:  # nothing on record: there may be at the next request
            return ""
        try:
            frozen = self._store(conversation).put(_key(conversation, found), state)
        except OSError as error:
            self._runtime.count(conversation.home, "compaction_failed", f"not kept: {error}"[:300])
            return state
        if frozen == state:
            self._keep(conversation, compaction, found.digest, state)
        return frozen

    def _keep(self, conversation: Conversation, compaction: Compaction, digest: str, state: str) -> None:
        """On record too: the host's summary and what we added, for whoever asks later."""
        try:
            self._runtime.plugin.memory_of(conversation.home).journal.append(
                "compaction",
                {
                    "session": conversation.session.id,
                    "key": digest,
                    "summary": compaction.summary,
                    "text": state,
                    "messages": compaction.messages_after,
                },
                owner=conversation.session.owner.key,
            )
        except HermesMemoryError as error:
            self._runtime.count(conversation.home, "journal_failed", str(error)[:300])

    def _store(self, conversation: Conversation) -> Frozen:
        from hermes_memory_plugin.home import memory_folder

        store = self._frozen.get(conversation.home)
        if store is None:
            store = self._frozen[conversation.home] = Frozen(
                memory_folder(conversation.home) / handover.FOLDER
            )
        return store


def _key(conversation: Conversation, found: Summary) -> str:
    session = conversation.session
    return handover.key_of(found.digest, session.id, session.owner.key)


def _joined(told: Iterable[object]) -> str:
    """Ours first, as it is; what other plugins add as harmless lines of bounded length."""
    texts = [text for text in told if isinstance(text, str) and text.strip()]
    ours = [text for text in texts if text.startswith("Current agent state:")][:1]
    others = (text for text in texts if text not in ours)
    added = ("\n".join(map(block.harmless, text[:_OTHERS].splitlines())) for text in others)
    return "\n\n".join([*ours, *added])


def _texts(content: object) -> Iterable[tuple[int | None, str]]:
    if isinstance(content, str):
        yield None, content
    elif isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        for number, part in enumerate(content):
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str):
                yield number, text


def _body(text: str, *, ended: bool) -> tuple[int, int] | None:
    """Where in a text the summary proper stands: at its beginning, or behind what it was merged with."""
    if not any(beginning in text for beginning in _BEGINNINGS):
        return None
    for after in (text.rfind(_MERGED), 0):
        if after < 0:
            continue
        start = after + (len(_MERGED) if text.startswith(_MERGED, after) else 0)
        while start < len(text) and text[start].isspace():
            start += 1
        if text.startswith(_BEGINNINGS, start):
            end = text.find(_END, start)
            if end < 0 and ended:
                continue
            end = len(text) if end < 0 else end
            return start, start + len(text[start:end].rstrip())
    return None


def _inserted(text: str, at: int, state: str) -> str:
    return f"{text[:at]}\n\n{state}{text[at:]}"
