"""Holdings: what the user has of a security, at which cost, and that he has it no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Fact
from hermes_memory_plugin.recall import amounts, periods
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.dialogue_reading import Reading, Talk
from hermes_memory_plugin.upkeep.dialogue_said import Said

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.amounts import Amount
    from hermes_memory_plugin.recall.lexicon import Mention

_COST = re.compile(
    r"成本|套在|买入价|均价|建仓价|买的|买了|买入|建仓|入手|加仓|补仓|单价|价格|\bcost|\bbasis|\bavg|average|\bentry|\bbought|\bat\s[$¥]?\d|@\s?\d"
)
_PART = re.compile(r"仓|占|比例|\bposition|\bstake|portfolio|of my")
_SOLD = re.compile(
    r"清仓|[卖](?:光|完|掉)|全卖|卖了(?!一半|部分|一些|点|\d)|\bsold (?:all|everything|my|out)"
)
_HELD = re.compile(
    r"持有|持仓|买的|买了|入手|建仓|加仓|补仓|手[里上]|拿着|套|重仓|满仓|(?<!一)半仓(?!位)|成仓|成本|\b(?:own|hold(?:ing)?|bought|long|added)\b|\bmy (?:position|stake|holding)"
)
_MORE = re.compile(
    r"又|再|追加|(?:加仓|补仓|减仓|加了|减了|卖了|卖出)(?!.{0,12}[到至])|多了|少了|\banother\b|\bmore\b|\badded\b|\btrimmed\b|\bsold\b"
)
AVERAGE = re.compile(r"成本|均价|\bcost|\bbasis|average|\bavg")
NOT_AN_AMOUNT = re.compile(r"\s?(?:年|月|日|号|点|季|天|周|次|岁|个月|小时|分钟|只|支|家)")
UNITS = {
    "CNY": "元",
    "HKD": "港元",
    "USD": "美元",
    "JPY": "日元",
    "EUR": "欧元",
    "GBP": "英镑",
    "x": "倍",
    "shares": "股",
}
LABELS = {"cost": ("成本价", "cost"), "shares": ("持股", "shares"), "position": ("仓位", "position")}
_DEFAULTS = {".HK": "HKD", ".SH": "CNY", ".SZ": "CNY", ".BJ": "CNY"}


class Holdings(Reading):
    """Reads what is held."""

    def _holding(self, said: Said, talk: Talk) -> Iterator[Fact]:
        current: Mention | None = None
        parts = bool(_PART.search(normalise(said.clauses[0])))  # 我的持仓：茅台30%，五粮液20%
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
                yield from self._of_one(current, clause, normal, talk, parts)

    def _of_one(self, about: Mention, clause: str, normal: str, talk: Talk, parts: bool) -> Iterator[Fact]:
        if _SOLD.search(normal):
            for metric in ("position", "shares", "cost"):
                ended = self._held(about, metric, None if metric == "cost" else 0.0, "", clause, talk)
                if metric == "position" or self._has(ended):
                    yield ended
            return
        told = bool(_MORE.search(normal))
        for metric, amount in self._figures(clause, normal, parts):
            told = True
            yield self._held(about, metric, amount.value, amount.unit, clause, talk)
        if not told and _HELD.search(normal) and self._securities(clause):
            yield self._held(about, "position", None, "", clause, talk)

    def _figures(self, clause: str, normal: str, parts: bool) -> Iterator[tuple[str, Amount]]:
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
                metric = "position" if parts or _PART.search(normal) else ""
            elif (amount.unit in UNITS or amount.bare) and not amount.scaled and amount.value > 0:
                priced = _COST.search(normal) and not (
                    amount.bare and NOT_AN_AMOUNT.match(normal, amount.end)
                )
                metric = "cost" if priced else ""
            if _MORE.search(normal) and not (metric == "cost" and AVERAGE.search(normal)):
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
            currency = unit if unit in UNITS and unit not in ("x", "shares") else listed
            shown_unit = UNITS[currency] if chinese else currency
        name = f"{about.name}（{about.entity_id}）" if chinese else f"{about.name} ({about.entity_id})"
        label = LABELS[metric][0 if chinese else 1]
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
