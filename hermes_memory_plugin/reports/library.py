"""The library: which reports there are, and how a file becomes one of them.

A report is known by its words: the same text in another file is the same report, a file that changed takes the place
of what it was. The record that says a report is there is written last, so a library that was killed goes on where
it was.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hermes_memory_hookspecs import Owner, ReportDocument
from hermes_memory_plugin.errors import HermesMemoryError, NotFound
from hermes_memory_plugin.layers.facts import as_json
from hermes_memory_plugin.reports.chunk import chunks
from hermes_memory_plugin.reports.document import ReadReport, from_document
from hermes_memory_plugin.reports.opinions import facts_of, id_of, opinions
from hermes_memory_plugin.store.ledger_reports import passage_records

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.reports.pool import Progress

Outcome = Literal["added", "unchanged", "moved", "duplicate", "replaced", "refused"]
LICENCE = "for personal use; source cited"
"""What a report may be used for, unless somebody says otherwise."""
EDITABLE = (
    "title", "broker", "analysts", "date", "tickers", "names", "industry", "rating", "target_price", "currency", "licence"
)  # fmt: skip
_Row = dict[str, Any]


class NotEditable(HermesMemoryError, ValueError):
    """A field of a report was given a value it cannot have; nothing was changed."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"{field} = {value!r}: {reason}. Nothing was changed.")
        self.field = field
        self.value = value
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one file."""

    path: str
    outcome: Outcome
    id: str = ""
    """Of the report; of the one that was there already for a duplicate; "" for what was refused."""
    title: str = ""
    status: str = "text"
    reason: str = ""
    pages: int = 0
    passages: int = 0
    problems: tuple[tuple[int, str], ...] = ()


class Library:
    """The reports of one memory. Safe to use from several processes at once; not from several threads."""

    def __init__(self, memory: Parts) -> None:
        self._memory = memory

    def reports(self, owner: Owner | None = None) -> list[_Row]:
        """The reports `owner` may see, oldest first."""
        keys = self._memory.keys(owner)
        return [row for row in self._memory.archive.library() if keys is None or row["owner"] in keys]

    def report(self, name: str, owner: Owner | None = None) -> _Row:
        """The report of that id, of the id's beginning, or of that path, file name or title. Raises NotFound."""
        rows = self.reports(owner)
        wanted = name.strip()
        path = str(Path(wanted).expanduser().absolute())
        tests: tuple[Callable[[_Row], bool], ...] = (
            lambda row: row["id"] == wanted,
            lambda row: row["path"] == path,
            lambda row: bool(row["path"]) and Path(row["path"]).name == wanted,
            lambda row: row["title"] == wanted,
            lambda row: (
                len(wanted) >= 4 and row["id"].removeprefix("rep-").startswith(wanted.removeprefix("rep-"))
            ),
        )
        for test in tests:
            found = [row for row in rows if test(row)]
            if len(found) == 1:
                return found[0]
            if found:
                names = ", ".join(row["id"] for row in found[:5])
                raise NotFound(name, f"It may be any of {names}: say which.")
        raise NotFound(name, "`reports list` shows what there is.")

    # -- adding ------------------------------------------------------------------------------------------------------

    def add_files(
        self,
        paths: Iterable[Path],
        *,
        owner: Owner | None = None,
        workers: int = 2,
        password: str | None = None,
        licence: str = "",
        progress: Callable[[Progress], None] | None = None,
    ) -> Iterator[Added]:
        """Read files and add them, each said as soon as it is done. A file that is unchanged is not read again."""
        from hermes_memory_plugin.reports.pool import read_many

        owner = owner or Owner.SHARED
        known = {row["path"]: row for row in self.reports(Owner.ANY) if row["owner"] == owner.key}
        todo = []
        for path in paths:
            path = path.absolute()
            row = known.get(str(path))
            if row is not None and row["sha256"] == _sha256(path):
                yield _said(row, "unchanged", str(path))
            else:
                todo.append(path)
        for path, report in read_many(
            todo, workers=workers, password=password, hooks=self._memory.hooks, progress=progress
        ):
            yield self.add(report, path=path, owner=owner, licence=licence)

    def add(
        self,
        report: ReadReport | ReportDocument,
        *,
        path: Path | None = None,
        owner: Owner | None = None,
        licence: str = "",
    ) -> Added:
        """Take one report in that was read."""
        owner = owner or Owner.SHARED
        where = str(path.absolute()) if path is not None else ""
        given = ""
        if isinstance(report, ReportDocument):
            given, report = report.id, from_document(report)
        if report.status in ("encrypted", "broken", "too_big"):
            self._memory.count("report_refused", f"{where}: {report.reason}")
            return Added(where, "refused", status=report.status, reason=report.reason)
        mine = [row for row in self.reports(Owner.ANY) if row["owner"] == owner.key]
        # Of two files with pages nobody could read it cannot be said that they are one.
        words = ("" if report.problems else report.text_sha256) or report.sha256
        before = next((row for row in mine if where and row["path"] == where), None)
        before = before or next((row for row in mine if given and row["id"] == given), None)
        same = next((row for row in mine if row["text_sha256"] == words and row is not before), None)
        if same is not None and not given:
            if same["path"] and where and not Path(same["path"]).exists():
                return _said(self._put(same | {"path": where, "sha256": report.sha256}), "moved", where)
            if before is None:
                return _said(same, "duplicate", where)
        id = given or (before["id"] if before else _id_of(owner, words))
        row = _row(id, owner, report, where, licence or (before or {}).get("licence") or LICENCE, words)
        for field in (before or {}).get("edited", ()):  # a person knows better than the next reading
            row[field] = (before or {})[field]
        row["edited"] = list((before or {}).get("edited", ()))
        if before is not None and before["text_sha256"] == words:
            row["added_at"] = before["added_at"]
        passages = [
            {
                "id": f"{id}:{words[:8]}:{place}",
                "place": place,
                "page": one.page,
                "section": one.section,
                "text": one.text,
                "tabular": one.table,
                "notice": one.notice,
            }
            for place, one in enumerate(chunks(report.pages))
        ]
        row["passages"] = len(passages)
        old = [] if before is None else self._passages(before)
        stay = {one["id"] for one in passages}
        self._journal(
            row, passages, gone=[one["id"] for one in old if one["id"] not in stay], before=before, old=old
        )
        return _said(row, "replaced" if before is not None else "added", where)

    def document(self, name: str, owner: Owner | None = None) -> tuple[_Row, list[_Row]]:
        """A report and its passages, in reading order. Raises NotFound."""
        row = self.report(name, owner)
        return row, self._passages(row)

    # -- changing ----------------------------------------------------------------------------------------------------

    def edit(self, name: str, fields: Mapping[str, Any], *, owner: Owner | None = None) -> _Row:
        """Set what the report says of itself; reading the file again leaves these fields alone. Raises NotEditable."""
        row = self.report(name, owner)
        checked = {field: _checked(field, value) for field, value in fields.items()}
        edited = list(dict.fromkeys([*row["edited"], *checked]))
        changed = row | checked | {"edited": edited}
        passages = self._passages(row)
        self._journal(changed, passages, gone=[], before=row, old=passages)
        return changed

    def remove(self, name: str, *, owner: Owner | None = None) -> _Row:
        """Take a report out of the library; the file stays where it is."""
        row = self.report(name, owner)
        passages = self._passages(row)
        ids = [one["id"] for one in passages]
        thought = [id_of(row, one) for one in opinions(row, passages)]
        self._memory.journal.append("report_gone", {"id": row["id"], "ids": ids}, owner=row["owner"])
        self._forget(row["owner"], thought)
        self._memory.archive.notify()
        return row

    def missing(self, owner: Owner | None = None) -> list[_Row]:
        """Reports whose file is gone."""
        return [row for row in self.reports(owner) if row["path"] and not Path(row["path"]).exists()]

    def relocate(self, old: Path, new: Path, *, owner: Owner | None = None) -> list[_Row]:
        """Say that the files below one folder lie below another now; returns the reports found there."""
        before, moved = str(old.expanduser().absolute()).rstrip("/") + "/", []
        for row in self.reports(owner):
            if row["path"].startswith(before):
                path = new.expanduser().absolute() / row["path"][len(before) :]
                if path.exists():
                    moved.append(self._put(row | {"path": str(path)}))
        return moved

    def _put(self, row: _Row) -> _Row:
        """Write the report anew with what it says of itself; its passages carry that, too."""
        self._journal(row, self._passages(row), gone=[])
        return row

    def _passages(self, row: _Row) -> list[_Row]:
        """Those in reports.db; what was only just added goes there first."""
        found = self._memory.archive.reports.passages(row["id"])
        if len(found) != row["passages"]:
            self._memory.archive.flush()
            found = self._memory.archive.reports.passages(row["id"])
        return found

    def _forget(self, owner: str, ids: list[str]) -> None:
        if ids:
            self._memory.journal.append("forget", {"ids": ids, "by": owner, "why": "its report"}, owner=owner)

    def _journal(
        self,
        row: _Row,
        passages: list[_Row],
        *,
        gone: list[str],
        before: _Row | None = None,
        old: Sequence[_Row] = (),
    ) -> None:
        """Write the report with its passages and what it thinks, in place of what it was `before`."""
        owner = str(row["owner"])
        thought = list(facts_of(row, opinions(row, passages)))
        stay = {one.id for one in thought}
        earlier = [id_of(before, one) for one in opinions(before, old)] if before is not None else []
        self._forget(owner, [id for id in earlier if id not in stay])
        records: list[tuple[str, Mapping[str, Any], str, str | None, int | None]] = []
        if gone:
            records.append(("report_gone", {"id": "", "ids": gone}, owner, None, None))
        records += [
            (one.kind, one.data, owner, None, None)
            for one in passage_records({"record": "", **row}, passages)
        ]
        records += [
            ("fact", as_json(self._memory.dated(fact), approximate=False), owner, None, None)
            for fact in thought
        ]
        kept = {name: value for name, value in row.items() if name not in ("owner", "record")}
        records.append(("report", kept, owner, None, None))
        self._memory.journal.append_many(records)
        self._memory.archive.notify()


