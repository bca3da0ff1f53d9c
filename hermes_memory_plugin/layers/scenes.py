"""L2 scenes: the background of a topic, one Markdown file each under `memory/scenarios/`.

The front matter says what it is about (title, tickers, sectors, period), whether somebody stands behind it (status), and
which facts and calls it rests on (sources). The first paragraph is the summary recall shows. People may edit a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.layers import front
from hermes_memory_plugin.layers.notes import BadNote, Note, Notes, id_of
from hermes_memory_plugin.layers.trash import Discarded
from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.store.ids import new_ulid
from hermes_memory_plugin.store.mask import mask_text

Status = Literal["proposed", "active"]
SUMMARY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene as it stands on disk; `note.body` is the whole text, its first paragraph the summary."""

    note: Note
    as_of: datetime | None = None
    tickers: tuple[str, ...] = ()
    sectors: tuple[str, ...] = ()
    period: str = ""
    status: Status = "active"
    sources: tuple[str, ...] = ()
    """Ids of the facts, calls and turns it rests on."""
    expires: datetime | None = None

    @property
    def summary(self) -> str:
        """The first paragraph, at most ~200 characters."""
        body = front.without(self.note.body) if self.note.broken else self.note.body
        first = re.split(r"\n\s*\n", body.strip(), maxsplit=1)[0]
        text = (
            " ".join(part for part in first.splitlines() if not part.startswith("#")).strip()
            or self.note.title
        )
        return text if len(text) <= SUMMARY_LENGTH else text[: SUMMARY_LENGTH - 1] + "…"


class Scenes:
    """The scenarios folder of one home. What `mask` finds in a text never reaches a file."""

    def __init__(self, folder: Path, *, mask: Callable[[str], str] = mask_text) -> None:
        self.folder = folder
        self.mask = mask
        self._files = Notes(folder, mask=mask)
        self.trash = self._files.trash

    def save(
        self,
        title: str,
        body: str,
        *,
        id: str = "",
        as_of: datetime | None = None,
        owner: Owner = Owner(),
        tickers: Iterable[str] = (),
        sectors: Iterable[str] = (),
        period: str = "",
        status: Status = "active",
        sources: Iterable[str] = (),
        origin: str = "user",
        expires: datetime | None = None,
        restored: datetime | None = None,
        at: Path | None = None,
        now: datetime | None = None,
    ) -> Scene:
        """Write the scene; the same one of the owner is replaced. `at`: the file that is replaced, if another.

        The same is the scene of that `id`; without an id, one of the same title whose day, tickers and period do not say
        that it is about something else.

        Raises BadNote for a blank title, FolderUnwritable when the disk says no.
        """
        title = self._files.title_of(title)
        if not title:
            raise BadNote("title", title, "a title with at least one visible character")
        now = (now or datetime.now(UTC)).replace(microsecond=0)
        with self._files.changing():
            if at is not None:
                earlier = self._files.read(at)
            else:
                earlier = self._same(
                    title, owner, id, as_of, _texts(map(self.mask, tickers)), self.mask(period)
                )
            path = at or (earlier.path if earlier else self._files.path_for(title, "", owner))
            scene = Scene(
                Note(
                    id=id or (earlier.id if earlier else new_ulid()),
                    title=title,
                    type="scene",
                    body=self.mask(front.clean(body).strip()),
                    path=path,
                    owner=owner,
                    description=title,
                    created=earlier.created if earlier else now,
                    updated=now,
                    origin=origin,
                    restored=restored or (earlier.restored if earlier else None),
                ),
                as_of=as_of,
                tickers=_texts(map(self.mask, tickers)),
                sectors=_texts(map(self.mask, sectors)),
                period=self.mask(period),
                status=status,
                sources=_texts(sources),
                expires=expires.replace(microsecond=0) if expires else None,
            )
            atomic_write(self.folder, path.name, _as_text(scene))
        return scene

    def _same(
        self, title: str, owner: Owner, id: str, as_of: datetime | None, tickers: tuple[str, ...], period: str
    ) -> Note | None:
        """The scene of this title that a new text is the newer version of."""
        for note in self._files.titled(title, owner):
            scene = self.read(note.path)
            if scene is None or (id and note.id != id):
                continue
            if id or not (
                (as_of and scene.as_of and as_of.date() != scene.as_of.date())
                or (tickers and scene.tickers and set(tickers).isdisjoint(scene.tickers))
                or (period and scene.period and period != scene.period)
            ):
                return note
        return None

    def confirm(self, scene: Scene) -> Scene:
        """Make a proposed scene an active one: its status line changes, every other byte of the file stays.

        Raises BadNote for a file whose front matter is missing or broken.
        """
        path = scene.note.path
        with self._files.changing():
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            parts = front.split(text)
            if parts.broken or not parts.present:
                raise BadNote(
                    "front matter", path.name, parts.broken or "--- lines with title and status; it has none"
                )
            end = text.index("\n---", 3)
            head, rest = text[:end], text[end:]
            if re.search(r"^status[ \t]*:", head, re.MULTILINE):
                head = re.sub(r"^status[ \t]*:[^\r\n]*", "status: active", head, count=1, flags=re.MULTILINE)
            else:
                head += "\nstatus: active"
            head = re.sub(r"^expires[ \t]*:[^\r\n]*\r?\n?", "", head, count=1, flags=re.MULTILINE)
            atomic_write(
                self.folder, path.name, (head.rstrip("\r\n") + rest).encode("utf-8", "surrogateescape")
            )
        read = self.read(path)
        return read if read is not None else replace(scene, status="active", expires=None)

    def remove(self, scene: Scene) -> Discarded | None:
        """Move the file to the trash."""
        with self._files.changing():
            gone = self.trash.put(scene.note.path)
            self.trash.purge()
        return gone

    def restore(self, found: Discarded) -> Scene:
        """Bring a forgotten scene back, its id included; a file with broken front matter under another name."""
        scene = self.read(found.path)
        if scene is None:
            raise BadNote("name", found.name, "a file in the trash; it is gone or cannot be read")
        if scene.note.broken:
            with self._files.changing():
                path = self.folder / f"{found.file.removesuffix('.md')[:90]}_{new_ulid()[-6:].lower()}.md"
                found.path.rename(path)
            read = self.read(path)
            assert read is not None
            return read
        if self._files.by_title(scene.note.title, scene.note.owner) is not None:
            raise BadNote(
                "title", scene.note.title, "a title no newer scene has; forget or rename that one first"
            )
        back = self.save(
            found.title,
            scene.note.body,
            id=id_of(scene.note, found),
            restored=datetime.now(UTC),
            as_of=scene.as_of,
            owner=scene.note.owner,
            tickers=scene.tickers,
            sectors=scene.sectors,
            period=scene.period,
            status=scene.status,
            sources=scene.sources,
            origin=scene.note.origin,
            expires=scene.expires,
        )
        found.path.unlink(missing_ok=True)
        return back

    def read(self, path: Path) -> Scene | None:
        """The scene in that file; None when it is gone or no regular file."""
        try:
            if path.is_symlink():
                return None
            text = path.read_text(encoding="utf-8", errors="replace")
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError:
            return None
        return parse(text, path, changed)

    def files(self) -> Iterator[os.DirEntry[str]]:
        """Directory entries of every scene file, by name."""
        return self._files.files()

    def strange(self) -> list[str]:
        """Sentences about links in the folder: they are never followed."""
        return self._files.strange()

    def by_title(self, title: str, owner: Owner) -> Scene | None:
        """The owner's scene of exactly that title."""
        note = self._files.by_title(title, owner)
        return self.read(note.path) if note else None

    def __iter__(self) -> Iterator[Scene]:
        for entry in self.files():
            scene = self.read(Path(entry.path))
            if scene:
                yield scene


