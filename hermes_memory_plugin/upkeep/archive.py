"""The ledgers of one home and the background drain that feeds them, the read index and the fact extractors."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.errors import HermesMemoryError, LedgerBusy, LedgerCorrupt
from hermes_memory_plugin.layers import facts, log
from hermes_memory_plugin.store import payloads
from hermes_memory_plugin.store.drain import Consumer, Drain, Drained
from hermes_memory_plugin.store.drainer import Drainer
from hermes_memory_plugin.store.ledger_facts import FactsLedger, record_of
from hermes_memory_plugin.store.ledger_logs import LogsLedger
from hermes_memory_plugin.store.ledger_reports import ReportsLedger, passage_records, report_of
from hermes_memory_plugin.store.log_links import link_rows
from hermes_memory_plugin.store.tails import Record, read_tails
from hermes_memory_plugin.upkeep import refill

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.store.journal import Journal
    from hermes_memory_plugin.store.tails import Chunk

Keys = frozenset[str] | None
Count = Callable[[str, str], None]


class Archive:
    """facts.db and logs.db behind one drain. Opening it costs nothing; the ledgers open for each visit."""

    def __init__(
        self,
        folder: Path,
        *,
        index: Callable[[], Index],
        journal: Journal,
        extract: Consumer,
        dialogue: Consumer,
        count: Count,
    ) -> None:
        self.folder = folder
        self._index = index
        self._journal = journal
        self.facts = FactsLedger(folder, key_of=facts.fact_key, resolve=_resolve)
        self.logs = LogsLedger(folder)
        self.reports = ReportsLedger(folder)
        self._count = count
        self._consumers: list[Consumer] = [
            extract,
            dialogue,
            self.facts,
            self.logs,
            self.reports,
            _IndexConsumer(index),
        ]
        self.drain = _Watched(folder, self._consumers, self._damaged)
        self.drainer = Drainer(self.drain)

    def notify(self) -> None:
        """Something was journalled."""
        self.drainer.notify()

    def flush(self, timeout: float = 60.0) -> Drained:
        """Return when everything acknowledged is with every consumer; raises what kept one from it.

        LedgerBusy after `timeout` seconds in which nothing went on.
        """
        drained = self.drainer.flush(timeout, progress=self._progress)
        # What an extractor journalled during that run belongs to what was acknowledged.
        if drained.records.get("extract"):
            drained = self.drainer.flush(timeout, progress=self._progress)
        return drained

    def _progress(self) -> tuple[int, int]:
        return self.drain.moved, self._index().tail.waiting

    def close(self, timeout: float = 2.0) -> None:
        """Drain once more, briefly, and end the thread; what is left stays in the journal for the next process."""
        try:
            self.drainer.flush(timeout)
        except Exception as error:
            if not isinstance(error, LedgerBusy):
                self._count("drain_failed", f"{type(error).__name__}: {error}")
        self.drainer.stop()

    def _damaged(self, notices: Sequence[LedgerCorrupt]) -> None:
        """A ledger was moved aside: say so, and give the new one what the index still holds."""
        for notice in notices:
            self._count("ledger_corrupt", str(notice))
            if notice.moved_to is None or notice.moved_to.name.startswith(f"{notice.path.name}.wal"):
                continue
            index = self._index()
            index.refresh()
            lost = refill.facts(index) if notice.path == self.facts.path else refill.log(index)
            self._journal.append_many(lost)

    # -- tracing ---------------------------------------------------------------------------------------------------

    def trace(self, call_id: str, keys: Keys, *, row: Row | None = None) -> ToolTrace | None:
        """The newest call of that id (or of an index row found by its handle), its result whole."""
        ids = {call_id}
        if row is not None:
            ids |= {row.id, str(row.extra.get("call") or row.id)}
        fresh = [
            record
            for record in self._undrained({"trace"}, keys)
            if not ids.isdisjoint((record.id, record.data.get("id"), record.data.get("call")))
        ]
        if fresh:
            return _trace_of_record(fresh[-1])
        for one in ids:
            for found in self.logs.trace(one, keys):
                return self._trace_of_row(found)
        return None

    def traces(
        self,
        *,
        since: int | None,
        until: int | None,
        tool: str | None,
        keys: Keys,
        session: str | None,
        status: str | None,
        limit: int,
    ) -> list[ToolTrace]:
        """Calls between two times (epoch microseconds), newest first; those still in the journal included."""
        fresh = {
            str(record.data.get("id") or record.id): _trace_of_record(record)
            for record in self._undrained({"trace"}, keys)
            if (since is None or record.at >= since)
            and (until is None or record.at < until)
            and (tool is None or record.data.get("tool") == tool)
            and (session is None or record.data.get("session") == session)
            and (status is None or (record.data.get("status") or "ok") == status)
        }
        stored = {
            found["ulid"]: self._trace_of_row(found)
            for found in self.logs.traces(
                since=since, until=until, tool=tool, session=session, status=status, owners=keys, limit=limit
            )
        }
        return sorted((stored | fresh).values(), key=lambda trace: trace.at, reverse=True)[:limit]

    def links(
        self,
        *,
        keys: Keys,
        answers: Collection[str] | None = None,
        session: str | None = None,
        limit: int = 20_000,
    ) -> list[dict[str, Any]]:
        """Where the numbers of answers came from, newest answer first, those still in the journal included."""
        fresh: dict[str, list[dict[str, Any]]] = {}
        for record in self._undrained({"answer"}, keys):
            rows = link_rows(record)
            fresh[rows[0]["answer"]] = rows
        stored = self.logs.links(answers=answers, session=session, owners=keys, limit=limit)
        found = [row for row in stored if row["answer"] not in fresh] + [
            row
            for rows in fresh.values()
            for row in rows
            if (answers is None or row["answer"] in answers)
            and (session is None or row["session_id"] == session)
        ]
        return sorted(found, key=lambda row: (-(row["timestamp"] or 0), row["answer"], row["place"]))

    def audits(self, n: int, keys: Keys) -> list[dict[str, Any]]:
        """The last n recalls, newest first."""
        fresh = [
            {**record.data, "at": record.at, "id": record.id, "owner": record.owner}
            for record in self._undrained({"audit"}, keys)
        ]
        seen = {one["id"] for one in fresh}
        stored = [
            _audit_of_row(found) for found in self.logs.audits(n, owners=keys) if found["id"] not in seen
        ]
        return sorted([*fresh, *stored], key=lambda one: str(one["id"]), reverse=True)[:n]

    def calls(self, wanted: Callable[[Mapping[str, Any]], bool]) -> Iterator[ToolTrace]:
        """Every stored call whose row (of `logs`) is wanted, oldest first, its result whole."""
        for found in _pages(self.logs.scan_traces, "ulid"):
            if wanted(found):
                yield self._trace_of_row(found)

    def stored(self) -> Iterator[Record]:
        """Every row of the ledgers as the record it came from, for a rebuild of the index."""
        for found in _pages(self.facts.scan, "id"):
            yield Record(found["record"], "fact", found["owner"], found["recorded_at"] or 0, record_of(found))
        for found in _pages(self.logs.scan_traces, "ulid"):
            data = {
                "call": found["tool_call_id"],
                "tool": found["tool_name"],
                "args": json.loads(found["arguments"] or "{}"),
                "result": found["result"],
                "status": found["status"],
                "error": found["error"],
                "session": found["session_id"],
                "turn": found["turn_id"],
            }
            yield Record(found["ulid"], "trace", found["owner"], found["timestamp"] or 0, data)
        turns = sorted(_pages(self.logs.scan_turns, "id"), key=lambda found: found["timestamp"] or 0)
        for found in turns:
            data = {
                "id": found["id"],
                "turn": found["turn_id"],
                "session": found["session_id"],
                "user": found["user_text"],
                "assistant": found["assistant_text"],
                "speaker": found["speaker"],
                "kind": found["kind"],
                "completed": found["completed"],
            }
            yield Record(found["id"], "turn", found["owner"], found["timestamp"] or 0, data)

        for report in self.reports.reports():
            yield from passage_records(report, self.reports.passages(report["id"]))

    def library(self) -> list[dict[str, Any]]:
        """Every report of the library, oldest first, as `ReportsLedger.reports` gives them; the journal's included."""
        found = {row["id"]: row for row in self.reports.reports()}
        fresh = [
            record
            for chunk in read_tails(self.folder / "journal", self.reports.offsets())
            for record in chunk.records
            if record.kind in ("report", "report_gone")
        ]
        for record in sorted(fresh, key=lambda one: one.id):
            found.pop(str(record.data.get("id") or ""), None)
            if record.kind == "report":
                row = report_of(record)
                found[row["id"]] = row
        return sorted(found.values(), key=lambda row: (row["added_at"] or 0, row["id"]))

    def events(self, since: int) -> dict[str, int]:
        """How often each thing happened since then (epoch microseconds), undrained records included."""
        for _ in range(5):  # until no drain came between the two looks
            offsets = self.logs.offsets()
            events = dict(self.logs.events(since))
            for chunk in read_tails(self.folder / "journal", offsets):
                for record in chunk.records:
                    if record.kind == "event" and record.at >= since:
                        name = str(record.data.get("name"))
                        events[name] = events.get(name, 0) + int(record.data.get("n") or 1)
            if self.logs.offsets() == offsets:
                break
        return events

    def _undrained(self, kinds: Collection[str], keys: Keys) -> Iterator[Record]:
        """Records logs.db has not taken yet, oldest first within a journal."""
        for chunk in read_tails(self.folder / "journal", self.logs.offsets()):
            for record in chunk.records:
                if record.kind in kinds and (keys is None or record.owner in keys):
                    yield record

    def _trace_of_row(self, found: Mapping[str, Any]) -> ToolTrace:
        result = found["result"]
        if found["ref"]:
            try:
                result = payloads.read(self.logs, found["ref"])
            except HermesMemoryError as error:  # head and tail are still there
                self._count("ref_lost", str(error))
        return log.trace_of(
            {
                "call": found["tool_call_id"],
                "tool": found["tool_name"],
                "args": json.loads(found["arguments"] or "{}"),
                "result": result,
                "status": found["status"],
                "error": found["error"],
                "ms": found["duration_ms"],
                "session": found["session_id"],
                "turn": found["turn_id"],
                "owner": found["owner"],
                "at": found["timestamp"],
            }
        )


