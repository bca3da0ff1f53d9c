"""Hermes' hooks, told as the lifecycle of a conversation.

Hermes calls these on the threads of its turns and tools, without a time limit and with whatever arguments its version
has. Each returns in milliseconds (recall within its deadline), raises nothing, prints nothing and changes nothing
it was given.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from hermes_memory_hookspecs import ToolTrace, Turn, UserMessage
from hermes_memory_plugin import plugin
from hermes_memory_plugin.hermes import compaction, host, lent, pairing, transcript
from hermes_memory_plugin.hermes.arguments import as_dict, as_text, number, status, surrogate, text
from hermes_memory_plugin.hermes.injection import LIMIT, Injector
from hermes_memory_plugin.hermes.lineage import Conversation, OpenTurn
from hermes_memory_plugin.hermes.pool import Busy, Late, Pool
from hermes_memory_plugin.hermes.record import Recording
from hermes_memory_plugin.hermes.sessions import Sessions
from hermes_memory_plugin.layers import log
from hermes_memory_plugin.tools import OUR_TOOLS, Caller

MEMORY_TOOL = "memory"
"""The host's tool that writes MEMORY.md and USER.md."""

FOOTER = 1.0
"""Seconds an answer waits for its line; then it goes out without."""

_log = logging.getLogger(__name__)
_F = TypeVar("_F", bound=Callable[..., Any])


def _isolated(hook: _F) -> _F:
    """Nothing leaves a hook but its result; the review fork, which borrows the user's session, gets none."""

    @functools.wraps(hook)
    def guarded(self: Bridge, **arguments: Any) -> Any:
        try:
            if host.in_review():
                return None
            return hook(self, **arguments)
        except Exception as error:
            _log.warning(
                "hermes-memory: %s failed: %s: %s", hook.__name__, type(error).__name__, error, exc_info=True
            )
            self._count(host.home(), "hook_failed", f"{hook.__name__}: {type(error).__name__}: {error}"[:300])
            return None

    return cast("_F", guarded)


