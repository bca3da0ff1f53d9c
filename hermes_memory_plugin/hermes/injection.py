"""What goes beside a user's message: recall on a worker, within its deadline, in one piece the host takes."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import Injection, UserMessage
from hermes_memory_plugin.hermes import host, lent, transcript
from hermes_memory_plugin.hermes.lineage import Conversation, OpenTurn
from hermes_memory_plugin.hermes.pool import Busy, Late, Pool
from hermes_memory_plugin.hermes.window import Windows
from hermes_memory_plugin.plugin import Runtime, TurnContext
from hermes_memory_plugin.recall import block

LIMIT = 9_500
"""Characters one callback may return; Hermes moves more than 10,000 to a file."""
COLD = 2.0
"""Seconds the first turn of a process may wait for the memory to be loaded; its recall has its own deadline."""

_log = logging.getLogger(__name__)


class Injector:
    """Recall for running turns, of every home this process serves."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._windows = Windows()
        self._pool: Pool[list[Any]] = Pool(2)
        self._warm: dict[Path, threading.Event] = {}
        self._lock = threading.Lock()
        # A thread that the end of the interpreter kills inside a compiled library takes the process down with it.
        atexit.register(self._pool.settle, COLD)

    def warm(self, home: Path) -> threading.Event:
        """Load what the first recall of a home needs, once, in the background; the event tells when it is there."""
        with self._lock:
            done = self._warm.get(home)
            if done is not None:
                return done
            done = self._warm[home] = threading.Event()

        def load() -> None:
            try:
                self._runtime.plugin.memory_of(home).reader.warm()
            except Exception as error:  # the first recall will meet the same error and report it
                _log.debug("hermes-memory: warming failed: %s", error)
            finally:
                done.set()

        threading.Thread(target=load, name="hermes-memory-warm", daemon=True).start()
        atexit.register(done.wait, COLD)
        return done

    def context(self, conversation: Conversation, turn: OpenTurn, history: Iterable[object]) -> TurnContext:
        """What the host knows of the turn."""
        history = tuple(history)
        alive = transcript.alive(history)
        visible = conversation.rows_of([turn.user, *transcript.users_words(history)])
        return TurnContext(
            home=conversation.home,
            window=self._windows.of(conversation.home, conversation.session.model),
            project=host.project(),
            present=alive.handles | visible,
            already=alive.tokens,
            first=not (conversation.injected or alive.tokens),
            characters=LIMIT,
            shown_by_host=conversation.shown_by_host,
            hidden=conversation.hidden,
            ask=lent.asker(),
        )

    def text(
        self,
        conversation: Conversation,
        context: TurnContext,
        message: UserMessage,
        history: list[dict[str, Any]],
    ) -> str:
        """The text for the message; "" when there is nothing, or when it would come late."""
        from hermes_memory_plugin import settings

        recall = settings.load(conversation.home)[0].recall
        session = conversation.session

        def work() -> list[Any]:
            if not conversation.announced:
                conversation.announced = True
                self._runtime.call("on_session_start", context, session=session)
            if not recall.enabled:
                return []
            return self._runtime.call(
                "before_user_message", context, session=session, message=message, transcript=history
            )

        self.warm(conversation.home).wait(COLD)
        try:
            found = joined(self._pool.run(work, recall.deadline_ms / 1000))
        except Late:
            self._runtime.count(conversation.home, "recall_late", f"over {recall.deadline_ms} ms")
            return ""
        except Busy:
            self._runtime.count(conversation.home, "recall_busy", "no free worker")
            return ""
        conversation.injected = conversation.injected or bool(found)
        return found


def joined(found: Iterable[object]) -> str:
    """The injections that fit together into one callback's result, ours first; each inside a fence of ours."""
    texts: list[str] = []
    room = LIMIT
    for injection in found:
        if not isinstance(injection, Injection) or not injection.text.strip():
            continue
        one = injection.text.strip()
        if [inner.text for inner in block.find(one)] != [one]:
            one = transcript.fenced(one)
        if len(one) <= room:
            texts.append(one)
            room -= len(one) + 2
    return "\n\n".join(texts)