def parse(text: str, path: Path, changed: datetime) -> Scene:
    """Read a scene file's text; what its front matter does not say has its default. Never raises."""
    parts = front.split(text)
    found = parts.fields
    title = front.one_line(str(found.get("title") or found.get("name") or path.stem.replace("_", " ")))
    note = Note(
        id=str(found.get("id") or front.file_id(path)),
        title=title,
        type="scene",
        body=parts.body,
        path=path,
        owner=parts.owner,
        description=front.one_line(str(found.get("description") or "")) or title,
        created=front.moment(found.get("created")) or changed,
        updated=front.moment(found.get("updated")) or changed,
        origin=str(found.get("origin") or "user"),
        broken=parts.broken,
        restored=front.moment(found.get("restored")),
    )
    return Scene(
        note,
        as_of=front.moment(found.get("as_of")),
        tickers=front.texts(found.get("tickers")),
        sectors=front.texts(found.get("sectors")),
        period=front.one_line(str(found.get("period") or "")),
        status="proposed" if str(found.get("status") or "").strip().lower() == "proposed" else "active",
        sources=front.texts(found.get("sources")),
        expires=front.moment(found.get("expires")),
    )


def _texts(many: Iterable[str]) -> tuple[str, ...]:
    clean = (front.one_line(front.clean(one)) for one in many)
    return tuple(dict.fromkeys(one for one in clean if one))


def _as_text(scene: Scene) -> str:
    note = scene.note
    fields: dict[str, Any] = {"id": note.id, "title": note.title, "status": scene.status}
    fields |= {"tickers": list(scene.tickers)} if scene.tickers else {}
    fields |= {"sectors": list(scene.sectors)} if scene.sectors else {}
    fields |= {"period": scene.period} if scene.period else {}
    fields |= {"sources": list(scene.sources)} if scene.sources else {}
    fields |= {"owner": note.owner.key, "origin": note.origin}
    fields["created"] = note.created.isoformat(timespec="seconds")
    fields["updated"] = note.updated.isoformat(timespec="seconds")
    fields |= {"restored": note.restored.isoformat(timespec="microseconds")} if note.restored else {}
    fields |= {"as_of": scene.as_of.isoformat(timespec="seconds")} if scene.as_of else {}
    fields |= {"expires": scene.expires.isoformat(timespec="seconds")} if scene.expires else {}
    return front.join(fields, note.body)
