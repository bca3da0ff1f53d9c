"""Forgotten Markdown files, and facts: kept for a while, where nothing finds them, and brought back only on request."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers import front
from hermes_memory_plugin.store.files import astray, atomic_write, private_folder

GRACE = timedelta(days=30)
"""How long a forgotten file can be restored."""

_NAME = re.compile(r"(\d{8}T\d{12}Z)_(notes|scenarios|facts)_(.+\.md)")


@dataclass(frozen=True, slots=True)
class Discarded:
    """One file in the trash."""

    name: str
    """What `restore` takes."""
    path: Path
    folder: str
    """The layer it came from: notes or scenarios."""
    file: str
    """The name it had there."""
    title: str
    owner: str
    id: str
    at: datetime

    @property
    def until(self) -> datetime:
        """When it goes for good."""
        return self.at + GRACE


class Trash:
    """`memory/trash` of one home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, path: Path) -> Discarded | None:
        """Move a file here; None when it is gone already. A symlink is only removed."""
        if path.is_symlink():
            path.unlink(missing_ok=True)
            return None
        if astray(self.folder):
            raise OSError(errno.ELOOP, "it is a symbolic link that leaves the memory", str(self.folder))
        private_folder(self.folder)
        while True:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
            target = self.folder / f"{stamp}_{path.parent.name}_{path.name}"
            if not os.path.lexists(target):
                break
            time.sleep(0.000_002)
        try:
            path.rename(target)
        except FileNotFoundError:
            return None
        return self._read(target)

    def keep(self, id: str, owner: str, title: str, record: Mapping[str, Any]) -> None:
        """Keep what a forgotten fact said; it has no file of its own."""
        if astray(self.folder):
            raise OSError(errno.ELOOP, "it is a symbolic link that leaves the memory", str(self.folder))
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        name = f"{stamp}_facts_{hashlib.sha256(id.encode('utf-8', 'replace')).hexdigest()[:16]}.md"
        head = {"id": id, "title": title, "owner": owner}
        lines = [f"{field}: {json.dumps(value, ensure_ascii=False)}" for field, value in head.items()]
        body = json.dumps(dict(record), ensure_ascii=False, default=str)
        atomic_write(self.folder, name, "\n".join(["---", *lines, "---", "", body, ""]))

    def kept(self, found: Discarded) -> dict[str, Any]:
        """The record of a forgotten fact. Raises NotFound when its file cannot be read any more."""
        try:
            record = json.loads(front.split(found.path.read_text(encoding="utf-8")).body)
        except (OSError, ValueError):
            record = None
        if not isinstance(record, dict):
            raise NotFound(found.name, "Its file in the trash cannot be read any more.")
        return record

    def __iter__(self) -> Iterator[Discarded]:
        """What can be restored, newest first."""
        if astray(self.folder):
            return
        try:
            names = sorted((entry.name for entry in os.scandir(self.folder)), reverse=True)
        except FileNotFoundError:
            return
        for name in names:
            found = self._read(self.folder / name)
            if found is not None:
                yield found

    def find(self, name: str, owners: Collection[str] | None = None) -> Discarded:
        """The newest one of that name, id or title, of one of these owners. Raises NotFound."""
        wanted = front.fold(name)
        for one in self:
            if owners is not None and one.owner not in owners:
                continue
            if name in (one.name, one.id, one.file) or front.fold(one.title) == wanted:
                return one
        raise NotFound(name, "`hermes-memory trash list` shows what can be restored.")

    def holds(self, title: str, owner: str) -> bool:
        """Whether something of that title was forgotten by its owner."""
        wanted = front.fold(title)
        return any(one.owner == owner and front.fold(one.title) == wanted for one in self)

    def purge(self, *, before: datetime | None = None) -> int:
        """Delete what is older than the grace period (or than `before`) for good; returns how many files."""
        limit = before or datetime.now(UTC) - GRACE
        old = [one for one in self if one.at < limit]
        for one in old:
            one.path.unlink(missing_ok=True)
        return len(old)

    def _read(self, path: Path) -> Discarded | None:
        match = _NAME.fullmatch(path.name)
        if match is None or path.is_symlink():
            return None
        try:
            parts = front.split(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None
        at = datetime.strptime(match[1], "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC)
        title = parts.fields.get("name") or parts.fields.get("title") or front.title_of_file(match[3])
        return Discarded(
            path.name,
            path,
            match[2],
            match[3],
            front.one_line(str(title)),
            parts.owner.key,
            str(parts.fields.get("id") or ""),
            at,
        )
