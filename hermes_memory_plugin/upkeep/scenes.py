"""Scenes from sessions: when a conversation ends or falls silent, what it found out becomes a scene.

Never in a turn's way: the work is done on a thread of its own, one session at a time. A session counts as done only
when its scene is on disk; one that failed is tried again, and nothing a person has edited is ever written over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_plugin.layers.scenes import Scene
from hermes_memory_plugin.store.locks import LockBusy
from hermes_memory_plugin.upkeep import scene_model
from hermes_memory_plugin.upkeep.scene_draft import Material, drafts
from hermes_memory_plugin.upkeep.scene_files import SceneFiles, day_of
from hermes_memory_plugin.upkeep.scene_state import key_of

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.upkeep.scene_state import Failure

IDLE = 3_600.0
"""Seconds of silence after which a conversation is over, whether or not anybody said so."""
BACK = timedelta(days=14)
"""How old a conversation may be whose end nobody saw."""
_PAUSE = 600.0


@dataclass(frozen=True, slots=True)
class Passed:
    """What one pass over the silent sessions did."""

    scenes: tuple[Scene, ...] = ()
    failed: tuple[Failure, ...] = ()


class SceneWriter:
    """Writes the scenes of one memory. Safe to share between threads."""

    def __init__(self, memory: Parts) -> None:
        self._memory = memory
        self.files = SceneFiles(memory)
        self.state = self.files.state
        self._looked = -_PAUSE

    # -- in the background -------------------------------------------------------------------------------------------

    def ended(self, session: Session, ask: scene_model.Ask | None = None) -> None:
        """A conversation is over: draft it soon. Only what people said in person is drafted."""
        if session.kind == "user" and not session.owner.user_id.startswith("~"):
            self._soon(lambda: self._try(session.owner, session.id, ask))

    def look(self, ask: scene_model.Ask | None = None) -> None:
        """Draft soon what fell silent without an end, at most every ten minutes."""
        now = time.monotonic()
        if now - self._looked >= _PAUSE:
            self._looked = now
            self._soon(lambda: self.catch_up(ask))

    def settle(self, timeout: float = 2.0) -> bool:
        """Wait for the work that is under way; False when it is not done in time (then it is done another day)."""
        return self._memory.worker.settle(timeout)

    def _soon(self, work: Callable[[], object]) -> None:
        if self._memory.settings.scenes.draft:
            self._memory.worker.soon(work)

    # -- the work ----------------------------------------------------------------------------------------------------

    def catch_up(
        self, ask: scene_model.Ask | None = None, *, idle: float = IDLE, again: bool = False
    ) -> Passed:
        """Draft every session that has been silent for `idle` seconds; with `again` those that were given up, too."""
        made: list[Scene] = []
        failed: list[Failure] = []
        for owner, session in self._due(idle, again):
            found = self._try(owner, session, ask)
            made += found.scenes
            failed += found.failed
        self.files.tidy()
        self._memory.snapshots.prune()
        return Passed(tuple(made), tuple(failed))

    def draft(self, owner: Owner, session: str, ask: scene_model.Ask | None = None) -> list[Scene]:
        """Bring the scenes of a session up to date. Raises what went wrong; the session is due again then."""
        memory = self._memory
        memory.archive.flush()  # what the extractors find in its last calls belongs to it
        material = self._material(owner, session)
        index = memory.reader.index
        made = drafts(material, handle=index.handle, lexicon=memory.reader.analyst.lexicon, day=day_of)
        model = memory.settings.llm
        problem: Exception | None = None
        if made and model.extract and ask is not None:
            try:
                made = scene_model.rewrite(
                    made, material, ask, handle=index.handle, limit=model.max_characters, spent=self._spent
                )
            except Exception as error:
                memory.count("scene_model_failed", f"{type(error).__name__}: {error}")
                problem = error
        key = key_of(owner.key, session)
        with self.state.changing(wait=5.0) as state:
            scenes = [self.files.write(one, owner, key, state) for one in made]
            if problem is not None:
                state.fail(owner.key, session, f"{type(problem).__name__}: {problem}", time.time_ns() // 1000)
            elif ask is not None or not model.extract:
                state.succeed(owner.key, session, material.newest)
        for scene in scenes:
            memory.count("scene_written", scene.note.path.name)
        return scenes

    def failures(self) -> list[Failure]:
        """Sessions whose draft failed, the newest last."""
        return list(self.state.read().failed.values())

    def _try(self, owner: Owner, session: str, ask: scene_model.Ask | None) -> Passed:
        try:
            scenes = tuple(self.draft(owner, session, ask))
        except LockBusy:  # another process is at it
            return Passed()
        except Exception as error:
            self._memory.count("scene_failed", f"{type(error).__name__}: {error}")
            with self.state.changing(wait=5.0) as state:
                failure = state.fail(
                    owner.key, session, f"{type(error).__name__}: {error}", time.time_ns() // 1000
                )
            return Passed(failed=(failure,))
        failed = self.state.read().failed.get(key_of(owner.key, session))
        return Passed(scenes, (failed,) if failed else ())

    def _due(self, idle: float, again: bool) -> Iterator[tuple[Owner, str]]:
        now = time.time_ns() // 1000
        reader, state = self._memory.reader, self.state.read()
        reader.refresh()
        rows = reader.index.scan(
            None, now_us=now, layers=("L0",), kinds=("turn",), since=now - int(BACK.total_seconds() * 1e6)
        )
        newest: dict[tuple[str, str], int] = {}
        for row in rows:
            if row.session and row.extra.get("kind", "user") == "user" and ":~" not in row.owner:
                key = (row.owner, row.session)
                newest[key] = max(newest.get(key, 0), row.created)
        for (owner, session), at in newest.items():
            failure = state.failed.get(key_of(owner, session))
            if failure is not None and not again and (failure.dead or failure.at > now - int(_PAUSE * 1e6)):
                continue
            done = state.done.get(key_of(owner, session), 0)
            if at > done and at <= now - int(idle * 1e6):
                yield Owner.parse(owner), session

    def _material(self, owner: Owner, session: str) -> Material:
        reader = self._memory.reader
        reader.refresh()
        keys = frozenset({owner.key})
        rows = reader.index.by_session(session, keys, layers={"L0"})
        turns = [row for row in rows if row.kind == "turn"]
        calls = [row for row in rows if row.kind == "call" and row.extra.get("status") != "started"]
        if not rows:
            return Material((), (), ())
        names = {str(row.extra.get("call") or row.id) for row in calls}
        facts = [
            row
            for row in reader.index.scan(
                keys,
                now_us=time.time_ns() // 1000,
                layers=("L1",),
                since=min(row.created for row in rows),
                until=max(row.created for row in rows) + 60_000_000,
                newest_first=False,
            )
            if str(row.extra.get("tool_call_id") or "") in names | {""} and row.kind in ("fact", "conclusion")
        ]
        return Material(turns, calls, facts)

    def _spent(self, answer: scene_model.Answer) -> None:
        self._memory.count("scene_model_calls")
        self._memory.count("scene_model_tokens", n=answer.input_tokens + answer.output_tokens)
