"""The bytes of what is gone: files nobody refers to, and every place a forgotten row could still lie in."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store import compact
from hermes_memory_plugin.store import purge as rows
from hermes_memory_plugin.store.journal import live_journals
from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.store.vectors import VectorsDamaged

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.store.compact import Pace
    from hermes_memory_plugin.upkeep.retention import Report

WAIT = 30.0
"""Seconds to wait for who drains or embeds."""
FORGOTTEN = "-forgotten"
"""How backups of the host's files end that were made before an entry was forgotten."""
_YOUNG = 86_400.0
_STALLED = 20.0


def orphans(memory: Parts, outlived: int, *, at_once: bool = False) -> int:
    """Remove long texts no row refers to, and kept results older than `outlived` (epoch microseconds); returns how many.

    What was written within the last day is left alone unless `at_once`: its row may still be on the way.
    """
    logs, gone = memory.archive.logs, 0
    if logs.path.exists():
        used = {row["ref"] for row in logs.rows("SELECT DISTINCT ref FROM logs WHERE ref <> ''")}
        for ref in [ref for ref in logs.refs.stored() if ref not in used]:
            if at_once or logs.refs.age(ref) > _YOUNG:
                logs.refs.remove([ref])
                gone += 1
    if outlived:
        for path in (memory.folder / "refs").glob("ref-*.md"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime * 1e6 < outlived:
                    path.unlink()
                    gone += 1
    return gone


def vectors(memory: Parts, report: Report, *, for_good: bool) -> None:
    """Fold what many small writes left behind; `for_good` also drops the versions other readers may be at."""
    with contextlib.suppress(HermesMemoryError):
        memory.embedding.flush(_STALLED)  # what is forgotten leaves the table
    store = memory.embedding.vectors
    if not store.exists:
        return
    try:
        with LockFile(memory.folder / "embed.lock").acquire(timeout=WAIT if for_good else 0.5):
            for ref in store.tables().refs:
                table = store.open(ref)
                if table is not None:
                    table.tidy(now=True, for_good=for_good)
                    table.close()
    except (LockBusy, VectorsDamaged) as error:
        if for_good:
            report.left.append(f"Vectors: {error}")
    except ImportError:
        report.left.append("Vectors: LanceDB is not installed here; run it where it is.")


def purge(memory: Parts, report: Report, pace: Pace) -> None:
    """Take the bytes of everything that is forgotten out of every file below memory/; says what cannot be reached."""
    archive = memory.archive
    seal(memory)
    archive.flush()
    for one in memory.notes.trash:
        one.path.unlink(missing_ok=True)
    for path in (memory.folder / "snapshots").glob("*.md"):
        path.unlink(missing_ok=True)
    for path in (memory.folder / "backups" / "persona").glob(f"*{FORGOTTEN}"):
        shutil.rmtree(path, ignore_errors=True)
    for ledger in (archive.facts, archive.logs):
        if ledger.path.exists():
            with pace.visit(ledger) as connection:
                connection.execute(
                    "DELETE FROM other WHERE id IN (SELECT id FROM tombstones) OR kind = 'persona'"
                )
                if ledger is archive.logs:
                    connection.execute("DELETE FROM payloads WHERE hash NOT IN (SELECT ref FROM logs)")
                    ids = connection.execute("SELECT DISTINCT id FROM tombstones").fetchall()
                    rows.untold(connection, [row[0] for row in ids])
            compact.compact(ledger, pace)
    if archive.reports.path.exists():  # a report that was removed
        compact.compact(archive.reports, pace)
    archive.flush()  # what came meanwhile, and the journals that are done with
    orphans(memory, 0, at_once=True)
    _index(memory, report)
    vectors(memory, report, for_good=True)
    report.left += unreached(memory)


def seal(memory: Parts) -> None:
    """Have every process begin a new journal with its next write, so that the old ones can go."""
    memory.journal.close()
    if os.name != "posix":
        return
    for file in live_journals(memory.folder / "journal"):
        with contextlib.suppress(OSError):
            (memory.folder / "journal" / file.name).chmod(0o400)


def unreached(memory: Parts) -> list[str]:
    """Files below memory/ that may still hold what is forgotten, in sentences."""
    found = []
    mine = memory.journal.name
    for file in live_journals(memory.folder / "journal"):
        if file.name != mine:
            found.append(
                f"journal/{file.name} is held by process {file.pid}; it goes after that process has written again or ended."
            )
    found += [
        f"{path.relative_to(memory.folder)} was moved aside because it was damaged; delete it when you need it no more."
        for path in sorted(memory.folder.rglob("*.damaged-*"))
        if path.is_file()
    ]
    kept = (
        sorted((memory.folder / "backups").glob("persona/*")) if (memory.folder / "backups").is_dir() else []
    )
    if kept:
        found.append(
            f"{len(kept)} backups of Hermes' memory files in backups/persona may hold entries forgotten since; "
            "`persona restore` needs them, delete them when you do not."
        )
    return found


def _index(memory: Parts, report: Report) -> None:
    from hermes_memory_plugin.recall.index_writer import IndexWriter

    try:
        with LockFile(memory.folder / "drain.lock").acquire(timeout=WAIT):
            memory.reader.refresh()
            IndexWriter(memory.reader.index).purge()
    except LockBusy as busy:
        report.left.append(f"The index: {busy}")
