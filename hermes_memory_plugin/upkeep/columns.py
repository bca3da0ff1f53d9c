"""What the name of a column says its cells are: the figure, its basis, its unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.recall import figure_names, metrics
from hermes_memory_plugin.recall.amounts import Amount
from hermes_memory_plugin.recall.figure_names import Growth
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.mappers import load
from hermes_memory_plugin.upkeep.mappers.model import canonical_tool

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


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
    growth = figure_names.growth_of(spoken)
    unit = figure_names.in_unit(Amount(1.0, "", 1.0, 1, False, "", 0, 0), normal)
    common = {"qualifier": figure_names.qualifier_of(spoken, ""), "factor": unit.value, "unit": unit.unit}
    if not named:
        return Label(growth=growth, **common)  # type: ignore[arg-type]
    metric, exact, basis = figure_names.named_as(named[-1], spoken)
    metric, growth = figure_names.rate_of(metric, growth)
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
            metric, growth = figure_names.rate_of(figure_names.family(field.metric), "")
            basis = keys.basis_of(field.basis)
            one = Label(
                metric,
                own_name(field.metric, metric, basis),
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


def own_name(exact: str, metric: str, basis: str) -> str:
    """The own name of a figure whose basis says which of its family it is."""
    if metric == "net_profit" and exact not in figure_names.OWN:
        return {"parent": "net_profit_parent", "deducted": "net_profit_deducted"}.get(
            basis.partition(" ")[0], metric
        )
    return exact if exact in figure_names.OWN else metric
