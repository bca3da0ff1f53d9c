"""What the words around a number say it is: which figure by its own name, on which basis, a level or how it moved."""

from __future__ import annotations

import re
from typing import Literal

from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.recall import amounts, metrics
from hermes_memory_plugin.recall.amounts import Amount

Growth = Literal["", "yoy", "qoq", "change"]

# Names that mean one figure of a family and no other; every other name stands for the family.
_OWN = {
    "归母": "net_profit_parent", "扣非": "net_profit_deducted", "attributable": "net_profit_parent", "开盘": "open", "最高价": "high", "最低价": "low",
    "流通": "float_cap", "周转": "turnover_days", "每股": "per_share", "核心一级": "cet1",
}  # fmt: skip
_FAMILY = {
    "net_profit_parent": "net_profit", "net_profit_deducted": "net_profit", "close": "price", "open": "price", "high": "price",
    "low": "price", "float_cap": "market_cap",
}  # fmt: skip
OWN = frozenset(_OWN.values())
"""Figures with a name of their own within a family: 归母净利润 among the profits."""
_RATES = {"revenue_growth": "revenue", "profit_growth": "net_profit"}
_YOY = re.compile(r"同比|\byoy\b|year[- ](?:on|over)[- ]year|年增")
_QOQ = re.compile(r"环比|\bqoq\b|quarter[- ](?:on|over)[- ]quarter")
CHANGE = re.compile(
    r"增长|增速|增幅|增加|提升|提高|上升|上涨|涨|下降|下滑|减少|降低|回落|下跌|跌|缩水|扩大|收窄"
    r"|\b(?:grew|grow(?:th|s|ing)?|up|down|rose|risen|rise|fell|fall(?:en)?|in?creased?|decreased?|dropped|declined?|gained)\b"
)
QUALIFIER = re.compile(
    r"(?P<mean>均值|平均|中枢|\b(?:average|mean|avg)\b)|(?P<median>中位|\bmedian\b)|(?P<rank>\s?的?(?:历史)?分位|\bpercentile\b)"
    r"|(?P<most>最高(?!价)|高点|峰值|\b(?:highest|high|peak)\b)|(?P<least>最低(?!价)|低点|谷底|\b(?:lowest|low)\b)|(?P<target>目标|\btarget\b)"
)
_AHEAD = re.compile(
    r"预测|预计|预期|有望|一致预期|\b(?:estimated?|forecasts?|expected|consensus)\b|\d(?:[ae])(?![a-z])"
)
_BASIS = re.compile(r"\s?[(\[_\s-]*(ttm|lyr|滚动|静态|动态|dynamic)(?![a-z])")
_HEAD_UNIT = re.compile(r"[(\[/,]\s?([^()\[\]/]{1,6})[)\]]?\s*$")
_HEAD_UNITS = frozenset({"%", "x", "pp", "CNY", "HKD", "USD", "股"})


def family(exact: str) -> str:
    """The id of `metrics` that a figure's own name belongs to; the name itself when none has it."""
    return _FAMILY.get(exact) or metrics.canonical(exact)


def named_as(one: metrics.Named, text: str) -> tuple[str, str, str]:
    """(id, own name, basis) of a metric where it is named."""
    told = text[max(0, one.start - 2) : one.end]
    if text[one.end : one.end + 13].lstrip().startswith("attributable"):
        told += "attributable"
    own = next((exact for word, exact in _OWN.items() if word in told), one.ids[0])
    basis = _BASIS.match(text, one.end)
    implied = keys.metric_of(text[one.start : one.end])[1]
    return one.ids[0], _RATES.get(own, own), keys.basis_of(basis[1]) if basis else implied


def rate_of(metric: str, growth: Growth | None) -> tuple[str, Growth]:
    """(metric, how its growth is measured): 营收增速 is revenue, yoy; a price that rose is its change. None: no rate."""
    if metric == "change_pct" or (metric == "price" and growth):
        return "change_pct", ""
    if metric in _RATES:
        return _RATES[metric], "" if growth is None else growth if growth == "qoq" else "yoy"
    return metric, growth or ""


def year_before(period: str) -> str:
    """The same period a year earlier: 2025Q3 → 2024Q3; "" for none."""
    return f"{int(period[:4]) - 1}{period[4:]}" if period[:4].isdigit() and len(period) <= 7 else ""


def growth_of(near: str) -> Growth:
    """How the words around a rate say it is measured."""
    if _QOQ.search(near):
        return "qoq"
    return "yoy" if _YOY.search(near) else "change" if CHANGE.search(near) else ""


def qualifier_of(label: str, metric: str) -> str:
    """What makes a figure one of many days: mean, most …; "" for none. A target price is its own metric."""
    found = QUALIFIER.search(label)
    return str(found.lastgroup) if found and metric != "target_price" else ""


def is_ahead(label: str) -> bool:
    """Whether the words tell of a forecast."""
    return _AHEAD.search(label) is not None


def in_unit(amount: Amount, head: str) -> Amount:
    """A bare amount in the unit that its column's head names: 营收(亿元), 毛利率/%."""
    told = _HEAD_UNIT.search(head)
    if not told or not amount.bare:
        return amount
    factor, unit = amounts.unit(told[1])
    if unit not in _HEAD_UNITS:
        return amount
    return amount._replace(
        value=amount.value * factor, step=amount.step * factor, unit=unit, scaled=factor != 1
    )
