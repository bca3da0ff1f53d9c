"""L2 notes: one Markdown file for each thing the user asked to remember, and INDEX.md over them.

A file is `<type>_<slug>.md` with YAML front matter (id, name, description, type, owner, created, updated). People may edit it: their
text wins, and a file whose front matter was broken by hand is read as plain text and never rewritten.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.layers import front, note_index
from hermes_memory_plugin.layers.front import SLUG_LENGTH, TYPES, slug
from hermes_memory_plugin.layers.trash import Discarded, Trash
from hermes_memory_plugin.store.files import astray, atomic_write, inside, private_folder
from hermes_memory_plugin.store.ids import new_ulid
from hermes_memory_plugin.store.locks import LockFile
from hermes_memory_plugin.store.mask import mask_text

BODY_LENGTH = 8_000
CUT_MARK = "\n\n[… cut at 8,000 characters]"


class BadNote(HermesMemoryError, ValueError):
    """The note cannot be stored as asked; nothing was written."""

    def __init__(self, field_: str, value: object, allowed: str) -> None:
        super().__init__(f"cannot save a note with {field_} = {value!r}: {allowed}. Nothing was written.")
        self.field = field_
        self.value = value


class FolderUnwritable(HermesMemoryError):
    """A folder of Markdown files cannot be written; nothing changed."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"{folder} cannot be written: {reason}. Nothing was changed: make the folder writable for this user."
        )
        self.folder = folder
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Note:
    """One note as it stands on disk."""

    id: str
    title: str
    type: str
    body: str
    path: Path
    owner: Owner = Owner()
    description: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))
    origin: str = "user"
    project: str = ""
    as_of: datetime | None = None
    broken: str = ""
    """Why the front matter could not be read; such a file is never rewritten."""
    restored: datetime | None = None
    """When it was taken out of the trash: what was forgotten of its id before then does not count."""


