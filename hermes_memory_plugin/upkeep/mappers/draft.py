"""A mapper drafted from one stored result: what is known is written down, what is not is left for a person to fill in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.recall import amounts, metrics
from hermes_memory_plugin.upkeep.mappers import cells, codes, dates, shapes
from hermes_memory_plugin.upkeep.mappers.load import built_in
from hermes_memory_plugin.upkeep.mappers.model import Field, canonical_tool, fold
from hermes_memory_plugin.upkeep.mappers.printed import TOOLS
from hermes_memory_plugin.upkeep.mappers.shapes import Table

_SAMPLE = 200
_MOST_COLUMNS = 80
_SURE = 0.8
_UNIT = re.compile(r"^(.*?)\s*[(（\[/]\s*([^()（）\[\]/]{1,6})\s*[)）\]]?\s*$")
# 市盈率TTM, PE(LYR), 滚动市盈率: the basis is told before or behind the name of the multiple.
_BASIS = re.compile(
    r"(?P<a>滚动|静态|动态)?(?P<name>.+?)[\s_(（\[-]*(?P<b>TTM|LYR|滚动|静态?|动态?)?[)）\]]?", re.IGNORECASE
)
_BASES = {
    "ttm": "TTM",
    "滚动": "TTM",
    "lyr": "LYR",
    "静": "LYR",
    "静态": "LYR",
    "动": "dynamic",
    "动态": "dynamic",
}
_PERIODS = frozenset(
    {"end_date", "period", "report_date", "reportdate", "报告期", "报告日期", "报告日", "财报期"}
)
_RATES = frozenset(
    """roe roa roic gross_margin net_margin dividend_yield payout revenue_growth profit_growth debt_ratio change_pct nim npl
    provision_coverage capital_adequacy market_share""".split()  # noqa: SIM905 - a list of words reads best so
)
_TIMES = frozenset({"pe", "pb", "ps", "peg", "ev_ebitda"})
_A_SHARE = frozenset({"price", "eps", "bps", "nav", "target_price"})


class NothingToMap(HermesMemoryError):
    """A result that no mapper can be drafted from."""

    def __init__(self, call: str, why: str) -> None:
        super().__init__(f"no mapper can be drafted from call {call}: {why}.")
        self.call = call


@dataclass(frozen=True, slots=True)
class Draft:
    """The YAML of a mapper, and its name."""

    name: str
    yaml: str


def draft(trace: ToolTrace) -> Draft:
    """The draft for a call's result. Raises NothingToMap, saying what was there instead."""
    reading = shapes.read(trace.result)
    best = max(reading.tables, key=lambda table: _worth(table, trace.args), default=None)
    if best is None:
        raise NothingToMap(trace.tool_call_id, "its result holds no table")
    columns = [str(name) for name in best.columns][:_MOST_COLUMNS]
    subject = _subject(best, trace.args)
    if not subject:
        raise NothingToMap(
            trace.tool_call_id,
            f"neither its columns ({', '.join(columns[:12])}) nor its arguments hold the code of a security",
        )
    period = next(
        (name for name in columns if fold(name) in _PERIODS and _share(best, name, dates.period)), ""
    )
    day = next((name for name in columns if name != period and _share(best, name, dates.day)), "")
    known: list[str] = []
    open_: list[str] = []
    for name in columns:
        if name in (subject, period, day) or not _share(best, name, _is_number):
            continue
        line, sure = _line(name)
        example = next((cell for cell in best.columns[name] if _is_number(cell)), "")
        (known if sure else open_).append(f"  {line}" if sure else f"  # {line}   # such as {example}")
    if not known:
        raise NothingToMap(
            trace.tool_call_id, f"none of its columns is a figure known here ({', '.join(columns[:12])})"
        )
    return Draft(*_written(trace, subject, period, day, known, open_))


