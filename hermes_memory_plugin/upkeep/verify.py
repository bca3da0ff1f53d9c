"""Whether what somebody said still stands: each figure of a text held against the record, with the proof beside it.

Precision before recall: what the record does not speak of is unknown, and a figure is contradicted only by one that
speaks of the very same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner, Verdict
from hermes_memory_hookspecs.types import VerdictStatus
from hermes_memory_plugin.recall import amounts, figures, times
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.question import language
from hermes_memory_plugin.upkeep import derive, verdicts
from hermes_memory_plugin.upkeep.evidence import Evidence, Piece
from hermes_memory_plugin.upkeep.match import is_flow

if TYPE_CHECKING:
    from hermes_memory_plugin.upkeep.answers import Link
    from hermes_memory_plugin.verbs import Verbs

WORST: tuple[VerdictStatus, ...] = ("contradicted", "changed", "expired", "unknown", "supported")
"""What a text of several claims is called by: the first of these that one of them is."""
MOST = 12
"""Claims of one text that are judged."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of one claim."""

    status: VerdictStatus
    figure: Figure
    old: Piece | None = None
    """What bears the claim out, or the record that speaks against it."""
    new: Piece | None = None
    """What is on record now, where that is something else."""
    computed: derive.Computed | None = None
    said: tuple[tuple[Link, datetime | None], ...] = ()
    """Where an earlier answer said the number without a source."""
    elsewhen: bool = False
    """Whether the record is of another time than the claim names."""


def verify(memory: Verbs, text: str, *, now: datetime, owner: Owner | None = None) -> Verdict:
    """The verdict on a text; of several claims each, and the worst as the verdict on all."""
    analyst = memory.reader.analyst
    analyst.refresh()
    memory.reader.refresh()
    today = now.astimezone(times.SHANGHAI).date()
    claims = [
        # 今天, 目前 and 本月 ask for what stands, not for a day's figure.
        replace(one, moments=tuple(moment for moment in one.moments if moment.end < today))
        for one in figures.read(text, analyst, now)[:MOST]
    ]
    evidence = Evidence(memory, owner, now)
    words = verdicts.Words(language(normalise(text[:2_000])), evidence, memory)
    if not claims:
        return Verdict("unknown", words.nothing(), claim=text[:200])
    found = [_verdict(judge(one, evidence, claims), words) for one in claims]
    if len(found) == 1:
        return found[0]
    status = min((one.status for one in found), key=WORST.index)
    worst = next(one for one in found if one.status == status)
    return Verdict(
        status,
        words.together(status, found),
        tuple(dict.fromkeys(id_ for one in found for id_ in one.fact_ids)),
        tuple(dict.fromkeys(id_ for one in found for id_ in one.tool_call_ids)),
        worst.old,
        worst.new,
        claim=text[:200],
        parts=tuple(found),
    )


def judge(figure: Figure, evidence: Evidence, others: Sequence[Figure] = ()) -> Judged:
    """One claim against the record. `others`: the figures of the same text, for what it computes itself."""
    figure = _completed(figure, evidence)
    within = _computed_in_text(figure, others)
    if within is not None:
        return within
    pieces = evidence.facts(figure)
    if not any(_agrees(figure, one) for one in pieces):
        # A result that no mapper reads may hold what the facts do not.
        from_calls = evidence.calls(figure)
        if not pieces or any(_agrees(figure, one) for one in from_calls):
            pieces = from_calls
    matching = [one for one in pieces if _agrees(figure, one)]
    if matching:
        return _borne_out(figure, matching, pieces)
    about = evidence.about(figure)
    computed = derive.derive(figure, about)
    if computed is not None:
        return Judged("supported", figure, computed=computed)
    if figure.growth == "yoy" and figure.period and figure.metric and not pieces:
        other = next(derive.candidates(figure, [one for one in about if one.fact]), None)
        if other is not None:
            return Judged("contradicted", figure, computed=other)
    return _against(figure, pieces, evidence)


