"""reports.db: the reports of the library and their passages.

Most homes add a report now and then, and a visit to a DuckDB file costs 50 ms: the drain opens this one only for
records that are for it. How far it looked lies beside the journals; a record that is taken twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.store.intake import LedgerConsumer, LedgerIntake, at_fault
from hermes_memory_plugin.store.ledger import Owners, transaction
from hermes_memory_plugin.store.ledger_rows import (
    OTHER,
    TOMBSTONES,
    Table,
    as_json,
    delete,
    flag,
    insert,
    integer,
    moment,
    number,
    other,
    replace,
    select,
    text,
    texts,
    tombstones,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.tails import Chunk, Record

KINDS = frozenset({"report", "passages", "report_gone"})
"""The records that are for this ledger alone."""
REPORTS: Table = {
    "id": "text",
    "owner": "text",
    "title": "text",
    "broker": "text",
    "analysts": "text",
    "date": "text",
    "tickers": "text",
    "names": "text",
    "industry": "text",
    "rating": "text",
    "target_price": "number",
    "currency": "text",
    "path": "text",
    "sha256": "text",
    "text_sha256": "text",
    "licence": "text",
    "status": "text",
    "reason": "text",
    "pages": "integer",
    "passages": "integer",
    "problems": "text",
    "edited": "text",
    "added_at": "time",
    "record": "text",
}
PASSAGES: Table = {
    "id": "text",
    "report": "text",
    "place": "integer",
    "page": "integer",
    "section": "text",
    "text": "text",
    "tabular": "flag",
    "notice": "flag",
}
LISTS = ("analysts", "tickers", "names", "problems", "edited")
ABOUT = ("title", "broker", "date", "tickers", "names", "industry", "added_at")
"""What each passage's record says of its report."""
PER_RECORD = 16
"""Passages of one record."""
_OFFSETS = "reports.json"
_Row = dict[str, Any]