def _row(id: str, owner: Owner, report: ReadReport, path: str, licence: str, words: str) -> _Row:
    about = report.metadata
    return {
        "id": id,
        "owner": owner.key,
        "title": about.title or (Path(path).stem if path else id),
        "broker": about.broker,
        "analysts": list(about.analysts),
        "date": about.date.isoformat() if about.date else "",
        "tickers": list(about.tickers),
        "names": list(about.names),
        "industry": about.industry,
        "rating": about.rating,
        "target_price": about.target_price,
        "currency": about.currency,
        "path": path,
        "sha256": report.sha256,
        "text_sha256": words,
        "licence": licence,
        "status": report.status,
        "reason": report.reason,
        "pages": len(report.pages),
        "problems": [list(problem) for problem in report.problems],
        "added_at": time.time_ns() // 1000,
    }


def _said(row: Mapping[str, Any], outcome: Outcome, path: str) -> Added:
    return Added(
        path or row["path"],
        outcome,
        row["id"],
        row["title"],
        row["status"],
        row["reason"],
        row["pages"],
        row["passages"],
        tuple((int(page), str(what)) for page, what in row["problems"]),
    )


def _id_of(owner: Owner, words: str) -> str:
    return "rep-" + hashlib.sha256(f"{owner.key}\x1f{words}".encode()).hexdigest()[:12]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _checked(field: str, value: Any) -> Any:
    if field not in EDITABLE:
        raise NotEditable(field, value, f"no such field; there are {', '.join(EDITABLE)}")
    if field in ("analysts", "tickers", "names"):
        parts = value.replace("，", ",").replace("、", ",").split(",") if isinstance(value, str) else value
        return [str(part).strip() for part in parts if str(part).strip()]
    if field == "date" and value:
        try:
            return date.fromisoformat(str(value)).isoformat()
        except ValueError:
            raise NotEditable(field, value, "write a day as 2026-04-15") from None
    if field == "target_price" and value not in (None, ""):
        try:
            return float(value)
        except (TypeError, ValueError):
            raise NotEditable(field, value, "write a number") from None
    return (None if field == "target_price" else "") if value in (None, "") else str(value)
