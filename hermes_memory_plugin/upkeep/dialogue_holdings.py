"""Holdings: what the user has of a security, at which cost, and that he has it no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    r"清仓|不再持有|\bno longer (?:own|hold)|[卖](?:光|完|掉)|全卖|卖了(?!一半|部分|一些|点|\d)|\bsold (?:all|everything|my|out)"
)
_ALL_SOLD = re.compile(r"清仓|不再持有|卖[光完]|(?:全|都)(?:部)?卖|\bsold (?:all|everything|out)")
# 卖了茅台100股, 卖掉一半: some of it is gone, not all; 决定卖掉: nothing is gone yet.
_PARTLY = re.compile(
    r"一半|半仓|部分|一些|一点|[一二三四五六七八九]成|分之|\bhalf\b|\bsome\b|\bpart(?:ly)?\b"
)
_INTENDS = re.compile(
    r"决定|打算|准备|计划|考虑|想|要(?!求)|将|会(?!议)|该|建议|明天|后天|下周|下个?月|\b(?:will|plan|going to|want|intend|decided|should|about to)\b"
)
_JUDGES = re.compile(r"结论|评级|建议|应该|应当|维持|推荐|\brating\b|\brecommend|\bshould\b|\bconclusion\b")
_NOW = re.compile(
    r"成本|摊|\bcost|\bbasis|(?:均价|average|\bavg).{0,8}?(?:[降升变]?[到为成至]|\bnow\b)|后.{0,6}均价"
)
_COUNTED = re.compile(r"\b(?:own|hold|holding|bought|have|long)\b")
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
_SHARES = ("股", "shares", "手", "份", "张", "万股")
LABELS = {"cost": ("成本价", "cost"), "shares": ("持股", "shares"), "position": ("仓位", "position")}
_DEFAULTS = {".HK": "HKD", ".SH": "CNY", ".SZ": "CNY", ".BJ": "CNY"}


def _sold(normal: str) -> bool:
    """Whether a clause says that he has nothing of it any more."""
    if not _SOLD.search(normal) or _INTENDS.search(normal):
        return False
    if _ALL_SOLD.search(normal):
        return True
    # 卖掉了茅台100股 is a part; 1450 卖掉了茅台 is a price.
    return not _PARTLY.search(normal) and all(one.unit not in (*_SHARES, "%") for one in amounts.find(normal))


class Holdings(Reading):
    """Reads what is held."""

    def _holding(self, said: Said, talk: Talk) -> Iterator[Fact]:
        current: Mention | None = None
        parts = bool(_PART.search(normalise(said.clauses[0])))  # 我的持仓：茅台30%，五粮液20%
        moved = False  # a purchase or a sale was told: its price is not what all of it cost
        for clause in said.clauses:
            normal = normalise(clause)
            if _JUDGES.search(normal) and not any(amounts.find(normal)):
                continue
            named = self._securities(clause)
            moved = bool(_MORE.search(normal)) or (moved and not named)
            if len(named) > 1:
                if not any(amounts.find(normal)) and _HELD.search(normal) and not _sold(normal):
                    yield from (self._held(one, "position", None, "", clause, talk) for one in named)
                continue
            current = named[0] if named else current
            if current is None and (_COST.search(normal) or _sold(normal)):
                current = self._context(talk)
            if current is not None:
                yield from self._of_one(current, clause, normal, talk, parts, moved)

    def _of_one(
        self, about: Mention, clause: str, normal: str, talk: Talk, parts: bool, moved: bool
    ) -> Iterator[Fact]:
        if _sold(normal):
            for metric in ("position", "shares", "cost"):
                ended = self._held(about, metric, None if metric == "cost" else 0.0, "", clause, talk)
                if metric == "position" or self._has(ended):
                    yield ended
            return
        told = moved or bool(_SOLD.search(normal))
        for metric, amount in self._figures(clause, normal, parts, moved):
            told = True
            yield self._held(about, metric, amount.value, amount.unit, clause, talk)
        if not told and _HELD.search(normal) and self._securities(clause):
            yield self._held(about, "position", None, "", clause, talk)

    def _figures(self, clause: str, normal: str, parts: bool, moved: bool) -> Iterator[tuple[str, Amount]]:
        """(metric, amount) of a clause that speaks of one security, each metric once."""
        taken = [(one.start, one.end) for one in self._link(clause)]
        taken += [(one.start, one.end) for one in periods.named(normal)]
        seen: set[str] = set()
        for amount in amounts.find(normal):
            if any(start < amount.end and amount.start < end for start, end in taken):
                continue
            metric = ""
            if amount.unit in _SHARES:
                metric = "shares"
            elif amount.bare and _COUNTED.search(normal) and self._names_at(normal, amount.end, taken):
                metric = "shares"  # I own 100 AAPL
            elif amount.unit == "%":
                metric = "position" if parts or _PART.search(normal) else ""
            elif (amount.unit in UNITS or amount.bare) and not amount.scaled and amount.value > 0:
                priced = _COST.search(normal) and not (
                    amount.bare and NOT_AN_AMOUNT.match(normal, amount.end)
                )
                metric = "cost" if priced else ""
            if (moved or _SOLD.search(normal)) and not (metric == "cost" and _NOW.search(normal)):
                metric = ""  # 又买了200股, 均价55元: what he has now, and what all of it cost, is not said
            if metric and metric not in seen:
                seen.add(metric)
                hundred = 100.0 if amount.unit == "手" else 1.0
                yield metric, amount._replace(value=amount.value * hundred)

    @staticmethod
    def _names_at(normal: str, end: int, taken: Sequence[tuple[int, int]]) -> bool:
        """Whether a name or a ticker stands right behind a number."""
        return any(not normal[end:start].strip() and end < start for start, _ in taken if start - end < 3)

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
            if value == 0.0 or _sold(normalise(clause)):
                statement = f"用户已不再持有 {name}：“{clause}”"
        else:
            statement = f'The user holds {name}{", " + label + " " + figure if figure else ""}: "{clause}"'
            if value == 0.0 or _sold(normalise(clause)):
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
