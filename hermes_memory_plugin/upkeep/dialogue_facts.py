"""From what a user stated to facts with subject, metric and value, so that one statement is one row and the next of its
kind takes its place.

A correction takes the place of a row only when it is clear which: one company, one figure, one row. Anything less is kept
as what was said, beside what it may correct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.layers.facts import TRUST, moment
from hermes_memory_plugin.recall import amounts, metrics, periods
from hermes_memory_plugin.recall.lexicon import HINT
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.dialogue_rules import RATING, Said

if TYPE_CHECKING:
    from hermes_memory_hookspecs.types import FactKind
    from hermes_memory_plugin.recall.amounts import Amount
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.lexicon import Mention

_SHOWN = 80
_COST = re.compile(
    r"成本|买入价|均价|建仓价|买的|买了|买入|建仓|入手|加仓|补仓|单价|价格|\bcost|\bbasis|\bavg|average|\bentry|\bbought|\bat\s[$¥]?\d|@\s?\d"
)
_PART = re.compile(r"仓|占|比例|\bposition|\bstake|portfolio|of my")
_SOLD = re.compile(
    r"清仓|[卖](?:光|完|掉)|全卖|卖了(?!一半|部分|一些|点|\d)|\bsold (?:all|everything|my|out)"
)
_HELD = re.compile(
    r"持有|持仓|买的|买了|入手|建仓|加仓|补仓|手[里上]|拿着|套|重仓|满仓|(?<!一)半仓(?!位)|成仓|成本|\b(?:own|hold(?:ing)?|have|bought|long|added|got)\b|\bmy\b"
)
_MORE = re.compile(
    r"又|再|追加|(?:加仓|补仓|减仓|加了|减了|卖了|卖出)(?!到|至)|多了|少了|\banother\b|\bmore\b|\badded\b|\btrimmed\b|\bsold\b"
)
_AVERAGE = re.compile(r"成本|均价|\bcost|\bbasis|average|\bavg")
_SPOKEN = (("cost", _AVERAGE), ("shares", re.compile(r"持股|股数|\d\s?[万]?股|\bshares\b")))
_NOT_AN_AMOUNT = re.compile(r"\s?(?:年|月|日|号|点|季|天|周|次|岁|个月|小时|分钟|只|支|家)")
_LEFT = re.compile(
    r"股票|个股|股|板块|行业|概念|标的|公司|品种|这?类|的|了|也|都|stocks?|shares?|names|companies|\b(?:buy|touch|trade|invest in|hold|own|like|recommend|consider|any|the|a|in|to)\b"
)
_UNITS = {
    "CNY": "元",
    "HKD": "港元",
    "USD": "美元",
    "JPY": "日元",
    "EUR": "欧元",
    "GBP": "英镑",
    "x": "倍",
    "shares": "股",
}
_LABELS = {"cost": ("成本价", "cost"), "shares": ("持股", "shares"), "position": ("仓位", "position")}
_DEFAULTS = {".HK": "HKD", ".SH": "CNY", ".SZ": "CNY", ".BJ": "CNY"}
_POINTS = re.compile(r"百分点|\bpp\b|基点|\bbps?\b")


@dataclass(frozen=True, slots=True)
class Talk:
    """The turn that is read, and what was said before it."""

    owner: str
    at: datetime
    speaker: str = ""
    before: tuple[str, ...] = ()
    """The turns before it, user and assistant together, the latest first."""

    @property
    def holder(self) -> str:
        """Who it is that holds and wants: in a group the speaker, else the owner himself. Never a name from the text."""
        return self.speaker if ":group:" in self.owner and self.speaker else "user"


class FactReader:
    """Reads what was stated with the names one memory knows and the rows it has."""

    def __init__(
        self,
        link: Callable[[str], Sequence[Mention]],
        rows_about: Callable[[str, str], Sequence[Row]],
        has: Callable[[Fact], bool],
    ) -> None:
        """`link`: the entities of a text. `rows_about`: an owner's live facts about a security. `has`: a row of the fact's key."""
        self._link = link
        self._rows = rows_about
        self._has = has

    def facts(self, many: Sequence[Said], talk: Talk) -> Iterator[Fact]:
        """The facts these statements make, in their order."""
        for said in many:
            yield from getattr(self, f"_{said.kind}")(said, talk)

    def concluded(self, many: Sequence[Said], talk: Talk, question: str) -> Iterator[Fact]:
        """Conclusions an answer draws itself: the model's, about what the answer or the question names."""
        for said in many:
            about = self._one(said.text) or self._one(question)
            if about is not None:
                yield (self._fact(talk, "conclusion", said.text, subject=about.entity_id, origin="model"))

    # -- preferences ---------------------------------------------------------------------------------------------------

    def _preference(self, said: Said, talk: Talk) -> Iterator[Fact]:
        subject = self._matter(said.about) if said.stance in ("avoid", "only") else _plain(said.text)
        if subject:
            yield (self._fact(talk, "preference", said.text, subject=subject, metric="preference"))

    def _taste(self, said: Said, talk: Talk) -> Iterator[Fact]:
        subject = _plain(said.text)
        yield self._fact(talk, "fact", said.text, subject=subject, metric="preference", holder=talk.holder)

    def _withdrawn(self, said: Said, talk: Talk) -> Iterator[Fact]:
        """银行股可以碰了: only where there was such a rule."""
        subject = self._matter(said.about)
        fact = self._fact(talk, "preference", said.text, subject=subject, metric="preference")
        if subject and self._has(fact):
            yield (fact)

    def _matter(self, about: str) -> str:
        """What a rule is about: the company or sector when that is all of it, else its words."""
        mentions = [one for one in self._link(about) if one.confidence >= HINT]
        if not mentions and len(about) <= 4:
            about += "股"  # 地产 alone is a word, 地产股 a sector
            mentions = [one for one in self._link(about) if one.kind == "sector"]
        if len(mentions) == 1:
            rest = normalise(about).replace(mentions[0].text, " ")
            if not any(map(str.isalnum, _LEFT.sub(" ", rest))):
                return mentions[0].entity_id
        return _plain(_LEFT.sub("", normalise(about))) or _plain(about)

    # -- holdings ------------------------------------------------------------------------------------------------------

    def _holding(self, said: Said, talk: Talk) -> Iterator[Fact]:
        current: Mention | None = None
        for clause in said.clauses:
            normal = normalise(clause)
            named = self._securities(clause)
            if len(named) > 1:
                if not any(amounts.find(normal)) and _HELD.search(normal) and not _SOLD.search(normal):
                    yield from (self._held(one, "position", None, "", clause, talk) for one in named)
                continue
            current = named[0] if named else current
            if current is None and (_COST.search(normal) or _SOLD.search(normal)):
                current = self._context(talk)
            if current is not None:
                yield from self._of_one(current, clause, normal, talk)

    def _of_one(self, about: Mention, clause: str, normal: str, talk: Talk) -> Iterator[Fact]:
        if _SOLD.search(normal):
            for metric in ("position", "shares", "cost"):
                ended = self._held(about, metric, None if metric == "cost" else 0.0, "", clause, talk)
                if metric == "position" or self._has(ended):
                    yield ended
            return
        told = bool(_MORE.search(normal))
        for metric, amount in self._figures(clause, normal):
            told = True
            yield self._held(about, metric, amount.value, amount.unit, clause, talk)
        if not told and _HELD.search(normal) and self._securities(clause):
            yield self._held(about, "position", None, "", clause, talk)

    def _figures(self, clause: str, normal: str) -> Iterator[tuple[str, Amount]]:
        """(metric, amount) of a clause that speaks of one security, each metric once."""
        taken = [(one.start, one.end) for one in self._link(clause)]
        taken += [(one.start, one.end) for one in periods.named(normal)]
        seen: set[str] = set()
        for amount in amounts.find(normal):
            if any(start < amount.end and amount.start < end for start, end in taken):
                continue
            metric = ""
            if amount.unit in ("股", "shares", "手", "份", "张", "万股"):
                metric = "shares"
            elif amount.unit == "%":
                metric = "position" if _PART.search(normal) else ""
            elif (amount.unit in _UNITS or amount.bare) and not amount.scaled and amount.value > 0:
                priced = _COST.search(normal) and not (
                    amount.bare and _NOT_AN_AMOUNT.match(normal, amount.end)
                )
                metric = "cost" if priced else ""
            if _MORE.search(normal) and not (metric == "cost" and _AVERAGE.search(normal)):
                metric = ""  # 又买了200股: what he has now is not said
            if metric and metric not in seen:
                seen.add(metric)
                hundred = 100.0 if amount.unit == "手" else 1.0
                yield metric, amount._replace(value=amount.value * hundred)

    def _held(
        self, about: Mention, metric: str, value: float | None, unit: str, clause: str, talk: Talk
    ) -> Fact:
        chinese = not clause.isascii()
        currency = ""
        shown_unit = "%" if unit == "%" else ""
        if metric == "shares":
            shown_unit = "股" if chinese else "shares"
        elif metric == "cost" and value is not None:
            listed = _DEFAULTS.get(about.entity_id[-3:], "USD" if about.entity_id.isalpha() else "CNY")
            currency = unit if unit in _UNITS and unit not in ("x", "shares") else listed
            shown_unit = _UNITS[currency] if chinese else currency
        name = f"{about.name}（{about.entity_id}）" if chinese else f"{about.name} ({about.entity_id})"
        label = _LABELS[metric][0 if chinese else 1]
        figure = (
            f"{value:,.10g}{shown_unit if shown_unit in ('%', '股', '元', '港元', '美元') else f' {shown_unit}'}"
            if value is not None
            else ""
        )
        if chinese:
            statement = f"用户持有 {name}{'，' + label + ' ' + figure if figure else ''}：“{clause}”"
            if value == 0.0 or _SOLD.search(normalise(clause)):
                statement = f"用户已不再持有 {name}：“{clause}”"
        else:
            statement = f'The user holds {name}{", " + label + " " + figure if figure else ""}: "{clause}"'
            if value == 0.0 or _SOLD.search(normalise(clause)):
                statement = f'The user no longer holds {name}: "{clause}"'
        return self._fact(
            talk,
            "holding",
            statement,
            subject=about.entity_id,
            metric=metric,
            value=value,
            unit=shown_unit,
            currency=currency,
            holder=talk.holder,
        )

    # -- conclusions ---------------------------------------------------------------------------------------------------

    def _conclusion(self, said: Said, talk: Talk) -> Iterator[Fact]:
        about = self._one(said.text) or self._context(talk)
        normal = normalise(said.about)
        labelled = re.match(
            r"\W*\w{0,8}(?:结论|决定|决策|定论|判断|conclusion|decision|verdict|bottom line)[^:：]{0,6}[:：]",
            said.text,
            re.IGNORECASE,
        )
        if about is None and not labelled and not metrics.find(normal) and not any(amounts.find(normal)):
            return
        rated = about is not None and about.kind != "sector" and RATING.search(said.about)
        text = said.text
        if about is not None and about.text not in normalise(text):
            text = f"{about.name}：{text}" if not text.isascii() else f"{about.name}: {text}"
        yield (
            self._fact(
                talk,
                "conclusion",
                text,
                subject=about.entity_id if about else "",
                # Two conclusions about one company both stand; of two ratings the later one does.
                metric="rating" if rated and not labelled else "",
                holder=talk.holder,
            )
        )

    # -- corrections ---------------------------------------------------------------------------------------------------

    def _correction(self, said: Said, talk: Talk) -> Iterator[Fact]:
        normal = normalise(said.about)
        amount = next(
            (one for one in amounts.find(normal) if not _NOT_AN_AMOUNT.match(normal, one.end) or one.unit),
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
            yield (self._fact(talk, "fact", f"更正：{said.text}（此前：{_short(talk.before[0])}）" if not said.text.isascii() else f"Correction: {said.text} (before: {_short(talk.before[0])})"))  # fmt: skip

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
        if row.kind == "holding" and metric in _LABELS:
            return replace(
                fact, statement=self._held(about, metric, amount.value, unit, said.text, talk).statement
            )
        return fact

    def _stated(
        self, about: Mention, metric: str, amount: Amount, normal: str, said: Said, talk: Talk
    ) -> Fact:
        """Nothing is stored that it could correct: what was wrong stood in the conversation alone."""
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

    # -- names ---------------------------------------------------------------------------------------------------------

    def _securities(self, text: str) -> list[Mention]:
        return [
            one for one in self._link(text) if one.kind not in ("sector", "index") and one.confidence > HINT
        ]

    def _one(self, text: str) -> Mention | None:
        """The one company a text names, else the one sector; None where there are several."""
        linked = [one for one in self._link(text) if one.confidence > HINT]
        for some in (
            [one for one in linked if one.kind != "sector"],
            [one for one in linked if one.kind == "sector"],
        ):
            if some:
                return some[0] if len(some) == 1 else None
        return None

    def _context(self, talk: Talk) -> Mention | None:
        """The one company the turns before are about."""
        for text in talk.before:
            named = self._securities(text)
            if named:
                return named[0] if len(named) == 1 else None
        return None

    def _fact(self, talk: Talk, kind: FactKind, statement: str, **typed: Any) -> Fact:
        source = {"model": "assistant"}.get(str(typed.get("origin")), talk.holder)
        if kind == "preference" and talk.holder != "user":
            statement, typed["holder"] = f"{talk.holder}：{statement}", talk.holder
        given = {"as_of": talk.at, "source": source, **typed}
        return Fact(
            statement=statement, kind=kind, owner=Owner.parse(talk.owner), created_at=talk.at, **given
        )


def _figures_of(normal: str) -> list[str]:
    """The figures a text names, those of a holding included."""
    found = metrics.find(normal)
    return found + [name for name, said in _SPOKEN if name not in found and said.search(normal)]


def _corrected(about: Mention, metric: str, period: str, figure: str, said: Said) -> str:
    label = " ".join(
        part for part in (period, metric.upper() if metric.isascii() and len(metric) <= 4 else metric) if part
    )
    if said.text.isascii():
        return f'{about.name} ({about.entity_id}) {label} {figure} (corrected by the user: "{said.text}")'
    return f"{about.name}（{about.entity_id}）{label} {figure}（用户更正：“{said.text}”）"


def _fits(amount: Amount, unit: str) -> bool:
    """Whether the amount can take the place of a figure in that unit."""
    dimension = keys.quantity(None, unit).dimension
    if amount.bare:
        return True
    told = {"%": "%", "x": ""}.get(
        amount.unit, "money" if amount.unit in amounts.MONEY.values() else amount.unit
    )
    return not dimension or told == dimension or (not amount.unit and dimension in ("money", "shares"))


_MULTIPLES = frozenset({"pe", "pb", "ps", "peg", "ev_ebitda"})
_SHARES_OF = re.compile(
    r"margin|growth|yield|ratio|roe|roa|roic|pct|payout|share$|position|nim|npl|coverage|adequacy"
)


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
    return _UNITS.get(amount.unit, amount.unit)


def _plain(text: str) -> str:
    """Letters and digits only: one rule written twice is one."""
    return "".join(character for character in normalise(text) if character.isalnum())[:60]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
