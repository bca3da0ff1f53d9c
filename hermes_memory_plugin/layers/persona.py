"""L3: what Hermes keeps about its user in MEMORY.md and USER.md, read as Hermes reads it and written as it writes it.

The files belong to Hermes. They are changed only on request, under Hermes' own lock, in its own format and within its limits;
a file that is not in that format is never written.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.files import UnsafePath, open_private, private_folder
from hermes_memory_plugin.store.locks import LockBusy, try_lock, unlock

Target = Literal["memory", "user"]
TARGETS: tuple[Target, ...] = ("memory", "user")
FILES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
DELIMITER = "\n§\n"
SNAPSHOT_LINES = 200
NEAR, FULL = 0.8, 0.9
"""Shares of the limit from which on people are told."""

_LIMITS: dict[Target, tuple[str, int]] = {
    "memory": ("memory_char_limit", 2_200),
    "user": ("user_char_limit", 1_375),
}
_SWITCHES: dict[Target, str] = {"memory": "memory_enabled", "user": "user_profile_enabled"}
_LONGEST = 1_000_000


class PersonaRefused(HermesMemoryError):
    """A file of Hermes' memory was left as it is."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} was not changed: {reason}.")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Pages:
    """One of the two files as it stands."""

    target: Target
    path: Path
    entries: tuple[str, ...]
    limit: int
    foreign: str = ""
    """Why Hermes' own tool would refuse to rewrite the file; "" when it would not."""

    @property
    def characters(self) -> int:
        """What Hermes counts against the limit."""
        return len(DELIMITER.join(self.entries))

    @property
    def share(self) -> float:
        """How full it is; above 1 when it is over its limit."""
        return self.characters / self.limit if self.limit > 0 else 0.0

    def fits(self, entries: Sequence[str]) -> bool:
        """Whether the limit allows these entries."""
        return len(DELIMITER.join(entries)) <= self.limit


class Persona:
    """The memory files of one Hermes home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "memories"
        self._config: tuple[tuple[int, int], Mapping[str, Any]] | None = None

    def read(self, target: Target) -> Pages:
        """The file as it stands; one that is missing, unreadable or leads out of the home has no entries."""
        path, limit = self.folder / FILES[target], self.limit(target)
        try:
            _inside(self.home, path)
            raw = path.read_bytes()[: 4 * _LONGEST]
        except (OSError, UnsafePath) as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            return Pages(target, path, (), limit, "" if missing else str(error))
        return _parsed(target, path, raw, limit)

    def snapshot(self) -> tuple[str, ...]:
        """The entries of both files, the user's first; at most 200 lines, whole entries only."""
        kept: list[str] = []
        lines = 0
        for target in reversed(TARGETS):
            for entry in self.read(target).entries:
                lines += entry.count("\n") + 1
                if lines > SNAPSHOT_LINES:
                    return tuple(kept)
                kept.append(entry)
        return tuple(dict.fromkeys(kept))

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Changes whenever one of the files does."""
        stamps = []
        for name in FILES.values():
            try:
                stat = (self.folder / name).stat()
                stamps.append((stat.st_mtime_ns, stat.st_size))
            except OSError:
                stamps.append((0, -1))
        return tuple(stamps)

    def limit(self, target: Target) -> int:
        """Characters Hermes allows in the file."""
        name, default = _LIMITS[target]
        value = self._settings().get(name, default)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    def shown(self, target: Target) -> bool:
        """Whether Hermes puts the file into its system prompt."""
        return self._settings().get(_SWITCHES[target], True) is not False

    def pressure(self) -> list[Pages]:
        """The files that are nearly full, or over their limit."""
        return [pages for pages in map(self.read, TARGETS) if pages.share >= NEAR]

    @contextlib.contextmanager
    def changing(self, *targets: Target, wait: float = 5.0) -> Iterator[dict[Target, Pages]]:
        """The files, locked against Hermes' own tool. Raises LockBusy."""
        private_folder(self.folder)
        with contextlib.ExitStack() as locks:
            for target in sorted(targets):
                locks.enter_context(_host_lock(self.folder / f"{FILES[target]}.lock", wait))
            yield {target: self.read(target) for target in targets}

    def write(self, pages: Pages, entries: Sequence[str]) -> Pages:
        """Put the entries into the file, within `changing`. Raises PersonaRefused when it must stay as it is."""
        kept = list(dict.fromkeys(entry.strip() for entry in entries if entry.strip()))
        if pages.foreign:
            raise PersonaRefused(pages.path, pages.foreign)
        if entries_of(DELIMITER.join(kept)) != kept:
            raise PersonaRefused(
                pages.path, "an entry holds a line with § alone, which Hermes takes for the end of an entry"
            )
        shrinks = len(DELIMITER.join(kept)) < pages.characters
        if not pages.fits(kept) and not shrinks:
            size = len(DELIMITER.join(kept))
            raise PersonaRefused(
                pages.path,
                f"it would hold {size:,} characters and Hermes allows {pages.limit:,}; `persona slim` shows what can move",
            )
        _inside(self.home, pages.path)
        try:
            _replace(pages.path, DELIMITER.join(kept).encode())
        except OSError as error:
            raise PersonaRefused(pages.path, error.strerror or str(error)) from error
        return self.read(pages.target)

    def _settings(self) -> Mapping[str, Any]:
        """The `memory` section of config.yaml; read anew when the file changed."""
        path = self.home / "config.yaml"
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if self._config is not None and self._config[0] == stamp:
                return self._config[1]
            import yaml

            found = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (
            Exception
        ):  # the settings say what is wrong with the file; Hermes' defaults hold until it is right
            return {}
        section = found.get("memory") if isinstance(found, Mapping) else None
        section = section if isinstance(section, Mapping) else {}
        self._config = (stamp, section)
        return section


