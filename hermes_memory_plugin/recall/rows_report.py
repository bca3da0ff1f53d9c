"""Rows of reports: each passage is found by its own words and, less, by what its report is and is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers.facts import as_moment, microseconds
from hermes_memory_plugin.recall.block import SOURCE, cut
from hermes_memory_plugin.recall.index_row import Add, Change, Remove, Row
from hermes_memory_plugin.recall.rows_talk import SHOWN, Labels, quantised

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst
    from hermes_memory_plugin.store.tails import Record

_SECTION, _ABOUT = 1.0, 0.5
_TITLE = 8
"""Characters of a title that are cited at least."""


class Passages:
    """Turns the passages of a report into rows."""

    def __init__(self, analyst: Analyst, label: Labels) -> None:
        self._analyst = analyst
        self._again = label

    def __call__(self, record: Record) -> list[Change]:
        """The rows of one `passages` record; a disclaimer gives none."""
        about = record.data.get("about") or {}
        return [
            Add(self._row(record, about, one))
            for one in record.data.get("passages") or ()
            if not one.get("notice")
        ]

    def _row(self, record: Record, about: Mapping[str, Any], one: Mapping[str, Any]) -> Row:
        text, section = str(one.get("text") or ""), str(one.get("section") or "")
        at = microseconds(as_moment(str(about["date"]), "date")) if about.get("date") else None
        gist = self._analyst.read(text, as_moment(str(about["date"]), "date") if about.get("date") else None)
        weights = gist.weights()
        told = self._again(title_of(about))
        for label, weight in (
            ((self._again(section), _SECTION), (told, _ABOUT)) if section else ((told, _ABOUT),)
        ):
            for token in label.weights():
                weights.setdefault(token, weight)
        report = str(record.data.get("report") or "")
        both = gist.joined(told)
        return Row(
            id=str(one["id"]),
            layer="report",
            kind="table" if one.get("tabular") else "passage",
            text=text[:SHOWN],
            owner=record.owner,
            source=cited(about, int(one.get("page") or 0)),
            as_of=at,
            created=int(about.get("added_at") or record.at),
            weights=weights,
            session=report,
            scope=both.scope,
            origin="report",
            trust=3,
            **quantised(self._analyst.pooled(f"{about.get('title') or ''}\n{section}\n{text}"[:SHOWN])),
            extra={
                "report": report,
                "page": int(one.get("page") or 0),
                "place": int(one.get("place") or 0),
                "section": section,
                "title": str(about.get("title") or ""),
                "broker": str(about.get("broker") or ""),
            }
            | both.extra(),
        )

    def gone(self, record: Record) -> list[Change]:
        """A report that was taken out, or a version of it that another took the place of; it may come back."""
        return [Remove(tuple(str(one) for one in record.data.get("ids") or ()), forever=False)]


def title_of(about: Mapping[str, Any]) -> str:
    """What the report is about, in the words it is looked for with."""
    parts: list[Iterable[str]] = [
        (str(about.get("title") or ""), str(about.get("broker") or ""), str(about.get("industry") or "")),
        map(str, about.get("tickers") or ()),
        map(str, about.get("names") or ()),
    ]
    return " ".join(word for part in parts for word in part if word)


def cited(about: Mapping[str, Any], page: int) -> str:
    """How a passage is cited: ``中信证券《贵州茅台深度报告》2026-04-15 p.7``."""
    title, broker, day = (str(about.get(name) or "") for name in ("title", "broker", "date"))
    # What is shown of a source ends somewhere, and the page stands at its end.
    title = cut(title, max(_TITLE, SOURCE - len(f"{broker}《》 {day} p.{page}")))
    parts = (broker + (f"《{title}》" if title else ""), day)
    return " ".join([*(part for part in parts if part), f"p.{page}"])
