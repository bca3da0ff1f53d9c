"""Which figures a text speaks of: PE, 市盈率 and 估值 are ``pe`` (``data/metrics.txt``)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.terms import Terms


class Metric(NamedTuple):
    """A figure; `kind` says whether it is one of a day (point) or of a period (flow)."""

    id: str
    kind: Literal["point", "flow"]
    names: tuple[str, ...]


@cache
def metrics() -> dict[str, Metric]:
    """Every metric by id; names are normalised, the first is the one most people use."""
    text = files("hermes_memory_plugin.recall.data").joinpath("metrics.txt").read_text(encoding="utf-8")
    out: dict[str, Metric] = {}
    for line in text.splitlines():
        if line and line[0] != "#":
            head, _, names = line.partition(" = ")
            id_, kind = head.split(" ")
            out[id_] = Metric(
                id_, "point" if kind == "point" else "flow", tuple(normalise(names).split(", "))
            )
    return out


def find(text: str) -> list[str]:
    """The ids of the metrics a normalised text names, in their order, each once."""
    return list(dict.fromkeys(hit.value for hit in _terms().find(text)))


def canonical(name: str) -> str:
    """The id of a metric by any of its names; the name itself, normalised, when no metric has it."""
    name = normalise(name).strip()
    spoken = name.replace("_", " ")
    return name if name in metrics() else _terms().get(name) or _terms().get(spoken) or name


@cache
def _terms() -> Terms[str]:
    terms: Terms[str] = Terms()
    terms.fill((name, metric.id) for metric in metrics().values() for name in metric.names)
    return terms
