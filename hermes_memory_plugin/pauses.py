"""Who wants nothing remembered for now: a pause holds until it is ended, across sessions, processes and restarts."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection
from pathlib import Path

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.store.locks import LockFile

FILE = "paused.json"
_WAIT = 2.0


class Pauses:
    """`memory/paused.json` of one home. A look costs one stat."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE
        self._known: tuple[tuple[int, int, int], dict[str, int]] | None = None

    def since(self, keys: Collection[str]) -> int | None:
        """When the pause of one of these owner keys (or of everybody) began, in epoch microseconds; None without one.

        A file that cannot be read counts as a pause of everybody: what somebody asked not to be kept is not kept.
        """
        found = self.all()
        times = [at for key, at in found.items() if key in keys or key == Owner.ANY.key]
        return min(times, default=None)

    def all(self) -> dict[str, int]:
        """Owner key → since when, in epoch microseconds."""
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return {}
        except OSError:
            return {Owner.ANY.key: 0}
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if self._known is None or self._known[0] != stamp:
            self._known = (stamp, self._read())
        return self._known[1]

    def pause(self, key: str) -> None:
        """Remember nothing of this owner until `resume`."""
        with LockFile(self._folder / "paused.lock").acquire(timeout=_WAIT):
            self._write({key: time.time_ns() // 1000} | self._read())

    def resume(self, keys: Collection[str]) -> bool:
        """Remember these owners again; False when none of them had paused."""
        with LockFile(self._folder / "paused.lock").acquire(timeout=_WAIT):
            found = self._read()
            left = {key: at for key, at in found.items() if key not in keys}
            if left != found:
                self._write(left)
            return left != found

    def _read(self) -> dict[str, int]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(key): int(at) for key, at in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError):
            return {Owner.ANY.key: 0}

    def _write(self, paused: dict[str, int]) -> None:
        self._known = None
        if paused:
            atomic_write(self._folder, FILE, json.dumps(paused), fsync=True)
        else:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
