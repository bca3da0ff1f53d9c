"""Locks between processes. The kernel drops them with their owner, so no stale lock can ever stay behind."""

from __future__ import annotations

import errno
import os
import sys
import time
import weakref
from pathlib import Path
from types import TracebackType

from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.files import open_private, private_folder

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class LockBusy(HermesMemoryError):
    """Another process holds the lock; nothing was done."""

    def __init__(self, path: Path, waited: float, holder: str) -> None:
        by = f" by {holder}" if holder else ""
        super().__init__(
            f"{path} is held{by} (waited {waited:.1f} s). Nothing was done: try again in a moment."
        )
        self.path = path
        self.waited = waited
        self.holder = holder


if sys.platform == "win32":
    import msvcrt

    # Windows locks are mandatory and exclusive: one byte far behind every content stands for the file, and a
    # shared lock is an exclusive one.
    _BYTE = 1 << 40

    def try_lock(fd: int, *, exclusive: bool) -> bool:
        """Take the lock on an open file without waiting; False when somebody else holds it."""
        position = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        finally:
            os.lseek(fd, position, os.SEEK_SET)
        return True

    def unlock(fd: int) -> None:
        """Give the lock on an open file back."""
        position = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        finally:
            os.lseek(fd, position, os.SEEK_SET)

else:
    import fcntl

    def try_lock(fd: int, *, exclusive: bool) -> bool:
        """Take the lock on an open file without waiting; False when somebody else holds it."""
        try:
            fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        return True

    def unlock(fd: int) -> None:
        """Give the lock on an open file back."""
        fcntl.flock(fd, fcntl.LOCK_UN)


class LockFile:
    """A lock with a name: `with LockFile(path).acquire(timeout=2): …`.

    The file stays; only the kernel's lock on it counts. The holder's pid and command are written inside for the
    message of `LockBusy`. One object is for one thread at a time; two objects exclude each other, also within a process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1
        self._pid = 0

    @property
    def held(self) -> bool:
        """Whether this object holds the lock in this process."""
        return self._fd >= 0 and self._pid == os.getpid()

    def acquire(self, *, exclusive: bool = True, timeout: float = 0.0) -> LockFile:
        """Take the lock, waiting at most `timeout` seconds; `LockBusy` names the holder."""
        began, pause = time.monotonic(), _FIRST_PAUSE
        while not self.try_acquire(exclusive=exclusive):
            waited = time.monotonic() - began
            if waited >= timeout:
                raise LockBusy(self.path, waited, self.holder())
            time.sleep(min(pause, timeout - waited))
            pause = min(pause * 2, _LONGEST_PAUSE)
        return self

    def try_acquire(self, *, exclusive: bool = True) -> bool:
        """Take the lock when it is free; never waits."""
        if self.held:
            raise RuntimeError(f"{self.path} is already locked through this object")
        fd = self._open()
        try:
            if not try_lock(fd, exclusive=exclusive):
                os.close(fd)
                return False
        except BaseException:
            os.close(fd)
            raise
        self._fd, self._pid = fd, os.getpid()
        _held.add(self)
        if exclusive:
            self._sign(fd)
        return True

    def release(self) -> None:
        """Give the lock back; harmless when it is not held. A forked child only drops its copy."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            if self._pid == os.getpid():
                unlock(fd)
        finally:
            os.close(fd)

    def holder(self) -> str:
        """Who last took the lock exclusively, as text; "" when unknown."""
        try:
            return self.path.read_bytes()[:200].decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def _open(self) -> int:
        while True:
            try:
                return open_private(self.path, os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                private_folder(self.path.parent)

    def _sign(self, fd: int) -> None:
        command = " ".join(Path(part).name for part in sys.argv[:2])[:120]
        try:
            os.ftruncate(fd, 0)
            os.write(fd, f"pid {os.getpid()} {command}\n".encode("utf-8", "replace"))
        except OSError:
            pass  # a full disk must not keep anybody from locking

    def __enter__(self) -> LockFile:
        return self if self.held else self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_held: weakref.WeakSet[LockFile] = weakref.WeakSet()


def _drop_in_child() -> None:
    # A forked child has the parent's descriptors: were it to keep them, the lock would outlive the parent.
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_in_child)
