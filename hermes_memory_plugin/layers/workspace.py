"""WorkspaceMemory: what one conversation is in the middle of, told from its record alone.

Nothing is kept between calls: whoever asks, in whatever process, gets the same text from the same record. It belongs
to one lineage of sessions; a new one begins with nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from hermes_memory_plugin.layers.calls import Call, Step, call_of, dead_ends, grouped
from hermes_memory_plugin.recall import block

LIMIT = 4_000
"""Characters of a summary."""
HEAD = "Current agent state:"

_REQUEST, _LINE = 700, 180
_MOST = {"unfinished": 6, "steps": 12, "groups": 12, "requests": 5, "cited": 10, "tools": 16}
_HANDLE = re.compile(r"\b[td]-[2-9a-hjkmnp-z]{4,13}\b")


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked, and whether it was answered."""

    text: str
    answer: str
    state: str
    """running, answered or interrupted."""
    at: int


@dataclass(frozen=True, slots=True)
class WorkspaceMemory:
    """The state of one conversation. Times are epoch microseconds; every list is oldest first."""

    folder: str = ""
    """Where the tools work."""
    requests: tuple[Request, ...] = ()
    calls: tuple[Call, ...] = ()
    """Those that ended."""
    unfinished: tuple[Call, ...] = ()
    """Those whose end is not on record: in flight, or cut off by the end of the process."""
    cited: tuple[str, ...] = ()
    """Calls the answers named, as they named them."""
    on_record: bool = True
    """Whether memory_trace can show the calls."""

    @classmethod
    def of(cls, rows: Iterable[Any], handle: Callable[[Any], str], *, folder: str = "") -> Self:
        """Read it from the index rows of one session, oldest first."""
        calls: list[Call] = []
        requests: list[Request] = []
        answers: list[str] = []
        for row in rows:
            if row.kind == "call":
                calls.append(call_of(row, handle))
            elif row.kind == "turn":
                requests.append(_request(row))
                answers.append(str(row.extra.get("assistant") or ""))
        requests = [
            one
            if one.state != "running" or place == len(requests) - 1
            else Request(one.text, one.answer, "interrupted", one.at)
            for place, one in enumerate(requests)
        ]
        return cls(
            folder=folder,
            requests=tuple(requests),
            calls=tuple(call for call in calls if not call.unfinished),
            unfinished=tuple(call for call in calls if call.unfinished),
            cited=_cited(answers, calls),
        )

    @property
    def empty(self) -> bool:
        """Whether nothing is on record."""
        return not (self.requests or self.calls or self.unfinished)

    @property
    def counters(self) -> dict[str, tuple[int, int]]:
        """How often each tool ended, and how often without what it was called for; most used first."""
        ended = Counter(call.tool for call in self.calls)
        failed = Counter(call.tool for call in self.calls if call.failed)
        return {
            tool: (n, failed[tool]) for tool, n in sorted(ended.items(), key=lambda one: (-one[1], one[0]))
        }

    @property
    def steps(self) -> tuple[Step, ...]:
        """The plan as its tool last told it; () when there is none."""
        return next((call.steps for call in reversed(self.calls) if call.steps is not None), ())

    def to_summary(self, limit: int = LIMIT) -> str:
        """The state as text for a model, most important first; at most `limit` characters, "" when there is none.

        A pure function of the record. No text in it can act as markup.
        """
        if self.empty:
            return ""
        kept, size = [], 0
        lines = [line for section in self._sections() for line in section]
        note = "… {} more lines" + ("; memory_trace lookup lists every call." if self.on_record else "")
        room = limit - len(note) - 8
        for place, line in enumerate(lines):
            if size + len(line) + 1 > (limit if place == len(lines) - 1 else room):
                kept.append(note.format(len(lines) - place))
                break
            kept.append(line)
            size += len(line) + 1
        return "\n".join(kept)

    def _sections(self) -> Iterable[Sequence[str]]:
        yield self._head()
        yield self._request()
        yield _section(
            "Unfinished calls (started, no end on record; check before repeating):",
            [
                f"{call.handle} {_plain(call.tool)} {call.asked()} (started {_clock(call.at)})"
                for call in self.unfinished
            ],
            _MOST["unfinished"],
        )
        steps = self.steps
        yield _section(
            "Open steps:", [_step(one) for one in steps if one.state in ("doing", "open")], _MOST["steps"]
        )
        if self.folder:
            yield [f"Working directory: {_plain(self.folder)}"]
        yield _section(
            "Finished steps (do not repeat):",
            [_step(one) for one in steps if one.state in ("done", "dropped")],
            _MOST["steps"],
        )
        yield self._done()
        if self.cited:
            yield [f"Calls cited in answers: {', '.join(map(_plain, self.cited))}"]
        yield self._counted()
        yield _section(
            "Earlier requests:",
            [
                f"{one.state}: {_plain(one.text, 100)}"
                + (f" → {_plain(one.answer, 70)}" if one.answer else "")
                for one in self.requests[:-1]
            ],
            _MOST["requests"],
        )

    def _head(self) -> list[str]:
        every = (*self.calls, *self.unfinished)
        last = max(every, key=lambda call: call.at).handle if every else "none"
        newest = max([call.at for call in every] + [request.at for request in self.requests])
        return [HEAD, f"as of {_moment(newest)}, last call {last}; later messages are newer"]

    def _request(self) -> list[str]:
        if not self.requests:
            return []
        last = self.requests[-1]
        said = {"running": "not answered yet", "answered": "answered", "interrupted": "interrupted"}[
            last.state
        ]
        lines = [f"Last user request ({_clock(last.at)}, {said}): {_plain(last.text, _REQUEST)}"]
        if last.answer:
            lines.append(f"Answer given: {_plain(last.answer, 200)}")
        return lines

    def _done(self) -> Sequence[str]:
        groups = grouped(self.calls)
        dead = dead_ends(groups)
        lines = []
        for place, group in enumerate(groups):
            many = f" ×{len(group.calls)}" if len(group.calls) > 1 else ""
            outcome = "dead end" if place in dead else group.last.status
            lines.append(
                f"{group.last.handle} {_plain(group.last.tool)}{many} {outcome} {_clock(group.last.at)}"
                f" {group.last.asked(60)} → {group.last.conclusion(80)}"
            )
        where = " (results are on record: memory_trace expand ID)" if self.on_record else ""
        return _section(f"Last calls{where}:", lines[::-1], _MOST["groups"])

    def _counted(self) -> list[str]:
        counted = [
            f"{_plain(tool, 40)} {n}" + (f" ({failed} failed)" if failed else "")
            for tool, (n, failed) in self.counters.items()
        ]
        if not counted:
            return []
        more = len(counted) - _MOST["tools"]
        shown = ", ".join(counted[: _MOST["tools"]]) + (f" and {more} more tools" if more > 0 else "")
        return [f"Calls so far: {len(self.calls)}: {shown}"]


