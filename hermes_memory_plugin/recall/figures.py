"""Figures: the numbers a text states, each with what it is a figure of: whose, which metric, which period, how it moved.

Dates, codes, list numbers, ordinals and counts of things are numbers, but state nothing that a source could prove.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, TypeVar

from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.recall import amounts, metrics, periods, times
from hermes_memory_plugin.recall.amounts import Amount
from hermes_memory_plugin.recall.figure_marks import Marks
from hermes_memory_plugin.recall.figure_names import (
    CHANGE,
    QUALIFIER,
    Growth,
    family,
    growth_of,
    is_ahead,
    named_as,
    rate_of,
    year_before,
)

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst

T = TypeVar("T")
LONGEST = 20_000
"""Characters of a text that are read."""

_MULTIPLES = {"net_profit": "pe", "revenue": "ps", "bps": "pb"}
_CLAUSE = re.compile(r",(?!\d{3}(?!\d))|[;!?\n]|\.(?=\s|$)|。")
_SENTENCE = re.compile(r"[;!?\n。]|\.(?=\s|$)")
_FALLS = re.compile(
    r"下降|下滑|减少|降低|回落|下跌|跌|缩水|亏损|收窄|\b(?:down|fell|fall(?:en)?|decreased?|dropped|declined?|loss)\b"
)
_IF = re.compile(
    r"建议|应当|不妨|\b(?:should|recommend|suggest)\b|如果|假如|假设|倘若|(?<![大])若|要是|比如|例如|譬如|\b(?:if|assum(?:e|ing)|suppose|e\.g\.|for example)\b"
)
_RESPECTIVELY = re.compile(r"分别|依次|\brespectively\b")
_OF_PERIOD = re.compile(r"\s?(?:in|for|of|\(|@)\s?(?:fy)?")
_BRIDGE = re.compile(
    r"同比|环比|其中|相比|高于|低于|超过?|不足|达到?|降至|升至|增至|跌至|约为?|大约|大概|近|为|是|至|到|的|了|较|比|仅|也|则|又|均值|平均值?|中位数?|历史|分位|最[高低]"
    r"|增长|增速|增幅|增加|提升|提高|上升|上涨|涨|下降|下滑|减少|降低|降|回落|下跌|跌|上年|去年|今年|前年|同期|[一上本]周|上一年|年度?|季度?|月份?|日|前|当前|目前|处于|位于|净|率|一致"
    r"|[零〇一二两三四五六七八九十百近]年|[第一二三四上下]+(?:季度|半年)|\b(?:about|around|up|down|by|to|from|of|in|at|is|was|were|versus|vs|and|the|a|an|its|with|only|over|year|on|rose|fell|grew|growth|reached"
    r"|increased?|decreased?|yoy|qoq|compared|against|while|expects?|expected|nearly|roughly|approximately|average|mean|median|percentile|earlier|ago|prior|than|from)\b"
)
_YEAR_BEFORE = re.compile(
    r"上年(?:同期|度)?|(?:上一年|去年)同期|\b(?:a )?year (?:earlier|ago)|\bprior year\b"
)
_TOLD = re.compile(r"说|讲|提到?|告诉|给我|问|聊|报过|\b(?:said|told|mentioned|quoted|gave)\b")
_CODE = re.compile(r"```.*?```", re.S)
_MARKUP = str.maketrans("*`", "  ")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number and what it is said to be. Empty fields are what the text leaves open."""

    amount: Amount
    words: str
    """The clause it stands in."""
    subject: str = ""
    """The entity's id."""
    metric: str = ""
    """The id of `metrics`; of the rate itself where `growth` says how it is measured: revenue + yoy."""
    exact: str = ""
    """The figure's own name (`layers.keys.metric_of`): 归母净利润 is net_profit_parent."""
    basis: str = ""
    period: str = ""
    growth: Growth = ""
    falls: bool = False
    qualifier: str = ""
    """mean, median, rank, most, least or target: 五年均值 32 倍 is no PE of any day."""
    ahead: bool = False
    """A forecast."""
    moments: tuple[times.Moment, ...] = ()
    """Days, weeks and months the clause names."""
    told: bool = False
    """Whether the moments say when it was told (上个月说), not when it was so."""

    @property
    def labelled(self) -> bool:
        """Whether the text says which figure it is."""
        return bool(self.metric)


