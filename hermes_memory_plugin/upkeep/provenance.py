"""The provenance of one memory's answers: what a running turn has to go by, what is kept of it, and how it is asked for.

Hooks touch this on the way of a turn, so what reads numbers is imported by those who wait for nothing.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers.facts import microseconds, moment
from hermes_memory_plugin.layers.log import turn_row_id
from hermes_memory_plugin.store.log_links import EMPTY

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Owner, Recalled, Session, ToolTrace, Turn
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.upkeep.answers import Link
    from hermes_memory_plugin.upkeep.readings import Reading
    from hermes_memory_plugin.verbs import Verbs

_SESSIONS, _CALLS, _CHARACTERS = 64, 40, 8_000_000
_CATCH_UP = 50
"""Turns without links that one look completes, newest first."""
OURS = frozenset({"remember", "memory_trace"})
"""Tools whose results on record name rows instead of repeating them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer and the sources of its numbers; `links` is empty when it states none."""

    id: str
    at: datetime | None
    session: str
    turn: str
    question: str
    text: str
    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class _Talk:
    """What one conversation's answers may go by."""

    calls: deque[ToolTrace] = field(default_factory=deque)
    rows: OrderedDict[str, list[str]] = field(default_factory=OrderedDict)
    """Turn id → ids of the rows put beside its message."""


