"""Scenes from sessions: when a conversation ends or falls silent, what it found out becomes a scene.

Never in a turn's way: the work is done on a thread of its own, one session at a time. A session counts as done only
when its scene is on disk; one that failed is tried again, and nothing a person has edited is ever written over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner, Session
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.layers.scenes import Scene
from hermes_memory_plugin.recall.markdown import scene_record
from hermes_memory_plugin.store.locks import LockBusy
from hermes_memory_plugin.upkeep import scene_model, scene_text
from hermes_memory_plugin.upkeep.scene_draft import Draft, Material, Sentence, drafts
from hermes_memory_plugin.upkeep.scene_state import State, StateFile, Written, hash_of, key_of

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.upkeep.scene_state import Failure

IDLE = 3_600.0
"""Seconds of silence after which a conversation is over, whether or not anybody said so."""
BACK = timedelta(days=14)
"""How old a conversation may be whose end nobody saw."""
PROPOSED = timedelta(days=90)
"""How long a scene nobody confirms is kept."""
_PAUSE = 600.0
_SHANGHAI = timezone(timedelta(hours=8))
_MORE = {True: "（补充）", False: " (more)"}


@dataclass(frozen=True, slots=True)
class Passed:
    """What one pass over the silent sessions did."""

    scenes: tuple[Scene, ...] = ()
    failed: tuple[Failure, ...] = ()


class SceneWriter:
    """Writes the scenes of one memory. Safe to share between threads."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.state = StateFile(memory.folder)
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
        self._tidy()
        self._memory.snapshots.prune()
        return Passed(tuple(made), tuple(failed))

    def draft(self, owner: Owner, session: str, ask: scene_model.Ask | None = None) -> list[Scene]:
        """Bring the scenes of a session up to date. Raises what went wrong; the session is due again then."""
        memory = self._memory
        memory.archive.flush()  # what the extractors find in its last calls belongs to it
        material = self._material(owner, session)
        index = memory.reader.index
        made = drafts(material, handle=index.handle, lexicon=memory.reader.analyst.lexicon, day=_day)
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
            scenes = [self._write(one, owner, key, state) for one in made]
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

    def confirm(self, scene: Scene) -> Scene:
        """A person stands behind the scene: it is active from now on, and stays ours to go on with if it was."""
        with self.state.changing(wait=5.0) as state:
            ours = self._ours(scene.note.path, state)
            confirmed = self._memory.scenes.confirm(scene)
            if ours:
                return self._wrote(confirmed, state, state.files[scene.note.path.name].sessions)
        memory = self._memory
        memory.journal.append("scene", scene_record(memory.folder, confirmed), owner=confirmed.note.owner.key)
        memory.reader.refresh()
        return confirmed

    def without(self, rows: list[Row]) -> None:
        """Rows were forgotten: take what rests on them out of our scenes. Never raises; people's files stay theirs."""
        gone = {str(row.extra.get("call") or row.id) for row in rows} | {row.id for row in rows}
        cited = [
            row for row in self._scenes(None) if gone & set((row.extra.get("scene") or {}).get("sources", ()))
        ]
        try:
            if cited:
                with self.state.changing(wait=5.0) as state:
                    for row in cited:
                        self._without(row, gone, state)
        except (HermesMemoryError, OSError) as error:
            self._memory.count("scene_failed", f"{type(error).__name__}: {error}")

    def _without(self, row: Row, gone: set[str], state: State) -> None:
        scene = self._read(row)
        if scene is None or not self._ours(scene.note.path, state):
            return
        left = scene_text.merge(scene_text.parse(scene.note.body), [], stands=self._stands(scene.note.owner))
        if left:
            sources = tuple(one for one in scene.sources if one not in gone)
            self._save(scene, scene.note.title, left, state, sources=sources)
        else:
            self._discard(scene, state)

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

    # -- files -------------------------------------------------------------------------------------------------------

    def _write(self, draft: Draft, owner: Owner, session: str, state: State) -> Scene:
        same = []
        for row in self._scenes(owner):
            about = row.extra.get("scene") or {}
            if draft.topic.same(about.get("tickers", ()), about.get("sectors", ()), about.get("period", "")):
                same.append((about.get("period", "") != draft.topic.period, -row.created, row))
        title = draft.topic.title
        for _, _, row in sorted(same, key=lambda one: one[:2]):
            scene = self._read(row)
            if scene is not None and self._ours(scene.note.path, state):
                return self._grow(scene, draft, session, state)
        taken = self._memory.scenes.by_title(title, owner)
        if same or taken is not None:  # somebody's own: what is new goes beside it
            title += _MORE[draft.chinese]
            taken = self._memory.scenes.by_title(title, owner)
            if taken is not None and self._ours(taken.note.path, state):
                return self._grow(taken, draft, session, state)
            if taken is not None:
                title += f" {_day(draft.at)}"
        at = moment(draft.at)
        sentences = scene_text.merge([], draft.sentences, stands=lambda cite: True)
        scene = self._memory.scenes.save(
            title,
            scene_text.render(draft.topic.name, sentences, day=_day(draft.at), chinese=draft.chinese),
            as_of=at,
            owner=owner,
            tickers=draft.topic.tickers,
            sectors=draft.topic.sectors,
            period=draft.topic.period,
            status="proposed",
            sources=draft.sources,
            origin="model",
            expires=datetime.now(UTC) + PROPOSED,
        )
        return self._wrote(scene, state, [session])

    def _grow(self, scene: Scene, draft: Draft, session: str, state: State) -> Scene:
        sessions = state.files[scene.note.path.name].sessions
        old = [] if sessions == [session] else scene_text.parse(scene.note.body)
        sentences = scene_text.merge(old, draft.sentences, stands=self._stands(scene.note.owner))
        sessions = list(dict.fromkeys((*sessions, session)))
        sources = tuple(dict.fromkeys((*(scene.sources if old else ()), *draft.sources)))[-100:]
        at = moment(max(draft.at, int(scene.as_of.timestamp() * 1e6) if scene.as_of else 0))
        return self._save(
            scene,
            scene.note.title,
            sentences,
            state,
            sources=sources,
            sessions=sessions,
            as_of=at,
            draft=draft,
        )

    def _save(
        self,
        scene: Scene,
        title: str,
        sentences: list[Sentence],
        state: State,
        *,
        sources: tuple[str, ...],
        sessions: list[str] | None = None,
        as_of: datetime | None = None,
        draft: Draft | None = None,
    ) -> Scene:
        sessions = sessions if sessions is not None else state.files[scene.note.path.name].sessions
        as_of = as_of or scene.as_of
        # Whoever comes back to the topic in another conversation confirms that it matters.
        active = scene.status == "active" or len(sessions) > 1
        chinese = (
            draft.chinese
            if draft
            else "## Conclusions" not in scene.note.body and "## Data" not in scene.note.body
        )
        period = scene.period or (draft.topic.period if draft else "")
        name = draft.topic.name if draft else title
        day = _day(int(as_of.timestamp() * 1e6)) if as_of else ""
        body = scene_text.render(name, sentences, day=day, chinese=chinese)
        saved = self._memory.scenes.save(
            title,
            body,
            id=scene.note.id,
            as_of=as_of,
            owner=scene.note.owner,
            tickers=scene.tickers,
            sectors=scene.sectors,
            period=period,
            status="active" if active else "proposed",
            sources=sources,
            origin=scene.note.origin,
            expires=None if active else datetime.now(UTC) + PROPOSED,
            at=scene.note.path,
        )
        return self._wrote(saved, state, sessions)

    def _wrote(self, scene: Scene, state: State, sessions: list[str]) -> Scene:
        state.files[scene.note.path.name] = Written(hash_of(scene.note.path), sessions)
        memory = self._memory
        memory.journal.append("scene", scene_record(memory.folder, scene), owner=scene.note.owner.key)
        memory.reader.refresh()
        return scene

    def _discard(self, scene: Scene, state: State) -> None:
        self._memory.scenes.remove(scene)
        state.files.pop(scene.note.path.name, None)
        self._memory.journal.append("gone", {"ids": [scene.note.id]}, owner=scene.note.owner.key)

    def _tidy(self) -> None:
        """Scenes nobody confirmed in their time go to the trash; so do entries of files that are gone."""
        now = datetime.now(UTC)
        with self.state.changing(wait=5.0) as state:
            for name in list(state.files):
                scene = self._memory.scenes.read(self._memory.scenes.folder / name)
                if scene is None:
                    del state.files[name]
                    continue
                late = scene.status == "proposed" and scene.expires is not None and scene.expires < now
                if late and self._ours(scene.note.path, state):
                    self._discard(scene, state)

    def _ours(self, path: Path, state: State) -> bool:
        """Whether the file is exactly as we wrote it."""
        written = state.files.get(path.name)
        return written is not None and written.hash == hash_of(path)

    def _scenes(self, owner: Owner | None) -> list[Row]:
        reader = self._memory.reader
        reader.refresh()
        keys = frozenset({owner.key}) if owner is not None else None
        every = ("live", "superseded", "expired")
        return reader.index.scan(
            keys, now_us=time.time_ns() // 1000, layers=("L2",), kinds=("scene",), states=every
        )

    def _read(self, row: Row) -> Scene | None:
        return self._memory.scenes.read(self._memory.folder / str(row.extra.get("path") or "-"))

    def _stands(self, owner: Owner) -> Callable[[str], bool]:
        index, keys = self._memory.reader.index, frozenset({owner.key, Owner.SHARED.key})

        def stands(cite: str) -> bool:
            row = index.find(cite, keys)
            if row is None:
                return False
            expired = row.expires is not None and row.expires < time.time_ns() // 1000
            return not expired and index.superseded_by(row.id, keys) is None

        return stands

    def _spent(self, answer: scene_model.Answer) -> None:
        self._memory.count("scene_model_calls")
        self._memory.count("scene_model_tokens", n=answer.input_tokens + answer.output_tokens)


def _day(at: int) -> str:
    time_ = moment(at)
    if time_ is None:
        return ""
    midnight = (time_.hour, time_.minute, time_.second) == (0, 0, 0)
    return (time_ if midnight else time_.astimezone(_SHANGHAI)).date().isoformat()
