"""Corrections: a figure takes the place of another only when it is clear which: one company, one figure, one row.

Anything less is kept as what was said, beside what it may correct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Fact
from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.layers.facts import TRUST, moment
from hermes_memory_plugin.recall import amounts, metrics, periods
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.dialogue_holdings import AVERAGE, LABELS, NOT_AN_AMOUNT, UNITS, Holdings
from hermes_memory_plugin.upkeep.dialogue_reading import Talk, short
from hermes_memory_plugin.upkeep.dialogue_said import Said

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.amounts import Amount
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.lexicon import Mention

_SPOKEN = (("cost", AVERAGE), ("shares", re.compile(r"持股|股数|\d\s?[万]?股|\bshares\b")))
_POINTS = re.compile(r"百分点|\bpp\b|基点|\bbps?\b")
_MULTIPLES = frozenset({"pe", "pb", "ps", "peg", "ev_ebitda"})
_SHARES_OF = re.compile(
    r"margin|growth|yield|ratio|roe|roa|roic|pct|payout|share$|position|nim|npl|coverage|adequacy"
)


class Corrections(Holdings):
    """Reads what is corrected."""

    def _correction(self, said: Said, talk: Talk) -> Iterator[Fact]:
        normal = normalise(said.about)
        amount = next(
            (one for one in amounts.find(normal) if not NOT_AN_AMOUNT.match(normal, one.end) or one.unit),
            None,
        )
        about = self._one(said.text) or self._context(talk)
        families = _figures_of(normalise(said.text))
        if amount is not None and about is not None and about.kind != "sector":
            rows = self._of_that_figure(about, families, amount, said, talk)
            wrong = next(amounts.find(normalise(said.was)), None)
            meant = [row for row in rows if wrong is None or amounts.agrees(wrong, row.value or 0.0)]
            if len({row.fact_key for row in meant}) == 1:
                yield self._replacing(meant[0], about, amount, normal, said, talk)
                return
            spoken = families or self._spoken_of(amount, talk)
            if not rows and len(spoken) == 1:
                yield self._stated(about, spoken[0], amount, normal, said, talk)
                return
        if about is not None and (amount is not None or said.was) and talk.before:
            yield (self._fact(talk, "fact", f"更正：{said.text}（此前：{short(talk.before[0])}）" if not said.text.isascii() else f"Correction: {said.text} (before: {short(talk.before[0])})"))  # fmt: skip

    def _of_that_figure(
        self, about: Mention, families: Sequence[str], amount: Amount, said: Said, talk: Talk
    ) -> list[Row]:
        """The stored figures the correction may mean."""
        rows = [
            row
            for row in self._rows(talk.owner, about.entity_id)
            if row.fact_key and row.value is not None and row.owner == talk.owner
        ]
        wanted = tuple(families) or self._spoken_of(amount, talk)
        if wanted or not said.was:
            rows = [row for row in rows if metrics.canonical(str(row.extra.get("metric") or "")) in wanted]
        rows = [row for row in rows if _fits(amount, str(row.extra.get("unit") or ""))]
        named = {one.id.lower() for one in periods.named(normalise(said.text))}
        if named:
            rows = [row for row in rows if keys.period_of(str(row.extra.get("period") or "")) in named]
        return rows

    def _replacing(
        self, row: Row, about: Mention, amount: Amount, normal: str, said: Said, talk: Talk
    ) -> Fact:
        extra = row.extra
        metric, period = str(extra.get("metric")), str(extra.get("period") or "")
        figure = normal[amount.start : amount.end]
        unit = _unit_of(amount, normal) or str(extra.get("unit") or "")
        at = moment(row.as_of) or talk.at
        fact = self._fact(
            talk,
            row.kind,  # type: ignore[arg-type]
            _corrected(
                about, metric, period, figure if _unit_of(amount, normal) else f"{figure}{unit}", said
            ),
            subject=str(extra.get("subject")),
            metric=metric,
            period=period,
            basis=str(extra.get("basis") or ""),
            holder=str(extra.get("holder") or ""),
            currency=str(extra.get("currency") or ""),
            value=amount.value,
            unit=unit,
            # Of the same day; where he corrects himself a moment later, so that it comes after what it corrects.
            as_of=at + timedelta(microseconds=1) if row.trust >= TRUST["user"] and row.as_of else at,
        )
        if row.kind == "holding" and metric in LABELS:
            return replace(
                fact, statement=self._held(about, metric, amount.value, unit, said.text, talk).statement
            )
        return fact

    def _stated(
        self, about: Mention, metric: str, amount: Amount, normal: str, said: Said, talk: Talk
    ) -> Fact:
        """Nothing is stored that it could correct: what was wrong stood in the conversation alone."""
        if metric in LABELS:
            return self._held(about, metric, amount.value, amount.unit, said.text, talk)
        named = periods.named(normalise(said.text))
        period = named[0].id if len(named) == 1 else ""
        return self._fact(
            talk,
            "fact",
            _corrected(about, metric, period, normal[amount.start : amount.end], said),
            subject=about.entity_id,
            metric=metric,
            period=period,
            value=amount.value,
            unit=_unit_of(amount, normal),
        )

    def _spoken_of(self, amount: Amount, talk: Talk) -> tuple[str, ...]:
        """The figures the last turn that names any speaks of, as far as the amount can be one of them."""
        spoken = next(filter(None, (_figures_of(normalise(text)) for text in talk.before)), [])
        return tuple(one for one in spoken if _may_be(amount, one))


def _figures_of(normal: str) -> list[str]:
    """The figures a text names, those of a holding included."""
    found = metrics.find(normal)
    return found + [name for name, said in _SPOKEN if name not in found and said.search(normal)]


def _corrected(about: Mention, metric: str, period: str, figure: str, said: Said) -> str:
    chinese = not said.text.isascii()
    label = " ".join(part for part in (period, _label(metric, chinese=chinese)) if part)
    if chinese:
        return f"{about.name}（{about.entity_id}）{label} {figure}（用户更正：“{said.text}”）"
    return f'{about.name} ({about.entity_id}) {label} {figure} (corrected by the user: "{said.text}")'


def _label(metric: str, *, chinese: bool) -> str:
    """What people call a metric in that language; its own name where none is known."""
    known = metrics.metrics().get(metrics.canonical(metric))
    if known is None or keys.metric_of(metric)[1]:
        return metric
    names = [name for name in known.names if name.isascii() is not chinese]
    short = known.names[0] if known.names[0].isascii() and len(known.names[0]) <= 4 else ""
    return short.upper() if short else names[0] if names else metric


def _fits(amount: Amount, unit: str) -> bool:
    """Whether the amount can take the place of a figure in that unit."""
    dimension = keys.quantity(None, unit).dimension
    if amount.bare:
        return True
    told = {"%": "%", "x": ""}.get(
        amount.unit, "money" if amount.unit in amounts.MONEY.values() else amount.unit
    )
    return not dimension or told == dimension or (not amount.unit and dimension in ("money", "shares"))


def _may_be(amount: Amount, metric: str) -> bool:
    """Whether a figure of that kind is written with that unit."""
    if amount.unit == "x":
        return metric in _MULTIPLES
    if amount.unit == "%":
        return bool(_SHARES_OF.search(metric))
    if amount.unit or amount.scaled:
        return metric not in _MULTIPLES and not _SHARES_OF.search(metric)
    return True


def _unit_of(amount: Amount, normal: str) -> str:
    if amount.unit == "%":
        return "pp" if _POINTS.search(normal, amount.start, amount.end) else "%"
    return UNITS.get(amount.unit, amount.unit)