def entries_of(text: str) -> list[str]:
    """The entries of a file's text, as Hermes reads it."""
    return list(dict.fromkeys(entry.strip() for entry in text.split(DELIMITER) if entry.strip()))


def _parsed(target: Target, path: Path, raw: bytes, limit: int) -> Pages:
    try:
        text = raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return Pages(
            target, path, tuple(entries_of(raw.decode("utf-8", "replace"))), limit, "it is not UTF-8"
        )
    entries = entries_of(text)
    foreign = ""
    parts = [entry.strip() for entry in text.split(DELIMITER) if entry.strip()]
    if text.strip() and text.strip() != DELIMITER.join(parts):
        foreign = "its entries are not separated as Hermes writes them (a line with § alone)"
    elif any(len(entry) > limit for entry in entries):
        foreign = f"one entry alone is longer than the limit of {limit:,} characters; it was not written by Hermes' memory tool"
    return Pages(target, path, tuple(entries), limit, foreign)


def _inside(home: Path, path: Path) -> None:
    if not path.resolve().is_relative_to(home.resolve()):
        raise UnsafePath(home, path)


def _replace(path: Path, data: bytes) -> None:
    """As Hermes does it: a temporary file beside it takes its place; its permissions stay."""
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    fd, temporary = tempfile.mkstemp(prefix=".mem_", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)  # noqa: PTH101
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


@contextlib.contextmanager
def _host_lock(path: Path, wait: float) -> Iterator[None]:
    """Hermes' lock on one of its files: flock, or the first byte on Windows."""
    fd = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        stop = time.monotonic() + wait
        while not _locked(fd):
            if time.monotonic() > stop:
                raise LockBusy(path, wait, "Hermes' memory tool")
            time.sleep(0.01)
        try:
            yield
        finally:
            _unlocked(fd)
    finally:
        os.close(fd)


if sys.platform == "win32":
    import msvcrt

    def _locked(fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlocked(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:

    def _locked(fd: int) -> bool:
        return try_lock(fd, exclusive=True)

    def _unlocked(fd: int) -> None:
        unlock(fd)
