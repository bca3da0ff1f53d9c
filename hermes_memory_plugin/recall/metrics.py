"""Which figures a text speaks of: PE, 市盈率 and 估值 are ``pe`` (``data/metrics.txt``)."""

from __future__ import annotations

import re
from functools import cache, lru_cache
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
    return list(_found(text) if len(text) <= _REMEMBERED else _find(text))


def _find(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.value for hit in _terms().find(text)))


_REMEMBERED = 20_000
# Several readers of one row ask the same.
_found = lru_cache(maxsize=16)(_find)


# What people say when any figure of a family will do.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "valuation": ("pe", "pb", "ps", "peg", "ev_ebitda"),
    "payout": ("dividend", "dividend_yield", "payout"),
    "growth": ("revenue_growth", "profit_growth"),
}
_FAMILY = re.compile(
    r"(?P<valuation>估值|便宜|低估|高估|(?<![宝昂可珍富])贵(?![州金阳宾姓公])|\bvaluations?\b|\bcheap(?:er|est)?\b|\bexpensive\b|\b(?:under|over)valued\b)"
    r"|(?P<payout>分红|派息|股息|高息|红利|(?:对股东|回报).{0,6}(?:大方|慷慨|好)|\bdividends?\b|\bpayouts?\b)"
    r"|(?P<growth>增速|增长率|growth rate)"
)


class Named(NamedTuple):
    """Metrics and where a text names them."""

    ids: tuple[str, ...]
    start: int
    end: int


def named(text: str) -> list[Named]:
    """The metrics a normalised text names, each with its place."""
    return [Named((hit.value,), hit.start, hit.end) for hit in _terms().find(text)]


def families(text: str) -> list[Named]:
    """The general words of a normalised question, with every metric that answers them: 便宜 asks for PE or PB."""
    return [Named(_FAMILIES[str(match.lastgroup)], *match.span()) for match in _FAMILY.finditer(text)]


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
