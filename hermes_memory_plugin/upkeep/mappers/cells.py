"""What a cell is worth: its number in base units, in the unit its mapper declares or the one it carries itself."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes_memory_plugin.recall import amounts

_PLAIN = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?")
_LARGEST = 1e300
CURRENCIES: dict[str, str] = {
    "人民币": "CNY", "cny": "CNY", "rmb": "CNY", "人民币元": "CNY", "元": "CNY", "港元": "HKD", "港币": "HKD", "hkd": "HKD",
    "美元": "USD", "usd": "USD", "欧元": "EUR", "eur": "EUR", "日元": "JPY", "jpy": "JPY", "英镑": "GBP", "gbp": "GBP",
    "新台币": "TWD", "twd": "TWD", "新加坡元": "SGD", "sgd": "SGD",
}  # fmt: skip
_MONEY = frozenset(CURRENCIES.values())


class Unit(NamedTuple):
    """A declared unit: `factor` takes a bare number to the base unit `name`; `written` is how it was declared."""

    factor: float = 1.0
    name: str = ""
    written: str = ""

    @property
    def money(self) -> bool:
        """Whether it counts money; 元 is then the row's own currency."""
        return self.name in _MONEY


NO_UNIT = Unit()


class Cell(NamedTuple):
    """A figure in base units; `original` is how it was written where that is another unit."""

    value: float
    unit: str
    currency: str
    original: str


class OtherUnit(ValueError):
    """The cell carries a unit that its column cannot have."""


def unit(written: str) -> Unit:
    """The declared unit; any word is one, 万 and 亿 before it count."""
    factor, name = amounts.unit(written)
    return Unit(factor, name, written)


def currency(cell: object) -> str:
    """The code of a currency by its code or Chinese name; "" for none."""
    return CURRENCIES.get(str(cell).strip().casefold(), "")


def figure(cell: object, declared: Unit, money: str) -> Cell | None:
    """The figure of a cell; None for a gap (None, NaN, "--", words). `money` is the currency of the row.

    Raises OtherUnit where the cell's own unit is of another kind than the declared one.
    """
    if type(cell) is float or type(cell) is int:
        number = cell
    elif isinstance(cell, str) and _PLAIN.fullmatch(cell):
        number = float(cell.replace(",", ""))
    else:
        return _written(cell, declared, money)
    try:
        value = number * declared.factor
    except OverflowError:
        return None
    if not -_LARGEST < value < _LARGEST:  # NaN and infinity are gaps too
        return None
    value = round(value, 10) if declared.factor != 1.0 else float(value)
    original = f"{_number(number)} {declared.written}" if declared.factor != 1.0 else ""
    return Cell(value, *_unit(declared, money), original)


def _written(cell: object, declared: Unit, money: str) -> Cell | None:
    amount = amounts.parse(cell)
    if amount is None:
        return None
    written = str(cell).strip()
    if amount.bare:
        return figure(amount.value, declared, money)
    unit_, currency_ = _unit(declared, money)
    if amount.unit in _MONEY and declared.money:
        if amount.unit != "CNY":  # 元 is the money of the place, a dollar is a dollar
            unit_ = currency_ = amount.unit
    elif (amount.unit and amount.unit != declared.name) or (
        amount.scaled and declared.name in ("%", "x", "")
    ):
        raise OtherUnit(f"{written!r} is no {declared.written or 'bare number'}")
    return Cell(round(amount.value, 10), unit_, currency_, written if amount.scaled else "")


def _unit(declared: Unit, money: str) -> tuple[str, str]:
    if not declared.money:
        return declared.name, ""
    own = money if money and declared.name == "CNY" else declared.name
    return own, own


def _number(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"


_SAID = {"CNY": "元", "HKD": "港元", "USD": "美元", "EUR": "欧元", "JPY": "日元", "GBP": "英镑", "x": "倍"}


def said(value: float, unit_name: str) -> str:
    """A figure as a sentence says it: 1,741.44亿元, 28.06 倍, 33.4%."""
    word = _SAID.get(unit_name, unit_name)
    if unit_name == "%":
        return f"{_short(value)}%"
    if unit_name in _MONEY or unit_name == "股":
        for size, name in ((1e8, "亿"), (1e4, "万")):
            if abs(value) >= size:
                return f"{_short(value / size)}{name}{word}"
        return f"{_short(value)}{word}"
    return f"{_short(value)} {word}".rstrip()


def _short(value: float) -> str:
    text = f"{value:,.4f}" if abs(value) >= 1e-3 or not value else f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