def _borne_out(figure: Figure, matching: Sequence[Piece], pieces: Sequence[Piece]) -> Judged:
    """The record has held that value: does it still?"""
    old = max(matching, key=lambda one: (_then(figure, one), one.state == "live", _at(one)))
    elsewhen = _dated(figure) and not _then(figure, old)
    if elsewhen and not figure.told and not is_flow(old.reading.metric):
        # Another day's figure bears out nothing of the day that is named.
        then = [
            one
            for one in pieces
            if one.group == old.group and _then(figure, one) and _comparable(figure, one)
        ]
        if then:
            return Judged("contradicted", figure, None, max(then, key=_at))
        return Judged("unknown", figure, None, old, elsewhen=True)
    live = [one for one in pieces if one.group == old.group and one.state == "live"]
    current = max(live, key=_at, default=None)
    if _dated(figure) and not figure.told and _then(figure, old):
        # It is of its day: what came later does not undo it, unless that day's own figure was put right.
        current = next((one for one in live if _at(one) == _at(old)), None) or old
        if _agrees(figure, current):
            return Judged("supported", figure, old, _later(live, old))
    if is_flow(old.reading.metric) and old.state != "superseded":
        return _of_its_period(figure, old, live, pieces)
    if old.state == "live":
        other = next(
            (one for one in live if _at(one) == _at(old) and not _agrees(figure, one) and not one.estimate),
            None,
        )
        if other is not None:
            return Judged("contradicted", figure, old, other, elsewhen=elsewhen)
        return Judged("supported", figure, old, elsewhen=elsewhen)
    if current is not None and _agrees(figure, current):
        return Judged("supported", figure, current, elsewhen=elsewhen)
    newer = current or max(
        (one for one in pieces if one.group == old.group and _at(one) > _at(old)), key=_at, default=None
    )
    if newer is not None and not _agrees(figure, newer):
        return Judged("changed", figure, old, newer, elsewhen=elsewhen)
    return Judged("expired", figure, old, elsewhen=elsewhen)


def _of_its_period(figure: Figure, old: Piece, live: Sequence[Piece], pieces: Sequence[Piece]) -> Judged:
    """A figure of a period that no later one restated: true of it for good, and no news once the next is out."""
    other = next(
        (one for one in live if one is not old and _at(one) == _at(old) and not _agrees(figure, one)), None
    )
    if other is not None and not other.estimate:
        return Judged("contradicted", figure, old, other)
    if figure.period or verdicts.FROM_TO.search(figure.words):
        return Judged("supported", figure, old)
    alike = (*old.group[:3], *old.group[4:])
    later = [
        one
        for one in pieces
        if (*one.group[:3], *one.group[4:]) == alike
        and one.state == "live"
        and len(one.reading.period) == len(old.reading.period)
        and one.reading.period > old.reading.period
    ]
    newest = max(later, key=lambda one: one.reading.period, default=None)
    if newest is not None and not _agrees(figure, newest):
        return Judged("changed", figure, old, newest)
    return Judged("expired" if old.state == "expired" else "supported", figure, old)


def _later(live: Sequence[Piece], old: Piece) -> Piece | None:
    newest = max(live, key=_at, default=None)
    return newest if newest is not None and _at(newest) > _at(old) and newest is not old else None


def _against(figure: Figure, pieces: Sequence[Piece], evidence: Evidence) -> Judged:
    """The record never held that value: does it hold another one of the same thing?"""
    said = tuple(evidence.said(figure)[:3])
    if figure.subject and figure.metric:
        firm = [one for one in pieces if _comparable(figure, one) and (not one.estimate or figure.ahead)]
        if _dated(figure) and not figure.told:
            firm = [one for one in firm if _then(figure, one)]
        else:
            firm = [one for one in firm if one.state == "live"]
        if is_flow(figure.metric) and not figure.period:
            firm = firm if len({one.reading.period for one in firm}) == 1 else []
        if firm:
            return Judged("contradicted", figure, None, max(firm, key=_at), said=said)
        last = max((one for one in pieces if _comparable(figure, one)), key=_at, default=None)
        return Judged("unknown", figure, None, last, said=said)
    return Judged("unknown", figure, said=said)


