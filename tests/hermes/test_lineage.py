"""One conversation through all its session ids, on a real state.db."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Session
from hermes_memory_plugin.hermes import statedb
from hermes_memory_plugin.hermes.lineage import IDLE, OPEN_TURNS, Conversation, Lineages, OpenTurn

Make = Callable[..., None]


@pytest.fixture
def sessions(tmp_path: Path) -> Make:
    """Adds sessions to a state.db of the installed Hermes."""
    from hermes_state import SessionDB

    database: Any = SessionDB(tmp_path / "state.db")

    def make(session: str, parent: str = "", *, why: str = "", marks: dict[str, Any] | None = None) -> None:
        if parent and why:
            database.end_session(parent, why)
        database.create_session(session, "cli", parent_session_id=parent or None, model_config=marks)

    return make


def test_rotating_compaction_keeps_the_lineage(tmp_path: Path, sessions: Make) -> None:
    sessions("a")
    sessions("b", "a", why="compression")
    sessions("c", "b", why="compression")
    assert Lineages().root(tmp_path, "c") == "a"
    assert Lineages().root(tmp_path, "b") == "a"


def test_new_process_names_a_lineage_as_the_old_one_did(tmp_path: Path, sessions: Make) -> None:
    sessions("a")
    first = Lineages()
    assert first.root(tmp_path, "a") == "a"
    sessions("b", "a", why="compression")
    assert first.root(tmp_path, "b", "a:task:12345678") == Lineages().root(tmp_path, "b") == "a"


@pytest.mark.parametrize(
    ("why", "marks"),
    [("branched", None), ("compression", {"_branched_from": "a"}), ("user_exit", None), ("", None)],
)
def test_branches_and_new_sessions_begin_their_own(
    tmp_path: Path, sessions: Make, why: str, marks: dict[str, Any] | None
) -> None:
    sessions("a")
    sessions("b", "a", why=why, marks=marks)
    assert Lineages().root(tmp_path, "b") == "b"


def test_compaction_within_a_turn_is_known_by_the_turn_id(tmp_path: Path) -> None:
    lineages = Lineages()
    assert lineages.root(tmp_path, "a") == "a"
    assert lineages.root(tmp_path, "b", "a:task:0badf00d") == "a"
    assert lineages.root(tmp_path, "c", "b:task:0badf00d") == "a"
    assert lineages.root(tmp_path, "d", "d:task:0badf00d") == "d"


def test_session_ids_with_colons_are_no_trap(tmp_path: Path) -> None:
    lineages = Lineages()
    lineages.root(tmp_path, "user:7")
    assert lineages.root(tmp_path, "x", "user:7:task:0badf00d") == "user:7"
    assert lineages.root(tmp_path, "y", "user:8:task:0badf00d") == "y"


def test_the_same_session_id_in_two_homes_is_two_lineages(tmp_path: Path) -> None:
    lineages = Lineages()
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        lineages.root(home, "s")
        lineages.add(Conversation(Session("s", profile=home.name), home))
        lineages.note_task("task", lineages.find(home, "s") or pytest.fail("it was just added"))
    for home in homes:
        found = lineages.find(home, "", task_id="task")
        assert found is not None
        assert found.session.profile == home.name
    assert lineages.find(tmp_path, "s", task_id="task") is None


@pytest.mark.parametrize("content", [None, b"", b"not a database", b"SQLite format 3\0" + b"\0" * 100])
def test_missing_or_foreign_state_db_answers_nothing(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "state.db").write_bytes(content)
    assert statedb.row(tmp_path, "a") is None
    assert Lineages().root(tmp_path, "a") == "a"


def test_locked_state_db_is_not_waited_for(tmp_path: Path, sessions: Make) -> None:
    sessions("a")
    home = tmp_path / "home"
    home.mkdir()
    other = sqlite3.connect(home / "state.db", isolation_level=None)
    sqlite3.connect(tmp_path / "state.db").backup(other)
    assert statedb.row(home, "a") is not None
    other.execute("PRAGMA journal_mode=DELETE")
    other.execute("BEGIN EXCLUSIVE")
    answers: list[object] = []
    reader = threading.Thread(target=lambda: answers.append(statedb.row(home, "a")), daemon=True)
    reader.start()
    reader.join(20)
    assert answers == [None]
    other.close()
    assert statedb.row(home, "a") is not None


def test_reading_changes_nothing(tmp_path: Path, sessions: Make) -> None:
    sessions("a")
    sessions("b", "a", why="compression")
    with sqlite3.connect(tmp_path / "state.db") as reader:
        before = list(reader.iterdump())
    Lineages().root(tmp_path, "b")
    with sqlite3.connect(tmp_path / "state.db") as reader:
        assert list(reader.iterdump()) == before


def test_a_turn_ends_once() -> None:
    conversation = Conversation(Session("s"), Path("home"))
    conversation.open(OpenTurn("t1", "hello"))
    assert [turn.user for turn in conversation.close("t1")] == ["hello"]
    assert conversation.close("t1") == []


def test_turns_without_an_id_are_all_ended_at_once() -> None:
    conversation = Conversation(Session("s"), Path("home"))
    for number in range(3):
        conversation.open(OpenTurn(f"t{number}", str(number)))
    assert [turn.user for turn in conversation.close()] == ["0", "1", "2"]


def test_turns_nobody_ends_do_not_pile_up() -> None:
    conversation = Conversation(Session("s"), Path("home"))
    given_up = [old.id for n in range(OPEN_TURNS + 3) for old in conversation.open(OpenTurn(str(n), ""))]
    assert given_up == ["0", "1", "2"]
    assert len(conversation.turns) == OPEN_TURNS


def test_a_conversation_idle_for_an_hour_is_taken_out(tmp_path: Path) -> None:
    now = [time.monotonic()]
    lineages = Lineages(clock=lambda: now[0])
    for name in ("silent", "busy"):
        lineages.root(tmp_path, name)
        lineages.add(Conversation(Session(name), tmp_path))
    now[0] += IDLE - 1
    assert lineages.find(tmp_path, "busy") is not None
    now[0] += 2
    assert [one.session.id for one in lineages.idle()] == ["silent"]
    assert lineages.find(tmp_path, "silent") is None
    assert lineages.find(tmp_path, "busy") is not None


def test_chat_type_is_what_hermes_recorded_last(tmp_path: Path) -> None:
    from hermes_state import SessionDB

    SessionDB(tmp_path / "state.db")
    with sqlite3.connect(tmp_path / "state.db") as database:
        database.executemany(
            "INSERT INTO sessions (id, source, chat_id, chat_type, started_at) VALUES (?, 'slack', ?, ?, ?)",
            [("1", "D1", "dm", 1.0), ("2", "C1", "group", 1.0), ("3", "C1", "channel", 2.0)],
        )
    assert statedb.chat_type(tmp_path, "slack", "D1") == "dm"
    assert statedb.chat_type(tmp_path, "slack", "C1") == "channel"
    assert statedb.chat_type(tmp_path, "slack", "C2") == ""
    assert statedb.chat_type(tmp_path / "nowhere", "slack", "C1") == ""
