"""Readings: the numbers that tool results and stored rows hold, each with what it is a figure of and where it stands.

This is what an answer's numbers are held against. Tables are read by the names of their columns, words as an answer is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.recall import amounts, figure_names, figures
from hermes_memory_plugin.recall.figure_names import Growth
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.columns import label, own_name
from hermes_memory_plugin.upkeep.mappers import dates, shapes

if TYPE_CHECKING:
    from hermes_memory_hookspecs import ToolTrace
    from hermes_memory_plugin.recall.gist import Analyst
    from hermes_memory_plugin.recall.index_row import Row

Kind = Literal["call", "fact", "report", "user", "earlier"]
MOST = 20_000
"""Numbers of one result that are read; a frame of more is proof by its summary alone."""
_NO_PROOF = frozenset(
    {"skill_view", "skills_list", "skill_manage", "todo", "memory", "clarify", "session_search"}
)
"""Tools of the host that tell how to work or repeat what was said: a number in them proves nothing."""
_WORDS = 160
_PROSE = 40_000
_SUBJECTS = frozenset(
    [
        "ts_code",
        "code",
        "symbol",
        "ticker",
        "stock_code",
        "secucode",
        "security_code",
        "name",
        "代码",
        "股票代码",
        "证券代码",
        "名称",
        "股票名称",
        "股票简称",
        "证券简称",
        "公司",
    ]
)
_PERIODS = frozenset(["end_date", "period", "report_date", "报告期", "报告日", "年度", "year", "截止日期"])
_DAYS = frozenset(["trade_date", "date", "日期", "交易日期", "ann_date", "as_of", "时间", "更新时间"])
_NO_FIGURES = (
    _SUBJECTS
    | _PERIODS
    | _DAYS
    | frozenset(
        [
            "id",
            "index",
            "序号",
            "page",
            "rank",
            "排名",
            "status",
            "retry",
            "total",
            "count",
            "limit",
            "offset",
        ]
    )
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of a source. Empty fields are what the source leaves open."""

    value: float
    """As the source has it; in base units where `unit` is known."""
    unit: str = ""
    subject: str = ""
    metric: str = ""
    exact: str = ""
    basis: str = ""
    period: str = ""
    growth: Growth = ""
    qualifier: str = ""
    as_of: datetime | None = None
    kind: Kind = "call"
    call: str = ""
    fact: str = ""
    report: str = ""
    page: int | None = None
    words: str = ""
    """What the source says, short."""


def of_call(trace: ToolTrace, analyst: Analyst) -> list[Reading]:
    """The numbers of a tool's result. Never raises for what a tool may return."""
    if not trace.result or trace.status not in ("ok", "started") or trace.tool_name in _NO_PROOF:
        return []
    base = Reading(0.0, as_of=trace.at, call=trace.tool_call_id)
    argued = " ".join(str(value) for value in trace.args.values() if isinstance(value, str | int))[:400]
    subjects = {one.entity_id for one in analyst.link(argued) if one.kind != "sector"} if argued else set()
    subject = subjects.pop() if len(subjects) == 1 else ""
    paged = list(_pages(trace.result))
    if paged:
        return [
            replace(one, kind="report", report=report, page=page)
            for report, page, text in paged
            for one in _prose(text, base, subject, analyst, trace.at)
        ]
    found: list[Reading] = []
    for table in shapes.read(trace.result).tables:
        found += _of_table(table, base, subject, analyst, trace.tool_name, MOST - len(found))
        if len(found) >= MOST:
            break
    for text in _texts(trace.result):
        found += _prose(text, base, subject, analyst, trace.at)
    return found[:MOST]


def of_row(row: Row, analyst: Analyst) -> list[Reading]:
    """The numbers of a row that was put beside the question: its own typed figure, and those its words state."""
    at = moment(row.as_of or row.created)
    base = Reading(
        0.0,
        as_of=at,
        kind="report" if row.layer == "report" else "call" if row.kind == "call" else "fact",
        call=str(row.extra.get("tool_call_id") or row.extra.get("call") or ""),
        fact="" if row.layer == "report" or row.kind == "call" else row.id,
        report=str(row.extra.get("report") or row.id) if row.layer == "report" else "",
        page=row.extra.get("page") if isinstance(row.extra.get("page"), int) else None,
        words=row.text[:_WORDS],
    )
    found = []
    typed = of_fact(row, base)
    if typed is not None:
        found.append(typed)
    text = str(row.extra.get("user") or "") if row.kind == "turn" else row.text
    found += _prose(text, base, typed.subject if typed else "", analyst, at or datetime.now(UTC))
    return found