def _completed(figure: Figure, evidence: Evidence) -> Figure:
    """Whose figure it is, where the claim leaves that open and one earlier answer said this very number."""
    if figure.subject and figure.metric:
        return figure
    links = [
        (link, at)
        for link, at in evidence.said(figure)
        if link.kind != "none" and (link.subject or link.metric)
    ]
    if figure.told:
        links = [one for one in links if one[1] and _within(figure, one[1])] or links
    if not links:
        return figure
    link = links[0][0]
    metric, _, growth = (
        link.metric.rpartition("_")
        if link.metric.endswith(("_yoy", "_qoq", "_change"))
        else (link.metric, "", "")
    )
    return replace(
        figure,
        subject=figure.subject or link.subject,
        metric=figure.metric or metric,
        exact=figure.exact or metric,
        growth=figure.growth or growth,  # type: ignore[arg-type]
    )


def _computed_in_text(figure: Figure, others: Sequence[Figure]) -> Judged | None:
    """从 1505 亿增长到 1741 亿，增长 15.7%: the text's own numbers must bear it out."""
    if figure.growth not in ("change", "yoy") or figure.amount.unit != "%":
        return None
    before = [
        one
        for one in others
        if one.amount.start < figure.amount.start and one.metric == figure.metric and not one.growth
    ]
    if len(before) < 2 or not verdicts.FROM_TO.search(before[-1].words):
        return None
    old, new = before[-2], before[-1]
    if old.words != new.words or old.amount.value <= 0:
        return None
    readings = [verdicts.as_reading(one) for one in (new, old)]
    rate = (new.amount.value / old.amount.value - 1) * 100
    computed = derive.Computed(rate, derive.growth_formula(readings[0], readings[1], rate), tuple(readings))
    slack = (abs(new.amount.step / new.amount.value) + abs(old.amount.step / old.amount.value)) * 50
    off = min(abs(abs(rate) - abs(figure.amount.value)), abs(rate - figure.amount.value))
    right = off <= slack + figure.amount.step
    return Judged("supported" if right else "contradicted", figure, computed=computed)


def _agrees(figure: Figure, piece: Piece) -> bool:
    return amounts.agrees(figure.amount, piece.value) or (
        figure.falls and amounts.agrees(figure.amount, -piece.value)
    )


def _comparable(figure: Figure, piece: Piece) -> bool:
    """Whether both are in a known unit: 188,123,456 of nobody knows what contradicts no 1.9万亿."""
    return bool(piece.reading.unit) or (figure.amount.unit in ("x", "") and not figure.amount.scaled)


def _at(piece: Piece) -> float:
    return piece.reading.as_of.timestamp() if piece.reading.as_of else 0.0


def _dated(figure: Figure) -> bool:
    return bool(figure.moments)


def _then(figure: Figure, piece: Piece) -> bool:
    """Whether the piece is of the time the claim names: of that day, or learned when it was told."""
    if not figure.moments:
        return False
    if piece.reading.as_of and _within(figure, piece.reading.as_of):
        return True
    return figure.told and piece.row is not None and _within(figure, verdicts.moment_of(piece.row.created))


def _within(figure: Figure, at: datetime) -> bool:
    day = at.date() if (at.hour, at.minute, at.second) == (0, 0, 0) else at.astimezone(times.SHANGHAI).date()
    return any(one.start <= day <= one.end for one in figure.moments)


def _verdict(judged: Judged, words: verdicts.Words) -> Verdict:
    pieces = [one for one in (judged.old, judged.new) if one is not None]
    inputs = judged.computed.inputs if judged.computed else ()
    facts = [one.reading.fact for one in pieces] + [one.fact for one in inputs]
    calls = [one.reading.call for one in pieces] + [one.call for one in inputs]
    calls += [link.call for link, _ in judged.said]
    return Verdict(
        judged.status,
        words.said(judged),
        tuple(dict.fromkeys(one for one in facts if one)),
        tuple(dict.fromkeys(one for one in calls if one)),
        judged.old.as_fact() if judged.old else None,
        judged.new.as_fact() if judged.new else None,
        claim=judged.figure.words[:200],
    )
