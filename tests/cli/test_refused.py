"""A home that cannot be written, and one that another process holds: said in a line, within seconds."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli import checks
from hermes_memory_plugin.errors import LedgerBusy
from hermes_memory_plugin.store import locks
from hermes_memory_plugin.store.ledger_faults import LedgerUnusable
from hermes_memory_plugin.store.locks import LockFile

from .conftest import Command


@pytest.fixture
def read_only(cli: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line of a home with a fact, a call and an audit, whose locks can no longer be made."""
    with Memory.open(home) as memory:
        memory.log(ToolTrace(tool_call_id="c1", tool_name="quote", result="28.1"))
        memory.remember("长江电力 股息率 3.6%")
        memory.recall("长江电力 股息率")
        memory.flush()

    def refuse(path: Path, flags: int) -> int:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(locks, "open_private", refuse)
    monkeypatch.setattr(checks, "unwritable", lambda home: "Read-only file system")
    return cli


def test_doctor_says_that_the_home_cannot_be_written(read_only: Command) -> None:
    ran = read_only("doctor", "--no-probe", "--json")
    assert ran.code == 4
    said = {check["name"]: check["said"] for check in ran.json["checks"] if check["status"] == "fail"}
    assert "Read-only file system" in said["home"]
    assert "drain.lock" in said["stores"]


def test_the_facade_says_it_with_an_error_of_ours(read_only: Command, home: Path) -> None:
    with Memory.open(home) as memory, pytest.raises(LedgerUnusable, match="Read-only"):
        memory.flush()


@pytest.mark.parametrize("words", [("link",), ("link", "ABCDEF"), ("unlink",)])
def test_owners_cannot_be_linked_there(read_only: Command, words: tuple[str, ...]) -> None:
    ran = read_only("owners", *words)
    assert ran.code == 4
    assert "owners.json: Read-only file system" in ran.err


def test_a_full_disk_is_no_fault_of_the_program(
    cli: Command, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("hermes_memory_plugin.owners.atomic_write", full)
    assert cli("owners", "link").code == 4
    monkeypatch.setattr(Memory, "status", full)
    ran = cli("status")
    assert (ran.code, "No space left" in ran.err) == (4, True)


def test_what_is_stored_can_still_be_read(read_only: Command) -> None:
    assert "长江电力" in read_only("why").out
    assert "28.1" in read_only("trace", "c1").out
    assert "3.6%" in read_only("recall", "长江电力 股息率").out
    assert read_only("status").code == 0


@pytest.mark.slow
def test_doctor_names_who_holds_the_memory_and_does_not_wait_for_long(
    cli: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("remember", "长江电力 股息率 3.6%")
    monkeypatch.setattr(checks, "PATIENCE", 0.8)
    began = time.monotonic()
    with LockFile(home / "memory" / "drain.lock").acquire(timeout=5):
        found = cli("doctor", "--json").json["checks"]
    assert time.monotonic() - began < 15
    (stores,) = [check for check in found if check["name"] == "stores"]
    assert stores["status"] == "fail"
    assert f"pid {os.getpid()}" in stores["said"]
    assert [check["name"] for check in found if check["name"].startswith("probe")] == [
        "probe write", "probe recall", "probe owners", "probe forget",
    ]  # fmt: skip


def test_a_flush_waits_as_long_as_it_is_told(home: Path) -> None:
    with Memory.open(home) as memory:
        memory.remember("长江电力 股息率 3.6%")
        memory.flush()
        with LockFile(home / "memory" / "drain.lock").acquire(timeout=5):
            began = time.monotonic()
            with pytest.raises(LedgerBusy, match=f"pid {os.getpid()}"):
                memory.flush(timeout=0.8)
            assert time.monotonic() - began < 4


def test_status_does_not_wait_for_a_held_ledger(cli: Command, home: Path) -> None:
    cli("remember", "长江电力 股息率 3.6%")
    folder = home / "memory"
    cli("doctor")
    began = time.monotonic()
    with (
        LockFile(folder / "drain.lock").acquire(timeout=5),
        LockFile(folder / "facts.db.lock").acquire(timeout=5),
        LockFile(folder / "logs.db.lock").acquire(timeout=5),
    ):
        ran = cli("status")
    assert time.monotonic() - began < 5
    assert "in use by pid" in ran.out
