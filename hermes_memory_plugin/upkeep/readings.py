"""Readings: the numbers that tool results and stored rows hold, each with what it is a figure of and where it stands.

This is what an answer's numbers are held against. Tables are read by the names of their columns, words as an answer is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.recall import amounts, figures, metrics
from hermes_memory_plugin.recall.amounts import Amount
from hermes_memory_plugin.recall.figures import Figure, Growth
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.mappers import dates, load, shapes
from hermes_memory_plugin.upkeep.mappers.model import canonical_tool

if TYPE_CHECKING:
    from hermes_memory_hookspecs import ToolTrace
    from hermes_memory_plugin.recall.gist import Analyst
    from hermes_memory_plugin.recall.index_row import Row

Kind = Literal["call", "fact", "report", "user", "earlier"]
MOST = 20_000
"""Numbers of one result that are read; a frame of more is proof by its summary alone."""
_NO_PROOF = frozenset({"skill_view", "skills_list", "skill_manage", "todo", "memory", "clarify", "session_search"})
"""Tools of the host that tell how to work or repeat what was said: a number in them proves nothing."""
_WORDS = 160
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
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
    metric, growth = figures.rate_of(figures.family(exact), "")
    basis = keys.basis_of(str(row.extra.get("basis") or "")) or implied
    unit, currency = str(row.extra.get("unit") or ""), str(row.extra.get("currency") or "")
    return replace(
        base or Reading(0.0, as_of=moment(row.as_of or row.created), kind="fact", fact=row.id),
        value=float(row.value),
        unit=amounts.unit(unit)[1] or currency.upper(),
        subject=keys.subject_of(str(row.extra.get("subject") or "")).upper(),
        metric=metric,
        exact=_own(exact, metric, basis),
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


@dataclass(frozen=True, slots=True)
class Label:
    """What the name of a column says of its cells."""

    metric: str = ""
    exact: str = ""
    basis: str = ""
    growth: Growth = ""
    qualifier: str = ""
    factor: float = 1.0
    unit: str = ""

    def scaled(self, amount: Amount) -> Amount:
        """A bare cell in base units."""
        if not amount.bare or not (self.unit or self.factor != 1.0):
            return amount
        return amount._replace(
            value=amount.value * self.factor, step=amount.step * self.factor, unit=self.unit
        )


@lru_cache(4_096)
def label(column: str, tool: str = "") -> Label:
    """What a column is: by the built-in mappers of that tool, by all of them, else by the words of its name."""
    normal = normalise(_CAMEL.sub(" ", column)).strip()
    known = _mapped(canonical_tool(tool)).get(normal) or _mapped("").get(normal)
    if known is not None:
        return known
    spoken = normal.replace("_", " ")
    named = metrics.named(spoken)
    growth = figures.growth_of(spoken)
    unit = figures.in_unit(Amount(1.0, "", 1.0, 1, False, "", 0, 0), normal)
    common = {"qualifier": figures.qualifier_of(spoken, ""), "factor": unit.value, "unit": unit.unit}
    if not named:
        return Label(growth=growth, **common)  # type: ignore[arg-type]
    metric, exact, basis = figures.named_as(named[-1], spoken)
    metric, growth = figures.rate_of(metric, growth)
    return Label(metric, exact, basis or keys.metric_of(normal)[1], growth, **common)  # type: ignore[arg-type]


@lru_cache(512)
def _mapped(tool: str) -> Mapping[str, Label]:
    """The columns of a tool's built-in mappers, or of all; where they differ in the unit alone, without one."""
    found: dict[str, Label | None] = {}
    for mapper in load.built_in():
        if tool and not mapper.fits_tool(tool):
            continue
        for field in mapper.fields:
            if field.text:
                continue
            metric, growth = figures.rate_of(figures.family(field.metric), "")
            basis = keys.basis_of(field.basis)
            one = Label(
                metric,
                _own(field.metric, metric, basis),
                basis,
                growth,
                "",
                field.unit.factor,
                field.unit.name,
            )
            for column in field.columns:
                found[column] = _both(found.get(column, one), one)
    return {column: one for column, one in found.items() if one is not None}


def _both(one: Label | None, other: Label) -> Label | None:
    """What two mappers agree on of a column."""
    if one is None or (one.metric, one.growth) != (other.metric, other.growth):
        return None
    if one == other:
        return one
    same_unit = (one.factor, one.unit) == (other.factor, other.unit)
    return Label(
        one.metric,
        one.exact if one.exact == other.exact else one.metric,
        one.basis if one.basis == other.basis else "",
        one.growth,
        factor=one.factor if same_unit else 1.0,
        unit=one.unit if same_unit else "",
    )


def _own(exact: str, metric: str, basis: str) -> str:
    """The own name of a figure whose basis says which of its family it is."""
    if metric == "net_profit" and exact not in figures.OWN:
        return {"parent": "net_profit_parent", "deducted": "net_profit_deducted"}.get(
            basis.partition(" ")[0], metric
        )
    return exact if exact in figures.OWN else metric


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
