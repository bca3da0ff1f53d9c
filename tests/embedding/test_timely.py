"""A query vector in time, or none."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from hermes_memory_plugin.embedding.threads import one_thread
from hermes_memory_plugin.embedding.timely import Timely


class Gated:
    name = "gated"
    dimension = 1

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked: list[str] = []

    def passages(self, texts: Sequence[str]) -> Any:
        raise NotImplementedError

    def query(self, text: str) -> Any:
        self.asked.append(text)
        assert self.open.wait(20)
        if text == "bad":
            raise ValueError("bad text")
        return [float(len(text))]


def settled(timely: Timely) -> None:
    """Until the question under way is done."""
    assert timely._busy.acquire(timeout=20)
    timely._busy.release()


def test_a_fast_encoder_answers() -> None:
    gated = Gated()
    gated.open.set()
    assert Timely(gated).query("abc", within=20) == [3.0]


def test_a_slow_encoder_gives_none_and_only_one_question_waits() -> None:
    gated = Gated()
    timely = Timely(gated)
    assert [timely.query(text, within=0.01) for text in ("one", "two", "three")] == [None, None, None]
    assert gated.asked == ["one"]
    assert timely.late == 3
    gated.open.set()
    settled(timely)
    assert timely.query("four", within=20) == [4.0]


def test_a_failing_encoder_gives_none_and_says_why_until_it_works() -> None:
    gated = Gated()
    gated.open.set()
    timely = Timely(gated)
    assert timely.query("bad", within=20) is None
    assert str(timely.error) == "bad text"
    assert timely.late == 0
    settled(timely)
    assert timely.query("good", within=20) == [4.0]
    assert timely.error is None


def test_a_forked_child_can_ask_although_its_parent_was_asking() -> None:
    gated = Gated()
    timely = Timely(gated)
    assert timely.query("parent", within=0.01) is None
    child = os.fork()
    if child == 0:
        gated.open = threading.Event()
        gated.open.set()
        os._exit(0 if timely.query("child", within=20) == [5.0] else 1)
    gated.open.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_thread_limit_is_for_what_is_loaded_inside_and_never_over_the_users(monkeypatch: Any) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with one_thread():
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
