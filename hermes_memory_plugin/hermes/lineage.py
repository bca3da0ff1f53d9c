"""One conversation through all its session ids: compaction may rename a session, /new and branches begin another.

The id of a lineage is the oldest session id of its chain, so that every process gives it the same name.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Session
from hermes_memory_plugin.hermes import statedb

if TYPE_CHECKING:
    from hermes_memory_plugin.layers.persona import Target

IDLE = 3_600.0
"""Seconds without a hook after which a conversation counts as ended."""
MOST = 2_048
"""Conversations and ids remembered at a time; the longest silent go first."""
OPEN_TURNS = 8


@dataclass(slots=True)
class OpenTurn:
    """A turn whose answer is not out yet."""

    id: str
    user: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    recalls: int = 0
    """Explicit recall calls the model made in it."""
    recorded: bool = True
    """Whether anything of it is kept."""


@dataclass(slots=True)
class Conversation:
    """What this process knows of one lineage. Change it under `lock`."""

    session: Session
    home: Path
    shown_by_host: tuple[str, ...] = ()
    hidden: frozenset[Target] = frozenset()
    """Which of the host's memory files it does not show here."""
    shown_for: str = ""
    """The session id `shown_by_host` was read for."""
    announced: bool = False
    """Whether the plugins were told that it began."""
    injected: bool = False
    seen: float = field(default_factory=time.monotonic)
    said: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """The user's words of each turn kept by this process, and the id of the row they are in."""
    turns: OrderedDict[str, OpenTurn] = field(default_factory=OrderedDict)
    off: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """The last turns of which nothing is kept."""
    unrecorded: bool = False
    """Whether the latest turn is one of them."""
    told_paused: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, turn: OpenTurn, row_id: str = "") -> list[OpenTurn]:
        """Begin a turn; returns turns so old that nobody will end them any more."""
        with self.lock:
            if turn.id not in self.turns:
                self.turns[turn.id] = turn
            self.said[turn.user] = row_id
            if len(self.said) > MOST:
                self.said.popitem(last=False)
            return [self.turns.popitem(last=False)[1] for _ in range(len(self.turns) - OPEN_TURNS)]

    def close(self, turn_id: str = "") -> list[OpenTurn]:
        """End one turn, or every open one when no id is given; [] when it was ended before."""
        with self.lock:
            if turn_id:
                found = self.turns.pop(turn_id, None)
                return [found] if found else []
            found_all = list(self.turns.values())
            self.turns.clear()
            return found_all

    def rows_of(self, texts: Iterable[str]) -> set[str]:
        """The rows these words of the user are in: who still sees the words needs no reminder of them."""
        with self.lock:
            return {self.said[text] for text in texts if self.said.get(text)}

    def latest(self) -> OpenTurn | None:
        """The turn that is running."""
        with self.lock:
            return next(reversed(self.turns.values()), None)


class Lineages:
    """The conversations of this process, of every home it serves."""

    def __init__(
        self,
        ancestry: Callable[[Path, str], list[statedb.Row]] = statedb.ancestry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ancestry = ancestry
        self._clock = clock
        self._root_of: OrderedDict[tuple[Path, str], str] = OrderedDict()
        self._conversations: OrderedDict[tuple[Path, str], Conversation] = OrderedDict()
        self._task: OrderedDict[tuple[Path, str], Conversation] = OrderedDict()
        self._lock = threading.RLock()

    def root(self, home: Path, session_id: str, turn_id: str = "") -> str:
        """The lineage a session id belongs to."""
        with self._lock:
            known = self._root_of.get((home, session_id))
            if known is None:
                known = self._from_turn(home, turn_id)
        if known is None:  # outside the lock: it reads a file
            chain = self._ancestry(home, session_id)
            known = self._oldest(home, chain) or session_id
        with self._lock:
            self._root_of.setdefault((home, session_id), known)
            _trim(self._root_of)
            return self._root_of[home, session_id]

    def find(self, home: Path, session_id: str, *, task_id: str = "") -> Conversation | None:
        """The conversation of a session id this process has met, or of a task of it."""
        with self._lock:
            root = self._root_of.get((home, session_id))
            found = self._conversations.get((home, root)) if root is not None else None
            if found is None and task_id:
                found = self._task.get((home, task_id))
            if found is not None:
                found.seen = self._clock()
            return found

    def add(self, conversation: Conversation) -> Conversation:
        """Keep a conversation; returns the one that is there already if another thread was faster."""
        with self._lock:
            key = (conversation.home, conversation.session.id)
            kept = self._conversations.setdefault(key, conversation)
            self._conversations.move_to_end(key)
            kept.seen = self._clock()
            _trim(self._conversations)
            return kept

    def note_task(self, task_id: str, conversation: Conversation) -> None:
        """Remember whose task it is: nested tool calls name nothing else."""
        if task_id:
            key = (conversation.home, task_id)
            with self._lock:
                self._task[key] = conversation
                self._task.move_to_end(key)
                _trim(self._task)

    def end(self, home: Path, session_id: str) -> Conversation | None:
        """Forget a conversation; the next hook that names it begins it anew."""
        with self._lock:
            root = self._root_of.get((home, session_id), session_id)
            return self._drop(home, root)

    def idle(self) -> Iterator[Conversation]:
        """Take out the conversations nobody has heard of for an hour."""
        limit = self._clock() - IDLE
        with self._lock:
            silent = [key for key, one in self._conversations.items() if one.seen < limit]
            gone = [self._drop(*key) for key in silent]
        yield from (one for one in gone if one is not None)

    def _drop(self, home: Path, root: str) -> Conversation | None:
        found = self._conversations.pop((home, root), None)
        if found is not None:
            for task in [task for task, one in self._task.items() if one is found]:
                del self._task[task]
        return found

    def _from_turn(self, home: Path, turn_id: str) -> str | None:
        """After a compaction inside a turn the turn id still begins with the old session id."""
        at = turn_id.find(":")
        while at > 0:
            known = self._root_of.get((home, turn_id[:at]))
            if known is not None:
                return known
            at = turn_id.find(":", at + 1)
        return None

    def _oldest(self, home: Path, chain: list[statedb.Row]) -> str | None:
        with self._lock:
            for row in chain[1:]:
                known = self._root_of.get((home, row.id))
                if known is not None:
                    return known
        return chain[-1].id if chain else None


def _trim(table: OrderedDict[Any, Any]) -> None:
    while len(table) > MOST:
        table.popitem(last=False)
