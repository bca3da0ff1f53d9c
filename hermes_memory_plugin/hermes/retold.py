"""The state of a conversation from the host's messages, for a host that gives nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hermes_memory_plugin.hermes import transcript
from hermes_memory_plugin.hermes.arguments import status
from hermes_memory_plugin.hermes.compaction import find_in
from hermes_memory_plugin.layers.calls import STARTED, TODO, Call, Step, plan_of
from hermes_memory_plugin.layers.workspace import Request, WorkspaceMemory

_RESULT = 700


def workspace(messages: Iterable[object], folder: str = "") -> WorkspaceMemory:
    """What the messages tell. They name no times: all are as of now."""
    now = time.time_ns() // 1000
    calls: dict[str, Call] = {}
    requests: list[Request] = []
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role, said = message.get("role"), transcript.own_words(message.get("content"))
        if role == "user" and said.strip() and find_in([message]) is None:
            requests.append(Request(said, "", "running", now))
        elif role == "assistant":
            asked = [one for one in message.get("tool_calls") or () if isinstance(one, Mapping)]
            for one in asked:
                _begin(calls, one, now)
            if said.strip() and not asked and requests:
                requests[-1] = replace(requests[-1], answer=said, state="answered")
        elif role == "tool":
            _end(calls, str(message.get("tool_call_id") or ""), said)
    return WorkspaceMemory(
        folder=folder,
        requests=tuple(requests),
        calls=tuple(call for call in calls.values() if not call.unfinished),
        unfinished=tuple(call for call in calls.values() if call.unfinished),
        on_record=False,
    )


def _begin(calls: dict[str, Call], asked: Mapping[str, Any], now: int) -> None:
    named = asked.get("function")
    function: Mapping[str, Any] = named if isinstance(named, Mapping) else {}
    id_ = str(asked.get("id") or f"call-{len(calls)}")
    calls[id_] = Call(
        id_,
        id_,
        str(function.get("name") or ""),
        now,
        STARTED,
        arguments=str(function.get("arguments") or ""),
    )


def _end(calls: dict[str, Call], id_: str, result: str) -> None:
    call = calls.get(id_)
    if call is None:
        return
    plan = plan_of(call.arguments, result) if call.tool == TODO else None
    calls[id_] = replace(
        call,
        status=status("", "", result),
        result=result[:_RESULT],
        steps=tuple(Step(text, state) for text, state in plan) if plan is not None else None,
    )
