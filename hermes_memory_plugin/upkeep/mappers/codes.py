"""Codes of securities as tables write them, to the ids facts carry: sh600519 → 600519.SH, 700 → 00700.HK."""

from __future__ import annotations

import re
from functools import lru_cache

from hermes_memory_plugin.recall.tickers import market_of

_SUFFIXED = re.compile(r"(\d{4,6})\.(SH|SZ|BJ|SS|HK|OF|CSI|CNI|SI|TW|XSHG|XSHE)")
_PREFIXED = re.compile(r"(SH|SZ|BJ|HK|CSI)[.:_]?(\d{5,6})")
_SYMBOL = re.compile(r"(?:\d{3}\.)?([A-Z]{1,5}(?:[._-][A-Z])?)(?:\.(?:US|O|N|OQ))?")
_MARKETS = {"SS": "SH", "XSHG": "SH", "XSHE": "SZ"}


@lru_cache(maxsize=16_384)
def canonical(written: str, market: str) -> str:
    """The id of a code; "" for what is none, or for more than one. `market` is that of codes without one."""
    text = written.strip().upper()
    match = _SUFFIXED.fullmatch(text)
    if match:
        place = _MARKETS.get(match[2], match[2])
        digits = match[1].zfill(5) if place == "HK" else match[1]
        return f"{digits}.{place}"
    match = _PREFIXED.fullmatch(text)
    if match:
        return f"{match[2].zfill(5)}.HK" if match[1] == "HK" else f"{match[2]}.{match[1]}"
    if market == "US":
        match = _SYMBOL.fullmatch(text)
        return match[1].replace("_", ".") if match else ""
    if not text.isdecimal() or not text.isascii() or not int(text):
        return ""
    if market == "HK":
        return f"{text.zfill(5)}.HK" if len(text) <= 5 else ""
    if len(text) != 6:
        return ""
    if market == "OF":
        return f"{text}.OF"
    place = _index_market(text) if market == "index" else market_of(text)
    return f"{text}.{place}" if place else ""


def _index_market(digits: str) -> str:
    for start, place in (("399", "SZ"), ("000", "SH"), ("899", "BJ"), ("93", "CSI")):
        if digits.startswith(start):
            return place
    return ""


def subject(cell: object, market: str) -> str:
    """The id of a cell; a number is a code whose leading zeros were lost."""
    if isinstance(cell, bool) or not isinstance(cell, int | str):
        return ""
    if isinstance(cell, int):
        if not 0 < cell < 1_000_000:
            return ""
        return canonical(f"{cell:05d}" if market == "HK" else f"{cell:06d}", market)
    return canonical(cell, market) if len(cell) <= 24 else ""
