"""Amounts: the numbers of a text that say how much, each with its unit and how exactly it was written.

1741.4亿元, 174,140百万元 and 174.14 billion are one value; 28 agrees with 27.96, 28.0 does not. This is the one reader of
numbers for claims, answers and the cells of tool results; `values` only makes tokens of them for the index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from hermes_memory_plugin.recall.values import DIGITS, SCALES, UNITS, chinese

Bound = Literal["", "about", "over", "under"]

MONEY: dict[str, str] = {
    "元": "CNY", "块": "CNY", "块钱": "CNY", "人民币": "CNY", "元人民币": "CNY", "rmb": "CNY", "cny": "CNY", "yuan": "CNY", "¥": "CNY",
    "港元": "HKD", "港币": "HKD", "hkd": "HKD", "hk$": "HKD", "美元": "USD", "美金": "USD", "usd": "USD", "us$": "USD",
    "$": "USD", "dollars": "USD", "欧元": "EUR", "eur": "EUR", "€": "EUR", "£": "GBP", "日元": "JPY", "英镑": "GBP",
}  # fmt: skip
_RATES: dict[str, tuple[float, str]] = {
    "%": (1.0, "%"), "percent": (1.0, "%"), "pct": (1.0, "%"), "个百分点": (1.0, "pp"), "个点": (1.0, "pp"), "pp": (1.0, "pp"),
    "ppt": (1.0, "pp"), "percentage points": (1.0, "pp"), "‰": (0.1, "%"), "bp": (0.01, "pp"), "bps": (0.01, "pp"), "个基点": (0.01, "pp"),
    "基点": (0.01, "pp"), "倍": (1.0, "x"), "x": (1.0, "x"), "times": (1.0, "x"),
}  # fmt: skip
_THINGS = (
    "万股", "股", "吨", "手", "户", "人", "台", "辆", "瓶", "箱", "桶", "平方米", "平米", "度", "千瓦时", "kwh", "gwh", "mwh", "gw", "mw",
    "shares", "tons", "tonnes", "点", "张", "份",
)  # fmt: skip


def _any(words: object) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))  # type: ignore[call-overload]


_RATE = "|".join(
    word if not word[-1].isascii() or not word[-1].isalpha() else rf"{word}(?![a-z_])"
    for word in sorted(map(re.escape, _RATES), key=len, reverse=True)
)
_UNIT = (
    rf"(?P<more>[多余](?=[万亿倍元块%股吨]))?(?:\s?(?P<scale>{_any(SCALES)})(?![a-z]))?"
    rf"(?:\s?(?P<rate>{_RATE})|\s?(?P<money>{_any(MONEY)})(?![a-z])|\s?(?P<thing>{_any(_THINGS)})(?![a-z票东价本份额]))?"
)
_AMOUNT = re.compile(
    r"百分之(?P<share>[零〇一二两三四五六七八九十百]+(?:点[零〇一二三四五六七八九]+)?|\d+(?:\.\d+)?)"
    rf"|(?<![\d.a-z_/#@&=?])(?:(?P<mark>us\$|hk\$|[$¥€£]|(?<![a-z])(?:cny|rmb|usd|hkd|eur)(?=\s?\d))\s?)?(?P<sign>[-+−])?(?P<plain>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d_]|\.\d|,\d{{3}}(?!\d))"
    rf"(?:(?P<tenths>成半?)(?![立交本员功为长品都熟])|{_UNIT.replace('?P<', '?P<a_')})(?:(?<=[a-z\d])(?![\da-z_])|(?<![a-z\d]))"
    r"|(?<![零〇一二两三四五六七八九十百千万亿第])(?P<han>[零〇一二两三四五六七八九十百千万亿]+(?:点[零〇一二三四五六七八九]+[万亿]*)?)"
    rf"(?:(?P<han_tenths>成半?)(?![立交本员功为长品都熟])|{_UNIT.replace('?P<', '?P<b_')})"
)
_AHEAD = re.compile(r"\d|[一二两三四五六七八九十百]")
_ABOUT = re.compile(
    r"(?:大概|大约|约为?|差不多|估计|上下|roughly|about|around|approximately|approx\.?|circa|~|≈)\s*$"
)
_OVER = re.compile(
    r"(?:(?<!不)超过?|逾|突破|(?<!不)高于|不低于|至少|over|above|more than|at least|>=?|≥)\s*$"
)
_UNDER = re.compile(
    r"(?:近|接近|将近|不足|不到|低于|不超过|至多|nearly|almost|under|below|less than|up to|<=?|≤)\s*$"
)
_AFTER_ABOUT = re.compile(r"\s?(?:左右|上下|or so)")
_MORE = re.compile(r"[多余]")
_AFTER_OVER = re.compile(r"[多余]|以上|\+(?!\d)")
_NEXT_OF_RANGE = re.compile(r"\s?[-~–—至到]\s?$")
_BLANKS = frozenset(
    {"", "-", "--", "—", "n/a", "na", "nan", "none", "null", "inf", "-inf", "false", "true", "nat"}
)


class Amount(NamedTuple):
    """A number of a text. `value` is in base units (元, shares, percent); a loss keeps its sign."""

    value: float
    unit: str
    """``%``, ``pp`` (points of a share), ``x`` (倍), a currency (``CNY`` …), a thing (吨, 股 …), or "" where none is written."""
    step: float
    """What one of its last written digit is worth, in base units: 28 → 1, 27.96 → 0.01, 1741亿 → 1e8."""
    digits: int
    """Digits that say something: 1,700亿 has two, 28.0 three."""
    scaled: bool
    """Whether it was written with 万, 亿, million …"""
    bound: Bound
    start: int
    end: int

    @property
    def bare(self) -> bool:
        """A number and nothing else: no unit, no scale."""
        return not self.unit and not self.scaled


def find(text: str) -> Iterator[Amount]:
    """The amounts of a normalised text (see `normalise`), in its order; dates and codes are the caller's to leave out."""
    if not _AHEAD.search(text):
        return
    found: list[Amount] = []
    for match in _AMOUNT.finditer(text):
        amount = _read(match, text)
        if amount is None:
            continue
        if (
            found
            and found[-1].bare
            and not amount.bare
            and _NEXT_OF_RANGE.fullmatch(text, found[-1].end, amount.start)
        ):
            found[-1] = _like(found[-1], amount, match)  # 25-30倍: both are multiples
        found.append(amount)
    yield from found


