"""L2 notes: one Markdown file for each thing the user asked to remember, and INDEX.md over them.

A file is `<type>_<slug>.md` with YAML front matter (id, name, description, type, owner, created, updated). People may edit it: their
text wins, and a file whose front matter was broken by hand is read as plain text and never rewritten.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.files import atomic_write, private_folder
from hermes_memory_plugin.store.ids import new_ulid
from hermes_memory_plugin.store.locks import LockFile

TYPES = ("user", "feedback", "project", "reference")
INDEX = "INDEX.md"
SLUG_LENGTH = 60
BODY_LENGTH = 8_000
CUT_MARK = "\n\n[… cut at 8,000 characters]"

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LINK = re.compile(r"^- \[.*\]\(([^()\s]+)\)", re.MULTILINE)


class BadNote(HermesMemoryError, ValueError):
    """The note cannot be stored as asked; nothing was written."""

    def __init__(self, field_: str, value: object, allowed: str) -> None:
        super().__init__(f"cannot save a note with {field_} = {value!r}: {allowed}. Nothing was written.")
        self.field = field_
        self.value = value


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


class Notes:
    """The notes folder of one home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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

        Raises BadNote for a blank title or an unknown type.
        """
        title, body = _one_line(_clean(title)), _clean(content).strip()
        now = (now or datetime.now(UTC)).replace(microsecond=0)
        if not title:
            raise BadNote("title", title, "a title with at least one visible character")
        if type not in TYPES:
            raise BadNote("type", type, "one of " + ", ".join(TYPES))
        if len(body) > BODY_LENGTH:
            body = body[: BODY_LENGTH - len(CUT_MARK)].rstrip() + CUT_MARK
        private_folder(self.folder)
        with LockFile(self.folder / ".lock").acquire(timeout=5.0):
            earlier = self.by_title(title, owner)
            note = Note(
                id=id or (earlier.id if earlier else new_ulid()),
                title=title,
                type=type,
                body=body,
                path=self.path_for(title, type, owner, earlier),
                owner=owner,
                description=_one_line(description or title),
                created=earlier.created if earlier else now,
                updated=now,
                origin=origin,
                project=project,
            )
            atomic_write(self.folder, note.path.name, _as_text(note))
            if earlier and earlier.path != note.path:
                earlier.path.unlink(missing_ok=True)
            self._index_line(note, drop=earlier.path.name if earlier else "")
        return note

    def remove(self, note: Note) -> None:
        """Delete the file and its line in INDEX.md."""
        private_folder(self.folder)
        with LockFile(self.folder / ".lock").acquire(timeout=5.0):
            note.path.unlink(missing_ok=True)
            self._index_line(None, drop=note.path.name)

    def by_title(self, title: str, owner: Owner) -> Note | None:
        """The owner's note of exactly that title."""
        wanted = _fold(title)
        for path in self._likely(title):
            note = self._read(path)
            if note and _fold(note.title) == wanted and note.owner.key == owner.key:
                return note
        return None

    def read(self, path: Path) -> Note | None:
        """The note in that file; None when it is gone, is no regular file or leaves the folder."""
        return self._read(path)

    def files(self) -> Iterator[os.DirEntry[str]]:
        """Directory entries of every note file; symlinks and folders are left out."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                if (
                    entry.name.endswith(".md")
                    and entry.name != INDEX
                    and not entry.name.startswith(".")
                    and entry.is_file(follow_symlinks=False)
                ):
                    yield entry

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
        mark = hashlib.sha256(f"{owner.key}\0{_fold(title)}".encode()).hexdigest()[:6]
        return self.folder / f"{head}{slug(title)[: SLUG_LENGTH - 7]}_{mark}.md"

    def _index_line(self, note: Note | None, *, drop: str) -> None:
        path = self.folder.parent / INDEX
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            lines = [_index_entry(other) for other in sorted(self, key=lambda one: one.path.name)]
        gone = {drop, note.path.name if note else ""}
        at = next((number for number, text in enumerate(lines) if _target(text) in gone - {""}), len(lines))
        kept = [text for text in lines if _target(text) not in gone - {""}]
        if note:
            kept.insert(min(at, len(kept)), _index_entry(note))
        atomic_write(path.parent, path.name, "\n".join(kept) + "\n" if kept else "")


def parse(text: str, path: Path, changed: datetime) -> Note:
    """Read a note file's text. Broken front matter: the whole text is the body and `broken` says why."""
    import yaml

    match = _FRONT.match(text)
    plain = Note(
        id=_file_id(path),
        title=_stem(path.name).replace("_", " ") or path.stem,
        type=_type_of(path),
        body=text.strip(),
        path=path,
        created=changed,
        updated=changed,
    )
    if not match:
        return plain
    try:
        front = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        return replace(plain, broken=str(error).splitlines()[0], owner=_owner_of_broken(match[1]))
    if not isinstance(front, Mapping):
        return replace(plain, broken="the front matter is not a mapping", owner=_owner_of_broken(match[1]))
    owner, problem = _owner(front.get("owner"))
    return Note(
        id=str(front.get("id") or plain.id),
        title=_one_line(str(front.get("name") or front.get("title") or plain.title)),
        type=front["type"] if front.get("type") in TYPES else plain.type,
        body=text[match.end() :].strip(),
        path=path,
        owner=owner,
        description=_one_line(str(front.get("description") or "")),
        created=_time(front.get("created")) or changed,
        updated=_time(front.get("updated")) or changed,
        origin=str(front.get("origin") or "user"),
        project=str(front.get("project") or ""),
        as_of=_time(front["as_of"]) if front.get("as_of") else None,
        broken=problem,
    )


