"""The index folder: one manifest that names the segments, and the state of their rows beside it.

A reader opens all files of a manifest at once and keeps them; one that finds a file gone reads the manifest again.
Only the holder of the drain lock writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory_plugin.recall.index_corpus import Part
from hermes_memory_plugin.recall.index_files import Array, IndexDamaged, read_container, write_container
from hermes_memory_plugin.recall.index_gone import Gone
from hermes_memory_plugin.recall.segment import fits
from hermes_memory_plugin.recall.segments import Segment
from hermes_memory_plugin.store.files import atomic_write

FORMAT = 1
MANIFEST = "manifest.json"
_GRACE_SECONDS = 60.0
_TRIES = 5

File = tuple[str, int, int]
"""Name, bytes and crc32."""

Signature = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One state of the index on disk."""

    generation: int = 0
    tokenizer: str = ""
    files: tuple[File, ...] = ()
    overlay: File | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Loaded:
    """A manifest and all it names, opened."""

    manifest: Manifest
    signature: Signature
    parts: list[Part]
    gone: Gone


def signature(folder: Path) -> Signature | None:
    """What changes whenever the manifest does; None when there is none."""
    try:
        stat = (folder / MANIFEST).stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_ino, stat.st_size)


def recorded_tokenizer(folder: Path) -> str:
    """The name of what cut the rows of the index; empty when there is none or it cannot be read."""
    try:
        return str(json.loads((folder / MANIFEST).read_bytes())["tokenizer"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def load(folder: Path, tokenizer: str, reuse: Iterable[Part] = ()) -> Loaded | None:
    """The index of a folder; None when there is none yet. Raises IndexDamaged."""
    known = {part.segment.file: part.segment for part in reuse if part.on_disk}
    for attempt in range(_TRIES):
        seen = signature(folder)
        if seen is None:
            return None
        manifest = _read_manifest(folder / MANIFEST, tokenizer)
        try:
            return _open(folder, manifest, seen, known)
        except FileNotFoundError as error:
            if attempt + 1 == _TRIES:
                raise IndexDamaged(
                    Path(str(error.filename)), "the manifest names it, but it is gone"
                ) from error
            time.sleep(0.002 * (attempt + 1))
    return None


def _read_manifest(path: Path, tokenizer: str) -> Manifest:
    try:
        fields = json.loads(path.read_bytes())
        manifest = Manifest(
            generation=int(fields["generation"]),
            tokenizer=str(fields["tokenizer"]),
            files=tuple((str(name), int(size), int(crc)) for name, size, crc in fields["files"]),
            overlay=(str(fields["overlay"][0]), int(fields["overlay"][1]), int(fields["overlay"][2])),
            offsets={str(name): int(offset) for name, offset in fields["offsets"].items()},
        )
        written_as = fields["format"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexDamaged(path, f"it cannot be read ({error})") from error
    if written_as != FORMAT:
        raise IndexDamaged(path, f"it has format {written_as}, this version reads {FORMAT}")
    if not fits(manifest.tokenizer, tokenizer):
        raise IndexDamaged(path, f"its words were cut by {manifest.tokenizer}, now {tokenizer} is in use")
    return manifest


def _open(folder: Path, manifest: Manifest, seen: Signature, known: Mapping[str, Segment]) -> Loaded:
    parts = [
        Part(known.get(name) or Segment.open(folder / name, size, crc), on_disk=True)
        for name, size, crc in manifest.files
    ]
    if manifest.overlay is None:
        return Loaded(manifest, seen, parts, Gone())
    name, size, crc = manifest.overlay
    _, arrays = read_container(folder / name, size=size, crc=crc)
    try:
        base = 0
        for part in parts:
            for rows, apply in (("dead", "dead"), ("over", "successor")):
                numbers = arrays[rows]
                start, stop = np.searchsorted(numbers, [base, base + part.segment.rows])
                values = arrays["over_by"][start:stop] if rows == "over" else True
                getattr(part, apply)[numbers[start:stop] - base] = values
            base += part.segment.rows
        gone = Gone(
            **{
                one.name: dict(zip(arrays[one.name].tolist(), arrays[f"{one.name}_at"].tolist(), strict=True))
                for one in fields(Gone)
                if one.name in arrays
            }
        )
    except (KeyError, IndexError, ValueError) as error:
        raise IndexDamaged(folder / name, f"it does not fit its segments ({error!r})") from error
    return Loaded(manifest, seen, parts, gone)


def overlay_of(parts: Iterable[Part], gone: Gone) -> dict[str, Array]:
    """The state of the rows as arrays; numbers run through all parts."""
    dead, over, over_by, base = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.uint64)], 0
    for part in parts:
        dead.append(np.flatnonzero(part.dead) + base)
        rows = np.flatnonzero(part.successor)
        over.append(rows + base)
        over_by.append(part.successor[rows])
        base += part.segment.rows
    overlay = {
        "dead": np.concatenate(dead),
        "over": np.concatenate(over),
        "over_by": np.concatenate(over_by),
    }
    for one in fields(gone):
        stamps: dict[int, int] = getattr(gone, one.name)
        overlay[one.name] = np.array(list(stamps), np.uint64)
        overlay[f"{one.name}_at"] = np.array(list(stamps.values()), np.int64)
    return overlay


def fresh_name(generation: int, suffix: str) -> str:
    """A file name no other generation or writer uses."""
    return f"{generation:08d}-{os.urandom(4).hex()}.{suffix}"


def save_overlay(folder: Path, overlay: Mapping[str, Array], generation: int) -> File:
    """Write the state of the rows."""
    name = fresh_name(generation, "rows")
    return (name, *write_container(folder / name, {}, overlay))


def save(folder: Path, manifest: Manifest) -> Signature:
    """Write the manifest; from the rename on, readers see this generation."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "generation": manifest.generation,
        "tokenizer": manifest.tokenizer,
        "files": manifest.files,
        "overlay": manifest.overlay,
        "offsets": manifest.offsets,
    }
    atomic_write(folder, MANIFEST, json.dumps(fields, ensure_ascii=False, indent=1), fsync=True)
    seen = signature(folder)
    assert seen is not None
    return seen


def sweep(folder: Path, manifest: Manifest, *, at_once: bool = False) -> list[str]:
    """Remove files no manifest names any more, after a minute or at once; what cannot go now goes next time.

    A reader that still maps a removed file keeps it (POSIX), or keeps us from removing it (Windows).
    """
    named = {MANIFEST, *(name for name, _, _ in manifest.files)}
    if manifest.overlay:
        named.add(manifest.overlay[0])
    gone = []
    for entry in list(os.scandir(folder)):
        ours = entry.name.endswith((".seg", ".rows", ".tmp"))
        with contextlib.suppress(OSError):
            if (
                ours
                and entry.name not in named
                and (at_once or time.time() - entry.stat().st_mtime > _GRACE_SECONDS)
            ):
                Path(entry.path).unlink()
                gone.append(entry.name)
    return gone