def parse(cell: object) -> Amount | None:
    """A cell of a table as an amount: ``1,741.44亿``, ``"28.10"``, ``-3.2%``, ``(12.5)``; None for NaN, dashes and words."""
    from hermes_memory_plugin.recall.normalise import normalise

    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        try:
            value = float(cell)
        except OverflowError:
            return None
        if not math.isfinite(value):
            return None
        written = repr(cell)
        return Amount(value, "", _step(written), _telling(written), False, "", 0, len(written))
    text = normalise(str(cell)).strip() if isinstance(cell, str) and len(cell) <= 60 else ""
    if text in _BLANKS:
        return None
    negative = text.startswith("(") and text.endswith(")")
    amount = next(find(text[1:-1] if negative else text), None)
    if amount is None or amount.end - amount.start < len(text.strip("() ")):
        return None
    return amount._replace(value=-amount.value) if negative else amount


def unit(name: str) -> tuple[float, str]:
    """(factor to base units, unit) of a unit's name: 万元 → (1e4, "CNY"), 亿股 → (1e8, "股"), % → (1, "%")."""
    from hermes_memory_plugin.recall.normalise import normalise

    text = normalise(name).strip(" ()[]单位:")
    factor = 1.0
    if text in _RATES:
        return _RATES[text]
    for scale in sorted(SCALES, key=len, reverse=True):
        rest = text.removeprefix(scale)
        if rest != text and (not rest or not scale.isascii() or not rest[0].isalpha() or rest in MONEY):
            factor, text = SCALES[scale], rest.strip()
            break
    return factor, MONEY.get(text, text)


def agrees(said: Amount, value: float) -> bool:
    """Whether `value` (base units) may have been said like that: rounded, or cut where that costs under 1 %."""
    off = abs(said.value - value)
    slack = abs(said.value) * 1e-9
    if off <= said.step / 2 * 1.000001 + slack:
        return True
    size = abs(said.value)
    if said.bound == "about":
        return off <= max(said.step, size * 0.03)
    if said.bound == "over":
        return 0 <= (abs(value) - size) <= max(said.step, size * 0.05)
    if said.bound == "under":
        return 0 <= (size - abs(value)) <= max(said.step, size * 0.05)
    if off <= _coarse(said) / 2:
        return True
    return said.digits >= 3 and off < said.step and abs(value) >= size and said.step <= size * 0.01


def _coarse(said: Amount) -> float:
    """The step of a number that ends in zeros: 1,700亿 stands for 1,741亿 as well, 30 for nothing but 30."""
    whole = round(abs(said.value) / said.step)
    if said.digits >= len(str(whole)) or not (said.scaled or whole >= 1_000):
        return said.step  # no such zeros, or behind a point, where they are meant
    zeros = 0
    while whole >= 100 and whole % 10 == 0:
        whole //= 10
        zeros += 1
    return float(said.step * 10**zeros)


