"""Hermes' own session table, read-only and with a time limit: who is whose parent, and where a chat is known.

state.db belongs to Hermes. A busy, missing or unknown one answers nothing; nobody waits for it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import sqlite3

LIMIT = 0.05
"""Seconds one question may take."""
DEPTH = 64
"""Compactions one conversation is followed back over."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Row:
    """One session as Hermes stored it."""

    id: str
    parent: str = ""
    branch: bool = False
    """Made by /branch: a conversation of its own."""
    delegated: bool = False
    end_reason: str = ""
    prompt: str = ""


@contextmanager
def _connection(home: Path) -> Iterator[sqlite3.Connection]:
    import sqlite3

    path = home / "state.db"
    if not path.is_file():
        raise FileNotFoundError(path)
    address = f"file:{quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=LIMIT, check_same_thread=False)) as connection:
        stop = time.monotonic() + LIMIT
        connection.set_progress_handler(lambda: int(time.monotonic() > stop), 1_000)
        yield connection


def row(home: Path, session_id: str) -> Row | None:
    """The session's row; None when there is none or it cannot be read in time."""
    chain = ancestry(home, session_id, depth=1)
    return chain[0] if chain else None


def ancestry(home: Path, session_id: str, *, depth: int = DEPTH) -> list[Row]:
    """The session and those it continues, newest first: only links that a compaction made are followed."""
    found: list[Row] = []
    with suppress(Exception), _connection(home) as connection:
        wanted = session_id
        while wanted and len(found) < depth and all(one.id != wanted for one in found):
            one = _read(connection, wanted)
            if one is None or (found and one.end_reason != "compression"):
                break
            found.append(one)
            wanted = "" if one.branch or one.delegated else one.parent
    return found


def chat_type(home: Path, platform: str, chat_id: str) -> str:
    """The kind of chat Hermes once recorded for that chat; "" when it never did."""
    with suppress(Exception), _connection(home) as connection:
        row = connection.execute(
            "SELECT chat_type FROM sessions WHERE source = ? AND chat_id = ? AND chat_type <> '' "
            "ORDER BY started_at DESC LIMIT 1",
            (platform, chat_id),
        ).fetchone()
        return str(row[0]) if row else ""
    return ""


def _read(connection: sqlite3.Connection, session_id: str) -> Row | None:
    row = connection.execute(
        "SELECT parent_session_id, model_config, end_reason, system_prompt FROM sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    if row is None:
        return None
    marks = _marks(row[1])
    return Row(
        id=session_id,
        parent=str(row[0] or ""),
        branch=marks.get("_branched_from") is not None,
        delegated=marks.get("_delegate_from") is not None,
        end_reason=str(row[2] or ""),
        prompt=str(row[3] or ""),
    )


def _marks(raw: object) -> dict[str, Any]:
    with suppress(TypeError, ValueError):
        marks = json.loads(str(raw or "{}"))
        if isinstance(marks, dict):
            return marks
    return {}
