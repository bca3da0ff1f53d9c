"""Texts that must stay as they are: whoever stores one first decides what every process reads from then on."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from hermes_memory_plugin.store.files import astray, open_private, private_folder, utf8

_NAME = re.compile(r"[0-9a-z-]{8,120}")
_KNOWN = 256
_READ_AGAIN = 43_200
"""Seconds after which a look at a text counts anew."""


class Frozen:
    """One file for each key below `folder`, which is made by the first one. A look-up is one read of a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: OrderedDict[str, tuple[tuple[int, int] | None, str]] = OrderedDict()

    def get(self, key: str) -> str | None:
        """The text of that key; None when there is none yet, or no more."""
        found = _which(self._path(key))
        if found is not None and time.time() - found[1] / 1e9 > _READ_AGAIN:
            with suppress(OSError):
                os.utime(self._path(key))  # who is still read is kept
            found = _which(self._path(key))
        known = self._known.get(key)
        if known is not None and known[0] in (found, None):
            return known[1]
        self._known.pop(key, None)
        if astray(self.folder):
            return None
        try:
            fd = open_private(self._path(key), os.O_RDONLY)
        except OSError:
            return None
        with os.fdopen(fd, "rb") as file:
            return self._keep(key, file.read().decode("utf-8", "replace"), found)

    def put(self, key: str, text: str) -> str:
        """Store the text unless the key has one; returns the one it has from now on.

        What cannot be written stands for the rest of this process. Raises OSError then, with the text kept.
        """
        found = self.get(key)
        if found is not None:
            return found
        data = utf8(text)
        try:
            if astray(self.folder):
                raise OSError(errno.ELOOP, "it is a symbolic link that leaves the memory", str(self.folder))
            private_folder(self.folder)
            fd, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=self.folder)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                _first_wins(Path(temporary), self._path(key))
            finally:
                with suppress(OSError):
                    Path(temporary).unlink()
        except OSError:
            self._keep(key, data.decode(), None)
            raise
        return self.get(key) or self._keep(key, data.decode(), None)

    def forget(self, ending: str) -> int:
        """Remove every text whose key ends so, for every process; returns how many."""
        gone = [path for path in self.folder.glob(f"*{ending}.md") if _NAME.fullmatch(path.stem)]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)

    def prune(self, older: float) -> int:
        """Remove what nobody has read for that many seconds, half a day more or less; returns how many."""
        limit, gone = time.time() - older, 0
        if astray(self.folder):
            return 0
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < limit:
                        Path(entry.path).unlink()
                        gone += 1
        return gone

    def _keep(self, key: str, text: str, which: tuple[int, int] | None) -> str:
        self._known[key] = which, text
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return text

    def _path(self, key: str) -> Path:
        if not _NAME.fullmatch(key):
            raise ValueError(f"not a key of a frozen text: {key!r}")
        return self.folder / f"{key}.md"


def _which(path: Path) -> tuple[int, int] | None:
    """What tells this file from one that took its place."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _first_wins(temporary: Path, path: Path) -> None:
    """Give the finished file its name, unless another process was faster."""
    with suppress(FileExistsError):
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        except OSError:  # no links on this file system
            os.close(open_private(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            temporary.replace(path)
