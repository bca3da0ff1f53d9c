"""The draining thread: nobody waits for it but those who ask to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from hermes_memory_plugin.errors import LedgerBusy
from hermes_memory_plugin.store.drainer import Drainer
from tests.store.ledger_lab import Lab, hold_file, let_go, line_of, other_process


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "memory", wait=1.0)


@pytest.fixture
def drainer(lab: Lab) -> Iterator[Drainer]:
    drainer = Drainer(lab.drain)
    yield drainer
    drainer.stop()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hermes-memory-drain"]


def until(condition: object, seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.02)


def test_no_thread_before_the_first_record(lab: Lab, drainer: Drainer) -> None:
    before = len(threads())
    lab.fact("f1")
    drainer.notify()
    assert len(threads()) == before + 1
    assert threads()[-1].daemon
    until(lambda: lab.fact_ids() == ["f1"])


def test_notified_records_arrive_one_by_one_and_together(lab: Lab, drainer: Drainer) -> None:
    for number in range(30):
        lab.fact(f"f{number:02d}")
        drainer.notify()
    until(lambda: len(lab.fact_ids()) == 30)
    lab.fact("f30")
    drainer.notify()
    until(lambda: len(lab.fact_ids()) == 31)


def test_flush_returns_when_everything_acknowledged_is_in_the_ledgers(lab: Lab, drainer: Drainer) -> None:
    for number in range(5):
        lab.fact(f"f{number}")
        drainer.flush()
        assert lab.fact_ids() == [f"f{n}" for n in range(number + 1)]


def test_many_threads_flush_at_once(lab: Lab, drainer: Drainer) -> None:
    missing: list[str] = []

    def work(name: str) -> None:
        lab.fact(name)
        drainer.flush()
        if not lab.facts.rows("SELECT 1 FROM facts WHERE id = ?", [name], wait=20):
            missing.append(name)

    workers = [threading.Thread(target=work, args=(f"f{number}",)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert missing == []
    assert len(lab.fact_ids()) == 8


def test_flush_waits_for_another_process_that_drains(lab: Lab, drainer: Drainer) -> None:
    other = other_process(
        "from hermes_memory_plugin.store.locks import LockFile\n"
        "with LockFile(lab.folder / 'drain.lock').acquire():\n print('mine', flush=True); time.sleep(1.5)",
        lab.folder,
    )
    assert line_of(other) == "mine"
    lab.fact("f1")
    with pytest.raises(LedgerBusy):
        drainer.flush(timeout=0.1)
    with pytest.raises(LedgerBusy):
        drainer.flush(timeout=0.1, progress=lambda: "nothing moves")
    drainer.flush(timeout=0.1, progress=count().__next__)  # something does, all the time
    assert lab.fact_ids() == ["f1"]
    other.wait(10)


def test_flush_says_what_kept_a_ledger_from_taking_everything(lab: Lab, drainer: Drainer) -> None:
    lab.fact("f1")
    drainer.flush()
    stranger = hold_file(lab.facts.path)
    lab.fact("f2")
    with pytest.raises(LedgerBusy, match=str(stranger.pid)):
        drainer.flush()
    assert drainer.errors >= 1
    let_go(stranger)
    until(lambda: lab.fact_ids() == ["f1", "f2"])  # by itself, nobody asks again


def test_after_stop_a_new_notify_begins_anew(lab: Lab, drainer: Drainer) -> None:
    lab.fact("f1")
    drainer.flush()
    before = len(threads())
    drainer.stop()
    assert len(threads()) == before - 1
    lab.fact("f2")
    drainer.flush()
    assert lab.fact_ids() == ["f1", "f2"]


def test_a_forked_child_drains_with_a_thread_of_its_own(lab: Lab, drainer: Drainer) -> None:
    lab.fact("parent")
    drainer.flush()
    drainer.notify()
    pid = os.fork()
    if pid == 0:
        try:
            lab.fact("child")
            drainer.flush(20)
            os._exit(0 if "child" in lab.fact_ids() else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    lab.fact("parent again")
    drainer.flush()
    assert lab.fact_ids() == ["child", "parent", "parent again"]