class Provenance:
    """Safe to share between threads."""

    def __init__(self, memory: Verbs) -> None:
        self._memory = memory
        self._talks: OrderedDict[tuple[str, str], _Talk] = OrderedDict()
        self._lock = threading.Lock()

    # -- while a turn runs -------------------------------------------------------------------------------------------

    def called(self, trace: ToolTrace) -> None:
        """A tool call of a running turn ended."""
        with self._lock:
            calls = self._talk(trace.owner.key, trace.session_id).calls
            calls.append(trace)
            while len(calls) > _CALLS or (
                len(calls) > 1 and sum(len(one.result) for one in calls) > _CHARACTERS
            ):
                calls.popleft()

    def given(self, session: Session, turn_id: str, items: Sequence[Recalled]) -> None:
        """These rows were put beside the message of a turn."""
        if not items:
            return
        with self._lock:
            rows = self._talk(session.owner.key, session.id).rows
            rows[turn_id] = [item.id for item in items]
            while len(rows) > _CALLS:
                rows.popitem(last=False)

    def ended(self, turn: Turn) -> None:
        """A turn is over: its answer is read when nobody waits."""
        if turn.assistant and turn.turn_id:
            seen = self._seen(turn)  # now: the conversation may be over when its turn comes
            self._memory.worker.soon(lambda: self._keep(turn, self._links(turn, *seen)))

    def read(self, turn: Turn) -> list[Link]:
        """The links of a running turn's answer, from what this process saw of its conversation."""
        return self._links(turn, *self._seen(turn))

    def _seen(self, turn: Turn) -> tuple[list[ToolTrace], list[str], list[ToolTrace], list[str]]:
        """(calls, rows given) of the turn, then of the turns before it."""
        with self._lock:
            talk = self._talk(turn.owner.key, turn.session_id)
            calls, beside = list(talk.calls), dict(talk.rows)
        now = [one for one in calls if one.turn_id == turn.turn_id]
        before = [one for one in calls if one.turn_id != turn.turn_id]
        given = [row for turn_id, rows in beside.items() if turn_id == turn.turn_id for row in rows]
        known = [row for turn_id, rows in beside.items() if turn_id != turn.turn_id for row in rows]
        return now, given, before, known

    def footer(self, turn: Turn) -> str:
        """The line that says where the numbers of a running turn's answer came from; "" when it states none."""
        from hermes_memory_plugin.upkeep import answers

        return answers.footer(self.read(turn), turn.assistant)

    def forget(self, session: Session) -> None:
        """A conversation ended."""
        with self._lock:
            self._talks.pop((session.owner.key, session.id), None)

    # -- later -------------------------------------------------------------------------------------------------------

    def sources(self, turn: str = "", *, owner: Owner | None = None) -> Answer:
        """An answer with its sources: of that turn (id or handle), else the newest that states a number.

        Raises NotFound when the owner has no such answer.
        """
        keys = self._memory.keys(owner)
        if turn:
            row = self._turn_row(turn, keys)
            if row is None:
                raise NotFound(turn, "`sources` without a turn shows the newest answer.")
            return self._answer(row, keys)
        self.catch_up(owner=owner)
        newest = next((one for one in self._memory.archive.links(keys=keys) if one["kind"] != EMPTY), None)
        row = self._turn_row(str(newest["answer"]), keys) if newest else None
        if row is None:
            raise NotFound("an answer with numbers", "None is on record here.")
        return self._answer(row, keys)

    def catch_up(self, *, owner: Owner | None = None) -> int:
        """Read the answers nobody came to read (a process that ended at once); returns how many."""
        keys = self._memory.keys(owner)
        self._memory.reader.refresh()
        rows = [
            row
            for row in self._memory.reader.index.scan(keys, now_us=0, kinds=("turn",), limit=_CATCH_UP)
            if row.extra.get("assistant") and row.extra.get("turn")
        ]
        known = {
            str(one["answer"])
            for one in self._memory.archive.links(keys=keys, answers={row.id for row in rows})
        }
        missing = [row for row in rows if row.id not in known]
        for row in missing:
            self._from_record(row, keys)
        return len(missing)

    def _answer(self, row: Row, keys: frozenset[str] | None) -> Answer:
        from hermes_memory_plugin.upkeep import answers

        stored = self._memory.archive.links(keys=keys, answers={row.id})
        links = (
            [answers.of_stored(one) for one in stored if one["kind"] != EMPTY]
            if stored
            else self._from_record(row, keys)
        )
        return Answer(
            row.id,
            moment(row.created),
            row.session,
            str(row.extra.get("turn") or ""),
            str(row.extra.get("user") or ""),
            str(row.extra.get("assistant") or ""),
            tuple(links),
        )

    def _from_record(self, row: Row, keys: frozenset[str] | None) -> list[Link]:
        """The links of an answer from what is on record of its conversation alone."""
        from hermes_memory_hookspecs import Owner, Turn

        turn = Turn(
            user=str(row.extra.get("user") or ""),
            assistant=str(row.extra.get("assistant") or ""),
            at=moment(row.created) or datetime.now(UTC),
            turn_id=str(row.extra.get("turn") or ""),
            session_id=row.session,
            owner=Owner.parse(row.owner),
        )
        archive = self._memory.archive
        calls = archive.traces(
            since=None, until=None, tool=None, keys=frozenset({row.owner}), session=row.session, status=None, limit=_CALLS
        ) if row.session else []  # fmt: skip
        calls.reverse()
        now = [one for one in calls if one.turn_id == turn.turn_id]
        before = [one for one in calls if one.turn_id != turn.turn_id and one.at <= turn.at]
        given = [
            str(item.get("id") or "")
            for audit in archive.audits(_CATCH_UP, frozenset({row.owner}))
            if audit.get("turn") == turn.turn_id != ""
            for item in audit.get("items") or ()
        ]
        links = self._links(turn, now, given, before, [])
        self._keep(turn, links)
        return links

    def _links(
        self,
        turn: Turn,
        calls: Sequence[ToolTrace],
        given: Collection[str],
        calls_before: Sequence[ToolTrace],
        given_before: Collection[str],
    ) -> list[Link]:
        from hermes_memory_plugin.upkeep import answers
        from hermes_memory_plugin.upkeep.readings import of_call, of_row

        memory, keys = self._memory, self._memory.keys(turn.owner)
        analyst, index = memory.reader.analyst, memory.reader.index
        memory.reader.refresh(budget_ms=100)

        def rows(ids: Collection[str]) -> list[Row]:
            found = (index.find(one, keys) for one in dict.fromkeys(ids))
            return [row for row in found if row is not None]

        shown, looked_up = self._shown(calls)
        proofs = [found for one in looked_up if (found := memory.trace(one, owner=turn.owner)) is not None]

        def before() -> list[Reading]:
            readings = [
                one for call in calls_before if call.tool_name not in OURS for one in of_call(call, analyst)
            ]
            for row in rows(given_before):
                readings += of_row(row, analyst)
            if turn.session_id:
                for one in memory.archive.links(keys=frozenset({turn.owner.key}), session=turn.session_id):
                    reading = answers.as_reading(answers.of_stored(one)) if one["kind"] != EMPTY else None
                    if reading is not None:
                        readings.append(reading)
            return readings

        return answers.read(
            turn.assistant,
            analyst,
            turn.at,
            calls=[*(call for call in calls if call.tool_name not in OURS), *proofs],
            rows=rows([*given, *shown]),
            said=turn.user,
            before=before,
        )

    def _shown(self, calls: Sequence[ToolTrace]) -> tuple[list[str], list[str]]:
        """(rows, calls) that our own tools showed in a turn: their results on record name them."""
        rows: list[str] = []
        looked_up: list[str] = []
        for call in calls:
            if call.tool_name not in OURS:
                continue
            with suppress(ValueError):
                answer = json.loads(call.result)
                if isinstance(answer, dict):
                    rows += [one for one in answer.get("items") or () if isinstance(one, str)]
                    looked_up += [one for one in answer.get("calls") or () if isinstance(one, str)]
                    looked_up += [one for one in answer.get("tool_call_ids") or () if isinstance(one, str)]
                    rows += [one for one in answer.get("fact_ids") or () if isinstance(one, str)]
                    if isinstance(answer.get("id"), str):
                        looked_up.append(answer["id"])
        return rows, looked_up[:_CALLS]

    def _keep(self, turn: Turn, links: Sequence[Link]) -> None:
        from hermes_memory_plugin.upkeep import answers

        answer_id = turn_row_id(turn.session_id, turn.turn_id, "")
        record: dict[str, Any] = answers.as_record(answer_id, turn.session_id, turn.turn_id, links)
        self._memory.journal.append("answer", record, owner=turn.owner.key, at=microseconds(turn.at))
        self._memory.archive.notify()

    def _turn_row(self, name: str, keys: frozenset[str] | None) -> Row | None:
        """The turn of a row id or handle, or of the host's turn id."""
        self._memory.reader.refresh()
        index = self._memory.reader.index
        row = index.find(name.strip().strip("[]"), keys)
        if row is None:
            row = next(
                (one for one in index.scan(keys, now_us=0, kinds=("turn",)) if one.extra.get("turn") == name),
                None,
            )
        return row if row is not None and row.kind == "turn" else None

    def _talk(self, owner: str, session: str) -> _Talk:
        talk = self._talks.setdefault((owner, session), _Talk())
        self._talks.move_to_end((owner, session))
        while len(self._talks) > _SESSIONS:
            self._talks.popitem(last=False)
        return talk
