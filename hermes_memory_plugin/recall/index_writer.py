"""Writing the read index: fold what memory holds into segments on disk. One process at a time: the drain's.

Nothing is locked against readers. A kill at any moment leaves the generation before, and the journals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.index import Index, JournalTail
from hermes_memory_plugin.recall.index_corpus import Corpus, Part, carry, joined
from hermes_memory_plugin.recall.index_disk import Manifest, fresh_name, overlay_of, save, save_overlay, sweep
from hermes_memory_plugin.recall.index_files import Array, IndexDamaged, verify
from hermes_memory_plugin.recall.index_row import Change
from hermes_memory_plugin.recall.segments import Segment
from hermes_memory_plugin.store.files import private_folder

if TYPE_CHECKING:
    from hermes_memory_plugin.store.tails import Chunk

_FAN = 4  # a segment is merged with what comes after it until it is more than so many times larger
_DEAD_SHARE = 0.3  # a segment with a larger share of dead rows is written anew


class IndexWriter:
    """The consumer of the drain that keeps the index on disk. The caller holds the drain lock.

    What this process has already tokenised, for its own recalls, is not tokenised again.
    """

    name = "index"

    def __init__(self, index: Index) -> None:
        self._index = index
        self._taken: dict[str, int] = {}

    def offsets(self) -> dict[str, int]:
        """What is on disk, and what was handed over since and will be there once `commit` returns."""
        self._index.adopt()
        return {**self._index.manifest.offsets, **self._taken}

    def apply(self, chunk: Chunk) -> None:
        """Take the records of a chunk."""
        with self._index.reading:
            self._index.tail.take(chunk)
        self._taken[chunk.journal] = chunk.end

    def commit(self) -> Manifest:
        """Put everything there is on disk; returns what is there then.

        Raises IndexDamaged when the index is gone and the journals alone no longer hold everything: `rebuild` it.
        """
        return self._write(compact=False)

    def purge(self) -> Manifest:
        """Write every segment with dead rows anew and remove the old files: forgotten bytes are gone."""
        return self._write(compact=True)

    def rebuild(self, changes: Iterable[Change], offsets: Mapping[str, int]) -> Manifest:
        """Begin anew from the ledgers and Markdown: all their rows, and the offsets they stand for.

        Tombstones belong into `changes`. Journals are read again from `offsets`.
        """
        index = self._index
        tail = JournalTail(index.tail.folder, index.tail.rows_of)
        fresh = Index(index.folder, tail, tokenizer=index.tokenizer, retires=index.retires)
        fresh.start_over(offsets)
        fresh.change(changes, stamp=0)
        with index.writing:
            manifest = IndexWriter(fresh)._write_all(compact=False)
            index.replace_with(fresh)
        return manifest

    def _write(self, *, compact: bool) -> Manifest:
        index = self._index
        with index.writing:
            index.adopt()
            if index.missing and not index.tail.complete:
                raise IndexDamaged(
                    index.folder, "its manifest is missing or damaged, and journals were removed"
                )
            manifest = self._write_all(compact=compact)
            self._taken.clear()
            return manifest

    def _write_all(self, *, compact: bool) -> Manifest:
        index = self._index
        offsets, disk, memory = index.caught_up()
        if not index.missing and not memory and not compact and index.corpus.version == index.written:
            return self._put_offsets(offsets)
        corpus = index.corpus
        for part in memory:
            part.pinned = True
        try:
            return self._put(corpus, offsets, disk, memory, compact=compact)
        finally:
            for part in memory:
                part.pinned = False

    def _put_offsets(self, offsets: dict[str, int]) -> Manifest:
        """The rows are the same, only journals went on."""
        index = self._index
        if offsets != index.manifest.offsets:
            manifest = replace(index.manifest, generation=index.manifest.generation + 1, offsets=offsets)
            seen = save(index.folder, manifest)
            with index.lock:
                index.adopted(manifest, seen)
        return index.manifest

    def _put(
        self, corpus: Corpus, offsets: dict[str, int], disk: list[Part], memory: list[Part], *, compact: bool
    ) -> Manifest:
        index = self._index
        folder = private_folder(index.folder)
        stay, fold = _plan(disk, memory, compact=compact)
        generation = index.manifest.generation + 1
        files = {entry[0]: entry for entry in index.manifest.files}
        fresh: Part | None = None
        numbers: list[Array] = []
        if fold:
            for part in fold:
                if part.on_disk:  # damage must not be copied
                    verify(folder / part.segment.file, *files[part.segment.file][1:])
            new, numbers = joined(fold)
            if new.segment.rows:
                name = fresh_name(generation, "seg")
                size, crc = new.segment.write(folder / name)
                files[name] = (name, size, crc)
                fresh = Part(Segment.open(folder / name, size, crc), on_disk=True)
        after = [*stay, fresh] if fresh is not None else stay
        with index.lock:
            if fresh is not None:
                carry(fold, numbers, fresh)
            overlay = overlay_of(after, corpus.gone)
        # What happens from here to the end comes from records behind `offsets`: whoever reads those knows it too.
        manifest = Manifest(
            generation,
            index.manifest.tokenizer,  # that of most rows, also when this process would cut otherwise
            tuple(files[part.segment.file] for part in after),
            save_overlay(folder, overlay, generation),
            offsets,
        )
        seen = save(folder, manifest)
        with index.lock:
            if fresh is not None:
                carry(fold, numbers, fresh)
            corpus.disk = after
            corpus.memory = [part for part in corpus.memory if part not in memory]
            corpus.version += 1
            index.written = corpus.version
            index.adopted(manifest, seen)
        sweep(folder, manifest, at_once=compact)
        return manifest


def _plan(disk: list[Part], memory: list[Part], *, compact: bool) -> tuple[list[Part], list[Part]]:
    """Which parts on disk stay, and which become one with those in memory."""
    stay: list[Part] = []
    worn: list[Part] = []
    for part in disk:
        dead = int(part.dead.sum())
        (worn if dead and (compact or dead > _DEAD_SHARE * part.segment.rows) else stay).append(part)
    rows = sum(part.segment.rows for part in [*memory, *worn])
    while rows and stay and stay[-1].segment.rows <= _FAN * rows:
        rows += stay[-1].segment.rows
        worn.insert(0, stay.pop())
    return stay, [*worn, *memory]