class Bridge:
    """One process's answer to Hermes' hooks, for every home it serves."""

    def __init__(self, runtime: plugin.Runtime | None = None, sessions: Sessions | None = None) -> None:
        self.runtime = runtime or plugin.runtime()
        self.sessions = sessions or Sessions()
        self.injector = Injector(self.runtime)
        self.states = compaction.States(self.runtime)
        self.record = Recording(self.runtime)
        self._footers: Pool[str] = Pool(1, name="hermes-memory-footer")

    @_isolated
    def on_session_start(self, **arguments: Any) -> None:
        """A system prompt was built: time to get ready. The session itself begins with the first message."""
        self.injector.warm(host.home())

    @_isolated
    def pre_llm_call(self, **arguments: Any) -> dict[str, str] | None:
        """A user's message is about to be answered: keep it, then see what is worth knowing beside it."""
        home = host.home()
        self.injector.warm(home)
        conversation = self.sessions.meet(home, arguments)
        session = conversation.session
        history = arguments.get("conversation_history") or ()
        turn = OpenTurn(
            text(arguments, "turn_id") or surrogate(), transcript.own_words(arguments.get("user_message"))
        )
        given_up = conversation.open(turn, log.turn_row_id(session.id, turn.id, ""))
        self._interrupted(conversation, given_up)
        message = UserMessage(turn.user, turn.at, turn.id)
        if not message.text.strip():
            return None
        said = self.record.begin(conversation, turn.id, message.text)
        recorded = turn.recorded = self.record.keeps(conversation, turn.id)
        try:
            if recorded:
                self.runtime.journal_user(plugin.TurnContext(home), session, message)
        except Exception as error:  # a full disk costs the memory this turn, never the user his answer
            self._count(home, "journal_failed", f"{type(error).__name__}: {error}"[:300])
        context = replace(self.injector.context(conversation, turn, history), recorded=recorded)
        answer = pairing.answer(home, session.owner, message.text)
        if answer:
            return {"context": transcript.fenced(answer)}
        recalled = self.injector.text(conversation, context, message, transcript.copied(history))
        state = "" if host.has_middleware() else self.states.beside(conversation, context, history)
        said = transcript.fenced(said) if said else ""
        beside = "\n\n".join(part for part in (said, state, recalled) if part)
        beside = beside if len(beside) <= LIMIT else said or state
        return {"context": beside} if beside else None

    @_isolated
    def pre_tool_call(self, **arguments: Any) -> None:
        """A tool call begins; if nothing is ever heard of its end, it is on record that it began."""
        call_id = text(arguments, "tool_call_id")
        if not call_id:  # a nested call: its end could not be told from another's
            return
        home = host.home()
        conversation = self.sessions.met(home, arguments) or self.sessions.meet(home, arguments)
        if not self.record.keeps(conversation, text(arguments, "turn_id")):
            return
        turn = conversation.latest()
        self.runtime.plugin.memory_of(home).start(
            ToolTrace(
                tool_call_id=call_id,
                tool_name=text(arguments, "tool_name"),
                args=as_dict(arguments.get("args")),
                status="started",
                session_id=conversation.session.id,
                turn_id=text(arguments, "turn_id") or (turn.id if turn else ""),
                owner=conversation.session.owner,
            ),
            kind=conversation.session.kind,
        )

    def post_tool_call(self, **arguments: Any) -> None:
        """A tool call ended; it is on record when this returns."""
        if text(arguments, "tool_name") == MEMORY_TOOL:
            self._remembered(arguments)
        self._ended(**arguments)

    def _remembered(self, arguments: dict[str, Any]) -> None:
        """The host's own memory tool ended, in the review fork too: what it had no room for is kept, the rest followed."""
        try:
            from hermes_memory_plugin.upkeep import mirror

            home = host.home()
            conversation = self.sessions.met(home, arguments)
            if conversation is None or not self.record.keeps(conversation, text(arguments, "turn_id")):
                return
            memory, call = self.runtime.plugin.memory_of(home), text(arguments, "tool_call_id")
            mirror.overflow(
                memory,
                as_dict(arguments.get("args")),
                as_text(arguments.get("result")),
                conversation.session,
                call,
                review=host.in_review(),
            )
            memory.mirror.soon(call=call)
        except Exception as error:
            self._count(host.home(), "hook_failed", f"memory tool: {type(error).__name__}: {error}"[:300])

    @_isolated
    def _ended(self, **arguments: Any) -> None:
        home = host.home()
        conversation = self.sessions.met(home, arguments) or self.sessions.meet(home, arguments)
        if not self.record.keeps(conversation, text(arguments, "turn_id")):
            return
        name = text(arguments, "tool_name")
        result = as_text(arguments.get("result"))
        if name in OUR_TOOLS:
            result = OUR_TOOLS[name].for_the_record(result)
        error = text(arguments, "error_message")
        turn = conversation.latest()
        trace = ToolTrace(
            tool_call_id=text(arguments, "tool_call_id") or surrogate(),
            tool_name=name,
            args=as_dict(arguments.get("args")),
            result=result,
            status=status(text(arguments, "status"), error, result),
            error=error,
            duration_ms=number(arguments.get("duration_ms")),
            session_id=conversation.session.id,
            turn_id=text(arguments, "turn_id") or (turn.id if turn else ""),
            owner=conversation.session.owner,
        )
        self.runtime.call(
            "after_tool_call",
            plugin.TurnContext(conversation.home),
            session=conversation.session,
            trace=trace,
        )

    @_isolated
    def transform_tool_result(self, **arguments: Any) -> str | None:
        """A result is about to go to the model: where the user wants that, a long one stays outside."""
        from hermes_memory_plugin import settings

        home, result, name = host.home(), arguments.get("result"), text(arguments, "tool_name")
        offload = settings.load(home)[0].offload
        if not offload.enabled or not isinstance(result, str) or len(result) <= offload.min_chars:
            return None
        if name in OUR_TOOLS:
            return None
        from hermes_memory_plugin.upkeep import offload as outside

        conversation = self.sessions.met(home, arguments) or self.sessions.meet(home, arguments)
        if not self.record.keeps(conversation, text(arguments, "turn_id")):
            return None
        return outside.keep(
            self.runtime.plugin.memory_of(home),
            result,
            owner=conversation.session.owner,
            tool=name,
            call=text(arguments, "tool_call_id"),
            session=conversation.session.id,
        )

    def llm_request(self, **arguments: Any) -> dict[str, Any] | None:
        """A request is about to go out. After a compaction the summary in it gets the agent's state."""
        try:
            found = compaction.find(arguments.get("request"))
            if found is None:
                return None
            home = host.home()
            conversation = self.sessions.met(home, arguments) or self.sessions.meet(home, arguments)
            return self.states.request(conversation, arguments["request"], found)
        except Exception as error:
            _log.warning("hermes-memory: llm_request failed: %s: %s", type(error).__name__, error)
            self._count(host.home(), "compaction_failed", f"{type(error).__name__}: {error}"[:300])
            return None

    @_isolated
    def transform_llm_output(self, **arguments: Any) -> str | None:
        """An answer is about to be shown: where the user wants that, with a line on where its numbers came from."""
        from hermes_memory_plugin import settings
        from hermes_memory_plugin.layers import footers

        home, answer = host.home(), arguments.get("response_text")
        if not isinstance(answer, str) or not settings.load(home)[0].answers.footer:
            return None
        conversation = self.sessions.met(home, arguments)
        latest = conversation.latest() if conversation is not None else None
        if conversation is None or latest is None or not self.record.keeps(conversation, latest.id):
            return None
        plain = footers.without(answer)
        session = conversation.session
        turn = Turn(latest.user, plain, latest.at, latest.id, session.id, session.owner)
        provenance = self.runtime.plugin.memory_of(home).provenance
        try:
            line = self._footers.run(lambda: provenance.footer(turn), FOOTER)
        except (Late, Busy):
            self._count(home, "footer_late", f"over {FOOTER} s")
            return None
        return f"{plain.rstrip()}\n\n{line}" if line else None

    @_isolated
    def post_llm_call(self, **arguments: Any) -> None:
        """The answer is out."""
        home = host.home()
        conversation = self.sessions.met(home, arguments) or self.sessions.meet(home, arguments)
        latest = conversation.latest()
        turn_id = text(arguments, "turn_id") or (latest.id if latest else surrogate())
        ended = conversation.close(turn_id) or [
            OpenTurn(
                turn_id,
                transcript.own_words(arguments.get("user_message")),
                recorded=self.record.keeps(conversation, turn_id),
            )
        ]
        answer = transcript.own_words(arguments.get("assistant_response"))
        self._end_turn(conversation, ended[0], answer, completed=True)

    @_isolated
    def on_session_end(self, **arguments: Any) -> None:
        """A turn is over, in whatever way: one without an answer by now was interrupted."""
        home = host.home()
        conversation = self.sessions.met(home, arguments)
        if conversation is not None:
            completed = bool(arguments.get("completed")) and not arguments.get("interrupted")
            for turn in conversation.close(text(arguments, "turn_id")):
                self._end_turn(conversation, turn, "", completed=completed)
        for silent in self.sessions.lineages.idle():
            self._end(silent)

    @_isolated
    def on_session_finalize(self, **arguments: Any) -> None:
        """A conversation is closed: /new, shutdown, or it expired."""
        session_id = text(arguments, "session_id")
        conversation = self.sessions.lineages.end(host.home(), session_id) if session_id else None
        if conversation is not None:
            self._end(conversation)

    @_isolated
    def on_session_reset(self, **arguments: Any) -> None:
        """Another conversation takes the place of the one named as old, where the host names it."""
        old = text(arguments, "old_session_id")
        conversation = self.sessions.lineages.end(host.home(), old) if old else None
        if conversation is not None:
            self._end(conversation)

    @_isolated
    def subagent_start(self, **arguments: Any) -> None:
        """A conversation sends a subagent off."""
        home = host.home()
        parent, child = text(arguments, "parent_session_id"), text(arguments, "child_session_id")
        self.sessions.note_subagent(home, parent, child)
        conversation = self.sessions.lineages.find(home, parent)
        if conversation is not None:
            self.record.sent_off(conversation, child)

    def tool(self, name: str, arguments: object, call: dict[str, Any]) -> str:
        """One call of a tool of ours; the answer is JSON, whatever happens."""
        try:
            home = host.home()
            caller = None
            if not host.in_review():  # the fork borrows the session, but the user did not ask it for anything
                conversation = self.sessions.met(home, call) or self.sessions.meet(home, call)
                caller = Caller(
                    session=conversation.session,
                    memory=lambda: self.runtime.plugin.memory_of(home),
                    turn=conversation.latest(),
                    project=host.project(),
                    recorded=self.record.keeps(conversation, text(call, "turn_id")),
                )
        except Exception as error:  # then nobody knows whose memory it would be
            _log.warning("hermes-memory: tool %s: %s: %s", name, type(error).__name__, error)
            caller = None
        return OUR_TOOLS[name].call(caller, arguments)

    def _end_turn(self, conversation: Conversation, turn: OpenTurn, answer: str, *, completed: bool) -> None:
        session = conversation.session
        if not turn.recorded or self.record.silent(conversation):
            return
        self.runtime.call(
            "on_turn_end",
            plugin.TurnContext(conversation.home),
            session=session,
            turn=Turn(
                turn.user,
                answer,
                turn.at,
                turn.id,
                session.id,
                session.owner,
                host.session_env("HERMES_SESSION_USER_NAME"),
                completed,
            ),
        )

    def _interrupted(self, conversation: Conversation, turns: list[OpenTurn]) -> None:
        for turn in turns:
            self._end_turn(conversation, turn, "", completed=False)

    def _end(self, conversation: Conversation) -> None:
        self._interrupted(conversation, conversation.close())
        context = plugin.TurnContext(conversation.home, ask=lent.asker())
        self.runtime.call("on_session_end", context, session=conversation.session)

    def _count(self, home: Path, name: str, detail: str) -> None:
        self.runtime.count(home, name, detail)


_bridge: Bridge | None = None
_bridge_lock = threading.Lock()


def bridge() -> Bridge:
    """The one bridge of this process."""
    global _bridge
    if _bridge is None:
        with _bridge_lock:
            if _bridge is None:
                _bridge = Bridge()
    return _bridge
