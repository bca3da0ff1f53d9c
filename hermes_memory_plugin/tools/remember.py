"""`remember`: save, recall and forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.tools.base import Caller, Refused, Tool, plain, text

TYPES = ("user", "feedback", "project", "reference")
CALLS = 3
"""Recall calls of one turn that are answered; who asks more often is told that there is nothing more."""
LIMIT = 5
LENGTH = 2_000
"""Characters of one recalled item."""

SCHEMA: dict[str, Any] = {
    "name": "remember",
    "description": (
        "The user's long-term memory, kept on this machine across sessions.\n"
        "Save, without being asked, as soon as the user states a preference, rule or taboo "
        '("no bank stocks", "conclusion first") or corrects you: one record each, in the user\'s words, type user or feedback; '
        "and when a piece of work ends with an insight or decision worth having next time: type project or reference, "
        "with its source and date in the content. The same title replaces the earlier record.\n"
        "Do not save: small talk, guesses, secrets, raw tool results (every tool call is on record already), or anything that "
        "a <recalled-memories> block shows.\n"
        "Recall only when the question is about earlier work or the user's wishes and the <recalled-memories> block beside the message "
        "does not already answer it; one call per question is enough.\n"
        "Forget when the user asks for it: the exact title or id."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["save", "recall", "forget"]},
            "title": {
                "type": "string",
                "description": "save: a short name of the record; forget: exact title or id",
            },
            "content": {"type": "string", "description": "save: what to remember, complete in itself"},
            "type": {
                "type": "string",
                "enum": list(TYPES),
                "description": "save: user = preference, rule or taboo; feedback = how to work; "
                "project = state of a piece of work; reference = knowledge to look up (default)",
            },
            "query": {
                "type": "string",
                "description": "recall: what to look for, with names, codes and periods; left out: the titles of all notes",
            },
        },
        "required": ["action"],
    },
}


def run(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """One call of the tool."""
    action = text(arguments, "action").lower()
    if action == "save":
        return _save(caller, arguments)
    if action == "recall":
        return _recall(caller, arguments)
    if action == "forget":
        return _forget(caller, arguments)
    raise Refused("action must be save, recall or forget")


def _save(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not caller.recorded:
        raise Refused(
            "the memory is paused, or the user wants this turn off the record: nothing of it is stored. Do not try again"
        )
    title, content = text(arguments, "title"), text(arguments, "content")
    if not title or not content:
        raise Refused("save needs a title and a content")
    kind = text(arguments, "type").lower() or "reference"
    if kind not in TYPES:
        raise Refused(f"type must be one of {', '.join(TYPES)}")
    identity = caller.memory().remember(
        content,
        title=title,
        type=kind,
        # A job or a subagent notes what it thinks; only in his own session does the user speak.
        origin="user" if caller.session.kind == "user" else "model",
        owner=caller.session.owner,
        project=caller.project if kind == "project" else "",
    )
    return {"status": "saved", "id": identity, "title": title, "type": kind}


def _recall(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    query = text(arguments, "query", "content", "title")
    if not query:
        if arguments.get("query") is not None:
            raise Refused("the query must be text")
        return {
            "status": "index",
            "notes": _index(caller),
            "message": "Every note by title; recall needs a query.",
        }
    if caller.turn is not None:
        caller.turn.recalls += 1
        if caller.turn.recalls > CALLS:
            return {
                "status": "nothing_more",
                "retry": False,
                "items": [],
                "message": "There is nothing more in the memory for this message. Answer with what you have.",
            }
    found = caller.memory().recall(
        query,
        mode="explicit",
        owner=caller.session.owner,
        session=caller.session,
        limit=LIMIT,
        recorded=caller.recorded,
    )
    items = [
        {
            "id": item.id,
            "layer": item.layer,
            "text": plain(item.text, LENGTH),
            **({"source": item.source} if item.source else {}),
            **({"as_of": item.as_of.date().isoformat()} if item.as_of else {}),
            **({"state": item.state} if item.state != "live" else {}),
        }
        for item in found.items
    ]
    if not items:
        return {
            "status": "nothing",
            "retry": False,
            "items": [],
            "message": "Nothing is stored about this; other words will not find more.",
        }
    return {"status": "found", "items": items}


def _forget(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    wanted = text(arguments, "title", "id", "query", "content")
    if not wanted:
        raise Refused("forget needs the exact title or the id of a record")
    try:
        gone = caller.memory().forgetting(wanted, owner=caller.session.owner, why="remember tool")
    except NotFound:
        found = (
            caller.memory()
            .recall(
                wanted,
                mode="explicit",
                owner=caller.session.owner,
                limit=LIMIT,
                recorded=caller.recorded,
            )
            .items
        )
        if not found:
            raise
        return {
            "status": "preview",
            "retry": False,
            "candidates": [
                {"id": item.id, "layer": item.layer, "text": plain(item.text, 160)} for item in found
            ],
            "message": "Nothing was forgotten: this is no title or id. Ask the user which of these, then forget it by its id.",
        }
    return {
        "status": "forgotten",
        "ids": list(gone.ids),
        # Hermes' own files and history are the machine's, not this chat's.
        "not_reached": list(gone.unreached) if caller.session.owner.key == Owner().key else [],
    }


def _index(caller: Caller) -> list[str]:
    """INDEX.md as it was when the session first asked."""
    return [plain(line, 200) for line in caller.memory().snapshots.index(caller.session)]


TOOL = Tool("remember", SCHEMA, run)
