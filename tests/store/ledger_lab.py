"""What the tests of the ledgers share: a memory folder with both ledgers, and other processes that use it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from hermes_memory_plugin.store.drain import Drain, Drained
from hermes_memory_plugin.store.journal import Journal
from hermes_memory_plugin.store.ledger import CONFIG
from hermes_memory_plugin.store.ledger_facts import FactsLedger
from hermes_memory_plugin.store.ledger_logs import LogsLedger

DAY = 86_400_000_000
NOW = time.time_ns() // 1000


def key_of(owner: str, fields: Mapping[str, Any]) -> str:
    if not fields["subject"] or not fields["metric"]:
        return ""
    return "\x1f".join([owner, *(fields[name] for name in ("subject", "metric", "period"))])


def newest_stands(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    best = max(rows, key=lambda id: (rows[id]["as_of"] or 0, id))
    return {id: best for id in rows if id != best}


class Lab:
    """One memory folder seen by one process."""

    def __init__(self, folder: Path, *, wait: float = 2.0) -> None:
        self.folder = folder
        self.journal = Journal(folder / "journal")
        self.facts = FactsLedger(folder, key_of=key_of, resolve=newest_stands, wait=wait)
        self.logs = LogsLedger(folder, wait=wait)
        self.drain = Drain(folder, [self.facts, self.logs])

    def fact(self, id: str, statement: str = "a statement", *, owner: str = "local", **fields: Any) -> str:
        return self.journal.append("fact", {"id": id, "statement": statement, **fields}, owner=owner).id

    def trace(self, call: str, result: str = "a result", *, owner: str = "local", **fields: Any) -> str:
        data = {"call": call, "tool": "quote", "args": {}, "result": result, "session": "s", **fields}
        return self.journal.append("trace", data, owner=owner).id

    def forget(self, *ids: str, owner: str = "local") -> None:
        self.journal.append("forget", {"ids": list(ids), "by": owner, "why": "asked"}, owner=owner)

    def drained(self) -> Drained:
        """Run the drain now; it must have taken everything."""
        report = self.drain.run(force=True, wait=20)
        assert report.complete, report
        return report

    def fact_ids(self) -> list[str]:
        return [row["id"] for row in self.facts.scan()]

    def calls(self) -> list[str]:
        return [row["tool_call_id"] for row in self.logs.scan_traces()]


def other_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run `code` with a Lab at hand as `lab` when its first argument is a folder."""
    head = (
        "import sys, time\nfrom pathlib import Path\nfrom tests.store.ledger_lab import *\n"
        "lab = Lab(Path(sys.argv[1]))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def hold_file(path: Path) -> subprocess.Popen[str]:
    """A foreign program that keeps the DuckDB file open until its input is closed."""
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read(); c.close()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert line_of(process) == "held"
    return process


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


def crash_with_wal(path: Path, sql: str) -> None:
    """A program that commits `sql` to the file and dies before it is folded in."""
    code = (
        "import duckdb, json, os, sys; c = duckdb.connect(sys.argv[1], config=json.loads(sys.argv[3]));"
        "c.execute(sys.argv[2]); os._exit(0)"
    )
    settings = json.dumps(dict(CONFIG))
    subprocess.run([sys.executable, "-c", code, str(path), sql, settings], check=True, timeout=60)


def table(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a stranger sees who opens the file with DuckDB alone."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()