class ReportsLedger(LedgerConsumer):
    """The ledger of reports. Rows are dictionaries of the tables' columns, lists as lists, times in epoch microseconds."""

    name: ClassVar[str] = "reports"
    counted: ClassVar[tuple[str, ...]] = ("reports", "passages", "tombstones", "other")

    def reports(self, ids: Collection[str] | None = None, owners: Owners = None) -> list[_Row]:
        """The reports with these ids (None: all), oldest first."""
        return [
            _report_of(row) for row in self._select("reports", REPORTS, "id", ids, owners, "added_at, id")
        ]

    def passages(self, report: str, pages: Collection[int] | None = None) -> list[_Row]:
        """The passages of a report, or of some of its pages, in reading order."""
        where, values = "report = ?", [report, *([list(pages)] if pages is not None else [])]
        if pages is not None:
            where += " AND page IN (SELECT unnest(?::BIGINT[]))"
        return self.rows(f"SELECT {select(PASSAGES)} FROM passages WHERE {where} ORDER BY place", values)

    def passage(self, id: str) -> _Row | None:
        """One passage."""
        found = self.rows(f"SELECT {select(PASSAGES)} FROM passages WHERE id = ?", [id])
        return found[0] if found else None

    def _select(
        self, table: str, columns: Table, key: str, values: Collection[str] | None, owners: Owners, order: str
    ) -> list[_Row]:
        where, parameters = ["true"], []
        for column, wanted in ((key, values), ("owner", owners)):
            if wanted is not None:
                where.append(f"{column} IN (SELECT unnest(?::VARCHAR[]))")
                parameters.append(list(wanted))
        sql = f"SELECT {select(columns)} FROM {table} WHERE {' AND '.join(where)} ORDER BY {order}"
        return self.rows(sql, parameters)

    # -- taking records in -------------------------------------------------------------------------------------------

    def offsets(self) -> dict[str, int]:
        """How far each journal was looked at."""
        try:
            found = json.loads((self.path.parent / "journal" / _OFFSETS).read_text(encoding="utf-8"))
            return {str(name): int(offset) for name, offset in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def save(self, offsets: Mapping[str, int]) -> None:
        """Remember the offsets."""
        atomic_write(self.path.parent / "journal", _OFFSETS, json.dumps(dict(offsets)))

    @contextmanager
    def intake(self) -> Iterator[LedgerIntake]:
        """Open for one run of the drain; the file itself only when there is something for it."""
        yield _Intake(self)

    def wants(self, record: Record) -> bool:
        """Whether the record is for this ledger."""
        return record.kind in KINDS or (record.kind == "forget" and self.path.exists())

    def store(self, connection: DuckDBPyConnection, records: Sequence[Record]) -> None:
        """Apply records within the caller's transaction; applying them twice changes nothing."""
        reports: dict[str, _Row | None] = {}
        passages: dict[str, _Row | None] = {}
        buried: dict[str, _Row] = {}
        emptied: set[str] = set()
        for record in sorted(records, key=lambda one: text(one.id)):
            data = record.data
            if record.kind == "report":
                reports[text(data.get("id"))] = _report_row(record)
            elif record.kind == "passages":
                passages |= {row["id"]: row for row in _passage_rows(data)}
            elif record.kind == "report_gone":
                passages |= dict.fromkeys(texts(data.get("ids")))
                if data.get("id"):
                    gone = text(data["id"])
                    reports[gone] = None
                    passages = {id: row for id, row in passages.items() if row and row["report"] != gone}
                    emptied.add(gone)
            elif record.kind == "forget":
                buried |= {row["id"]: row for row in tombstones(record)}
        passages |= dict.fromkeys(buried)
        replace(connection, "tombstones", TOMBSTONES, list(buried.values()))
        delete(connection, "reports", "id", reports)
        insert(connection, "reports", REPORTS, [row for row in reports.values() if row is not None])
        delete(connection, "passages", "report", emptied)
        delete(connection, "passages", "id", passages)
        insert(connection, "passages", PASSAGES, [row for row in passages.values() if row is not None])
        connection.execute("DELETE FROM passages WHERE id IN (SELECT id FROM tombstones)")


class _Intake(LedgerIntake):
    def __init__(self, ledger: ReportsLedger) -> None:
        self._reports = ledger
        self.offsets = ledger.offsets()
        self.refused = 0

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Store what is for the ledger, then remember how far."""
        ledger = self._reports
        wanted = [record for chunk in chunks for record in chunk.records if ledger.wants(record)]
        if wanted:
            with ledger.visit(write=True) as connection:
                self._take(connection, wanted)
        self.offsets = self.offsets | {chunk.journal: chunk.end for chunk in chunks}
        ledger.save(self.offsets)

    def _take(self, connection: DuckDBPyConnection, records: Sequence[Record]) -> None:
        try:
            with transaction(connection):
                self._reports.store(connection, records)
            return
        except Exception as error:
            if not at_fault(error):
                raise
        for record in records:  # the one that cannot be stored is kept as what it is
            if not self._store_alone(connection, record):
                continue
            reason = self._store_alone(connection, record)  # twice: it may have been the moment's fault
            if reason:
                with transaction(connection):
                    replace(connection, "other", OTHER, [other(record, reason)])
                self.refused += 1

    def _store_alone(self, connection: DuckDBPyConnection, record: Record) -> str:
        """Store one record; returns why it cannot be stored, "" when it is."""
        try:
            with transaction(connection):
                self._reports.store(connection, [record])
        except Exception as error:
            if not at_fault(error):
                raise
            return f"{type(error).__name__}: {error}"[:500]
        return ""

    def drop(self, journals: Collection[str]) -> None:
        """Forget journals that are gone."""
        self.offsets = {name: offset for name, offset in self.offsets.items() if name not in set(journals)}
        self._reports.save(self.offsets)


def report_of(record: Record) -> _Row:
    """A `report` record as `ReportsLedger.reports` gives it."""
    return _report_of(_report_row(record))


def passage_records(report: Mapping[str, Any], passages: Sequence[Mapping[str, Any]]) -> Iterator[Record]:
    """The `passages` records of a report: small ones, so that no other process has to read a whole report at once."""
    from hermes_memory_plugin.store.tails import Record

    about = {name: report[name] for name in ABOUT}
    for start in range(0, len(passages), PER_RECORD):
        data = {
            "report": report["id"],
            "about": about,
            "passages": list(passages[start : start + PER_RECORD]),
        }
        yield Record(
            str(report["record"]), "passages", str(report["owner"]), int(report["added_at"] or 0), data
        )


def _report_row(record: Record) -> _Row:
    row: _Row = {}
    for name, kind in REPORTS.items():
        value = record.data.get(name)
        if name in LISTS:
            row[name] = as_json(value if isinstance(value, list | tuple) else [])
        elif kind == "number":
            row[name] = number(value)
        elif kind == "integer":
            row[name] = integer(value) or 0
        elif kind == "time":
            row[name] = moment(value) if value is not None else moment(record.at)
        else:
            row[name] = text(value)
    return row | {"owner": text(record.owner), "record": text(record.id)}


def _report_of(row: _Row) -> _Row:
    return row | {name: json.loads(row[name] or "[]") for name in LISTS}


def _passage_rows(data: Mapping[str, Any]) -> Iterable[_Row]:
    report = text(data.get("report"))
    for one in data.get("passages") or ():
        yield {
            "id": text(one.get("id")),
            "report": report,
            "place": integer(one.get("place")) or 0,
            "page": integer(one.get("page")) or 0,
            "section": text(one.get("section")),
            "text": text(one.get("text")),
            "tabular": bool(flag(one.get("tabular"))),
            "notice": bool(flag(one.get("notice"))),
        }