class Notes:
    """The notes folder of one home. What `mask` finds in a text never reaches a file."""

    def __init__(self, folder: Path, *, mask: Callable[[str], str] = mask_text) -> None:
        self.folder = folder
        self.mask = mask
        self.trash = Trash(folder.parent / "trash")

    def save(
        self,
        title: str,
        content: str,
        type: str = "project",
        *,
        owner: Owner = Owner(),
        id: str = "",
        origin: str = "user",
        description: str = "",
        project: str = "",
        now: datetime | None = None,
    ) -> Note:
        """Write the note to disk and return it. The same owner's note of that title is replaced.

        Raises BadNote for a blank title or an unknown type, FolderUnwritable when the disk says no, UnsafePath when
        INDEX.md is a link that leaves the memory.
        """
        title = self.title_of(title)
        body = self.mask(front.clean(content).strip())
        now = (now or datetime.now(UTC)).replace(microsecond=0)
        if not title:
            raise BadNote("title", title, "a title with at least one visible character")
        if type not in TYPES:
            raise BadNote("type", type, "one of " + ", ".join(TYPES))
        inside(self.folder.parent, note_index.NAME)  # before the first byte is written
        if len(body) > BODY_LENGTH:
            body = body[: BODY_LENGTH - len(CUT_MARK)].rstrip() + CUT_MARK
        with self.changing():
            earlier = self.by_title(title, owner)
            note = Note(
                id=id or (earlier.id if earlier else new_ulid()),
                title=title,
                type=type,
                body=body,
                path=self.path_for(title, type, owner, earlier),
                owner=owner,
                description=self.title_of(description) or title,
                created=earlier.created if earlier else now,
                updated=now,
                origin=origin,
                project=project,
                restored=earlier.restored if earlier else None,
            )
            atomic_write(self.folder, note.path.name, _as_text(note))
            if earlier and earlier.path != note.path:
                earlier.path.unlink(missing_ok=True)
            self._index_line(note, drop=earlier.path.name if earlier else "")
        return note

    def remove(self, note: Note) -> Discarded | None:
        """Move the file to the trash and take its line out of INDEX.md."""
        with self.changing():
            gone = self.trash.put(note.path)
            self._index_line(drop=note.path.name)
            self.trash.purge()
        return gone

    def restore(self, found: Discarded) -> Note:
        """Bring a forgotten note back as what it was, its id included; its file says when, so that the id counts again.

        A file whose front matter is broken comes back byte for byte, under another name. Raises BadNote when a note
        of that title has been saved since.
        """
        note = self._read(found.path)
        if note is None:
            raise BadNote("name", found.name, "a file in the trash; it is gone or cannot be read")
        with self.changing():
            if self.by_title(note.title, note.owner) is not None:
                raise BadNote(
                    "title", note.title, "a title no newer note has; forget or rename that one first"
                )
            if note.broken:
                path = self.folder / f"{found.file.removesuffix('.md')[:90]}_{new_ulid()[-6:].lower()}.md"
                found.path.rename(path)
                note = replace(note, path=path, id=front.file_id(path))
            else:
                type_ = note.type if note.type in TYPES else _type_of(Path(found.file))
                title = note.title if note.title != found.path.stem.replace("_", " ") else found.title
                note = replace(
                    note,
                    id=id_of(note, found),
                    restored=datetime.now(UTC),
                    type=type_,
                    title=self.title_of(title),
                    description=self.title_of(note.description),
                    body=self.mask(note.body),
                )
                title = note.title
                note = replace(note, path=self.path_for(title, type_, note.owner))
                atomic_write(self.folder, note.path.name, _as_text(note))
                found.path.unlink(missing_ok=True)
            self._index_line(note, drop="")
        return note

    def list_edited(self, names: Iterable[str]) -> None:
        """Bring INDEX.md up to date with files that people added, changed or removed."""
        with self.changing():
            edited = (self._read(self.folder / name) for name in names)
            self._index_line(*(note for note in edited if note), drop="")

    def index(self, files: Collection[str] | None = None) -> list[str]:
        """The first 200 lines of INDEX.md; with `files` only lines of those files (`notes/…`)."""
        return note_index.read(self.folder.parent, files)

    def title_of(self, text: str) -> str:
        """A title as it is stored: one line, masked; "" when nothing of it can be seen."""
        title = front.one_line(front.clean(text))
        return self.mask(title) if any(unicodedata.category(one)[0] in "LMNPS" for one in title) else ""

    def by_title(self, title: str, owner: Owner) -> Note | None:
        """The owner's note of exactly that title; of two the one whose file name comes first. Never a broken file."""
        return next(self.titled(title, owner), None)

    def titled(self, title: str, owner: Owner) -> Iterator[Note]:
        """Every note of the owner with exactly that title, by file name. Never a broken file."""
        title = self.title_of(title)
        wanted = front.fold(title)
        for path in self._likely(title):
            note = self._read(path)
            if (
                note
                and not note.broken
                and note.owner.key == owner.key
                and front.fold(self.mask(note.title)) == wanted
            ):
                yield note

    def read(self, path: Path) -> Note | None:
        """The note in that file; None when it is gone, is no regular file or leaves the folder."""
        return self._read(path)

    def files(self) -> Iterator[os.DirEntry[str]]:
        """Directory entries of every note file, by name; symlinks and folders are left out."""
        if astray(self.folder):
            return
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            with os.scandir(self.folder) as entries:
                found = [
                    entry
                    for entry in entries
                    if entry.name.endswith(".md")
                    and entry.name != note_index.NAME
                    and not entry.name.startswith(".")
                    and entry.is_file(follow_symlinks=False)
                ]
            yield from sorted(found, key=lambda entry: entry.name)

    def strange(self) -> list[str]:
        """Sentences about links in the folder, or in its place: they are never followed out of the memory."""
        if astray(self.folder):
            return [
                f"{self.folder.name} is a symbolic link that leaves the memory: nothing in it is read. Put the folder itself there."
            ]
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            return [
                f"{self.folder.name}/{entry.name} is a symbolic link: it is not read. Put the file itself there."
                for entry in entries
                if entry.name.endswith(".md") and entry.is_symlink()
            ]
        return []

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """The folder, locked. Raises FolderUnwritable for whatever the disk refuses, and for links that leave the memory."""
        if astray(self.folder):
            raise FolderUnwritable(self.folder, "it is a symbolic link that leaves the memory")
        try:
            private_folder(self.folder)
            with LockFile(self.folder / ".lock").acquire(timeout=5.0):
                yield
        except OSError as error:
            raise FolderUnwritable(self.folder, error.strerror or str(error)) from error

    def __iter__(self) -> Iterator[Note]:
        for entry in self.files():
            note = self._read(Path(entry.path))
            if note:
                yield note

    def _read(self, path: Path) -> Note | None:
        try:
            if path.is_symlink():
                return None
            text = path.read_text(encoding="utf-8", errors="replace")
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError:
            return None
        return parse(text, path, changed)

    def _likely(self, title: str) -> list[Path]:
        """Files that could hold the title: those of its slug, or with a hash suffix behind it."""
        stem = slug(title)
        return [
            Path(entry.path)
            for entry in self.files()
            if _stem(entry.name) == stem or _stem(entry.name).startswith(stem[: SLUG_LENGTH - 7])
        ]

    def path_for(self, title: str, type_: str, owner: Owner, earlier: Note | None = None) -> Path:
        """The file for that title: its own earlier one, or one no other title or owner has."""
        head = f"{type_}_" if type_ else ""
        path = self.folder / f"{head}{slug(title)}.md"
        if earlier and earlier.path == path:
            return path
        if not os.path.lexists(path):
            return path
        for number in range(1_000):
            what = f"{owner.key}\0{front.fold(title)}" + (f"\0{number}" if number else "")
            mark = hashlib.sha256(what.encode()).hexdigest()[:6]
            path = self.folder / f"{head}{slug(title)[: SLUG_LENGTH - 7]}_{mark}.md"
            if (earlier and earlier.path == path) or not os.path.lexists(path):
                break
        return path

    def _index_line(self, *changed: Note, drop: str) -> None:
        def line_of(name: str) -> note_index.Line | None:
            note = self._read(self.folder / name)
            return self._line(note) if note else None

        there = {entry.name for entry in self.files()}
        note_index.rewrite(
            self.folder.parent, map(self._line, changed), drop=drop, there=there, line_of=line_of
        )

    def _line(self, note: Note) -> note_index.Line:
        return note.path.name, self.mask(note.title), self.mask(note.description)