def _written(
    trace: ToolTrace, subject: str, period: str, day: str, known: Sequence[str], open_: Sequence[str]
) -> tuple[str, str]:
    tool = canonical_tool(trace.tool_name)
    needed = [name for name in (subject, period, day) if name and not name.startswith("arg:")]
    if tool in TOOLS:  # any table may be printed: only one with all of these columns is this one
        needed += [_key_of(line) for line in known]
    lines = [
        f"# Drafted from call {trace.tool_call_id} of {trace.tool_name}. Check every unit: it is the usual one of a column",
        "# of that name, not necessarily this tool's. Lines behind # wait for what nobody but you knows.",
        f"name: {tool}",
        f"tools: [{_quoted(tool)}]",
        f"subject: {_quoted(subject)}",
        f"as_of: {_quoted(day) if day else '[period]' if period else 'call'}",
        *(["closes: true   # a day's figures are those of its close"] if day and not period else []),
        *([f"period: {_quoted(period)}", "cumulative: true   # Q3 holds nine months"] if period else []),
        f"requires: [{', '.join(map(_quoted, needed))}]",
        "public: false   # true: data that everybody may see",
        "fields:",
        *known,
        *open_,
    ]
    return tool, "\n".join(lines) + "\n"


def _line(column: str) -> tuple[str, bool]:
    """(the line of a field, whether all of it is known)."""
    told = _UNIT.match(column)
    bare, unit = (told[1], told[2]) if told and _is_unit(told[2]) else (column, "")
    like = _known_columns().get(fold(column)) or _known_columns().get(fold(bare))
    key = _quoted(column)
    if like is not None:
        parts = [f"metric: {like.metric}"]
        if like.basis:
            parts.append(f"basis: {_quoted(like.basis)}")
        unit = unit or like.unit.written
        factor = ""
        if unit.startswith("×"):
            unit, factor = like.unit.name, f", factor: {unit[2:]}"
        parts.append(f"unit: {_quoted(unit)}{factor}")
        parts.append(f"label: {_quoted(like.label)}")
        return f"{key}: {{{', '.join(parts)}}}", True
    told = _BASIS.fullmatch(bare)
    bases = {_BASES[word.lower()] for word in (told["a"], told["b"]) if word} if told else set()
    if told and len(bases) == 1 and metrics.canonical(told["name"]) in _TIMES | {"dividend_yield"}:
        metric = metrics.canonical(told["name"])
        unit = "倍" if metric in _TIMES else _quoted("%")
        return f"{key}: {{metric: {metric}, basis: {bases.pop()}, unit: {unit}}}", True
    metric = metrics.canonical(bare)
    if metric not in metrics.metrics():
        return f"{key}: {{metric: ?, unit: {unit or '?'}}}", False
    unit = unit or (
        "%" if metric in _RATES else "倍" if metric in _TIMES else "元" if metric in _A_SHARE else ""
    )
    return f"{key}: {{metric: {metric}, unit: {_quoted(unit) if unit else '?'}}}", bool(unit)


@cache
def _known_columns() -> Mapping[str, Field]:
    found: dict[str, Field] = {}
    for mapper in built_in():
        for field in mapper.fields:
            if not field.text:
                for column in field.columns:
                    found.setdefault(column, field)
    return found


def _worth(table: Table, args: Mapping[str, Any]) -> tuple[bool, int, int]:
    known = sum(_line(str(name))[1] for name in list(table.columns)[:_MOST_COLUMNS])
    return bool(_subject(table, args)), known, table.size


def _subject(table: Table, args: Mapping[str, Any]) -> str:
    for name in table.columns:
        if _share(table, name, lambda cell: codes.subject(cell, "A") if isinstance(cell, str) else ""):
            return str(name)
    return next(
        (f"arg:{name}" for name, cell in args.items() if isinstance(cell, str) and codes.subject(cell, "A")),
        "",
    )


def _share(table: Table, name: str, is_one: Any) -> bool:
    """Whether nearly all cells of a column that are not empty are of that sort."""
    told = [
        cell
        for cell in list(table.columns[name])[:_SAMPLE]
        if cell is not None and cell == cell and cell != ""
    ]
    return bool(told) and sum(bool(is_one(cell)) for cell in told) >= _SURE * len(told)


def _is_number(cell: object) -> bool:
    return not isinstance(cell, bool) and dates.day(cell) is None and amounts.parse(cell) is not None


def _is_unit(text: str) -> bool:
    unit = cells.unit(text)
    return unit.money or unit.name in ("%", "x", "股", "点", "户", "手") or unit.factor != 1.0


def _key_of(line: str) -> str:
    return line.strip().partition(": {")[0].strip('"')


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z\u3400-\u9fff_][\w\u3400-\u9fff]*", text) and fold(text) not in (
        "null", "true", "false", "yes", "no", "on", "off", "y", "n",
    ) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'  # fmt: skip