def of_fact(row: Row, base: Reading | None = None) -> Reading | None:
    """The figure of a typed fact, on the scale of its dimension; None for a row without one."""
    name = str(row.extra.get("metric") or "")
    if row.value is None or not name:
        return None
    exact, implied = keys.metric_of(name)
    metric, growth = figure_names.rate_of(figure_names.family(exact), "")
    basis = keys.basis_of(str(row.extra.get("basis") or "")) or implied
    unit, currency = str(row.extra.get("unit") or ""), str(row.extra.get("currency") or "")
    return replace(
        base or Reading(0.0, as_of=moment(row.as_of or row.created), kind="fact", fact=row.id),
        value=float(row.value),
        unit=amounts.unit(unit)[1] or currency.upper(),
        subject=keys.subject_of(str(row.extra.get("subject") or "")).upper(),
        metric=metric,
        exact=own_name(exact, metric, basis),
        basis=basis,
        period=keys.period_of(str(row.extra.get("period") or "")).upper(),
        growth=growth,
        call=str(row.extra.get("tool_call_id") or ""),
        words=row.text[:_WORDS],
    )


def of_words(text: str, analyst: Analyst, at: datetime, *, kind: Kind) -> list[Reading]:
    """The numbers somebody said."""
    return _prose(text, Reading(0.0, as_of=at, kind=kind), "", analyst, at)


def _prose(text: str, base: Reading, subject: str, analyst: Analyst, at: datetime) -> list[Reading]:
    return [
        _of_figure(one, base) for one in figures.read(text[:_PROSE], analyst, at, subject=subject, sure=False)
    ]


def _of_figure(one: Figure, base: Reading) -> Reading:
    return replace(
        base,
        value=-one.amount.value if one.growth and one.falls and one.amount.value > 0 else one.amount.value,
        unit=one.amount.unit,
        subject=one.subject,
        metric=one.metric,
        exact=one.exact,
        basis=one.basis,
        period=one.period,
        growth=one.growth,
        qualifier=one.qualifier,
        words=one.words[:_WORDS],
    )


def _of_table(
    table: shapes.Table, base: Reading, subject: str, analyst: Analyst, tool: str, room: int
) -> Iterator[Reading]:
    columns = {str(name): cells for name, cells in table.columns.items()}
    outer = {str(name): value for name, value in table.outer.items()}
    numbered = [(name, label(name, tool)) for name in columns if normalise(name) not in _NO_FIGURES]
    names, books, days = (
        [name for name in (*columns, *outer) if normalise(name) in known]
        for known in (_SUBJECTS, _PERIODS, _DAYS)
    )

    def cell(name: str, row: int) -> Any:
        cells = columns.get(name)
        return outer.get(name) if cells is None else cells[row] if row < len(cells) else None

    for row in range(table.size):
        whose = next((found for name in names if (found := _entity(cell(name, row), analyst))), subject)
        period = next((found for name in books if (found := dates.period(cell(name, row)))), "")
        on = next((day for name in days if (day := dates.day(cell(name, row)))), None)
        for name, what in numbered:
            amount = amounts.parse(cell(name, row))
            if amount is None:
                continue
            if room <= 0:
                return
            room -= 1
            amount = what.scaled(amount)
            yield replace(
                base,
                value=amount.value,
                unit=amount.unit,
                subject=whose,
                metric=what.metric,
                exact=what.exact,
                basis=what.basis,
                period="" if "-" in period else period,
                growth=what.growth,
                qualifier=what.qualifier,
                as_of=_instant(on or (date.fromisoformat(period) if "-" in period else None)) or base.as_of,
                words=f"{name}: {cell(name, row)}"[:_WORDS],
            )


def _entity(cell: object, analyst: Analyst) -> str:
    if not isinstance(cell, str | int) or isinstance(cell, bool):
        return ""
    text = str(cell)
    return _linked(analyst, text) if 2 <= len(text) <= 40 else ""


@lru_cache(8_192)
def _linked(analyst: Analyst, text: str) -> str:
    return next((one.entity_id for one in analyst.link(text) if one.kind != "sector"), "")


def _instant(day: date | None) -> datetime | None:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


def _pages(result: str) -> Iterator[tuple[str, int, str]]:
    """(report, page, text) of the passages of reports in a result."""
    if '"page"' not in result:
        return
    with suppress(ValueError, RecursionError):
        for one in _objects(json.loads(result)):
            text, page = one.get("text"), one.get("page")
            if isinstance(text, str) and isinstance(page, int):
                yield (
                    str(one.get("report_id") or one.get("report") or one.get("title") or one.get("id") or ""),
                    page,
                    text,
                )


def _objects(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > 8:
        return
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(inner, dict | list):
            yield from _objects(inner, depth + 1)


def _texts(result: str) -> Iterable[str]:
    """The running text of a result: itself where it is no JSON, else the longer words in it."""
    stripped = result.lstrip()
    if stripped[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return [
                value
                for one in _objects(json.loads(result))
                for key, value in one.items()
                if isinstance(value, str)
                and len(value) >= 6
                and re.search(r"\d", value)
                and normalise(key) not in _NO_FIGURES
            ][:200]
    return [result]
