"""Periods that text names outright: ``2025``, ``2026Q1``, ``2025H1``, ``2024M04``, ``2024-04-30``.

`named` reads normalised text (see `normalise`) and never raises; a date that does not exist is not a period.
A day is not its year: a report on 2019 carries a date of 2020.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july"),
            *("aug august", "sep sept september", "oct october", "nov november", "dec december"),
        ),
        1,
    )
    for name in names.split()
}
MONTH_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
DIGITS = {digit: number for number, digit in enumerate("一二三四五六七八九十", 1)} | {
    "两": 2,
    "十一": 11,
    "十二": 12,
}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_YEAR = r"(?:19[5-9]\d|20\d\d)"
_PART = (
    r"(?:第?(?P<q{n}>[一二三四1-4])\s?(?:季度?报?)|q(?P<r{n}>[1-4])(?![\da-z])|前(?P<nine{n}>[三3])个?季度?"
    r"|(?P<h1{n}>上半年|半年度?报?|中报|中期|1h(?![\da-z])|h1(?![\da-z]))|(?P<h2{n}>下半年|2h(?![\da-z])|h2(?![\da-z]))"
    r"|(?P<m{n}>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])\s?月份?)"
)
_FROM_YEAR = re.compile(
    rf"(?P<y>{_YEAR})(?:"
    r"\s?(?:[-/.]|年)\s?(?P<dm>1[0-2]|0?[1-9])\s?(?:[-/.]|月)\s?(?P<dd>3[01]|[12]\d|0?[1-9])(?:\s?[日号])?(?!\d)"
    r"|(?P<cm>0[1-9]|1[0-2])(?P<cd>0[1-9]|[12]\d|3[01])(?![\da-z])"
    rf"|\s?(?:年度?|财年)?[-/\s]?{_PART.format(n='a')}"
    r"|[-/.](?P<ym>0[1-9]|1[0-2])(?![\d%])(?![-/.]\d)"
    r"|(?P<cym>0[1-9]|1[0-2])(?![\da-z.%])"
    r"|(?P<plain>\s?(?:年|财年|fy)|(?![\da-z_%,.]\d|[\da-z_%元万亿股点倍个块件号条家人次]|\s?(?:万|亿|元|股|倍|dollars?|yuan|usd|rmb|shares)))"
    r")"
)
_YEAR_AHEAD = re.compile(r"(?:19[5-9]|20\d)\d")
_SHORT_AHEAD = re.compile(
    rf"(?<!\d)(?:\d\d?[qh]|[12]\d年)|[qh][1-4]|fy\s?'?\d|quarter|half|\b(?:{MONTH_NAMES})\b"
)
_SHORT = re.compile(
    rf"(?<![\da-z_])(?:(?:([1-4])q|([12])h)\s?'?({_YEAR}|\d\d)(?![\da-z])"
    rf"|(?:q([1-4])|h([12]))\s?(?:of\s)?(?:fy\s?)?[-'/]?({_YEAR}|\d\d)(?![\da-z%])"
    r"|([12]\d)(?:q([1-4])|h([12]))(?![\da-z])"
    rf"|fy\s?'?({_YEAR}|\d\d)(?![\da-z])(?:\s?(?:q([1-4])|h([12])))?"
    rf"|(first|second|third|fourth|1st|2nd|3rd|4th)\s(quarter|half)\s(?:of\s)?(?:fy\s?)?({_YEAR})(?!\d)"
    rf"|({MONTH_NAMES})\.?\s(?:(\d\d?)(?:st|nd|rd|th)?,?\s)?(?:of\s)?({_YEAR})(?!\d)"
    rf"|(\d\d?)(?:st|nd|rd|th)?\s(?:of\s)?({MONTH_NAMES})\.?,?\s({_YEAR})(?!\d)"
    rf"|([12]\d)年(?:(?=年?报|度|全年|年?[底初末]|的?(?:pe|pb|roe|eps|营收|净利|收入|利润|业绩|分红|毛利))|{_PART.format(n='b')})"
    r")"
)


@dataclass(frozen=True, slots=True)
class Named:
    """A period and where the text names it."""

    id: str
    start: int
    end: int


def named(text: str) -> list[Named]:
    """The periods of a normalised text in the order they stand."""
    return list(_found(text) if len(text) <= _REMEMBERED else _named(text))


def _named(text: str) -> tuple[Named, ...]:
    found = _short(text) if _SHORT_AHEAD.search(text) else []
    taken = iter([*found])
    short = next(taken, None)
    end = 0
    for ahead in _YEAR_AHEAD.finditer(text):
        at = ahead.start()
        while short and short.end <= at:
            short = next(taken, None)
        if at < end or (short and short.start <= at) or (at and _glued(text, at)):
            continue
        match = _FROM_YEAR.match(text, at)
        period = _of_year(match) if match else ""
        if match and period:
            end = match.end()
            found.append(Named(period, at, end))
    found.sort(key=lambda item: item.start)
    return tuple(found)


_REMEMBERED = 20_000
# Several readers of one row ask the same.
_found = lru_cache(maxsize=16)(_named)


def tokens_of(period: str) -> tuple[str, ...]:
    """What the index knows a period by; a quarter and a month are also of their year, a day is not."""
    year = period[:4]
    if len(period) == 4:
        return (f"~y{year}",)
    if period[4] in "QH":
        return (f"~{period.lower()}", f"~y{year}")
    if period[4] == "M":
        return (f"~m{year}{period[5:]}", f"~y{year}")
    compact = period.replace("-", "")
    return (f"~d{compact}", f"~m{compact[:6]}")


def bounds(period: str) -> tuple[date, date]:
    """First and last day of a period."""
    year = int(period[:4])
    if len(period) == 4:
        return date(year, 1, 1), date(year, 12, 31)
    if period[4] == "-":
        day = date.fromisoformat(period)
        return day, day
    number = int(period[5:])
    months = {"Q": 3, "H": 6, "M": 1}[period[4]]
    last = number * months
    return date(year, last - months + 1, 1), date(year, last, calendar.monthrange(year, last)[1])


def day(year: int, month: int, number: int) -> str:
    """The id of a day; empty when the calendar has none."""
    try:
        return date(year, month, number).isoformat()
    except ValueError:
        return ""


def part_of(year: int, match: re.Match[str], n: str) -> str:
    """The period a `_PART` match names within a year; empty when it names none."""
    quarter = match["q" + n] or match["r" + n]
    if quarter:
        return f"{year}Q{DIGITS.get(quarter) or quarter}"
    if match["nine" + n]:
        return f"{year}Q3"
    if match["h1" + n]:
        return f"{year}H1"
    if match["h2" + n]:
        return f"{year}H2"
    month = match["m" + n]
    return f"{year}M{int(DIGITS.get(month) or month):02d}" if month else ""


PART = _PART


def _glued(text: str, at: int) -> bool:
    before = text[at - 1]
    if before.isascii():
        if before in ".,$" or before.isdigit():
            return before not in ".,$" or (at > 1 and text[at - 2].isdigit()) or before == "$"
        if before == "_":
            return False
        return before.isalpha() and text[max(0, at - 2) : at] != "fy"
    return before in "¥£€第"


def _of_year(match: re.Match[str]) -> str:
    year = int(match["y"])
    month, number = match["dm"] or match["cm"], match["dd"] or match["cd"]
    if number:
        return day(year, int(month), int(number))
    month = match["ym"] or match["cym"]
    if month:
        return f"{year}M{month}"
    if match["plain"] is not None:
        return f"{year}"
    return part_of(year, match, "a")


def _short(text: str) -> list[Named]:
    out = []
    for match in _SHORT.finditer(text):
        period = _of_short(match)
        if period:
            out.append(Named(period, match.start(), match.end()))
    return out


def _of_short(match: re.Match[str]) -> str:
    g = match.groups()
    for quarter, half, year in (
        (g[0], g[1], g[2]),
        (g[3], g[4], g[5]),
        (g[7], g[8], g[6]),
        (g[10], g[11], g[9]),
    ):
        if year:
            full = year if len(year) == 4 else f"20{year}"
            return f"{full}Q{quarter}" if quarter else f"{full}H{half}" if half else full
    if g[12]:
        nth = _ORDINALS[g[12]]
        if g[13] == "half":
            return f"{g[14]}H{nth}" if nth <= 2 else ""
        return f"{g[14]}Q{nth}"
    for month, number, year in ((g[15], g[16], g[17]), (g[19], g[18], g[20])):
        if month:
            return day(int(year), MONTHS[month], int(number)) if number else f"{year}M{MONTHS[month]:02d}"
    return part_of(int("20" + g[21]), match, "b") or f"20{g[21]}"