def read(
    text: str, analyst: Analyst, now: datetime, *, subject: str = "", metric: str = "", sure: bool = True
) -> list[Figure]:
    """The figures a text states, in its order.

    subject, metric  what it is about where it does not say so itself
    sure             only numbers with a unit or a name; else every number, as a source may hold it
    """
    text = text[:LONGEST]
    if sure:  # code in an answer is an example or a tool's own
        text = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    text = text.translate(_MARKUP)
    marks = Marks(text, analyst, now)
    found = list(_Prose(marks, subject, metric, sure).figures())
    if marks.tables:
        from hermes_memory_plugin.recall.figure_tables import tables

        found += tables(marks, subject, metric, sure)
    return sorted(found, key=lambda figure: figure.amount.start)


class _Prose:
    """A text read clause by clause: what a clause leaves open, the one before it tells."""

    def __init__(self, marks: Marks, subject: str, metric: str, sure: bool) -> None:
        self.marks = marks
        self.subject, self.period, self._sure = subject, "", sure
        self.metric, self.exact = (family(metric), keys.metric_of(metric)[0]) if metric else ("", "")
        self.basis = ""
        self._supposed = False
        self._given = (self.metric, self.exact)

    def figures(self) -> Iterator[Figure]:
        for start, end in _clauses(self.marks.text, self.marks.tables):
            yield from self._clause(start, end)
            if _SENTENCE.match(self.marks.text, end):
                self.metric, self.exact = self._given
                self.basis = ""
                self._supposed = False

    def _clause(self, start: int, end: int) -> Iterator[Figure]:
        marks = self.marks
        words = marks.text[start:end]
        inside = _within(marks.amounts, start, end, attrgetter("start"))
        named = _within(marks.metrics, start, end, attrgetter("start"))
        entities = _within(marks.entities, start, end, itemgetter(0))
        spans = _within(marks.periods, start, end, attrgetter("start"))
        self._supposed = self._supposed or _IF.search(words) is not None
        if self._supposed and self._sure:  # what would be, or should be, is no statement
            inside = []
        moments = times.read(words, marks.now)
        days = tuple(one for one in moments if one.sort == "day")
        books = [one.id for one in moments if one.sort != "day" and one.id]
        if not spans and self.period and _YEAR_BEFORE.search(words):
            books = [year_before(self.period)]
        paired = _RESPECTIVELY.search(words) is not None
        ahead, told = is_ahead(words), bool(days) and _TOLD.search(words) is not None
        for number, amount in enumerate(inside):
            before_at = inside[number - 1].end if number else start
            after_at = inside[number + 1].start if number + 1 < len(inside) else end
            subject = _nearest(amount, [(a, b, one) for a, b, one in entities]) or self.subject
            if paired and len(entities) == len(inside):
                subject = entities[number][2]
            metric, exact, basis = self._metric(
                amount, named, number, len(inside) if paired else 0, before_at
            )
            near = (
                marks.text[before_at : amount.start]
                + " "
                + marks.text[amount.end : min(after_at, amount.end + 14)]
            )
            growth: Growth = ""
            if amount.unit in ("%", "pp"):
                growth = growth_of(near)
            period = _period(amount, spans, marks.text)
            qualifier = QUALIFIER.search(
                marks.text[max(before_at, amount.start - 16) : amount.start]
            ) or QUALIFIER.match(marks.text, amount.end, min(after_at, amount.end + 12))
            if qualifier and metric == "target_price":
                qualifier = None
            if amount.unit == "x" and metric in _MULTIPLES and not CHANGE.search(near):
                metric, exact = _MULTIPLES[metric], _MULTIPLES[metric]  # 28x earnings
            metric, growth = rate_of(metric, growth if amount.unit in ("%", "pp") else None)
            figure = Figure(
                amount=amount,
                words=marks.shown[start:end].strip(),
                subject=subject,
                metric=metric,
                exact=exact,
                basis=basis,
                period=period or (books[0] if len(books) == 1 else "") or self.period,
                growth=growth,
                falls=_FALLS.search(near) is not None,
                qualifier=str(qualifier.lastgroup) if qualifier else "",
                ahead=ahead,
                moments=days,
                told=told,
            )
            if not self._sure or states(figure):
                yield figure
        self._carry(named, entities, spans, [] if _YEAR_BEFORE.search(words) else books)

    def _metric(
        self, amount: Amount, named: Sequence[metrics.Named], number: int, together: int, since: int
    ) -> tuple[str, str, str]:
        text = self.marks.text
        chosen: metrics.Named | None = None
        if together and len(named) == together:
            chosen = named[number]
        else:
            before = [one for one in named if one.end <= amount.start]
            after = [one for one in named if amount.end <= one.start <= amount.end + 3]
            joined = [one for one in after if text[amount.end : one.start].strip(" 的of") == ""]
            chosen = before[-1] if before else joined[0] if joined else None
        if chosen is not None:
            return named_as(chosen, text)
        # 其中、同比、约 go on with the figure before; any other word before the number begins another one.
        between = _BRIDGE.sub("", text[since : amount.start])
        if len(re.findall(r"[\u4e00-\u9fff]|[a-z]+", between)) >= 2:
            return "", "", ""
        return self.metric, self.exact, self.basis

    def _carry(
        self,
        named: Sequence[metrics.Named],
        entities: Sequence[tuple[int, int, str]],
        spans: Sequence[periods.Named],
        told: Sequence[str],
    ) -> None:
        if named:
            self.metric, self.exact, self.basis = named_as(named[-1], self.marks.text)
        if entities:
            self.subject = entities[-1][2]
        books = [one.id for one in spans if "-" not in one.id and "M" not in one.id]
        if books or (len(told) == 1):
            self.period = (books or told)[-1]


