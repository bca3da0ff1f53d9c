"""`/memory-layers VERB` in a session: short plain answers, for the owner of that conversation alone."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.cli.output import one_line, shown
from hermes_memory_plugin.cli.views import audit_lines, handle_of, owner_rows, source_of
from hermes_memory_plugin.errors import HermesMemoryError, NotFound

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory

LONGEST = 3_000
"""Characters of an answer; messengers cut or refuse longer ones."""

_RULE = re.compile(r"(偏好|规则|禁忌|preference|rule)\s*[:：]", re.IGNORECASE)
"""How somebody says that it is meant for every conversation."""

_HELP = """/memory-layers status: how much is remembered, and whether all is well
/memory-layers recall QUESTION: what is known about it
/memory-layers remember TEXT: keep it (begin with "偏好：" or "rule:" for one that always counts)
/memory-layers forget HANDLE: make that row unfindable
/memory-layers pause: store nothing more of you until /memory-layers resume ("off the record" or 别记 does it for one turn)
/memory-layers why: what the last answer was given, and why
/memory-layers sources [TURN]: where the numbers of the last answer came from
/memory-layers verify TEXT: whether a figure still stands ("茅台 PE 28 倍")
/memory-layers owners link [CODE]: be one person here and on another platform
The other verbs (trace, scenes, notes, persona, doctor …) are in a terminal: hermes-memory --help"""


def answer(args: str, *, home: Path, owner: Owner, session: str = "", memory: Memory | None = None) -> str:
    """The answer to `/memory-layers ARGS`; never raises, and reaches no other owner's rows.

    Takes the memory this process has open for `home` unless one is given.
    """
    word, _, rest = args.strip().partition(" ")
    word, rest = word.lower(), rest.strip()
    verb = _VERBS.get(word or "help")
    if verb is None:
        close = difflib.get_close_matches(word, _VERBS, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"There is no /memory-layers {one_line(word, 40)}.{hint} Try /memory-layers help."
    try:
        if memory is None:
            from hermes_memory_plugin.plugin import runtime

            memory = runtime().plugin.memory_of(home)
        return shown(verb(_Call(memory, owner, rest)), LONGEST)
    except HermesMemoryError as error:
        return shown(error, 600)
    except Exception as error:  # a chat gets a sentence, not a traceback
        return (
            f"That did not work ({type(error).__name__}: {one_line(error, 200)}). See `hermes-memory doctor`."
        )


class _Call:
    """One command with what it may touch."""

    def __init__(self, memory: Memory, owner: Owner, rest: str) -> None:
        # Whoever sits at the machine has the command line for that; a chat has one owner.
        if owner.key == Owner.ANY.key:
            raise NotFound("any", "A chat belongs to one owner.")
        self.memory = memory
        self.owner = owner
        self.rest = rest


def _help(call: _Call) -> str:
    return _HELP


def _status(call: _Call) -> str:
    status = call.memory.status()
    mine = call.memory.keys(call.owner) or frozenset()
    rows = sum(count for key, count in owner_rows(call.memory).items() if key in mine)
    problems = status["problems"]
    lines = [f"{rows} rows are yours or shared."]
    if call.memory.paused(call.owner):
        lines.append("PAUSED: nothing is stored until /memory-layers resume.")
    if not problems:
        lines.append("No problems.")
    elif call.owner.key == Owner().key:
        lines += [f"! {one_line(problem, 200)}" for problem in problems[:3]]
    else:  # they name files of a machine that is not his
        lines.append(
            f"{len(problems)} problems: the person at the machine sees them with `hermes-memory doctor`."
        )
    return "\n".join(lines)


def _recall(call: _Call) -> str:
    if not call.rest:
        return "What about? /memory-layers recall QUESTION"
    from hermes_memory_plugin.recall.answer import day_of

    found = call.memory.recall(call.rest, mode="explicit", owner=call.owner)
    lines = []
    for item in found.items:
        notes = [
            item.state if item.state != "live" else "",
            day_of(item),
            item.source,
        ]
        note = ", ".join(one_line(part, 60) for part in notes if part)
        lines.append(
            f"{handle_of(call.memory, item.id)} {one_line(item.text, 300)}" + (f" ({note})" if note else "")
        )
    return "\n".join(lines) or "Nothing is known about that here."


def _remember(call: _Call) -> str:
    if not call.rest:
        return "What? /memory-layers remember TEXT"
    rule = _RULE.match(call.rest)
    text = call.rest[rule.end() :].strip() if rule else call.rest
    if rule and text:
        row = call.memory.remember(text, title=one_line(text, 60), type="user", owner=call.owner)
    else:
        row = call.memory.remember(call.rest, owner=call.owner)
    return f"Remembered as {handle_of(call.memory, row)}. /memory-layers forget {handle_of(call.memory, row)} takes it back."


def _forget(call: _Call) -> str:
    if not call.rest:
        return "Which? /memory-layers forget HANDLE (recall shows handles)"
    try:
        gone = call.memory.forget(call.rest, owner=call.owner, why="/memory-layers forget")
    except NotFound:
        listed = _recall(call)
        return f"Nothing was forgotten: forget by handle or exact title.\n{listed}"
    return f"Forgotten: {', '.join(gone)}."


def _why(call: _Call) -> str:
    audits = call.memory.why(1, owner=call.owner)
    return (
        "\n".join(line for audit in audits for line, _ in audit_lines(audit))
        or "No recall is on record here."
    )


def _sources(call: _Call) -> str:
    try:
        found = call.memory.sources(call.rest, owner=call.owner)
    except NotFound:
        return "No answer with numbers is on record here."
    handles = {one.fact: handle_of(call.memory, one.fact) for one in found.links if one.fact}
    lines = [one_line(found.question, 120)]
    lines += [
        f"{one.number}: {source_of(one, handles)}" + (f" ({one_line(one.words, 100)})" if one.words else "")
        for one in found.links
    ]
    return "\n".join(lines) if found.links else "That answer states no number."


def _verify(call: _Call) -> str:
    if not call.rest:
        return "What? /memory-layers verify TEXT"
    return call.memory.verify(call.rest, owner=call.owner).said


def _pause(call: _Call) -> str:
    call.memory.pauses.pause(call.owner.key)
    return (
        "Paused: nothing is stored of you, in no conversation, until /memory-layers resume. "
        "What is known is still recalled, and Hermes' own session history goes on."
    )


def _resume(call: _Call) -> str:
    keys = call.memory.owners.linked(call.owner.key) | {call.owner.key}
    if call.memory.pauses.resume(keys):
        return "Resumed: from the next message on everything is stored again."
    if call.memory.paused(call.owner):
        return "The person at the machine has paused the memory for everybody: `hermes-memory resume --owner any`."
    return "Nothing was paused."


def _owners(call: _Call) -> str:
    words = call.rest.split()
    registry = call.memory.owners
    me = call.owner.key
    if words[:1] == ["link"] and len(words) <= 2:
        if len(words) == 2:
            return f"Linked: {', '.join(sorted(registry.accept(me, words[1])))} are one person now."
        code = registry.offer(me).code
        return (
            f"{code}\nWithin ten minutes, say on the other side: hermes-memory owners link {code}\n"
            "In a chat that is an ordinary message, at the machine a command. "
            "It shares your rows with that side: give the code to nobody."
        )
    if words == ["unlink"]:
        left = registry.unlink(me)
        return f"Unlinked from {', '.join(sorted(left))}." if left else "Nothing was linked."
    if words in ([], ["list"]):
        others = sorted(registry.linked(me) - {me})
        return f"You are {me}" + (
            f", linked with {', '.join(others)}." if others else ", linked with nobody."
        )
    return "hermes-memory owners list, hermes-memory owners link [CODE], hermes-memory owners unlink"


_VERBS: dict[str, Callable[[_Call], str]] = {
    "help": _help,
    "status": _status,
    "recall": _recall,
    "remember": _remember,
    "forget": _forget,
    "pause": _pause,
    "resume": _resume,
    "why": _why,
    "sources": _sources,
    "verify": _verify,
    "owners": _owners,
}
