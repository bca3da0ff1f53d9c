"""The scenes we write, as files: a new one, one that grows, one that goes. What a person has edited is never touched."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.layers.scenes import Scene, Status
from hermes_memory_plugin.recall.markdown import scene_record
from hermes_memory_plugin.upkeep import scene_text
from hermes_memory_plugin.upkeep.scene_draft import Draft, Sentence
from hermes_memory_plugin.upkeep.scene_state import State, StateFile, Written, hash_of

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.recall.index_row import Row

PROPOSED = timedelta(days=90)
"""How long a scene nobody confirms is kept."""
_SHANGHAI = timezone(timedelta(hours=8))
_MORE = {True: "（补充）", False: " (more)"}


class SceneFiles:
    """The files of one memory's scenes that are ours."""

    def __init__(self, memory: Parts) -> None:
        self._memory = memory
        self.state = StateFile(memory.folder)

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

    def write(self, draft: Draft, owner: Owner, session: str, state: State) -> Scene:
        same = []
        for row in self._scenes(owner):
            about = row.extra.get("scene") or {}
            if draft.topic.same(about.get("tickers", ()), about.get("sectors", ()), about.get("period", "")):
                same.append((about.get("period", "") != draft.topic.period, -row.created, row))
        title = self._memory.scenes.mask(draft.topic.title)
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
                title += f" {day_of(draft.at)}"
        # A topic another conversation began is confirmed by this one, also where its file is now somebody's own.
        begun = {one for row in same for one in self._sessions(row[2], state)}
        status: Status = "active" if begun - {session} else "proposed"
        at = moment(draft.at)
        sentences = scene_text.merge([], draft.sentences, stands=lambda cite: True)
        scene = self._memory.scenes.save(
            title,
            scene_text.render(draft.topic.name, sentences, day=day_of(draft.at), chinese=draft.chinese),
            as_of=at,
            owner=owner,
            tickers=draft.topic.tickers,
            sectors=draft.topic.sectors,
            period=draft.topic.period,
            status=status,
            sources=draft.sources,
            origin="model",
            expires=datetime.now(UTC) + PROPOSED if status == "proposed" else None,
        )
        return self._wrote(scene, state, [session])

    def _sessions(self, row: Row, state: State) -> list[str]:
        """The conversations that wrote a scene, also after somebody edited its file."""
        written = state.files.get(Path(str(row.extra.get("path") or "")).name)
        return written.sessions if written is not None else []

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
        day = day_of(int(as_of.timestamp() * 1e6)) if as_of else ""
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

    def tidy(self) -> None:
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


def day_of(at: int) -> str:
    """The day of a time (epoch microseconds) as people write it, in Shanghai."""
    time_ = moment(at)
    if time_ is None:
        return ""
    midnight = (time_.hour, time_.minute, time_.second) == (0, 0, 0)
    return (time_ if midnight else time_.astimezone(_SHANGHAI)).date().isoformat()
