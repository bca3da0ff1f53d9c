"""Private folders and files, whole-file writes, and paths that stay where they belong."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path, PurePosixPath, PureWindowsPath

from hermes_memory_plugin.errors import HermesMemoryError

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class UnsafePath(HermesMemoryError):
    """A path would leave the folder it must stay in; nothing was read or written."""

    def __init__(self, root: Path, path: str | Path) -> None:
        super().__init__(
            f"{str(path)!r} leads out of {root}. Nothing was touched: use a plain path inside that folder."
        )
        self.root = root
        self.path = path


def private_folder(path: Path) -> Path:
    """Create `path` and its missing parents, each readable by its owner only; existing ones are left as they are."""
    if not path.is_dir():
        for parent in reversed((path, *path.parents)):
            with contextlib.suppress(FileExistsError):
                if not parent.is_dir():
                    parent.mkdir(mode=0o700)
        if not path.is_dir():
            raise NotADirectoryError(f"{path} is in the way: it is not a folder")
    return path


def open_private(path: Path, flags: int) -> int:
    """A file descriptor of a file only its owner may read; never follows a symlink in the last place."""
    return os.open(path, flags | _NOFOLLOW | _BINARY, 0o600)


def inside(root: Path, relative: str | Path) -> Path:
    """`root / relative`, when that stays below `root` with every symlink followed; `UnsafePath` otherwise."""
    text = str(relative)
    parts = PurePosixPath(text.replace("\\", "/")).parts
    if (
        not parts
        or "\0" in text
        or ".." in parts
        or PurePosixPath(text.replace("\\", "/")).is_absolute()
        or PureWindowsPath(text).drive
    ):
        raise UnsafePath(root, relative)
    path = root.joinpath(*parts)
    base = root.resolve()
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError):  # a loop of symlinks
        raise UnsafePath(root, relative) from None
    if resolved == base or not resolved.is_relative_to(base):
        raise UnsafePath(root, relative)
    return path


def astray(folder: Path) -> bool:
    """Whether a link stands in the folder's place that leads out of its parent."""
    if not folder.is_symlink():
        return False
    try:
        return not folder.resolve().is_relative_to(folder.parent.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return True


def atomic_write(root: Path, relative: str | Path, content: str | bytes, *, fsync: bool = False) -> Path:
    """Write a whole file below `root`: a reader sees the old content or the new, never a part.

    Missing folders are made. A symlink that stays below `root` is written through (it remains a link); one that
    leaves it raises `UnsafePath`. `fsync` also survives a loss of power. Text is UTF-8; lone surrogates become U+FFFD.
    """
    path = inside(root, relative).resolve()
    data = utf8(content) if isinstance(content, str) else content
    private_folder(path.parent)
    fd, temporary = tempfile.mkstemp(
        prefix=f".{path.name[:64]}.", suffix=".tmp", dir=path.parent
    )  # mode 0600
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    if fsync:
        _sync_folder(path.parent)
    return path


def utf8(text: str) -> bytes:
    """UTF-8 of any text; a lone surrogate (half of a character) becomes U+FFFD instead of an error."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
