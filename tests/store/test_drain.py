"""The drain: every record once to every consumer, whatever happens to anybody on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from hermes_memory_plugin.errors import LedgerBusy, LedgerNewer
from hermes_memory_plugin.store.drain import BATCH, PAUSE, Drain
from hermes_memory_plugin.store.journal import Chunk
from hermes_memory_plugin.store.ledger_faults import LedgerUnusable
from tests.store.ledger_lab import Lab, hold_file, let_go, line_of, other_process


class Listener:
    """A consumer that remembers; the simplest thing that keeps the protocol."""

    name = "listener"

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}
        self.ids: list[str] = []
        self.broken = False

    @contextmanager
    def intake(self) -> Iterator[Listener]:
        if self.broken:
            raise RuntimeError("not today")
        yield self

    def apply(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self.ids += [record.id for record in chunk.records]
            self.offsets[chunk.journal] = chunk.end

    def drop(self, journals: Collection[str]) -> None:
        for name in journals:
            del self.offsets[name]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "memory", wait=0.3)


def journals(lab: Lab) -> list[str]:
    return sorted(path.name for path in (lab.folder / "journal").iterdir())


def test_every_consumer_gets_every_record_once(lab: Lab) -> None:
    listener = Listener()
    drain = Drain(lab.folder, [lab.facts, lab.logs, listener])
    written = [lab.fact("f1"), lab.trace("c1")]
    report = drain.run()
    written.append(lab.fact("f2"))
    assert report.records == {"facts": 2, "logs": 2, "listener": 2}
    assert drain.run(force=True).records == {"facts": 1, "logs": 1, "listener": 1}
    assert listener.ids == written
    assert drain.run(force=True).records == {"facts": 0, "logs": 0, "listener": 0}


def test_a_backlog_of_many_batches_is_taken_in_order(lab: Lab) -> None:
    listener = Listener()
    text = "x" * 60_000
    written = [lab.trace(f"c{number}", text) for number in range(5 * BATCH // 2 // 60_000)]
    report = Drain(lab.folder, [lab.logs, listener]).run(force=True)
    assert report.complete
    assert listener.ids == written == [row["ulid"] for row in lab.logs.scan_traces()]


def test_drains_of_one_home_are_coalesced_across_processes(lab: Lab) -> None:
    lab.fact("f1")
    assert lab.drain.run().state == "done"
    lab.fact("f2")
    assert Lab(lab.folder).drain.run().state == "too soon"
    assert Lab(lab.folder).drain.run(force=True).complete
    time.sleep(PAUSE)
    assert lab.drain.run().state == "done"
    time.sleep(PAUSE)
    assert lab.drain.run().state == "nothing new"


@pytest.mark.parametrize("shift", [-86_400 * 365, 86_400 * 365])
def test_a_clock_that_jumped_does_not_stop_the_drain(lab: Lab, shift: int) -> None:
    lab.fact("f1")
    lab.drained()
    moment = time.time() + shift
    os.utime(lab.folder / "drain.stamp", (moment, moment))
    lab.fact("f2")
    assert lab.drain.run().state == "done"
    assert lab.fact_ids() == ["f1", "f2"]


def test_while_one_drains_another_says_so_and_goes(lab: Lab) -> None:
    lab.fact("f1")
    other = other_process(
        "from hermes_memory_plugin.store.locks import LockFile\n"
        "with LockFile(lab.folder / 'drain.lock').acquire():\n print('mine', flush=True); sys.stdin.read()",
        lab.folder,
    )
    assert line_of(other) == "mine"
    assert lab.drain.run(force=True).state == "another process drains"
    let_go(other)
    assert lab.drain.run(force=True).complete


def test_a_ledger_in_foreign_hands_delays_only_itself(lab: Lab) -> None:
    lab.fact("f0")
    lab.drained()
    stranger = hold_file(lab.facts.path)
    lab.fact("f1")
    lab.trace("c1")
    lab.journal.close()  # nobody writes to that journal any more
    report = lab.drain.run(force=True)
    assert isinstance(report.errors["facts"], LedgerBusy)
    assert lab.calls() == ["c1"]
    assert len(journals(lab)) == 1
    let_go(stranger)
    assert len(lab.drained().retired) == 1
    assert lab.fact_ids() == ["f0", "f1"]
    assert journals(lab) == []


def test_a_journal_goes_when_its_process_is_dead_and_every_consumer_has_it(lab: Lab) -> None:
    listener = Listener()
    drain = Drain(lab.folder, [lab.facts, lab.logs, listener])
    lab.fact("f1")
    drain.run(force=True)
    assert len(journals(lab)) == 1  # its process lives
    lab.journal.close()
    listener.broken = True
    assert drain.run(force=True).retired == ()
    listener.broken = False
    assert len(drain.run(force=True).retired) == 1
    assert journals(lab) == []
    lab.fact("f2")
    drain.run(force=True)
    assert (
        set(lab.facts.offsets()) == set(listener.offsets) == set(journals(lab))
    )  # no offset of a gone journal


def test_records_of_a_newer_version_stay_where_they_are(lab: Lab) -> None:
    lab.fact("f1")
    body = json.dumps({"v": 2, "id": "X", "k": "fact", "o": "local", "t": 1, "d": {"id": "later"}}).encode()
    path = lab.folder / "journal" / lab.journal.name
    with path.open("ab") as file:
        file.write(b"%08x %b\n" % (zlib.crc32(body), body))
    lab.journal.close()
    for _ in range(2):
        report = lab.drained()
        assert report.newer == 1
        assert report.retired == ()
    assert lab.fact_ids() == ["f1"]
    assert body in path.read_bytes()


def test_a_newer_ledger_is_left_alone_and_the_journal_waits_for_it(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    with lab.facts.visit(write=True) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    before = lab.facts.path.read_bytes()
    lab.fact("f2")
    lab.trace("c1")
    lab.journal.close()
    report = lab.drain.run(force=True)
    assert isinstance(report.errors["facts"], LedgerNewer)
    assert report.retired == ()
    assert lab.facts.path.read_bytes() == before
    assert lab.calls() == ["c1"]


def test_one_poisoned_record_does_not_hold_up_the_others(lab: Lab) -> None:
    def key_of(owner: str, fields: object) -> str:
        if fields["id"] == "poison":  # type: ignore[index]
            raise ValueError("no key for this one")
        return ""

    lab.facts._key_of = key_of
    for number in range(20):
        lab.fact("poison" if number == 13 else f"f{number:02d}")
    report = lab.drained()
    assert report.refused == 1
    assert lab.fact_ids() == [f"f{number:02d}" for number in range(20) if number != 13]
    (kept,) = lab.facts.rows("SELECT record, why FROM other")
    assert json.loads(kept["record"])["id"] == "poison"
    assert "no key for this one" in kept["why"]


@pytest.mark.parametrize("times", range(1, 6))
def test_a_moments_failure_sets_no_record_aside(lab: Lab, times: int) -> None:
    """However often in a row, and at whatever point of the search for a culprit."""
    left = times

    def key_of(owner: str, fields: object) -> str:
        nonlocal left
        if fields["id"] == "f2" and left:  # type: ignore[index]
            left -= 1
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
        return ""

    lab.facts._key_of = key_of
    for number in range(4):
        lab.fact(f"f{number}")
    for _ in range(times):
        report = lab.drain.run(force=True)
        assert report.refused == 0
        assert isinstance(report.errors["facts"], LedgerUnusable)
        assert lab.fact_ids() == []
    assert lab.drained().refused == 0
    assert lab.fact_ids() == ["f0", "f1", "f2", "f3"]


def test_a_record_is_set_aside_only_when_it_fails_twice_alone(lab: Lab) -> None:
    failures = iter([True, True, True])  # together with the others, in its half, and once alone

    def key_of(owner: str, fields: object) -> str:
        if fields["id"] == "f1" and next(failures, False):  # type: ignore[index]
            raise duckdb.InvalidInputException("Invalid Input Error: closed pending query result")
        return ""

    lab.facts._key_of = key_of
    lab.fact("f0")
    lab.fact("f1")
    assert lab.drained().refused == 0
    assert lab.fact_ids() == ["f0", "f1"]


def test_torn_and_foreign_lines_are_counted_and_passed(lab: Lab) -> None:
    lab.fact("f1")
    path = lab.folder / "journal" / lab.journal.name
    with path.open("ab") as file:
        file.write(b'00000000 {"v":1}\nnot a record at all\n\xff\xfe\n')
    lab.fact("f2")
    assert lab.drained().torn == 3
    assert lab.fact_ids() == ["f1", "f2"]


def test_two_process_delete(lab: Lab) -> None:
    """Another process keeps writing and importing the row while this one forgets it."""
    lab.fact("f1", "a secret")
    lab.drained()
    other = other_process(
        "for n in range(10):\n"
        " lab.fact('f1', 'a secret'); lab.fact(f'n{n:02d}'); lab.drained()\n"
        " if n == 3: print('on', flush=True)",
        lab.folder,
    )
    assert line_of(other) == "on"
    lab.forget("f1")
    while other.poll() is None:
        lab.drained()
    assert other.returncode == 0
    lab.drained()
    assert lab.fact_ids() == [f"n{number:02d}" for number in range(10)]


def test_two_processes_drain_and_each_record_counts_once(lab: Lab) -> None:
    code = (
        "for n in range(24):\n"
        " lab.journal.append('event', {'name': 'seen', 'n': 1})\n"
        " lab.fact(f'{sys.argv[2]}-{n:02d}')\n"
        " if n % 4 == 0: lab.drain.run(force=True, wait=5)"
    )
    workers = [other_process(code, lab.folder, name) for name in "ab"]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    lab.drained()
    assert lab.logs.events() == {"seen": 48}
    assert lab.fact_ids() == [f"{name}-{number:02d}" for name in "ab" for number in range(24)]
    assert journals(lab) == []


WRITER = """
import os
said = os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
for n in range(10**9):
    id = lab.trace(f'{os.getpid()}-{n}', 'x' * (n % 3000))
    lab.fact(f'f-{os.getpid()}-{n}')
    os.write(said, f'{id} {os.getpid()}-{n}\\n'.encode())
    time.sleep(0.0005)