def _within(marks: Sequence[T], start: int, end: int, place: Callable[[T], int]) -> Sequence[T]:
    """The marks of a stretch, which are in the order of the text."""
    return marks[bisect_left(marks, start, key=place) : bisect_left(marks, end, key=place)]


def states(figure: Figure) -> bool:
    """Whether a source could prove it: a bare number needs a name, and so does a handful of things; other units speak."""
    one = figure.amount
    counted = (
        one.unit not in ("%", "pp", "x", *amounts.MONEY.values()) and not one.scaled and abs(one.value) < 100
    )
    return figure.labelled or not (one.bare or counted)


def _period(amount: Amount, spans: Sequence[periods.Named], text: str) -> str:
    """The year, half or quarter an amount is of: "37.0% in 2024" before what stands ahead of it."""
    books = [one for one in spans if "-" not in one.id and "M" not in one.id]
    behind = next((one for one in books if one.start >= amount.end), None)
    if behind is not None and _OF_PERIOD.fullmatch(text, amount.end, behind.start):
        return behind.id
    return _nearest(amount, [(one.start, one.end, one.id) for one in books])


def _nearest(amount: Amount, marks: Sequence[tuple[int, int, str]]) -> str:
    """The mark before the amount, else the one behind it."""
    before = [one for start, end, one in marks if end <= amount.start]
    return before[-1] if before else next((one for start, _, one in marks if start >= amount.end), "")


def _clauses(text: str, tables: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and end of every clause outside tables."""
    at = 0
    for match in [*_CLAUSE.finditer(text), None]:
        end = match.start() if match else len(text)
        if end > at and not any(a <= at < b for a, b in tables):
            yield at, end
        at = match.end() if match else end
