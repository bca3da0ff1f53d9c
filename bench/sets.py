"""The retrieval sets: how their folders are read, and how each is told to a memory the way its rows would come.

A set is a folder with `corpus.jsonl` {id, group, text, …} and `queries.jsonl` {id, group, text, relevant, kind}. A question is
asked of the rows of its group alone. Nothing of the sets is part of this repository; `--data` says where they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.figures import ROOT
from hermes_memory_hookspecs import Turn
from hermes_memory_plugin import Memory

DATA = ROOT.parent / "shared" / "data"
TODAY = datetime(2026, 6, 1, tzinfo=UTC)
"""When questions are asked whose set says nothing of it."""
STORED = datetime(2026, 1, 1, tzinfo=UTC)
"""When rows without a date were stored."""

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are searched together, and the questions asked of them."""

    name: str
    rows: Sequence[_Row]
    questions: Sequence[_Row]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A set that is there: where it is, how it is told, and what "today" is for a question."""

    name: str
    folder: Path
    tell: Callable[[Memory, Sequence[_Row]], dict[str, str]]
    """Stores the rows; returns the memory's id of each → the id in the set."""
    asked: Callable[[Group, _Row], datetime]

    def groups(self) -> Iterator[Group]:
        """The groups in the order of their first row."""
        rows: dict[str, list[_Row]] = {}
        for row in _lines(self.folder / "corpus.jsonl"):
            rows.setdefault(row["group"] or "", []).append(row)
        questions: dict[str, list[_Row]] = {}
        for row in _lines(self.folder / "queries.jsonl"):
            questions.setdefault(row["group"] or "", []).append(row)
        for name, some in rows.items():
            yield Group(name, some, questions.get(name, []))


def find(data: Path, names: Sequence[str] = ()) -> tuple[list[Retrieval], list[str]]:
    """The sets below a folder, of those named (all but the optional ones when none is), and the names missing."""
    chosen = list(names) or [name for name in SETS if name not in OPTIONAL]
    found, missing = [], []
    for name in chosen:
        folder = data / name
        if name in SETS and (folder / "corpus.jsonl").is_file() and (folder / "queries.jsonl").is_file():
            found.append(Retrieval(name, folder, *SETS[name]))
        else:
            missing.append(name)
    return found, missing


def configure(home: Path, settings: Mapping[str, Any]) -> None:
    """Give a home these settings of the plugin and no others."""
    entries = {"hermes-memory": {"settings": dict(settings)}}
    # JSON is YAML.
    (home / "config.yaml").write_text(json.dumps({"plugins": {"entries": entries}}), encoding="utf-8")


# -- how each is told ------------------------------------------------------------------------------------------------


def facts(memory: Memory, rows: Sequence[_Row]) -> dict[str, str]:
    """Each row a statement; its date, where it has one, is the day it was stored and holds for."""
    many = []
    for row in rows:
        at = _moment(row.get("date"))
        many.append({"statement": row["text"], "as_of": at, "created_at": at or STORED, "origin": "import"})
    return dict(zip(memory.remember_many(many), (row["id"] for row in rows), strict=True))


def statements(memory: Memory, rows: Sequence[_Row]) -> dict[str, str]:
    """Each row a statement and nothing else, whatever the set knows beside its text."""
    many = [{"statement": row["text"], "created_at": STORED, "origin": "import"} for row in rows]
    return dict(zip(memory.remember_many(many), (row["id"] for row in rows), strict=True))


def pages(memory: Memory, rows: Sequence[_Row]) -> dict[str, str]:
    """Each page a statement whose source is the name of its document."""
    many = [
        {
            "statement": row["text"],
            "source": str(row["id"]).rpartition("/")[0].replace("_", " "),
            "created_at": STORED,
            "origin": "import",
        }
        for row in rows
    ]
    return dict(zip(memory.remember_many(many), (row["id"] for row in rows), strict=True))


def dialogue(memory: Memory, rows: Sequence[_Row]) -> dict[str, str]:
    """Each row what one speaker said, in its session, at its time."""
    ids = {}
    for number, row in enumerate(rows):
        speaker = str(row.get("speaker") or "")
        at = (_moment(row.get("date")) or STORED) + timedelta(seconds=number % 1_000)
        turn = Turn(
            str(row["text"]).removeprefix(f"{speaker}: "),
            at=at,
            session_id=f"{row['group']}-{row['session']}",
            speaker=speaker,
        )
        ids[memory.log_turn(turn)] = str(row["id"])
    return ids


# -- when each is asked ----------------------------------------------------------------------------------------------


def today(group: Group, question: _Row) -> datetime:
    """A fixed day."""
    return TODAY


def after_the_last(group: Group, question: _Row) -> datetime:
    """The day after the newest row."""
    days = (_moment(row.get("date")) for row in group.rows)
    return max((day for day in days if day), default=STORED) + timedelta(days=1)


def in_its_month(group: Group, question: _Row) -> datetime:
    """The end of the month the question was asked in."""
    at = _moment(f"{question['ask_time']}-28") if question.get("ask_time") else None
    return at or TODAY


SETS: dict[
    str, tuple[Callable[[Memory, Sequence[_Row]], dict[str, str]], Callable[[Group, _Row], datetime]]
] = {
    "locomo": (dialogue, after_the_last),
    "finglm-reports": (statements, today),
    "paraphrase-fin": (statements, today),
    "financebench": (pages, today),
    "fineva": (statements, today),
    "lifebench-zh": (facts, in_its_month),
    "lifebench-en": (facts, in_its_month),
    "disc-finllm": (statements, today),
    "drcd": (statements, today),
    "cmrc2018": (statements, today),
    "finna": (statements, today),
}
OPTIONAL = ("drcd", "cmrc2018", "finna")
"""Near the ceiling of any word search; asked only by name."""


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _moment(text: object) -> datetime | None:
    if not text:
        return None
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%I:%M %p on %d %B, %Y"):
        try:
            return datetime.strptime(str(text), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
