"""What is kept of a conversation: nothing while its owner has paused the memory, nothing of a turn that is off the record."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from hermes_memory_plugin import off_record
from hermes_memory_plugin.hermes.lineage import MOST, OPEN_TURNS, Conversation

if TYPE_CHECKING:
    from hermes_memory_plugin.plugin import Runtime

_OFF = {
    "zh": "本轮不入记忆：你的话、工具调用和回答都不会留下（Hermes 自己的会话历史不受影响）。",
    "en": "This turn is off the record: neither the words nor the tool calls nor the answer are stored "
    "(Hermes' own session history still has them).",
}
_PAUSED = {
    "zh": "记忆已暂停，在恢复（/memory-layers resume 或 hermes-memory resume）之前什么都不会留下（Hermes 自己的会话历史不受影响）。",
    "en": "The memory is paused: nothing is stored until /memory-layers resume or `hermes-memory resume` "
    "(Hermes' own session history goes on).",
}


class Recording:
    """Judges each turn of every conversation of this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._silent: OrderedDict[str, None] = OrderedDict()
        """Sessions of subagents that were sent off in a turn of which nothing is kept."""

    def begin(self, conversation: Conversation, turn_id: str, message: str) -> str:
        """A turn begins; returns what is to be said about it, once: "" when it is kept, or when it was said."""
        paused = self._paused(conversation)
        off = off_record.asked(message)
        with conversation.lock:
            conversation.unrecorded = paused or off
            if paused or off:
                conversation.off[turn_id] = None
                while len(conversation.off) > 4 * OPEN_TURNS:
                    conversation.off.popitem(last=False)
            told, conversation.told_paused = conversation.told_paused, paused
        tongue = "zh" if any("\u4e00" <= letter <= "\u9fff" for letter in message) else "en"
        if paused:
            return "" if told else _PAUSED[tongue]
        return _OFF[tongue] if off else ""

    def keeps(self, conversation: Conversation, turn_id: str = "") -> bool:
        """Whether what happens now, in that turn or in the one that is running, is kept."""
        if self.silent(conversation):
            return False
        with conversation.lock:
            if turn_id in conversation.off:
                return False
            return turn_id in conversation.turns or not conversation.unrecorded

    def silent(self, conversation: Conversation) -> bool:
        """Whether nothing of the whole conversation is kept now."""
        return conversation.session.id in self._silent or self._paused(conversation)

    def sent_off(self, parent: Conversation, child_id: str) -> None:
        """A conversation sends a subagent off: of what is not kept, its work is no better known."""
        if child_id and not self.keeps(parent):
            self._silent[child_id] = None
            while len(self._silent) > MOST:
                self._silent.popitem(last=False)

    def _paused(self, conversation: Conversation) -> bool:
        memory = self._runtime.plugin.memory_of(conversation.home)
        return memory.paused(conversation.session.owner)