class _Watched(Drain):
    """A drain that reports damaged ledgers."""

    def __init__(
        self, folder: Path, consumers: Sequence[Consumer], damaged: Callable[[Sequence[LedgerCorrupt]], None]
    ) -> None:
        super().__init__(folder, consumers)
        self._damaged = damaged

    def run(self, *, force: bool = False, wait: float = 0.0) -> Drained:
        """As `Drain.run`; what a damaged ledger lost is in the journal again when it returns."""
        drained = super().run(force=force, wait=wait)
        if drained.notices:
            self._damaged(drained.notices)
            again = super().run(force=True, wait=wait)
            return replace(again, notices=drained.notices) if again.state == "done" else drained
        return drained


class _IndexConsumer:
    """The read index as the drain sees it: opened for one run, put on disk at its end."""

    name = "index"

    def __init__(self, index: Callable[[], Index]) -> None:
        self._index = index

    @contextmanager
    def intake(self) -> Iterator[_IndexIntake]:
        from hermes_memory_plugin.recall.index_writer import IndexWriter

        writer = IndexWriter(self._index())
        intake = _IndexIntake(writer)
        yield intake
        if intake.taken:
            writer.commit()


class _IndexIntake:
    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.taken = 0

    @property
    def offsets(self) -> Mapping[str, int]:
        """How far each journal is in the index."""
        offsets: dict[str, int] = self._writer.offsets()
        return offsets

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Take the chunks' records."""
        for chunk in chunks:
            self._writer.apply(chunk)
            self.taken += 1

    def drop(self, journals: Collection[str]) -> None:
        """The writer forgets journals that are gone by itself."""


def _pages(scan: Callable[[str], list[dict[str, Any]]], key: str) -> Iterator[dict[str, Any]]:
    page = scan("")
    while page:
        yield from page
        page = scan(page[-1][key])


def _resolve(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return facts.resolve({row_id: facts.rank_of(row) for row_id, row in rows.items()})


def _trace_of_record(record: Record) -> ToolTrace:
    return log.trace_of({**record.data, "owner": record.owner, "at": record.at})


def _audit_of_row(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": found["id"],
        "at": found["timestamp"],
        "session": found["session_id"],
        "turn": found["turn_id"],
        "question": found["question"],
        "tokens": found["tokens"],
        "ms": found["ms"],
        "items": json.loads(found["items"] or "[]"),
        "cut": json.loads(found["cut"] or "[]"),
        "degraded": json.loads(found["degraded"] or "[]"),
        "owner": found["owner"],
    }
