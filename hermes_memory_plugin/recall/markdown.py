"""The Markdown layers as the index sees them: journal records of files, and the scan that finds foreign edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hermes_memory_plugin.layers import front
from hermes_memory_plugin.layers.facts import microseconds
from hermes_memory_plugin.layers.notes import Note, Notes
from hermes_memory_plugin.layers.scenes import Scene, Scenes

Kind = Literal["note", "scene"]


@dataclass(frozen=True, slots=True)
class Edit:
    """What a scan found: a file that is new or changed (`record`), or one that is gone (`gone`, a row id)."""

    kind: Kind
    record: dict[str, Any] | None = None
    owner: str = "local"
    gone: str = ""


def note_record(folder: Path, note: Note) -> dict[str, Any]:
    """The journal's record of a note as it stands on disk."""
    return _record(folder, note, note.body, note.type)


def scene_record(folder: Path, scene: Scene) -> dict[str, Any]:
    """The journal's record of a scene as it stands on disk."""
    record = _record(folder, scene.note, scene.note.body, "scene")
    record["summary"] = scene.summary
    if scene.as_of:
        record["as_of"] = microseconds(scene.as_of)
    if scene.expires:
        record["expires_at"] = microseconds(scene.expires)
    record["scene"] = {
        "tickers": list(scene.tickers),
        "sectors": list(scene.sectors),
        "period": scene.period,
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
        return Edit("note", note_record(folder, note), note.owner.key) if note else None
    scene = scenes.read(path)
    return Edit("scene", scene_record(folder, scene), scene.note.owner.key) if scene else None


def _record(folder: Path, note: Note, body: str, type_: str) -> dict[str, Any]:
    try:
        stat = note.path.stat()
        stamp, size = stat.st_mtime_ns, stat.st_size
    except OSError:
        stamp, size = -1, -1
    return {
        "id": note.id,
        "path": note.path.relative_to(folder).as_posix(),
        "type": type_,
        "title": note.title,
        "description": note.description,
        "body": body,
        "origin": note.origin,
        "project": note.project,
        "created_at": microseconds(note.created),
        "updated_at": microseconds(note.updated),
        "mtime_ns": stamp,
        "size": size,
        "broken": note.broken,
    }


def known_files(rows: Iterable[Any]) -> dict[str, tuple[str, int, int]]:
    """What `scan` compares with, from the index rows of the Markdown layers."""
    return {
        str(row.extra["path"]): (row.id, int(row.extra.get("mtime_ns", -1)), int(row.extra.get("size", -1)))
        for row in rows
        if row.extra.get("path")
    }
