"""What a report thinks: rating, target price and its forecasts per year, each with its page.

Only what cannot be misread is taken: a report on one company, a year that is marked as an estimate, a row whose name is
the figure's and nothing more, a unit that is stated. What a report says twice and differently is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.layers.facts import as_moment, moment
from hermes_memory_plugin.recall.rows_report import cited
from hermes_memory_plugin.reports.tables import cells_of

_YEAR = re.compile(
    r"(?:FY|CY)?\s?(20\d\d)\s?年?(?:度)?\s?(?P<ahead>[EF]|[(（]?(?:预测|预计|E|F)[)）]?)?", re.IGNORECASE
)
_ACTUAL = re.compile(r"(?:FY|CY)?\s?20\d\d\s?年?(?:度)?\s?(?:[AH]|[(（]?(?:实际|A)[)）]?)", re.IGNORECASE)
_NUMBER = re.compile(r"[-−–]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-−–]?\d+(?:\.\d+)?")
_UNIT = re.compile(r"[(（\[]\s*(?P<unit>[^()（）\[\]]{1,16})\s*[)）\]]\s*$")
_STATED = re.compile(r"(?:单位|unit)s?\s?[:：]\s?(?:人民币)?(?P<unit>[^\s，,;；)）]{1,10})", re.IGNORECASE)
_MONEY_UNIT = re.compile(
    r"(?:(?:人民币|RMB|CNY|HKD|HK\$|US\$|USD)\s?)?(?:百万|千万|亿|万|千|mn|m|bn|b|million|billion|')*\s?(?:港元|港币|美元|元|RMB|CNY|HKD|USD)?",
    re.IGNORECASE,
)
_PER_SHARE = re.compile(r"(?:人民币|港|美)?元(?:/股)?|RMB|CNY|HKD|HK\$|USD|US\$", re.IGNORECASE)
_NAMES = {
    "revenue": "营业收入 营业总收入 营收 主营业务收入 主营收入 revenue revenues totalrevenue totalrevenues netrevenue sales",
    "net_profit_parent": "归母净利润 归母净利 归属母公司净利润 归属于母公司净利润 归属于母公司股东的净利润 归属于母公司所有者的净利润 归属母公司股东的净利润 "
    "归属于上市公司股东的净利润 attributablenetprofit netprofitattributabletoshareholders",
    "net_profit": "净利润 netprofit netincome",
    "eps": "每股收益 eps 基本每股收益 每股盈利 epsbasic",
}
METRICS = {name: metric for metric, names in _NAMES.items() for name in names.split()}
LABELS = {
    "rating": "评级",
    "target_price": "目标价",
    "revenue": "营业收入",
    "net_profit_parent": "归母净利润",
    "net_profit": "净利润",
    "eps": "每股收益",
}
_SAME = 0.006
"""How far two roundings of one figure lie apart at most."""
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Opinion:
    """One thing a report thinks."""

    metric: str
    """rating, target_price, revenue, net_profit_parent, net_profit or eps."""
    period: str
    """The year of a forecast; "" for rating and target price."""
    value: float | None
    unit: str
    text: str
    """As the report writes it."""
    page: int
    """0: a person set it."""

    @property
    def quantity(self) -> float | None:
        """The value on the scale of its dimension: yuan for 百万元 and 亿元 alike."""
        return keys.quantity(self.value, self.unit).value


def opinions(report: _Row, passages: Sequence[_Row]) -> list[Opinion]:
    """The opinions of a report on one company; none where broker, day or company are not known."""
    if len(report["tickers"]) != 1 or not report["broker"] or not report["date"]:
        return []
    found: dict[tuple[str, str], Opinion | None] = {}
    for passage in passages:
        if passage["tabular"] and not passage["notice"]:
            for one in forecasts(str(passage["text"]), int(passage["page"]), str(report["tickers"][0])):
                before = found.setdefault((one.metric, one.period), one)
                if before is not None and not _agree(before, one):
                    found[one.metric, one.period] = None
    kept = [one for one in found.values() if one is not None]
    parents = {one.period for one in kept if one.metric == "net_profit_parent"}
    kept = [one for one in kept if one.metric != "net_profit" or one.period not in parents]
    return [*_stated(report, passages), *kept]


def _stated(report: _Row, passages: Sequence[_Row]) -> Iterator[Opinion]:
    """Rating and target price: of the first page, unless a person set them."""
    edited = report["edited"]
    if report["rating"]:
        yield Opinion(
            "rating", "", None, "", report["rating"], 0 if "rating" in edited else _page_of(passages)
        )
    price = report["target_price"]
    if price is not None and report["currency"]:
        yield Opinion(
            "target_price", "", float(price), _unit_of(report["currency"]), f"{price:,g}",
            0 if "target_price" in edited else _page_of(passages),
        )  # fmt: skip


def _page_of(passages: Sequence[_Row]) -> int:
    return min((int(one["page"]) for one in passages), default=1)


def forecasts(text: str, page: int, ticker: str) -> Iterator[Opinion]:
    """The forecasts of one Markdown table."""
    rows = cells_of(text)
    if len(rows) < 2:
        return
    heads = rows[0]
    above = text.partition("\n|")[0] if not text.startswith("|") else ""
    stated = _STATED.search(above)
    general = stated["unit"] if stated else _in_brackets(above.strip().rpartition("\n")[2] or above)
    for column, head in enumerate(heads):
        year = _YEAR.fullmatch(head.strip())
        if year is None or not year["ahead"]:
            continue
        label_at = max(
            (
                at
                for at in range(column)
                if not _YEAR.fullmatch(heads[at]) and not _ACTUAL.fullmatch(heads[at])
            ),
            default=-1,
        )
        if label_at < 0:
            continue
        beside = _in_brackets(heads[label_at]) or (heads[label_at] if _is_money(heads[label_at]) else "")
        for row in rows[1:]:
            if len(row) != len(heads):
                continue
            one = _forecast(row[label_at], row[column], beside or general, ticker)
            if one is not None:
                metric, value, unit = one
                yield Opinion(metric, year[1], value, unit, row[column].strip(), page)


def _forecast(label: str, cell: str, unit: str, ticker: str) -> tuple[str, float, str] | None:
    own = _UNIT.search(label)
    name = re.sub(r"[\s:：]", "", label[: own.start()] if own else label).casefold()
    metric = METRICS.get(name)
    number = _NUMBER.fullmatch(cell.strip())
    if metric is None or number is None:
        return None
    value = float(number[0].replace(",", "").replace("−", "-").replace("–", "-"))
    said = own["unit"].strip() if own else ""
    if metric == "eps":
        if said and not _PER_SHARE.fullmatch(said):
            return None
        if not said and not ticker.endswith((".SH", ".SZ", ".BJ")):
            return None
        return metric, value, _unit_of(said)
    said = said or unit
    return (metric, value, _unit_of(said)) if _is_money(said) else None


def _in_brackets(text: str) -> str:
    """The unit of money a label ends with: 利润表（百万元）."""
    found = _UNIT.search(text.strip())
    return found["unit"].strip() if found and _is_money(found["unit"].strip()) else ""


def _is_money(unit: str) -> bool:
    return bool(unit.strip()) and _MONEY_UNIT.fullmatch(unit.strip()) is not None


def _unit_of(said: str) -> str:
    """A unit as facts have it: 百万元, 亿港元, 元."""
    plain = said.strip().removesuffix("/股").removeprefix("人民币").strip()
    upper = plain.upper()
    currency = next((name for sign, name in _CURRENCIES if sign in upper), "元")
    for sign, _ in _CURRENCIES:
        plain = re.sub(re.escape(sign), "", plain, flags=re.IGNORECASE)
    scale = _SCALES.get(plain.strip().casefold(), plain.strip())
    return f"{scale}{currency}"


_CURRENCIES = (
    ("港元", "港元"), ("港币", "港元"), ("HKD", "港元"), ("HK$", "港元"), ("美元", "美元"), ("USD", "美元"), ("US$", "美元"),
    ("RMB", "元"), ("CNY", "元"), ("元", "元"),
)  # fmt: skip
_SCALES = {"mn": "百万", "m": "百万", "million": "百万", "bn": "十亿", "b": "十亿", "billion": "十亿"}


def _agree(one: Opinion, other: Opinion) -> bool:
    mine, theirs = one.quantity, other.quantity
    if mine is None or theirs is None:
        return one.text == other.text
    return abs(mine - theirs) <= _SAME * max(abs(mine), abs(theirs))


def facts_of(report: _Row, found: Iterable[Opinion]) -> Iterator[Fact]:
    """The opinions of a report as facts of its broker. Their ids are those of the report as it was last taken in."""
    subject = str(report["tickers"][0]) if report["tickers"] else ""
    name = next(iter(report["names"]), "") or subject
    for one in found:
        told = (
            f"{one.period}年{LABELS[one.metric]}预测 {one.text}{one.unit}"
            if one.period
            else (f"{LABELS[one.metric]} {one.text}{one.unit}")
        )
        yield Fact(
            id=id_of(report, one),
            statement=f"{report['broker']}对{name}（{subject}）：{told}（{report['date']}）",
            kind="conclusion",
            subject=subject,
            metric=one.metric,
            period=one.period,
            value=one.value,
            unit=one.unit,
            as_of=as_moment(report["date"], "date"),
            basis="estimate" if one.period else "",
            holder=str(report["broker"]),
            source=cited(report, one.page) if one.page else cited(report, 0).rpartition(" p.")[0],
            origin="report",
            owner=Owner.parse(str(report["owner"])),
            created_at=moment(report["added_at"]) or datetime.now(UTC),
        )


def id_of(report: _Row, one: Opinion) -> str:
    """The id of the fact an opinion is. What was forgotten with an earlier version of the report stays forgotten."""
    stamp = int(report["added_at"] or 0)
    return ":".join(filter(None, (str(report["id"]), f"{stamp:x}", one.metric, one.period)))
