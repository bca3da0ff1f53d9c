"""The reading side of one home: its index, kept up to date, and what the verbs that only read need from it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.recall import markdown, segment
from hermes_memory_plugin.recall.gist import Analyst, tokenizer
from hermes_memory_plugin.recall.index import Index, JournalTail, Refreshed
from hermes_memory_plugin.recall.index_disk import recorded_tokenizer
from hermes_memory_plugin.recall.index_row import Change, Remove, Row
from hermes_memory_plugin.recall.index_writer import IndexWriter
from hermes_memory_plugin.recall.rows import Rows
from hermes_memory_plugin.recall.rows_talk import Lasts, for_ever
from hermes_memory_plugin.store.drain import RETIRED
from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.store.tails import Record

if TYPE_CHECKING:
    from hermes_memory_plugin.extensions import Hooks
    from hermes_memory_plugin.layers.notes import Notes
    from hermes_memory_plugin.layers.scenes import Scenes
    from hermes_memory_plugin.store.journal import Journal
    from hermes_memory_plugin.upkeep.archive import Archive

Keys = frozenset[str] | None
SCAN_PAUSE = 2.0
"""Seconds between two looks at the Markdown folders that nobody asked for."""
_ALL = ("live", "superseded", "expired")


class Reader:
    """The index of a home, and the analyst that reads texts for it. Safe to share between threads."""

    def __init__(
        self,
        folder: Path,
        *,
        notes: Notes,
        scenes: Scenes,
        journal: Journal,
        archive: Callable[[], Archive],
        hooks: Hooks | None,
        count: Callable[[str, str], None],
        lasts: Lasts = for_ever,
    ) -> None:
        self.folder = folder
        segment.prefer(recorded_tokenizer(folder / "index"))
        self.analyst = Analyst(folder, hooks)
        self._notes = notes
        self._scenes = scenes
        self._journal = journal
        self._archive = archive
        self._count = count
        self._lasts = lasts
        self._opening = threading.RLock()
        self._scanned = 0.0
        self._scanning = threading.Lock()
        self._problems: list[str] = []
        self._rebuilding: threading.Thread | None = None

    @cached_property
    def index(self) -> Index:
        """The read index; opened once per process."""
        with self._opening:
            found = self.__dict__.get("index")
            if found is not None:
                return found  # type: ignore[no-any-return]
            rows = Rows(self.analyst, lambda row_id: index.find(row_id, None), self._lasts)
            tail = JournalTail(self.folder / "journal", rows)
            index = Index.open(self.folder / "index", tail=tail, tokenizer=tokenizer())
            self.__dict__["index"] = index
        if index.missing and (self.folder / RETIRED).exists():
            if index.notice is not None:
                self._say("index_damaged", str(index.notice))
            self._rebuild_soon()
        return index

    def warm(self) -> None:
        """Load what the first recall needs: numpy, the segmenter, the names, the index."""
        self.analyst.warm()
        self.refresh()
        self.scan_files()

    def refresh(self, *, budget_ms: float | None = None) -> Refreshed:
        """Take in what any process has written since; complete without a budget, also when a rebuild is under way."""
        index = self.index
        if budget_ms is None and self._rebuilding is not None:
            self._rebuilding.join()
        refreshed = index.refresh(budget_ms=budget_ms)
        while budget_ms is None and refreshed.backlog and not refreshed.records:
            time.sleep(0.002)  # another thread is at it
            refreshed = index.refresh()
            if not index.tail.waiting and not index.tail.unread():
                break
        if budget_ms is None:
            with index.reading:  # the other thread may not have taken in the last record it read
                pass
        return refreshed

    def scan_files(self, *, now: bool = True) -> int:
        """Journal what people changed in the Markdown folders by hand; returns how many files."""
        if not now and time.monotonic() - self._scanned < SCAN_PAUSE:
            return 0
        if not self._scanning.acquire(blocking=False):
            return 0
        try:
            self._scanned = time.monotonic()
            edits = list(markdown.scan(self.folder, self._notes, self._scenes, self._known_files()))
            for edit in edits:
                if edit.record is not None:
                    self._journal.append(edit.kind, edit.record, owner=edit.owner)
                else:
                    self._journal.append("gone", {"ids": [edit.gone]}, owner=edit.owner)
            if edits:
                self.index.refresh()
            self._list_notes(edits)
            return len(edits)
        except HermesMemoryError as error:
            self._say("scan_failed", str(error))
            return 0
        finally:
            self._scanning.release()

    def _list_notes(self, edits: Sequence[markdown.Edit]) -> None:
        """INDEX.md follows what people did to the notes, where it can be written."""
        paths = [Path(str(edit.record["path"])) for edit in edits if edit.record is not None]
        names = [path.name for path in paths if path.parent.name == self._notes.folder.name]
        if names or any(edit.gone for edit in edits):
            with suppress(HermesMemoryError):
                self._notes.list_edited(names)

    def named(self, name: str, keys: Keys) -> list[Row]:
        """The rows of that id, handle or exact title (of a note or a scene)."""
        self.refresh()
        row = self.index.find(name.strip().strip("[]"), keys)
        if row is not None:
            return [row]
        wanted = " ".join(name.split()).casefold()
        return [
            one
            for one in self.index.scan(keys, now_us=_now(), layers=("L1", "L2", "L3"), states=_ALL)
            if " ".join(str(one.extra.get("title") or "").split()).casefold() == wanted != ""
        ]

    def call(self, name: str, keys: Keys) -> Row | None:
        """The tool call a handle or record id names."""
        self.refresh(budget_ms=100)
        row = self.index.find(name.strip().strip("[]"), keys)
        return row if row is not None and row.kind == "call" else None

    def rows_by_layer(self) -> dict[str, int]:
        """Rows of any state, by layer."""
        counts: dict[str, int] = {}
        for layer in ("L0", "L1", "L2", "L3", "report"):
            n = self.index.view(None, now_us=_now(), layers=(layer,), states=_ALL).n
            if n:
                counts[layer] = int(n)
        return counts

    def problems(self) -> Sequence[str]:
        """What is wrong with the index, the names people added, or files people broke."""
        broken = [
            f"{row.extra['path']}: front matter cannot be read ({row.extra['broken']}); read as plain text"
            for row in self.index.scan(None, now_us=_now(), layers=("L2",), states=_ALL)
            if row.extra.get("broken")
        ]
        ours, theirs = (
            segment.engine_of(name) for name in (self.index.tokenizer, self.index.manifest.tokenizer)
        )
        other = [
            f"the words of the index are cut by {theirs}, which is not installed here ({ours} is): some Chinese words"
            " are found by pairs of their characters only. Install it, or run hermes-memory reindex."
        ]
        return [
            *dict.fromkeys(self._problems),
            *(other if theirs and ours != theirs else ()),
            *self.analyst.problems(),
            *broken,
        ]

    # -- rebuilding --------------------------------------------------------------------------------------------------

    def rebuild(self, *, wait: float = 10.0) -> bool:
        """Make the index anew from the ledgers and the Markdown files; False when another process keeps the lock."""
        try:
            with LockFile(self.folder / "drain.lock").acquire(timeout=wait):
                archive = self._archive()
                facts = archive.facts.offsets()
                others = [archive.logs.offsets(), archive.reports.offsets()]
                offsets = {
                    name: min(offset, *(other.get(name, 0) for other in others))
                    for name, offset in facts.items()
                }
                segment.prefer("")
                self.index.tokenizer = tokenizer()
                IndexWriter(self.index).rebuild(self._stored_changes(archive), offsets)
        except LockBusy:
            return False
        return True

    def _rebuild_soon(self) -> None:
        def work() -> None:
            try:
                if self.rebuild():
                    self._count("index_rebuilt", "")
            except Exception as error:
                self._say("index_damaged", f"rebuilding failed: {type(error).__name__}: {error}")

        self._rebuilding = threading.Thread(target=work, name="hermes-memory-rebuild", daemon=True)
        self._rebuilding.start()

    def _stored_changes(self, archive: Archive) -> Iterator[Change]:
        rows = Rows(self.analyst, lambda row_id: None, self._lasts)
        graves = [
            row["id"]
            for ledger in (archive.facts, archive.logs)
            for row in ledger.rows("SELECT DISTINCT id FROM tombstones")
        ]
        if graves:
            yield Remove(tuple(graves))
        for record in archive.stored():
            yield from rows(record)
        for edit in markdown.scan(self.folder, self._notes, self._scenes, {}):
            if edit.record is not None:
                yield from rows(
                    Record("", edit.kind, edit.owner, int(edit.record["updated_at"]), edit.record)
                )

    def _known_files(self) -> dict[str, tuple[str, int, int]]:
        self.index.refresh()
        rows = self.index.scan(None, now_us=_now(), layers=("L2",), states=_ALL)
        return markdown.known_files(rows)

    def _say(self, name: str, detail: str) -> None:
        self._problems.append(detail)
        self._count(name, detail)


def _now() -> int:
    return time.time_ns() // 1000


def as_data(row: Row) -> dict[str, Any]:
    """A row as plain data, for listings."""
    return {
        "id": row.id,
        "layer": row.layer,
        "kind": row.kind,
        "owner": row.owner,
        "text": row.text,
        "source": row.source,
        "as_of": row.as_of,
        "created": row.created,
        **dict(row.extra),
    }
