"""One spelling for what a figure is about, and one scale for what it says, so that like meets like and nothing else.

600519, SH600519 and 600519.SH are one subject; 市盈率(TTM) and pe_ttm one metric and basis; 2025年报 and FY2025 one period,
which 2025Q4 is not; no currency is yuan, dollars are another. 1741亿元, 17,410,000万元 and 174,100,000,000 are one value;
a share (%) and a change in points (pp) are two quantities.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_CODE = re.compile(r"(?P<before>sh|sz|bj)?[.:]?(?P<digits>\d{6})(?:\.(?P<after>sh|ss|sz|bj|xshg|xshe))?")
_MARKETS = {"ss": "sh", "xshg": "sh", "xshe": "sz"}
# Names of the very same figure only: 归母净利润 and 扣非净利润 are both a profit, and two figures.
_METRICS = {
    name: metric
    for metric, names in {
        "pe": "市盈率 p/e price_earnings",
        "pb": "市净率 p/b price_to_book",
        "ps": "市销率 p/s",
        "revenue": "营业收入 营收 revenues",
        "net_profit_parent": "归母净利润 归母净利 归属于母公司股东的净利润 归属母公司股东的净利润 n_income_attr_p parent_net_profit",
        "net_profit_deducted": "扣非净利润 扣非归母净利润 扣除非经常性损益的净利润 扣非",
        "net_profit": "净利润 n_income net_income",
        "eps": "每股收益 基本每股收益 basic_eps",
        "bps": "每股净资产 bvps",
        "roe": "净资产收益率",
        "roa": "总资产收益率",
        "gross_margin": "毛利率 grossprofit_margin",
        "net_margin": "净利率 销售净利率 netprofit_margin",
        "dividend_yield": "股息率 dv_ratio",
        "market_cap": "总市值 市值 total_mv",
        # A quote is the last price of its day; 开盘价, 最高价 and 最低价 are other figures.
        "price": "close 收盘价 收盘 收盘点位 closing_price 股价 现价 最新价 share_price stock_price",
        "target_price": "目标价",
        "rating": "评级 投资评级",
        "cost": "成本价 成本 持仓成本 cost_basis",
        "position": "仓位 持仓比例",
        "shares": "持股数 持仓数量 股数",
    }.items()
    for name in names.split()
}
_BASES = {
    "滚动": "ttm", "动态": "dynamic", "静态": "lyr", "最近年度": "lyr", "合并": "consolidated", "母公司": "parent",
    "预测": "estimate", "预期": "estimate", "一致预期": "consensus",
}  # fmt: skip
_BASIS_IN_METRIC = re.compile(
    r"[\s_(（-]*(?P<basis>ttm|lyr|滚动|静态|动态|dyn(?:amic)?)[)）]?$|^(?P<ahead>滚动|静态|动态|ttm)[\s_-]*"
)
_POINTS = {
    **dict.fromkeys(("pp", "pps", "ppt", "ppts", "个百分点", "百分点", "percentage points"), 1.0),
    **dict.fromkeys(("bp", "bps", "基点", "个基点", "basis points"), 0.01),
}
_SHARES = {"股": 1.0, "shares": 1.0, "share": 1.0, "手": 100.0, "lots": 100.0}
_YUAN = frozenset({"", "cny", "cnh"})


class Quantity(NamedTuple):
    """A value on the scale every value of its dimension has."""

    value: float | None
    dimension: str
    """money, % (a share), pp (a change of a share), shares, "" (multiples and bare numbers), or the unit itself."""


def key(owner_key: str, fields: tuple[str, str, str, str, str, str, str]) -> str:
    """The text that rows of one figure share; "" without subject or metric.

    fields: subject, metric, period, basis, holder, currency, unit
    """
    subject, metric, period, basis, holder, currency, unit = fields
    about = subject_of(subject)
    what, implied = metric_of(metric)
    if not about or not what:
        return ""
    parts = (
        about,
        what,
        period_of(period),
        basis_of(basis) or implied,
        _plain(holder),
        currency_of(currency, unit),
    )
    changed = "\x1fpp" if quantity(None, unit).dimension == "pp" else ""
    return "\x1f".join((owner_key, *parts)) + changed


@lru_cache(8_192)
def subject_of(text: str) -> str:
    """A ticker in its one form, in lower case; any other subject as it is, without case and outer blanks."""
    plain = _plain(text)
    match = _CODE.fullmatch(plain)
    if match is None:
        return plain
    market = match["after"] or match["before"] or ""
    if not market:
        from hermes_memory_plugin.recall.tickers import market_of

        market = market_of(match["digits"]).lower()
    market = _MARKETS.get(market, market)
    return f"{match['digits']}.{market}" if market else plain


@lru_cache(4_096)
def metric_of(text: str) -> tuple[str, str]:
    """(the metric's one name, the basis its name carries or "")."""
    plain = re.sub(r"\s+", "_", _plain(text))
    match = _BASIS_IN_METRIC.search(plain)
    basis = basis_of(match["basis"] or match["ahead"]) if match else ""
    rest = _BASIS_IN_METRIC.sub("", plain) if match else plain
    if not rest:
        return plain, ""
    return _METRICS.get(rest, rest), basis


@lru_cache(4_096)
def period_of(text: str) -> str:
    """2025, 2025Q3, 2025H1, 2025M04 or a day, however it is written; what is no period stays as it is."""
    plain = _plain(text)
    if not plain:
        return ""
    from hermes_memory_plugin.recall import periods

    found = periods.named(re.sub(r"(?<=\d)[ae]$", "", plain))
    return found[0].id.lower() if len(found) == 1 else plain


@lru_cache(1_024)
def basis_of(text: str) -> str:
    """TTM, LYR, consolidated …, without case and in one language."""
    plain = _plain(text)
    return {"dyn": "dynamic"}.get(plain) or _BASES.get(plain, plain)


@lru_cache(1_024)
def currency_of(currency: str, unit: str = "") -> str:
    """The currency by its code in lower case; "" for yuan, which is what no currency means here."""
    from hermes_memory_plugin.recall.amounts import MONEY
    from hermes_memory_plugin.recall.amounts import unit as read

    plain = _plain(currency)
    if plain:
        code = MONEY.get(plain, plain).lower()
    else:
        code = read(unit)[1].lower() if read(unit)[1] in MONEY.values() else ""
    return "" if code in _YUAN else code


@lru_cache(1_024)
def _unit(unit: str) -> tuple[float, str]:
    """(factor, dimension) of a unit."""
    from hermes_memory_plugin.recall.amounts import MONEY
    from hermes_memory_plugin.recall.amounts import unit as read

    plain = _plain(unit)
    if plain in _POINTS:
        return _POINTS[plain], "pp"
    factor, name = read(plain)
    if name in _SHARES:
        return factor * _SHARES[name], "shares"
    if name in MONEY.values():
        return factor, "money"
    return factor, "" if name in ("x", "次", "回") else name


def quantity(value: float | None, unit: str) -> Quantity:
    """The value in yuan, per cent, points, shares or as the bare number it is; None stays None."""
    factor, dimension = _unit(unit)
    if value is None:
        return Quantity(None, dimension)
    # Twelve digits: what two spellings of one figure differ by is the rounding of their product, no more.
    return Quantity(float(f"{value * factor:.12g}"), dimension)


@lru_cache(8_192)
def _plain(text: str) -> str:
    from hermes_memory_plugin.recall.normalise import normalise

    return normalise(text).strip()
