"""Work with a deadline: late or without a worker, the caller goes on."""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar

import pytest

from hermes_memory_plugin.hermes.pool import Busy, Late, Pool

_value: ContextVar[str] = ContextVar("value", default="")


def test_result_and_error_reach_the_caller() -> None:
    pool: Pool[int] = Pool(1)
    assert pool.run(lambda: 7, 10) == 7
    with pytest.raises(ZeroDivisionError):
        pool.run(lambda: 1 // 0, 10)
    assert pool.run(lambda: 8, 10) == 8


def test_work_sees_the_callers_context_and_cannot_change_it() -> None:
    _value.set("mine")

    def work() -> str:
        seen = _value.get()
        _value.set("theirs")
        return seen

    assert Pool[str](1).run(work, 10) == "mine"
    assert _value.get() == "mine"


def test_a_late_result_is_thrown_away_and_its_place_comes_back() -> None:
    pool: Pool[str] = Pool(1)
    go = threading.Event()
    with pytest.raises(Late):
        pool.run(lambda: "late" if go.wait(30) else "never", 0.05)
    with pytest.raises(Busy):
        pool.run(lambda: "no place", 0.05)
    go.set()
    assert pool.run(lambda: "free again", 10) == "free again"


def test_a_free_place_is_waited_for_within_the_deadline() -> None:
    pool: Pool[str] = Pool(1)
    go, began = threading.Event(), threading.Event()

    def first() -> str:
        began.set()
        go.wait(30)
        return "first"

    holder = threading.Thread(target=lambda: pool.run(first, 30))
    holder.start()
    assert began.wait(10)
    threading.Timer(0.05, go.set).start()
    assert pool.run(lambda: "second", 20) == "second"
    holder.join(10)


def test_places_taken_before_a_fork_are_free_after_it() -> None:
    pool: Pool[str] = Pool(1)
    go, began = threading.Event(), threading.Event()

    def hold() -> str:
        began.set()
        go.wait(30)
        return ""

    holder = threading.Thread(target=lambda: pool.run(hold, 30))
    holder.start()
    assert began.wait(10)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if pool.run(lambda: "ok", 10) == "ok" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go.set()
    holder.join(10)


def test_settling_waits_for_what_is_running_and_lets_nothing_begin() -> None:
    pool: Pool[str] = Pool(2)
    go, done = threading.Event(), threading.Event()

    def work() -> str:
        go.wait(30)
        done.set()
        return "done"

    with pytest.raises(Late):
        pool.run(work, 0.05)
    assert not pool.settle(0.05)
    go.set()
    assert done.wait(10)
    with pytest.raises(Busy):
        pool.run(lambda: "too late", 0.05)
