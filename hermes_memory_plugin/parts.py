"""What one home's memory is made of, opened when first needed."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.home import memory_folder
from hermes_memory_plugin.layers.log import expiry as log_expiry
from hermes_memory_plugin.layers.notes import Notes
from hermes_memory_plugin.layers.persona import Persona
from hermes_memory_plugin.layers.scenes import Scenes
from hermes_memory_plugin.owners import Owners
from hermes_memory_plugin.pauses import Pauses
from hermes_memory_plugin.store.journal import Journal
from hermes_memory_plugin.store.mask import mask_text

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Fact
    from hermes_memory_plugin.extensions import Hooks
    from hermes_memory_plugin.recall.reader import Reader
    from hermes_memory_plugin.recall.recaller import Recaller
    from hermes_memory_plugin.reports.library import Library
    from hermes_memory_plugin.settings import Settings
    from hermes_memory_plugin.upkeep.archive import Archive
    from hermes_memory_plugin.upkeep.embed import Embedding, Plan
    from hermes_memory_plugin.upkeep.extract import Extraction
    from hermes_memory_plugin.upkeep.retention import Upkeep
    from hermes_memory_plugin.upkeep.scenes import SceneWriter
    from hermes_memory_plugin.upkeep.snapshots import Snapshots
    from hermes_memory_plugin.upkeep.worker import Worker

_IN_FLIGHT = 1_024


class Parts:
    """The stores and workers behind one Hermes home. Safe to share between threads."""

    def __init__(self, home: Path | str, *, hooks: Hooks | None = None) -> None:
        self.home = Path(home).expanduser()
        self.folder = memory_folder(self.home)
        self.hooks = hooks
        self.owners = Owners(self.folder)
        self.pauses = Pauses(self.folder)
        redact = partial(hooks.pipe, "redact") if hooks and hooks.has("redact") else None

        def mask(text: str) -> str:
            return redact(mask_text(text)) if redact else mask_text(text)

        self.notes = Notes(self.folder / "notes", mask=mask)
        self.scenes = Scenes(self.folder / "scenarios", mask=mask)
        self.persona = Persona(self.home)
        self.events: Counter[str] = Counter()
        """What this process counted since it opened the memory."""
        self._journal = Journal(
            self.folder / "journal",
            rotate_bytes=self.settings.journal.rotate_mb << 20,
            redact=redact,
        )
        self._lock = threading.Lock()
        self._audits: list[tuple[dict[str, Any], str]] = []
        self._said: dict[str, set[str]] = {}
        self._begun: set[str] = set()
        self._started: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._closed = False

    @classmethod
    def open(cls, home: Path | str, *, hooks: Hooks | None = None) -> Self:
        """The memory of a Hermes home; creates `memory/` below it. Raises HomeUnwritable when it cannot."""
        return cls(home, hooks=hooks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hand everything to the ledgers and let go of files and threads."""
        if self._closed:
            return
        self._closed = True
        if "upkeep" in self.__dict__:
            self.upkeep.stop()
        if "worker" in self.__dict__:
            self.worker.close()
        self._flush_audits()
        if "archive" in self.__dict__ or self._journal.name:
            # What others journalled can wait for them.
            self.archive.close(2.0 if self._journal.name else 0.5)
        if "embedding" in self.__dict__:
            self.embedding.stop()
        self._journal.close()

    @property
    def settings(self) -> Settings:
        """The settings in force; config.yaml is read anew when it changed."""
        from hermes_memory_plugin.settings import load

        return load(self.home)[0]

    def setting_errors(self) -> list[HermesMemoryError]:
        """Every key of config.yaml that cannot be used; its default stands in."""
        from hermes_memory_plugin.settings import load

        return list(load(self.home)[1])

    @cached_property
    def archive(self) -> Archive:
        """The ledgers and the drain that feeds them."""
        from hermes_memory_plugin.upkeep.archive import Archive
        from hermes_memory_plugin.upkeep.dialogue import Dialogue

        return Archive(
            self.folder,
            index=lambda: self.reader.index,
            journal=self._journal,
            extract=self.extraction,
            dialogue=Dialogue(
                self.folder / "journal",
                self._journal,
                lambda: self.reader,
                self.count,
                dated=self.dated,
                wanted=lambda: self.settings.dialogue.facts,
            ),
            count=self.count,
        )

    @cached_property
    def extraction(self) -> Extraction:
        """What makes facts of tool results."""
        from hermes_memory_plugin.upkeep.extract import Extraction

        return Extraction(self.folder / "journal", self._journal, self.hooks, self.count, dated=self.dated)

    @cached_property
    def reader(self) -> Reader:
        """The read index, kept up to date."""
        from hermes_memory_plugin.recall.reader import Reader

        return Reader(
            self.folder,
            notes=self.notes,
            scenes=self.scenes,
            journal=self._journal,
            archive=lambda: self.archive,
            hooks=self.hooks,
            count=self.count,
            lasts=lambda kind, at: log_expiry(kind, at, self.settings.lifetime),
        )

    @cached_property
    def recaller(self) -> Recaller:
        """What turns a question into a block."""
        from hermes_memory_plugin.recall.recaller import Recaller

        return Recaller(
            self.reader,
            settings=lambda: self.settings,
            keys=self.keys,
            audit=self.audit,
            encoding=lambda patience: self.embedding.serving(patience=patience),
            count=self.count,
        )

    @cached_property
    def embedding(self) -> Embedding:
        """The vectors of the configured encoder, kept in step with the index."""
        from hermes_memory_plugin.recall.index_row import digest
        from hermes_memory_plugin.recall.normalise import normalise
        from hermes_memory_plugin.upkeep.embed import Embedding

        hooks = self.hooks
        return Embedding(
            self.folder,
            plan=self._embedding_plan,
            sure=lambda: not self.setting_errors(),
            index=lambda: self.reader.index,
            normalise=normalise,
            digest=digest,
            others=(lambda name: next(iter(hooks.call("embedding_backend", name=name)), None))
            if hooks is not None and hooks.has("embedding_backend")
            else None,
            count=self.count,
        )

    @cached_property
    def worker(self) -> Worker:
        """Who does what need not be done at once."""
        from hermes_memory_plugin.upkeep.worker import Worker

        return Worker(lambda error: self.count("upkeep_failed", f"{type(error).__name__}: {error}"))

    @cached_property
    def upkeep(self) -> Upkeep:
        """What keeps the files small and lets go of what is outlived."""
        from hermes_memory_plugin.upkeep.retention import Upkeep

        return Upkeep(self)

    @cached_property
    def drafts(self) -> SceneWriter:
        """What turns finished conversations into scenes."""
        from hermes_memory_plugin.upkeep.scenes import SceneWriter

        return SceneWriter(self)

    @cached_property
    def snapshots(self) -> Snapshots:
        """What each session sees as it was when the session began."""
        from hermes_memory_plugin.upkeep.snapshots import Snapshots

        return Snapshots(self)

    @cached_property
    def library(self) -> Library:
        """The reports that can be searched and cited by page."""
        from hermes_memory_plugin.reports.library import Library

        return Library(self)

    @property
    def journal(self) -> Journal:
        """This process's journal."""
        return self._journal

    def dated(self, fact: Fact) -> Fact:
        """The fact with the day it stops being current; see `upkeep/lifetime.py`."""
        from hermes_memory_plugin.upkeep import calendar, lifetime

        return lifetime.dated(fact, self.settings.lifetime, self.hooks, lambda: calendar.added(self.folder))

    def paused(self, owner: Owner | None = None) -> bool:
        """Whether nothing of this owner is to be remembered for now."""
        key = (owner or Owner()).key
        return bool(self.pauses.all()) and self.pauses.since(self.owners.linked(key) | {key}) is not None

    def keys(self, owner: Owner | None) -> frozenset[str] | None:
        """The owner keys whose rows `owner` may see; None for every owner."""
        if owner is not None and owner.key == Owner.ANY.key:
            return None
        return self.owners.visible_keys(owner or Owner())

    def count(self, name: str, detail: str = "", n: int = 1) -> None:
        """Count something late, failed or degraded; `status` and `doctor` show it. Never raises."""
        self.events[name] += n
        try:
            self._journal.append("event", {"name": name, "n": n, "detail": detail[:300]})
        except HermesMemoryError:
            self.events["event_lost"] += 1

    def audit(self, record: dict[str, Any], owner: Owner) -> None:
        """Keep the record of a recall; it is journalled after the reply, not in its way."""
        with self._lock:
            self._audits.append((record, owner.key))
            late = len(self._audits) > 50
        if late:
            self._flush_audits()

    def _embedding_plan(self) -> Plan | None:
        from hermes_memory_plugin.upkeep.embed import plan_of

        return plan_of(self.settings)

    def _wrote(self) -> None:
        if not self._closed:
            self.archive.notify()
            self.embedding.notify()

    def _flush_audits(self) -> None:
        with self._lock:
            audits, self._audits = self._audits, []
        for record, key in audits:
            try:
                self._journal.append(
                    "audit", record, owner=key, at=record.get("at") or time.time_ns() // 1000
                )
            except HermesMemoryError:
                self.events["audit_lost"] += 1
