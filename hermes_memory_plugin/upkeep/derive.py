"""Simple figures computed from others: growth, a change in points, margins and multiples. Nothing a person could not redo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hermes_memory_plugin.recall import amounts
from hermes_memory_plugin.recall.figure_names import year_before
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.upkeep.match import same_metric
from hermes_memory_plugin.upkeep.readings import Reading

# metric = first / second × factor
_RATIOS: dict[str, tuple[str, str, float]] = {
    "net_margin": ("net_profit", "revenue", 100.0),
    "pe": ("price", "eps", 1.0),
    "pb": ("price", "bps", 1.0),
    "payout": ("dividend", "eps", 100.0),
    "dividend_yield": ("dividend", "price", 100.0),
}
_BY_SIZE: dict[str, tuple[str, str, float]] = {
    "pe": ("market_cap", "net_profit", 1.0),
    "ps": ("market_cap", "revenue", 1.0),
}
_MOST = 60
"""Readings of one figure that are tried; a long series is no handful of cited values."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A value computed from readings."""

    value: float
    formula: str
    """With the numbers: (1741.4亿 / 1505.6亿 − 1) × 100 = 15.7."""
    inputs: tuple[Reading, ...]


def derive(figure: Figure, readings: Iterable[Reading]) -> Computed | None:
    """How the number comes out of these readings; None when it does not."""
    for computed in candidates(figure, list(readings)):
        if amounts.agrees(figure.amount, computed.value):
            return computed
        if figure.falls and amounts.agrees(figure.amount, -computed.value):
            return computed
    return None


def candidates(figure: Figure, readings: Sequence[Reading]) -> Iterator[Computed]:
    """Everything the figure could be computed to."""
    if not figure.metric or figure.qualifier:
        return
    mine = [one for one in readings if not figure.subject or one.subject in (figure.subject, "")]
    mine = [one for one in mine if not one.qualifier and one.kind != "earlier"]
    if figure.growth:
        yield from _growth(figure, [one for one in mine if not one.growth])
    elif figure.amount.unit in ("%", "x", ""):
        for table in (_RATIOS, _BY_SIZE):
            if figure.metric in table:
                yield from _ratio(figure, mine, *table[figure.metric])


def _growth(figure: Figure, readings: Sequence[Reading]) -> Iterator[Computed]:
    values = [one for one in readings if one.metric and same_metric(figure, one.metric, one.exact)][:_MOST]
    for new in values:
        if figure.period and new.period and new.period != figure.period:
            continue
        for old in values:
            if old is new or old.unit != new.unit or not _before(old, new, figure.growth):
                continue
            if figure.amount.unit == "pp":
                yield Computed(
                    new.value - old.value,
                    f"{_said(new)} − {_said(old)} = {new.value - old.value:.4g}",
                    (new, old),
                )
            elif old.value > 0 and new.unit != "%":
                rate = (new.value / old.value - 1) * 100
                yield Computed(rate, growth_formula(new, old, rate), (new, old))


def growth_formula(new: Reading, old: Reading, rate: float) -> str:
    """(1741亿 / 1505亿 − 1) × 100 = 15.7%."""
    return f"({_said(new)} / {_said(old)} − 1) × 100 = {rate:.4g}%"


def _before(old: Reading, new: Reading, growth: str) -> bool:
    """Whether the older one is what such a growth is measured from."""
    if old.period and new.period:
        if growth == "yoy":
            return year_before(new.period) == old.period
        if growth == "qoq":
            return _quarter_before(new.period) == old.period
        return old.period < new.period
    if growth in ("yoy", "qoq") or old.period or new.period:
        return False
    return old.as_of is not None and new.as_of is not None and old.as_of <= new.as_of


def _quarter_before(period: str) -> str:
    if len(period) != 6 or period[4] != "Q":
        return ""
    year, quarter = int(period[:4]), int(period[5])
    return f"{year}Q{quarter - 1}" if quarter > 1 else f"{year - 1}Q4"


def _ratio(
    figure: Figure, readings: Sequence[Reading], above: str, below: str, factor: float
) -> Iterator[Computed]:
    over, under = (
        [one for one in readings if one.metric == name and not one.growth and one.value][:_MOST]
        for name in (above, below)
    )
    for one in over:
        for other in under:
            if one.subject != other.subject and one.subject and other.subject:
                continue
            if one.period and other.period and one.period != other.period:
                continue
            if figure.period and other.period and figure.period != other.period:
                continue
            value = one.value / other.value * factor
            yield Computed(value, f"{_said(one)} / {_said(other)} = {value:.4g}", (one, other))


def _said(reading: Reading) -> str:
    value = reading.value
    for size, word in ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")):
        if abs(value) >= size and reading.unit in ("CNY", "HKD", "USD", "股", ""):
            return f"{value / size:.4f}".rstrip("0").rstrip(".") + word
    return f"{value:.4f}".rstrip("0").rstrip(".") + ("%" if reading.unit == "%" else "")