def id_of(note: Note, found: Discarded) -> str:
    """The id of a forgotten file: its own, or that of the name it had."""
    return found.id or front.file_id(note.path.with_name(found.file))


def parse(text: str, path: Path, changed: datetime) -> Note:
    """Read a note file's text. Broken front matter: the whole text is the body and `broken` says why."""
    parts = front.split(text)
    plain = Note(
        id=front.file_id(path),
        title=front.title_of_file(path.name),
        type=_type_of(path),
        body=parts.body,
        path=path,
        owner=parts.owner,
        created=changed,
        updated=changed,
        broken=parts.broken,
    )
    found = parts.fields
    if not found:
        return plain
    return replace(
        plain,
        id=str(found.get("id") or plain.id),
        title=front.one_line(str(found.get("name") or found.get("title") or plain.title)),
        type=found["type"] if found.get("type") in TYPES else plain.type,
        description=front.one_line(str(found.get("description") or "")),
        created=front.moment(found.get("created")) or changed,
        updated=front.moment(found.get("updated")) or changed,
        origin=str(found.get("origin") or "user"),
        project=str(found.get("project") or ""),
        as_of=front.moment(found.get("as_of")),
        restored=front.moment(found.get("restored")),
    )


def _as_text(note: Note) -> str:
    fields: dict[str, Any] = {
        "id": note.id,
        "name": note.title,
        "description": note.description,
        "type": note.type,
        "owner": note.owner.key,
        "origin": note.origin,
        "created": note.created.isoformat(timespec="seconds"),
        "updated": note.updated.isoformat(timespec="seconds"),
    }
    if note.restored:
        fields["restored"] = note.restored.isoformat(timespec="microseconds")
    if note.project:
        fields["project"] = note.project
    return front.join(fields, note.body)


def _stem(name: str) -> str:
    stem = name.removesuffix(".md")
    return stem.split("_", 1)[1] if stem.split("_", 1)[0] in TYPES and "_" in stem else stem


def _type_of(path: Path) -> str:
    head = path.name.split("_", 1)[0]
    return head if head in TYPES else "reference"