def slug(title: str) -> str:
    """A file name of the title: letters and digits of any script, `_` and `-`; at most 60 characters.

    A title without any of them (emoji, punctuation) becomes a hash, so that two of them never meet.
    """
    folded = _fold(title)
    # Marks are part of a letter in Thai, Hindi and others, though \w leaves them out.
    kept = "".join(
        character if character in "_-" or unicodedata.category(character)[0] in "LNM" else "_"
        for character in folded
    ).strip("_-")
    kept = re.sub(r"_{2,}", "_", kept)
    if not kept:
        return hashlib.sha256(folded.encode("utf-8", "replace")).hexdigest()[:6]
    while len(kept.encode("utf-8")) > 180 or len(kept) > SLUG_LENGTH:
        kept = kept[:-1]
    return kept.rstrip("_-") or hashlib.sha256(folded.encode()).hexdigest()[:6]


_UNREADABLE = Owner(platform="unreadable", user_id="front-matter")
"""Owner of a file that names one we cannot read: only who asks for every owner sees it."""


def _owner_of_broken(front: str) -> Owner:
    """Whose file it is although its front matter is no YAML: what its owner line says, the local owner without one."""
    line = re.search(r"^\s*[\"']?owner[\"']?\s*[:=](.*)$", front, re.MULTILINE | re.IGNORECASE)
    return _owner(line[1].strip(" \t\"'"))[0] if line else Owner()


def _owner(value: object) -> tuple[Owner, str]:
    if value in (None, ""):
        return Owner(), ""
    try:
        return Owner.parse(str(value)), ""
    except ValueError as error:
        return _UNREADABLE, str(error)


def _as_text(note: Note) -> str:
    import yaml

    front: dict[str, Any] = {
        "id": note.id,
        "name": note.title,
        "description": note.description,
        "type": note.type,
        "owner": note.owner.key,
        "origin": note.origin,
        "created": note.created.isoformat(timespec="seconds"),
        "updated": note.updated.isoformat(timespec="seconds"),
    }
    if note.project:
        front["project"] = note.project
    head = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{head}---\n\n{note.body}\n"


def _index_entry(note: Note) -> str:
    title = note.title.replace("[", "(").replace("]", ")")
    return f"- [{title}](notes/{note.path.name}): {_one_line(note.description)[:120]}"


def _target(line: str) -> str:
    match = _LINK.match(line)
    return match[1].rsplit("/", 1)[-1] if match else ""


def _stem(name: str) -> str:
    stem = name.removesuffix(".md")
    return stem.split("_", 1)[1] if stem.split("_", 1)[0] in TYPES and "_" in stem else stem


def _type_of(path: Path) -> str:
    head = path.name.split("_", 1)[0]
    return head if head in TYPES else "reference"


def _file_id(path: Path) -> str:
    return "note-" + hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _fold(title: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", title).casefold().split())


def _clean(text: str) -> str:
    """Without control characters and lone surrogates; line breaks and tabs stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _time(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        parsed = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
