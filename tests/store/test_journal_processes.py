"""The journal among real processes: kills, forks, full disks, folders nobody may write to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from hermes_memory_plugin.errors import JournalWriteFailed
from hermes_memory_plugin.store.journal import Journal, Record, live_journals, read_tails, retire

WRITER = """
import os, sys
from pathlib import Path
from hermes_memory_plugin.store.journal import Journal
journal = Journal(Path(sys.argv[1]), rotate_bytes=200_000)
text = "贵州茅台营收同比增长15%，" * 40
while True:
    record = journal.append("trace", {"call": "c", "result": text})
    os.write(1, record.id.encode() + b"\\n")
"""

LIMITED = """
import os, resource, signal, sys
from pathlib import Path
from hermes_memory_plugin.errors import JournalWriteFailed
from hermes_memory_plugin.store.journal import Journal
folder, mode = Path(sys.argv[1]), sys.argv[2]
if mode == "limit":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
journal = Journal(folder)
failures = 0
for n in range(400):
    try:
        journal.append("trace", {"n": n, "result": "x" * (60_000 if n % 100 == 50 else 7_000 if n % 3 else 90)})
    except JournalWriteFailed as error:
        failures += 1
        assert str(folder) in str(error) and error.reason
        if mode == "disk" and failures == 3:
            (folder / "ballast").unlink()
    else:
        os.write(1, b"%d\\n" % n)
    if failures > 12:
        break
os.write(2, b"%d failures\\n" % failures)
"""


def everything(folder: Path) -> list[Record]:
    return [record for chunk in read_tails(folder, {}) for record in chunk.records]


def listen(pipe: IO[bytes], said: list[bytes]) -> None:
    said.append(pipe.read())


def test_kill_nine_loses_and_doubles_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    for _ in range(3):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
            for _ in range(3)
        ]
        said: list[bytes] = []
        listeners = []
        for writer in writers:
            assert writer.stdout is not None
            said.append(writer.stdout.readline())  # it is at work

            listeners.append(threading.Thread(target=listen, args=(writer.stdout, said)))
            listeners[-1].start()
        time.sleep(0.1)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer, listener in zip(writers, listeners, strict=True):
            listener.join()
            writer.wait()
        acknowledged |= {text.decode() for part in said for text in part.split(b"\n") if len(text) == 26}
    stored = [record.id for record in everything(tmp_path)]
    assert len(acknowledged) > 100
    assert len(stored) == len(set(stored))
    assert acknowledged <= set(stored)
    assert len(set(stored) - acknowledged) <= 9  # one on its way from each writer
    assert live_journals(tmp_path) == []
    assert retire(tmp_path, {chunk.journal: chunk.end for chunk in read_tails(tmp_path, {})})
    assert list(tmp_path.iterdir()) == []


def test_a_reader_and_a_retirer_beside_writers_miss_nothing(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    offsets: dict[str, int] = {}
    seen: list[str] = []

    def follow() -> None:
        for chunk in read_tails(tmp_path, offsets, limit=10_000):
            assert chunk.start == offsets.get(chunk.journal, 0)
            seen.extend(record.id for record in chunk.records)
            offsets[chunk.journal] = chunk.end
        retire(tmp_path, offsets)

    said: list[bytes] = []
    listener = threading.Thread(target=listen, args=(writer.stdout, said))
    listener.start()
    deadline = time.monotonic() + 20
    while len(seen) < 500 and time.monotonic() < deadline:
        follow()
    writer.kill()
    listener.join()
    writer.wait()
    follow()
    acknowledged = [text.decode() for text in said[0].split(b"\n") if len(text) == 26]
    assert seen[: len(acknowledged)] == acknowledged
    assert list(tmp_path.iterdir()) == []


def run_limited(folder: Path, mode: str) -> tuple[list[int], int]:
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), mode], capture_output=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    return [int(text) for text in run.stdout.split()], int(run.stderr.split()[0])


def test_a_write_cut_short_is_no_record_and_the_next_one_is(tmp_path: Path) -> None:
    acknowledged, failures = run_limited(tmp_path, "limit")
    assert failures == 4  # the records larger than any file may be
    assert len(acknowledged) == 396
    assert [record.data["n"] for record in everything(tmp_path)] == acknowledged
    assert sum(chunk.torn for chunk in read_tails(tmp_path, {})) == 0


def test_a_full_disk_costs_only_what_was_refused(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    mounted = mount.returncode == 0
    try:
        (disk / "ballast").write_bytes(b"x" * 256_000)
        # Without the right to mount, a limit on the size of files stands in for the small disk.
        acknowledged, failures = run_limited(disk, "disk" if mounted else "limit")
        assert failures >= 3
        assert [record.data["n"] for record in everything(disk)] == acknowledged
        assert sum(chunk.torn for chunk in read_tails(disk, {})) == 0
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def child(work: Callable[[], object]) -> int:
    """The exit code of `work` in a forked child: 0 when it did not raise."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_folder_nobody_may_write_to_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    folder.chmod(0o555)

    def work() -> None:
        os.chdir(folder)
        if os.getuid() == 0:
            os.setuid(65534)  # root may write anywhere
        with pytest.raises(JournalWriteFailed, match="Permission denied"):
            Journal(Path()).append("event", {})

    assert child(work) == 0
    assert list(folder.iterdir()) == []


def test_a_forked_child_writes_a_file_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("event", {"who": "parent"})
    name = journal.name

    def work() -> None:
        assert (journal.name, journal.offset) == ("", 0)
        journal.append("event", {"who": "child"})
        assert journal.name != name

    assert child(work) == 0
    journal.append("event", {"who": "parent"})
    assert journal.name == name
    assert [record.data["who"] for record in everything(tmp_path)] == ["parent", "parent", "child"]
    assert len({record.id for record in everything(tmp_path)}) == 3
    assert [file.name for file in live_journals(tmp_path)] == [name]


def test_a_long_lived_child_does_not_keep_its_parents_file_alive(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("event", {})
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent is done
        os._exit(0)
    os.close(reading)
    try:
        journal.close()
        deadline = time.monotonic() + 10
        while live_journals(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert live_journals(tmp_path) == []
    finally:
        os.close(writing)
        os.waitpid(pid, 0)


def test_a_fork_while_another_thread_appends_does_not_hang_the_child(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            journal.append("event", {"who": "thread"})

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            assert child(lambda: journal.append("event", {"who": "child"})) == 0
    finally:
        stop.set()
        thread.join()
    assert sum(record.data["who"] == "child" for record in everything(tmp_path)) == 10
