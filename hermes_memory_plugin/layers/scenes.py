"""L2 scenes: the background of a topic, one Markdown file each under `memory/scenarios/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.layers.notes import BadNote, Note, Notes
from hermes_memory_plugin.store.files import atomic_write, private_folder
from hermes_memory_plugin.store.ids import new_ulid
from hermes_memory_plugin.store.locks import LockFile

SUMMARY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene as it stands on disk; `note.body` is the whole text, its first paragraph the summary."""

    note: Note
    as_of: datetime | None = None

    @property
    def summary(self) -> str:
        """The first paragraph, at most ~200 characters."""
        first = re.split(r"\n\s*\n", self.note.body.strip(), maxsplit=1)[0]
        text = (
            " ".join(part for part in first.splitlines() if not part.startswith("#")).strip()
            or self.note.title
        )
        return text if len(text) <= SUMMARY_LENGTH else text[: SUMMARY_LENGTH - 1] + "…"


class Scenes:
    """The scenarios folder of one home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = Notes(folder)

    def save(
        self,
        title: str,
        body: str,
        *,
        id: str = "",
        as_of: datetime | None = None,
        owner: Owner = Owner(),
    ) -> Scene:
        """Write the scene; one of the same title and owner is replaced. Raises BadNote for a blank title."""
        title = " ".join(title.split())
        if not title:
            raise BadNote("title", title, "a title with at least one visible character")
        private_folder(self.folder)
        now = datetime.now(UTC)
        with LockFile(self.folder / ".lock").acquire(timeout=5.0):
            earlier = self._files.by_title(title, owner)
            path = self._files.path_for(title, "", owner, earlier)
            note = Note(
                id=id or (earlier.id if earlier else new_ulid()),
                title=title,
                type="scene",
                body=body.strip(),
                path=path,
                owner=owner,
                description=title,
                created=earlier.created if earlier else now,
                updated=now,
            )
            atomic_write(self.folder, path.name, _as_text(note, as_of))
        return Scene(note, as_of)

    def remove(self, scene: Scene) -> None:
        """Delete the file."""
        scene.note.path.unlink(missing_ok=True)

    def read(self, path: Path) -> Scene | None:
        """The scene in that file; None when it is gone or no regular file."""
        note = self._files.read(path)
        return Scene(note, note.as_of) if note else None

    def files(self) -> Iterator[Any]:
        """Directory entries of every scene file."""
        return self._files.files()

    def __iter__(self) -> Iterator[Scene]:
        for note in self._files:
            yield Scene(note, note.as_of)


def _as_text(note: Note, as_of: datetime | None) -> str:
    import yaml

    front: dict[str, Any] = {
        "id": note.id,
        "title": note.title,
        "status": "active",
        "owner": note.owner.key,
        "created": note.created.isoformat(timespec="seconds"),
        "updated": note.updated.isoformat(timespec="seconds"),
    }
    if as_of:
        front["as_of"] = as_of.isoformat(timespec="seconds")
    head = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{head}---\n\n{note.body}\n"
