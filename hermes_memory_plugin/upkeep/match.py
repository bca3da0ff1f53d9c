"""Whether a number somebody wrote may come from a number a source holds: same figure, same size.

Rather none than a wrong one: what both sides say must agree, and a number without a name must be one nobody hits by chance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermes_memory_plugin.recall import amounts, metrics
from hermes_memory_plugin.recall.figure_names import OWN
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.upkeep.readings import Reading

_SCALES = (1.0, 1e4, 1e8, 1e6, 1e3)
_RATIO = (1.0, 100.0)
_PREFERRED = {"call": 4, "report": 3, "fact": 2, "user": 1, "earlier": 0}


@dataclass(frozen=True, slots=True)
class Match:
    """A reading an answer's number may come from; the greater `worth` is the likelier."""

    reading: Reading
    worth: tuple[float, ...]


class Sources:
    """Many readings, found by their size."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._sorted = sorted(readings, key=lambda one: abs(one.value))
        self._sizes = [abs(one.value) for one in self._sorted]

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._sorted)

    def best(self, figure: Figure) -> Match | None:
        """The reading the number most likely comes from."""
        found = [match for match in self._candidates(figure) if match is not None]
        return max(found, key=lambda match: match.worth, default=None)

    def _candidates(self, figure: Figure) -> Iterator[Match | None]:
        said = figure.amount
        reach = max(said.step, abs(said.value) * 0.06)
        for factor in factors(figure):
            low, high = (abs(said.value) - reach) / factor, (abs(said.value) + reach) / factor
            for reading in self._sorted[bisect_left(self._sizes, low) : bisect_right(self._sizes, high)]:
                yield match(figure, reading, factor)


def factors(figure: Figure) -> tuple[float, ...]:
    """What a source's bare number may have to be multiplied by to be the one that was written."""
    if figure.amount.unit == "%":
        return _RATIO
    return _SCALES if figure.amount.scaled or figure.amount.unit in ("CNY", "HKD", "USD", "股") else (1.0,)


def match(figure: Figure, reading: Reading, factor: float = 1.0) -> Match | None:
    """How well the reading, times `factor`, serves as the source of the number; None when it cannot be."""
    if factor != 1.0 and reading.unit:
        return None
    named = _same_figure(figure, reading)
    if named is None:
        return None
    value = reading.value * factor
    if not _agrees(figure, value):
        return None
    telling = figure.amount.digits
    if not named and not (reading.kind == "user" and _same_unit(figure, reading) is not False):
        # Without a name on one side the size alone must tell, the more so in another unit than the source's.
        if telling < (3 if factor == 1.0 else 4) or (
            not figure.labelled and not figure.amount.scaled and telling < 3
        ):
            return None
    elif factor != 1.0 and telling < 2:
        return None
    off = abs(abs(figure.amount.value) - abs(value)) / (abs(value) or 1.0)
    worth = (
        float(named),
        float(bool(figure.subject) and figure.subject == reading.subject),
        float(_PREFERRED[reading.kind]),
        float(bool(figure.period) and figure.period == reading.period),
        float(bool(figure.basis) and figure.basis == reading.basis),
        -round(off, 6),
        reading.as_of.timestamp() if reading.as_of else 0.0,
    )
    return Match(reading, worth)


def same_metric(figure: Figure, metric: str, exact: str) -> bool:
    """Whether both name one figure; the family stands for each of its figures."""
    if figure.metric != metric:
        return False
    return figure.exact == exact or figure.exact not in OWN or exact not in OWN


def is_flow(metric: str) -> bool:
    """Whether it is a figure of a period."""
    known = metrics.metrics().get(metric)
    return known is not None and known.kind == "flow"


def _same_figure(figure: Figure, reading: Reading) -> int | None:
    """2: both name it and it is one; 0: one side leaves it open; None: they differ."""
    if figure.subject and reading.subject and figure.subject != reading.subject:
        return None
    if _same_unit(figure, reading) is False:
        return None
    if figure.metric and reading.metric:
        if not same_metric(figure, reading.metric, reading.exact):
            return None
        if bool(figure.growth) != bool(reading.growth) or {figure.growth, reading.growth} == {"yoy", "qoq"}:
            return None
        if figure.qualifier != reading.qualifier:
            return None
        if figure.basis and reading.basis and figure.basis != reading.basis and not is_flow(figure.metric):
            return None
        flow = is_flow(figure.metric) or bool(figure.growth)
        if flow and figure.period and reading.period and figure.period != reading.period:
            return None
        return 2
    if figure.metric and reading.qualifier and figure.qualifier != reading.qualifier:
        return None
    return 0


def _same_unit(figure: Figure, reading: Reading) -> bool | None:
    """None when one side has none."""
    one, other = figure.amount.unit, reading.unit
    if not one or not other:
        return None
    return one == other


def _agrees(figure: Figure, value: float) -> bool:
    if amounts.agrees(figure.amount, value):
        return True
    turned = (
        figure.falls or figure.growth or figure.metric == "change_pct" or figure.metric.endswith("_profit")
    )
    return bool(turned) and figure.falls and amounts.agrees(figure.amount, -value)
