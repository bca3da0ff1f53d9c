"""Where a profile's memory lives, and whether that is a place it can live in.

Nothing here imports Hermes: the command line must find the home of a Hermes it cannot import.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_plugin.errors import HermesMemoryError

SUBFOLDERS = ("journal", "index", "notes", "scenarios", "refs")

_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
# Where several machines see one folder, file locks are not to be trusted.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|afpfs|afs|9p|drvfs|ncpfs|webdav|davfs|glusterfs|ceph|lustre"
    r"|fuse\.(sshfs|rclone|s3fs|glusterfs|davfs2?|gcsfuse|cifs)"
)
_SYNCED = re.compile(
    r"(onedrive|dropbox|google ?drive|nextcloud|owncloud|syncthing|pcloud ?drive|box sync|megasync)\b.*"
    r"|mobile documents|icloud ?drive|cloudstorage|nutstore.*|坚果云.*|baidu(netdisk|syncdisk).*|百度.*同步.*",
    re.IGNORECASE,
)


class ProfileUnknown(HermesMemoryError):
    """There is no Hermes profile of that name."""

    def __init__(self, name: str, known: list[str]) -> None:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]}?" if close else f" There is {', '.join(known)}."
        super().__init__(f"no Hermes profile is called {name!r}.{hint}")
        self.name = name
        self.known = known


class HomeUnwritable(HermesMemoryError):
    """The memory folder cannot be made or written; nothing can be remembered there."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"cannot write to {path}: {reason}. Nothing is stored; make it writable or choose --home."
        )
        self.path = path
        self.reason = reason


def hermes_home(profile: str | None = None) -> Path:
    """The home `hermes` itself would use: HERMES_HOME or ~/.hermes, then the profile asked for or made sticky."""
    env = os.environ.get("HERMES_HOME", "").strip()
    native = _native_home()
    here = Path(env).expanduser() if env else native
    if profile is None:
        if env and here.parent.name == "profiles":
            return here
        profile = _sticky(_root(here, native))
    root = _root(here, native)
    name = profile.strip().lower() if profile else "default"
    if name == "default":
        return root if profile else here
    found = root / "profiles" / name
    if not _PROFILE.match(name) or not found.is_dir():
        raise ProfileUnknown(name, profiles(root))
    return found


def profiles(root: Path) -> list[str]:
    """The names of the profiles below a Hermes root, `default` first."""
    try:
        named = sorted(p.name for p in (root / "profiles").iterdir() if p.is_dir() and _PROFILE.match(p.name))
    except OSError:
        named = []
    return ["default", *(name for name in named if name != "default")]


def memory_folder(home: Path | str) -> Path:
    """`<home>/memory` with its subfolders, made if need be, open to nobody but its owner.

    Raises HomeUnwritable.
    """
    folder = Path(home) / "memory"
    try:
        for path in (folder, *(folder / name for name in SUBFOLDERS)):
            try:
                path.mkdir(mode=0o700, parents=True)
            except FileExistsError:
                mode = path.stat().st_mode
                if not path.is_dir():
                    raise NotADirectoryError(20, f"{path} is a file") from None
                if mode & 0o077 and os.name == "posix":
                    path.chmod(0o700)  # restored from a backup or made by hand
    except OSError as error:
        raise HomeUnwritable(folder, error.strerror or str(error)) from None
    return folder


def unwritable(home: Path | str) -> str:
    """Why nothing can be written below `home`; empty when it can. Leaves no file behind."""
    try:
        probe = memory_folder(home) / f".probe-{os.getpid()}"
        try:
            descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                os.write(descriptor, b"probe\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        finally:
            probe.unlink(missing_ok=True)
    except HomeUnwritable as error:
        return error.reason
    except OSError as error:
        return error.strerror or str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table."""

    point: str
    kind: str


def shared_place(home: Path | str, mounts: Iterable[Mount] | None = None) -> str:
    """What speaks against this place for a database: its name, a network file system or a synchronised folder.

    Empty when nothing does. Journals survive there, but locks between machines do not hold.
    """
    path = Path(home).expanduser()
    path = path.resolve() if path.exists() else path.absolute()
    if "?" in str(path):  # DuckDB puts ".wal" before it, as into the address of a page
        return (
            f"{path} has a ? in its name, and DuckDB cannot write its log there; give the folder another name"
        )
    for part in path.parts:
        if _SYNCED.fullmatch(part):
            return (
                f"{path} is inside {part}, which copies files while they are written; keep the home elsewhere"
            )
    table = _mounts() if mounts is None else mounts
    around = [mount for mount in table if path == Path(mount.point) or Path(mount.point) in path.parents]
    nearest = max(reversed(around), key=lambda mount: len(mount.point), default=None)
    if nearest and _NETWORK.fullmatch(nearest.kind):
        return f"{path} is on {nearest.point} ({nearest.kind}), where file locks may not hold; keep it on a local disk"
    return ""


def mounts_of_proc(text: str) -> list[Mount]:
    """Read /proc/mounts: `device point kind options …`, blanks written as octal."""
    rows = (line.split() for line in text.splitlines())
    return [
        Mount(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), row[1]), row[2])
        for row in rows
        if len(row) > 2
    ]


def mounts_of_mount(text: str) -> list[Mount]:
    """Read what `mount` prints on macOS: `device on point (kind, options…)`."""
    rows = (re.match(r".+? on (.+) \(([^,)]+)", line) for line in text.splitlines())
    return [Mount(row[1], row[2]) for row in rows if row]


def _mounts() -> list[Mount]:
    try:
        if sys.platform == "darwin":
            run = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5, check=True)
            return mounts_of_mount(run.stdout)
        return mounts_of_proc(Path("/proc/mounts").read_text(encoding="utf-8", errors="replace"))
    except (OSError, subprocess.SubprocessError):
        return []


def _native_home() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "").strip()
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "hermes"
    return Path.home() / ".hermes"


def _root(here: Path, native: Path) -> Path:
    """Where `profiles/` is, seen from any home of the same installation."""
    if here.parent.name == "profiles":
        return here.parent.parent
    inside = native.resolve() in here.resolve().parents
    return native if inside else here


def _sticky(root: Path) -> str:
    """The profile `hermes profile use` chose."""
    try:
        return (root / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