def _read(match: re.Match[str], text: str) -> Amount | None:
    start, end = match.span()
    if match["share"]:
        value = chinese(match["share"])
        if value is None:
            return None
        return Amount(
            value,
            "%",
            _step(match["share"]) if match["share"][0].isdigit() else 1.0,
            2,
            False,
            _bound(text, start, end),
            start,
            end,
        )
    if match["han"]:
        return _han(match, text)
    digits = match["plain"].replace(",", "")
    sign = -1.0 if match["sign"] in ("-", "−") and _is_sign(text, match.start("sign")) else 1.0
    if match["sign"] and not _is_sign(text, match.start("sign")):
        start = match.start("plain")
    try:
        value = sign * float(digits)
    except ValueError:
        return None
    step, telling = _step(digits), _telling(digits)
    if match["tenths"]:
        half = 5 if match["tenths"] == "成半" else 0
        return Amount(
            10 * value + half, "%", 5 if half else 10, 1, False, _bound(text, start, end), start, end
        )
    return _with_unit(match, "a_", value, step, telling, text, start)


def _han(match: re.Match[str], text: str) -> Amount | None:
    word = match["han"]
    start = match.start()
    if match["han_tenths"]:
        if len(word) != 1 or word not in DIGITS:
            return None
        half = 5 if match["han_tenths"] == "成半" else 0
        return Amount(10.0 * DIGITS[word] + half, "%", 5 if half else 10, 1, False, _bound(text, start, match.end()), start, match.end())  # fmt: skip
    plain, _, rest = word.partition("点")
    tail = rest.lstrip("零〇一二三四五六七八九")
    value = chinese(word.removesuffix(tail) if rest else plain)
    if value is None:
        return None
    factor = SCALES.get(tail, 1.0) if tail else 1.0
    last = plain[-1]
    step = 1.0 if rest == "" and last in DIGITS else float(UNITS.get(last) or SCALES.get(last) or 1)
    if rest:
        step = 10.0 ** -len(rest.removesuffix(tail))
    scaled = bool(tail) or last in "万亿"
    amount = _with_unit(match, "b_", value * factor, step * factor, 2 if len(word) > 1 else 1, text, start)
    if amount.bare and not scaled:
        return None  # 一, 十: words before they are amounts
    return amount._replace(scaled=amount.scaled or scaled)


def _with_unit(
    match: re.Match[str], group: str, value: float, step: float, telling: int, text: str, start: int
) -> Amount:
    end = match.end()
    scale, rate = match[group + "scale"], match[group + "rate"]
    factor = SCALES[scale] if scale else 1.0
    unit_ = ""
    if rate:
        share, unit_ = _RATES[rate]
        factor *= share
    elif match[group + "money"]:
        unit_ = MONEY[match[group + "money"]]
    elif match[group + "thing"]:
        unit_ = match[group + "thing"]
    elif group == "a_" and match["mark"]:
        unit_ = MONEY[match["mark"]]
    return Amount(
        value * factor, unit_, step * factor, telling, bool(scale), _bound(text, start, end), start, end
    )


def _like(first: Amount, second: Amount, match: re.Match[str]) -> Amount:
    """The first end of a range with the unit of the second."""
    scale = next((match[group] for group in ("a_scale", "b_scale") if match[group]), None)
    factor = SCALES[scale] if scale else 1.0
    return first._replace(
        value=first.value * factor, step=first.step * factor, unit=second.unit, scaled=second.scaled
    )


def _is_sign(text: str, at: int) -> bool:
    """A dash after a number, a unit or a letter is no minus."""
    before = text[at - 1] if at else " "
    return not (before.isascii() and (before.isalnum() or before in "%)]")) and before not in "倍亿万元年月日"


def _bound(text: str, start: int, end: int) -> Bound:
    before = text[max(0, start - 16) : start]
    if _AFTER_ABOUT.match(text, end) or _ABOUT.search(before):
        return "about"
    if _AFTER_OVER.match(text, end) or _OVER.search(before) or _MORE.search(text, start, end):
        return "over"
    return "under" if _UNDER.search(before) else ""


def _step(digits: str) -> float:
    mantissa, _, exponent = digits.lower().partition("e")
    _, point, rest = mantissa.partition(".")
    return float(10.0 ** (int(exponent or 0) - (len(rest) if point else 0)))


def _telling(digits: str) -> int:
    mantissa = digits.lower().partition("e")[0].lstrip("-+")
    whole = mantissa.replace(".", "").lstrip("0")
    return len(whole) if "." in mantissa else max(1, len(whole.rstrip("0")))