def _request_state(completed: object) -> str:
    return "running" if completed is None else "answered" if completed else "interrupted"


def _request(row: Any) -> Request:
    extra = row.extra
    return Request(
        str(extra.get("user") or ""),
        str(extra.get("assistant") or ""),
        _request_state(extra.get("completed")),
        int(row.created),
    )


def _cited(answers: Iterable[str], calls: Iterable[Call]) -> tuple[str, ...]:
    known = {name for call in calls for name in (call.handle, call.id)}
    ids = sorted((name for name in known if len(name) >= 8), key=len, reverse=True)
    named: dict[str, None] = {}
    for answer in answers:
        found = [match for match in _HANDLE.findall(answer) if match in known]
        found += [one for one in ids if one in answer and one not in found]
        for one in sorted(found, key=answer.find):
            named.pop(one, None)
            named[one] = None
    return tuple(named)[-_MOST["cited"] :]


def _section(title: str, lines: Sequence[str], most: int) -> Sequence[str]:
    if not lines:
        return ()
    shown = [f"* {block.cut(line, _LINE)}" for line in lines[:most]]
    more = len(lines) - len(shown)
    return [title, *shown, *([f"* … and {more} more"] if more > 0 else [])]


def _step(step: Step) -> str:
    return f"{step.state}: {_plain(step.text)}"


def _plain(text: str, most: int = _LINE) -> str:
    return block.cut(block.harmless(text[: most * 3]), most)


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%m-%d %H:%MZ")
