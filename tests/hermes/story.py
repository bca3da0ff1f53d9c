"""What the end-to-end tests look at after a run: what was sent to the model, and what was stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall import block
from tests.lab.hermes_lab import Lab, last_user
from tests.lab.mock_llm import text_of

Body = dict[str, Any]


def stored(home: Path, sql: str) -> list[dict[str, Any]]:
    """Rows of logs.db once everything acknowledged is in it."""
    with Memory.open(home) as memory:
        memory.flush()
        return list(memory.archive.logs.rows(sql))


def turns(home: Path) -> list[dict[str, Any]]:
    """Every stored turn, oldest first."""
    return stored(home, "SELECT * FROM turns ORDER BY timestamp, id")


def calls(home: Path) -> list[dict[str, Any]]:
    """Every stored tool call, oldest first."""
    return stored(home, "SELECT * FROM logs ORDER BY timestamp, ulid")


def asked(lab: Lab, question: str) -> list[Body]:
    """The agent's requests made for that user message, oldest first."""
    return [body for body in lab.main_requests() if last_user(body).startswith(question)]


def given(body: Body) -> str:
    """What we put beside the last user message of a request."""
    return "\n".join(found.text for found in block.find(last_user(body)))


def tool_results(body: Body) -> list[str]:
    """The tool results since the last user message of a request."""
    results: list[str] = []
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            break
        if message["role"] == "tool":
            results.insert(0, text_of(message["content"]))
    return results
