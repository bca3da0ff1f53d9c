"""The tool calls of one conversation as its record tells them, and what of each is worth a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hermes_memory_plugin.recall import block

STARTED = "started"
"""The status of a call whose end is not on record."""
TODO = "todo"
"""The host's tool that keeps the plan."""

_TOGETHER = 6
_STEPS, _STEP_LENGTH = 40, 160
_MARKS = {"completed": "done", "in_progress": "doing", "pending": "open", "cancelled": "dropped"}
_TELLING = re.compile(
    r'"(?:error|output|result|content|text|message|summary|value|answer|data|stdout)"\s*:\s*'
    r'(?:"((?:[^"\\]|\\.)*)|(-?\d[\d.eE+-]*|true|false))'
)
_EXIT = re.compile(r'"(?:exit_code|returncode)"\s*:\s*(-?[1-9]\d{0,4})\b')
_NO_JSON = str.maketrans("", "", '{}"')
_EMPTY = re.compile(r"[\s{}\[\]\",:`=~*_#|+-]*|\s*(?:`{3,}|~{3,})[\w+-]*\s*")
"""A line that says nothing: brackets, a fence, a rule."""


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of the plan; `state` is open, doing, done or dropped."""

    text: str
    state: str


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. `handle` is what people and models call it; texts are as stored, not yet harmless."""

    handle: str
    id: str
    tool: str
    at: int
    """Epoch microseconds: of its end, or of its start while that is all there is."""
    status: str = "ok"
    arguments: str = ""
    result: str = ""
    """How the result (or the error) begins."""
    turn: str = ""
    steps: tuple[Step, ...] | None = None
    """The whole plan, after a call of the plan's tool."""

    @property
    def failed(self) -> bool:
        """Whether it ended without what it was called for."""
        return self.status not in ("ok", STARTED)

    @property
    def unfinished(self) -> bool:
        """Whether no end of it is on record."""
        return self.status == STARTED

    def conclusion(self, most: int = 80) -> str:
        """The line of the result that says most, harmless, at most that long."""
        return block.cut(block.harmless(conclusion(self.result)[: most * 3]), most) if self.result else ""

    def asked(self, most: int = 120) -> str:
        """The arguments, harmless, at most that long."""
        plain = self.arguments[: most * 3].translate(_NO_JSON)
        return block.cut(block.harmless(plain), most)


@dataclass(frozen=True, slots=True)
class Group:
    """Calls that stand together: one tool, one turn, one outcome, nothing in between. Never empty."""

    calls: tuple[Call, ...]

    @property
    def first(self) -> Call:
        """The oldest."""
        return self.calls[0]

    @property
    def last(self) -> Call:
        """The newest; it speaks for all."""
        return self.calls[-1]


def grouped(calls: Iterable[Call]) -> list[Group]:
    """The calls in their order, neighbours of one kind together, a handful at most."""
    groups: list[list[Call]] = []
    for call in calls:
        before = groups[-1][-1] if groups else None
        kind = (call.tool, call.turn, call.status)
        if (
            before is not None
            and (before.tool, before.turn, before.status) == kind
            and len(groups[-1]) < _TOGETHER
        ):
            groups[-1].append(call)
        else:
            groups.append([call])
    return [Group(tuple(group)) for group in groups]


def dead_ends(groups: Sequence[Group]) -> set[int]:
    """Places of the groups that failed, except those the same tool put right at once."""
    return {
        place
        for place, (group, after) in enumerate(pairwise([*groups, None]))
        if group is not None
        and group.last.failed
        and not (after is not None and after.first.tool == group.last.tool and not after.first.failed)
    }


def call_of(row: Any, handle: str) -> Call:
    """The call an index row stands for, under that handle."""
    extra: Mapping[str, Any] = row.extra
    tool = str(extra.get("tool") or "")
    arguments, _, result = row.text[len(tool) + 1 :].partition(") → ")
    steps = extra.get("steps")
    return Call(
        handle=handle,
        id=str(extra.get("call") or row.id),
        tool=tool,
        at=int(row.created),
        status=str(extra.get("status") or "ok"),
        arguments=arguments,
        result=result,
        turn=str(extra.get("turn") or ""),
        steps=tuple(Step(str(text), str(state)) for text, state in steps) if steps is not None else None,
    )


def plan_of(arguments: Any, result: str) -> list[list[str]] | None:
    """The plan after a call of the plan's tool, as [text, state] pairs; None when the call does not tell it."""
    for source in (result, arguments):
        found: Any = source
        if isinstance(source, str):
            found = None
            with suppress(ValueError, RecursionError):
                found = json.loads(source)
        todos = found.get("todos") if isinstance(found, Mapping) else None
        if isinstance(todos, list):
            return [
                [block.cut(str(one.get("content") or one.get("id") or ""), _STEP_LENGTH), _state(one)]
                for one in todos[:_STEPS]
                if isinstance(one, Mapping)
            ]
    return None


def conclusion(result: str) -> str:
    """The part of a result (or of its beginning) that a person would read first, on one line."""
    text = result.strip()
    if text[:1] in "{[" and text:
        for found in _TELLING.finditer(text):
            said = found[2] or _unescaped(found[1] or "")
            if said.strip() and said not in ("true", "false"):
                return _ended(text) + _first_line(said)
        return _ended(text) + (" ".join(text.translate(_NO_JSON).split()) or " ".join(text.split()))
    return _first_line(text)


def _ended(result: str) -> str:
    """How a command ended, where it says that it failed: the host calls such a call ok."""
    code = _EXIT.search(result)
    return f"exit {code[1]}: " if code else ""


def _state(entry: Mapping[str, Any]) -> str:
    return _MARKS.get(str(entry.get("status") or "").strip().lower(), "open")


def _unescaped(inner: str) -> str:
    with suppress(ValueError):
        return str(json.loads(f'"{inner}"', strict=False))
    return inner.replace("\\n", "\n").replace('\\"', '"').rstrip("\\")


def _first_line(text: str) -> str:
    for line in text.splitlines():
        if not _EMPTY.fullmatch(line):
            return " ".join(line.split())
    return ""
