"""Locks go with their owner; files are private and stay below their folder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_memory_plugin.store.files import UnsafePath, atomic_write, inside, private_folder, utf8
from hermes_memory_plugin.store.locks import LockBusy, LockFile

HOLDER = """
import sys, time
from pathlib import Path
from hermes_memory_plugin.store.locks import LockFile
with LockFile(Path(sys.argv[1])).acquire():
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_objects_exclude_each_other(tmp_path: Path) -> None:
    first, second = LockFile(tmp_path / "memory" / "x.lock"), LockFile(tmp_path / "memory" / "x.lock")
    with first.acquire():
        assert first.held
        assert not second.try_acquire()
        assert not second.try_acquire(exclusive=False)
    assert not first.held
    with second.acquire(timeout=1):
        assert second.held


def test_shared_holders_go_together_and_keep_an_exclusive_one_out(tmp_path: Path) -> None:
    one, two, three = (LockFile(tmp_path / "x.lock") for _ in range(3))
    assert one.try_acquire(exclusive=False)
    assert two.try_acquire(exclusive=False)
    assert not three.try_acquire()
    one.release()
    two.release()
    assert three.try_acquire()
    three.release()
    three.release()


def test_a_killed_holder_is_named_while_it_lives_and_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(LockBusy) as raised:
        LockFile(path).acquire(timeout=0.05)
    assert f"pid {process.pid}" in raised.value.holder
    assert raised.value.waited >= 0.05
    assert str(path) in str(raised.value)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with LockFile(path).acquire(timeout=5):
        assert f"pid {os.getpid()}" in path.read_text()


def test_a_waiter_gets_the_lock_when_it_is_given_back(tmp_path: Path) -> None:
    holder = LockFile(tmp_path / "x.lock").acquire()
    got = threading.Event()

    def wait() -> None:
        with LockFile(tmp_path / "x.lock").acquire(timeout=30):
            got.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not got.wait(0.05)
    holder.release()
    thread.join()
    assert got.is_set()


def test_a_forked_child_holds_nothing_and_frees_nothing(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "x.lock").acquire()
    pid = os.fork()
    if pid == 0:
        wrong = lock.held
        lock.release()
        os._exit(int(wrong))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not LockFile(tmp_path / "x.lock").try_acquire()
    lock.release()


def test_locking_twice_through_one_object_is_a_mistake(tmp_path: Path) -> None:
    with LockFile(tmp_path / "x.lock") as lock, pytest.raises(RuntimeError):
        lock.acquire()


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    written = atomic_write(tmp_path / "home", "a/b/note.md", "text")
    assert written.read_text() == "text"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home" / "a").stat().st_mode) == 0o700
    assert private_folder(tmp_path / "home") == tmp_path / "home"


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "x")


def test_a_whole_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    atomic_write(tmp_path, "x", "old")
    atomic_write(tmp_path, "x", "half \ud800 new", fsync=True)
    assert (tmp_path / "x").read_text() == "half \ufffd new"
    assert [file.name for file in tmp_path.iterdir()] == ["x"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        atomic_write(tmp_path, "folder", b"")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "x"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a\\..\\..\\x",
        "C:\\x",
        "C:x",
        "\\\\host\\x",
        "a\0b",
        "out/x",
        "out",
        "ring",
    ],
)
def test_a_path_that_leaves_its_folder_is_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "ring").symlink_to(root / "ring")
    with pytest.raises(UnsafePath):
        inside(root, path)
    with pytest.raises(UnsafePath):
        atomic_write(root, path, "x")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["root"]


@pytest.mark.parametrize("path", ["x", "a/b.md", "./x", "笔记/茅台.md", "..x", "a/..b"])
def test_a_plain_path_is_fine(tmp_path: Path, path: str) -> None:
    assert inside(tmp_path, path).is_relative_to(tmp_path)


def test_a_link_that_stays_inside_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("real.md")
    atomic_write(tmp_path, "link.md", "new")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"


@pytest.mark.parametrize(
    ("text", "data"),
    [("茅台", "茅台".encode()), ("a\ud83d", b"a\xef\xbf\xbd"), ("\ud83d\ude00", "😀".encode())],
)
def test_any_text_has_utf8(text: str, data: bytes) -> None:
    assert utf8(text) == data
