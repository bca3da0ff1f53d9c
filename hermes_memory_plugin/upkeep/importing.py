"""`import vibe-trading DIR`: a folder that Vibe-Trading's memory wrote (MEMORY.md index + entry files) becomes notes.

Nothing of DIR is changed. Importing it again changes nothing; notes that were edited or forgotten here since stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.layers import front
from hermes_memory_plugin.layers.front import TYPES
from hermes_memory_plugin.layers.notes import BODY_LENGTH, BadNote, Note
from hermes_memory_plugin.recall.markdown import note_record
from hermes_memory_plugin.store.files import atomic_write

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory

Became = Literal["note", "updated", "unchanged", "kept yours", "forgotten here", "refused"]
INDEX = "MEMORY.md"
_STATE = "imports.json"
_LARGEST = 4 << 20
_LINK = re.compile(r"^\s*[-*] \[(?P<title>.*)\]\((?P<file>[^()\s]+)\)(?:\s*(?:[—–:-]+)\s*(?P<said>.*))?$")
_KEY = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:[ \t]*(.*)$")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class NothingToImport(HermesMemoryError, ValueError):
    """The folder is not what its name says; nothing was imported."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} cannot be imported: {reason}. Nothing was changed.")
        self.folder = folder
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one entry file."""

    file: str
    became: Became
    title: str = ""
    id: str = ""
    note: str = ""
    """The file it is in now, relative to `memory/`."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a folder."""

    rows: tuple[Imported, ...]
    missing: tuple[str, ...] = ()
    """Files the index names that are not there."""

    def count(self, became: Became) -> int:
        """How many entries became that."""
        return sum(row.became == became for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    title: str
    description: str
    type: str
    body: str
    changed: datetime
    remarks: tuple[str, ...]


def vibe_trading(
    memory: Memory, folder: Path, *, owner: Owner | None = None, dry_run: bool = False
) -> Report:
    """Import the folder. Raises NothingToImport when it holds no such memory."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise NothingToImport(folder, "it is not a folder")
    listed = _index(folder / INDEX)
    files = sorted(path for path in folder.glob("*.md") if path.name != INDEX)
    if not files and not listed:
        raise NothingToImport(
            folder, f"it holds neither {INDEX} with a list of links nor entry files (type_title.md)"
        )
    owner = owner or Owner()
    written = _read_state(memory)
    rows = [_import(memory, path, folder, listed, owner, written, dry_run) for path in files]
    if not dry_run:
        atomic_write(memory.folder, _STATE, json.dumps(written, ensure_ascii=False, indent=1))
    names = {path.name for path in files}
    return Report(tuple(rows), tuple(name for name in listed if name not in names))


def _import(
    memory: Memory,
    path: Path,
    folder: Path,
    listed: dict[str, tuple[str, str]],
    owner: Owner,
    written: dict[str, str],
    dry_run: bool,
) -> Imported:
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        return Imported(path.name, "refused", why="a symbolic link that leaves the folder")
    try:
        entry = _entry(path, listed)
    except OSError as error:
        return Imported(path.name, "refused", why=error.strerror or str(error))
    if not entry.title:
        return Imported(path.name, "refused", why="it has no title with a visible character")
    why = "; ".join(entry.remarks)
    body = memory.notes.mask(front.clean(entry.body).strip())
    here = memory.notes.by_title(entry.title, owner)
    key = hashlib.sha256(f"{owner.key}\0{path.name}".encode("utf-8", "surrogateescape")).hexdigest()[:24]
    wanted = _hash(entry.title, entry.type, body)
    if here is not None:
        ours = written.get(f"{key}:note") == _hash(here.title, here.type, here.body)
        if written.get(key) == wanted or (here.type, here.body) == (entry.type, body):
            return Imported(path.name, "unchanged", here.title, here.id, _relative(memory, here), why)
        if not ours:
            return Imported(
                path.name, "kept yours", here.title, here.id, _relative(memory, here),
                "; ".join(one for one in ("a note of that title is here and differs", why) if one),
            )  # fmt: skip
    elif written.get(key) == wanted or memory.notes.trash.holds(entry.title, owner.key):
        return Imported(
            path.name, "forgotten here", entry.title, why="`hermes-memory trash restore` brings it back"
        )
    became: Became = "updated" if here else "note"
    if dry_run:
        return Imported(path.name, became, entry.title, why=why)
    try:
        note = memory.notes.save(
            entry.title,
            body,
            entry.type,
            owner=owner,
            origin="import",
            description=entry.description,
            now=entry.changed,
        )
    except BadNote as error:
        return Imported(path.name, "refused", entry.title, why=str(error))
    memory.journal.append("note", note_record(memory.folder, note), owner=owner.key)
    written[key] = wanted
    written[f"{key}:note"] = _hash(note.title, note.type, note.body)
    return Imported(path.name, became, note.title, note.id, _relative(memory, note), why)


def _entry(path: Path, listed: dict[str, tuple[str, str]]) -> _Entry:
    """An entry file, read as its writer wrote it: `key: value` lines, not always YAML."""
    raw = path.read_bytes()[:_LARGEST]
    text = raw.decode("utf-8", "replace")
    remarks = ["not UTF-8; unreadable characters were replaced"] if "\ufffd" in text else []
    match = _FRONT.match(text)
    fields: dict[str, str] = {}
    if match:
        for line in match[1].splitlines():
            found = _KEY.match(line)
            if found:
                fields.setdefault(found[1].lower(), _unquoted(found[2]))
    if not fields:
        match = None
        remarks.append(
            "its front matter cannot be read; taken as plain text"
            if text.startswith("---")
            else "no front matter"
        )
    title, said = listed.get(path.name, ("", ""))
    head, _, rest = path.stem.partition("_")
    type_ = fields.get("type", "").lower() or (head if head in TYPES else "")
    if type_ not in TYPES:
        remarks.append(f"type {type_!r} is now reference" if type_ else "without a type; now reference")
        type_ = "reference"
    if path.name not in listed:
        remarks.append(f"not in {INDEX}")
    body = text[match.end() :] if match else text
    if len(body) > BODY_LENGTH:
        remarks.append(f"cut at {BODY_LENGTH:,} characters")
    return _Entry(
        path=path,
        title=front.one_line(
            front.clean(fields.get("name") or title or (rest or path.stem).replace("_", " "))
        ),
        description=fields.get("description") or said,
        type=type_,
        body=body,
        changed=datetime.fromtimestamp(path.stat().st_mtime, UTC),
        remarks=tuple(remarks),
    )


def _index(path: Path) -> dict[str, tuple[str, str]]:
    """File name → (title, description) of the index; {} without one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found = (_LINK.match(line) for line in text.splitlines())
    return {
        match["file"].rsplit("/", 1)[-1]: (match["title"], front.one_line(match["said"] or ""))
        for match in found
        if match
    }


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "\"'":
        return value
    inner = value[1:-1]
    return inner.replace('\\"', '"') if value[0] == '"' else inner


def _read_state(memory: Memory) -> dict[str, str]:
    try:
        found = json.loads((memory.folder / _STATE).read_text(encoding="utf-8"))
        return {str(key): str(value) for key, value in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _relative(memory: Memory, note: Note) -> str:
    return note.path.relative_to(memory.folder).as_posix()


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:32]
