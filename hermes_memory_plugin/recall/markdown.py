"""The Markdown layers as the index sees them: journal records of files, and the scan that finds foreign edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hermes_memory_plugin.layers import front
from hermes_memory_plugin.layers.facts import microseconds
from hermes_memory_plugin.layers.notes import Note, Notes
from hermes_memory_plugin.layers.scenes import Scene, Scenes
from hermes_memory_plugin.store.mask import mask_text

Kind = Literal["note", "scene"]
Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Edit:
    """What a scan found: a file that is new or changed (`record`), or one that is gone (`gone`, a row id)."""

    kind: Kind
    record: dict[str, Any] | None = None
    owner: str = "local"
    gone: str = ""


def note_record(folder: Path, note: Note, mask: Mask = mask_text) -> dict[str, Any]:
    """The journal's record of a note as it stands on disk, its texts masked."""
    return _record(folder, note, note.type, mask)


def scene_record(folder: Path, scene: Scene, mask: Mask = mask_text) -> dict[str, Any]:
    """The journal's record of a scene as it stands on disk, its texts masked."""
    record = _record(folder, scene.note, "scene", mask)
    # Masked before it is cut: half a key has no shape.
    masked = replace(scene.note, title=record["title"], body=record["body"])
    record["summary"] = replace(scene, note=masked).summary
    if scene.as_of:
        record["as_of"] = microseconds(scene.as_of)
    if scene.expires:
        record["expires_at"] = microseconds(scene.expires)
    record["scene"] = {
        "tickers": [mask(one) for one in scene.tickers],
        "sectors": [mask(one) for one in scene.sectors],
        "period": mask(scene.period),
        "status": scene.status,
        "sources": list(scene.sources),
    }
    return record


def scan(
    folder: Path, notes: Notes, scenes: Scenes, known: Mapping[str, tuple[str, int, int]]
) -> Iterator[Edit]:
    """Compare the files with what is indexed: {path relative to `folder`: (row id, mtime in ns, size)}.

    Looks at a file's stamp only, and reads those that changed.
    """
    seen: set[str] = set()
    holder = {row_id: relative for relative, (row_id, _, _) in known.items()}
    for kind, layer in (("note", notes), ("scene", scenes)):
        for entry in layer.files():
            relative = f"{layer.folder.name}/{entry.name}"
            seen.add(relative)
            stat = entry.stat(follow_symlinks=False)
            if known.get(relative, ("", -1, -1))[1:] == (stat.st_mtime_ns, stat.st_size):
                continue
            edit = _read(folder, kind, Path(entry.path), notes, scenes)
            if edit is not None:
                assert edit.record is not None
                other = holder.get(edit.record["id"], relative)
                if other != relative and (folder / other).is_file():  # a copy: two files are two rows
                    edit.record["id"] = front.file_id(Path(entry.path))
                holder[edit.record["id"]] = relative
                yield edit
                earlier = known.get(relative)
                if earlier and earlier[0] != edit.record["id"] and holder.get(earlier[0]) == relative:
                    yield Edit(edit.kind, gone=earlier[0])
    for relative, (row_id, _, _) in known.items():
        if relative not in seen and holder.get(row_id) == relative:  # not one that was only renamed
            yield Edit("note", gone=row_id)


def _read(folder: Path, kind: str, path: Path, notes: Notes, scenes: Scenes) -> Edit | None:
    if kind == "note":
        note = notes.read(path)
        return Edit("note", note_record(folder, note, notes.mask), note.owner.key) if note else None
    scene = scenes.read(path)
    if scene is None:
        return None
    return Edit("scene", scene_record(folder, scene, scenes.mask), scene.note.owner.key)


def _record(folder: Path, note: Note, type_: str, mask: Mask) -> dict[str, Any]:
    try:
        stat = note.path.stat()
        stamp, size = stat.st_mtime_ns, stat.st_size
    except OSError:
        stamp, size = -1, -1
    return {
        "id": note.id,
        "path": note.path.relative_to(folder).as_posix(),
        "type": type_,
        "title": mask(note.title),
        "description": mask(note.description),
        "body": mask(note.body),
        "origin": note.origin,
        "project": note.project,
        "created_at": microseconds(note.created),
        "updated_at": microseconds(note.updated),
        "mtime_ns": stamp,
        "size": size,
        "broken": mask(note.broken),
        "restored_at": microseconds(note.restored),
    }


def known_files(rows: Iterable[Any]) -> dict[str, tuple[str, int, int]]:
    """What `scan` compares with, from the index rows of the Markdown layers."""
    return {
        str(row.extra["path"]): (row.id, int(row.extra.get("mtime_ns", -1)), int(row.extra.get("size", -1)))
        for row in rows
        if row.extra.get("path")
    }