"""
DRAINER = """
while True:
    lab.drain.run(force=True, wait=0.2)
"""


def test_nothing_is_lost_or_doubled_when_drainers_and_writers_are_killed(lab: Lab, tmp_path: Path) -> None:
    chance = random.Random(7)
    said = tmp_path / "said"

    def start(code: str) -> subprocess.Popen[str]:
        return other_process(code, lab.folder, said)

    running = [(code, start(code)) for code in (WRITER, WRITER, DRAINER, DRAINER)]
    kills = 0
    ends = time.monotonic() + 60
    try:
        while kills < 6 or said.stat().st_size < 10_000:
            assert time.monotonic() < ends
            time.sleep(chance.uniform(0.05, 0.4))
            if not said.exists() or not lab.facts.path.exists():
                continue  # nobody has begun yet
            code, victim = running.pop(0)
            victim.send_signal(signal.SIGKILL)
            victim.wait(10)
            kills += 1
            running.append((code, start(code)))
    finally:
        for _, process in running:
            process.kill()
            process.wait(10)
    acknowledged = dict(line.split() for line in said.read_text().splitlines())
    lab.drained()
    rows = lab.logs.rows("SELECT ulid, tool_call_id FROM logs")
    facts = [row["id"] for row in lab.facts.rows("SELECT id FROM facts")]
    assert len(acknowledged) > 100
    assert acknowledged.items() <= {row["ulid"]: row["tool_call_id"] for row in rows}.items()
    assert len(rows) == len({row["ulid"] for row in rows})
    assert {f"f-{call}" for call in acknowledged.values()} <= set(facts)
    assert len(facts) == len(set(facts))
    assert journals(lab) == []


FULL = """
import os, resource, signal
from hermes_memory_plugin.store.ledger_faults import LedgerUnusable
limit = sys.argv[2] == 'limit'
filler = lab.folder / 'filler'
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
lab.fact('before'); lab.drained()
for n in range(1500):
    lab.fact(f'f{n:04d}', ''.join(chr(0x4E00 + byte) for byte in os.urandom(300)))
lab.trace('c1', ''.join(chr(0x4E00 + byte) for byte in os.urandom(450_000)))  # does not compress to less than the limit
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
else:
    fd = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        while True: os.write(fd, bytes(4096))
    except OSError: os.close(fd)
reports = [lab.drain.run(force=True) for _ in range(2)]
print([sorted((name, type(error).__name__) for name, error in report.errors.items()) for report in reports])
print(reports[0].retired, lab.fact_ids())
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
else:
    filler.unlink()
lab.drained()
print(len(lab.fact_ids()), lab.calls(), len(lab.logs.refs.read(lab.logs.trace('c1')[0]['ref'])))
print(list(lab.facts.notices), lab.facts.set_aside())
"""


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of 16 MB at `folder`, when this user may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("disk", ["full", "limit"])
def test_a_full_disk_loses_nothing(tmp_path: Path, disk: str) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        process = other_process(FULL, tmp_path / "disk" / "memory", disk if mounted else "limit")
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    errors, during, after, notices = output.splitlines()
    assert errors == str([[("facts", "LedgerUnusable"), ("logs", "LedgerUnusable")]] * 2)
    assert during == "() ['before']"
    assert after == "1501 ['c1'] 450000"
    assert notices == "[] []"
