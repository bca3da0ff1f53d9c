"""WorkspaceMemory: what one conversation is in the middle of, told from its record alone.

Nothing is kept between calls: whoever asks, in whatever process, gets the same text from the same record. It belongs
to one lineage of sessions; a new one begins with nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from hermes_memory_plugin.layers.calls import STARTED, Call, Group, Step, call_of, dead_ends, grouped
from hermes_memory_plugin.recall import block

LIMIT = 4_000
"""Characters of a summary."""
HEAD = "Current agent state:"

_REQUEST, _LINE = 700, 180
_MOST = {"unfinished": 6, "steps": 12, "groups": 12, "requests": 5, "cited": 10, "tools": 16}
_HANDLE = re.compile(r"t-[2-9a-hjkmnp-z]{4,13}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{4,98}[A-Za-z0-9]")
NAMED = 400
"""How many of the newest calls have a handle."""


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
    def of(
        cls,
        rows: Sequence[Any],
        handle: Callable[[Any], str],
        find: Callable[[str], Any],
        *,
        folder: str = "",
    ) -> Self:
        """Read it from the index rows of one session, oldest first; `find` gives the row of a handle or None."""
        answers = [str(row.extra.get("assistant") or "") for row in rows if row.kind == "turn"]
        requests = [_request(row) for row in rows if row.kind == "turn"]
        requests = [
            one if one.state != "running" or one is requests[-1] else replace(one, state="interrupted")
            for one in requests
        ]
        found = [row for row in rows if row.kind == "call"]
        open_ = [place for place, row in enumerate(found) if row.extra.get("status") == STARTED]
        ended = next((place for place in range(len(found)) if place not in open_), 0)
        # A handle costs a search: only calls that can be shown get one.
        shown = {ended, *open_[-_MOST["unfinished"] :], *range(max(0, len(found) - NAMED), len(found))}
        calls = [call_of(row, handle(row) if place in shown else "") for place, row in enumerate(found)]
        return cls(
            folder=folder,
            requests=tuple(requests),
            calls=tuple(call for call in calls if not call.unfinished),
            unfinished=tuple(call for call in calls if call.unfinished),
            cited=_cited(answers, {row.id for row in found}, {call.id for call in calls}, find),
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
                for call in reversed(self.unfinished)
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
            "Earlier requests, newest first:",
            [
                f"{one.state}: {_plain(one.text, 100)}"
                + (f" → {_plain(one.answer, 70)}" if one.answer else "")
                for one in reversed(self.requests[:-1])
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
        places = range(len(groups) - 1, max(-1, len(groups) - 1 - _MOST["groups"]), -1)
        lines = [_group(groups[place], place in dead) for place in places]
        where = " (results are on record: memory_trace expand ID)" if self.on_record else ""
        return _section(f"Last calls{where}:", lines, len(lines), len(groups))

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


def _cited(
    answers: Iterable[str], rows: set[str], ids: set[str], find: Callable[[str], Any]
) -> tuple[str, ...]:
    named: dict[str, None] = {}
    for answer in answers:
        for word in _ID.findall(answer):
            known = word in ids
            if not known and _HANDLE.fullmatch(word):
                row = find(word)
                known = row is not None and row.id in rows
            if known:
                named.pop(word, None)
                named[word] = None
    return tuple(named)[-_MOST["cited"] :]


def _section(title: str, lines: Sequence[str], most: int, of: int | None = None) -> Sequence[str]:
    if not lines:
        return ()
    shown = [f"* {block.cut(line, _LINE)}" for line in lines[:most]]
    more = (len(lines) if of is None else of) - len(shown)
    return [title, *shown, *([f"* … and {more} more"] if more > 0 else [])]


def _group(group: Group, dead: bool) -> str:
    last = group.last
    many = f" ×{len(group.calls)}" if len(group.calls) > 1 else ""
    outcome = "dead end" if dead else last.status
    return (
        f"{last.handle} {_plain(last.tool)}{many} {outcome} {_clock(last.at)}"
        f" {last.asked(60)} → {last.conclusion(80)}"
    )


def _step(step: Step) -> str:
    return f"{step.state}: {_plain(step.text)}"


def _plain(text: str, most: int = _LINE) -> str:
    return block.cut(block.harmless(text[: most * 3]), most)


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%m-%d %H:%MZ")
