"""What time a question means, seen from its `now`: 去年三季度, 上个月, last quarter, in March, 2024-04-30.

Days are days in Shanghai. `read` takes normalised text and never raises.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Literal

from hermes_memory_plugin.recall.periods import DIGITS, MONTH_NAMES, MONTHS, PART, bounds, day, named, part_of

SHANGHAI = timezone(timedelta(hours=8))
Sort = Literal["day", "span", "report"]
"""day: a day, week or month of the calendar; span: a year, half or quarter (of the calendar or of the books);
report: the period a report is on (年报, 三季报, FY2024), which says nothing about when."""

_N = r"(\d{1,3}|[一二两三四五六七八九十]|十[一二])"
_RELATIVE = re.compile(
    # What any of these may begin with, so that most places of a text cost one look instead of thirty.
    rf"(?=[\d今本去上一大前明这当昨最近过年第二两三四五六七八九十半中下a-z])(?:(?P<year>今年|本年度?|去年|上一?年度?|大前年|前年|明年|(?:last|this|next|previous|prior)\s(?:fiscal\s)?year)(?:的|\s)?"
    rf"(?:(?P<rm>1[0-2]|0?[1-9])\s?月\s?(?P<rd>3[01]|[12]\d|0?[1-9])\s?[日号]|{PART.format(n='a')}|(?P<edge>年?[底末初]))?"
    r"|(?P<quarter>上一?个?季度?|前一?个?季度|本季度?|这个?季度|(?:last|previous|prior|this|current)\squarter)"
    r"|(?P<month>上上?个?月(?:份)?|本月|这个?月|当月|(?:last|previous|this)\smonth)(?:的?(?P<md>3[01]|[12]\d|0?[1-9])\s?[日号])?"
    r"|(?P<week>上上?一?个?(?:周|星期|礼拜)|[本这]个?(?:周|星期|礼拜)|(?:last|this|previous)\sweek)(?P<wd>[一二三四五六日天])?"
    r"|(?P<dayword>今天|今日|昨天|昨日|前天|大前天|\btoday\b|\byesterday\b)"
    rf"|(?:最近|近|过去|前)\s?{_N}\s?(?P<pu>个?月|天|日|个?季度|周|个?星期|年)"
    rf"|(?:past|last|previous)\s(\d{{1,3}}|two|three|four|five|six|few)\s(?P<eu>day|week|month|quarter|year)s?"
    rf"|{_N}\s?(?P<ago>个?月|天|日|周|个?星期|个?季度|年)(?:之|以)?前"
    r"|(?P<half_ago>半年)(?:之|以)?前|(?P<half_past>最近|近|过去)半年"
    r"|(\d{1,3}|an?|one|two|three|four|five|six)\s(?P<eago>day|week|month|quarter|year)s?\sago"
    r"|(?P<ytd>年初至今|今年以来|年初以来|\bytd\b|year\sto\sdate)"
    rf"|(?:(?P<prep>in|since|during|last|this|from|of|until|by)\s)(?P<em>{MONTH_NAMES})\b(?:\s(?P<ed>\d\d?)(?:st|nd|rd|th)?\b)?"
    r"|(?<![\d.年第])(?P<bm>1[0-2]|0?[1-9]|十[一二]|[一二三四五六七八九十])\s?月\s?(?:(?P<bd>3[01]|[12]\d|0?[1-9])\s?[日号]|份?)(?!\d)"
    r"|第?(?P<rq>[一二三四1-4])\s?季(?P<rqr>报|度)|(?<![\da-z])q(?P<eq>[1-4])(?![\da-z])|(?P<h1r>中报|半年报|半年度报告)"
    r"|(?P<h1>上半年|(?<![\da-z])h1(?![\da-z])|first\shalf)|(?P<h2>下半年|(?<![\da-z])h2(?![\da-z])|second\shalf)"
    r"|(?P<annual>年报|annual\sreport|\b10-k\b))"
)
_RELATIVE_AHEAD = re.compile(
    r"[年月季周天日前近]|星期|礼拜|中报|半年|过去|ytd|last|this|previous|prior|next|past|ago|today|yesterday|annual|10-k"
    rf"|half|q[1-4]|h[12]|\b(?:{MONTH_NAMES})\b"
)
_REPORT = re.compile(r"年报|季报|中报|年度报告|财年|(?<![a-z])fy\s?'?\d|annual report|10-[kq]|earnings")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "few": 3}
_WEEKDAYS = "一二三四五六日"


@dataclass(frozen=True, slots=True)
class Moment:
    """A stretch of days a question names; `id` is its period, empty where it has none (最近三个月)."""

    id: str
    start: date
    end: date
    sort: Sort


def read(text: str, now: datetime) -> list[Moment]:
    """The moments a normalised text names, in no particular order, each once."""
    today = now.astimezone(SHANGHAI).date()
    spans = named(text)
    moments: dict[Moment, None] = {}
    for item in spans:
        sort: Sort = "day" if item.id[4:5] in ("M", "-") else "span"
        if sort == "span" and _REPORT.search(text[max(0, item.start - 2) : item.end + 4]):
            sort = "report"
        moments[Moment(item.id, *bounds(item.id), sort)] = None
    if _RELATIVE_AHEAD.search(text):
        for match in _RELATIVE.finditer(text):
            if any(item.start < match.end() and match.start() < item.end for item in spans):
                continue
            try:
                moment = _relative(match, today, text)
            except (ValueError, OverflowError):
                continue
            if moment:
                moments[moment] = None
    return list(moments)


def instant(last: date) -> datetime:
    """The end of a day in Shanghai, as UTC."""
    return datetime(last.year, last.month, last.day, 23, 59, 59, tzinfo=SHANGHAI).astimezone(UTC)


def midnight(first: date) -> datetime:
    """The start of a day in Shanghai, as UTC."""
    return datetime(first.year, first.month, first.day, tzinfo=SHANGHAI).astimezone(UTC)


def _relative(match: re.Match[str], today: date, text: str) -> Moment | None:
    for group, make in _READERS:
        if match[group] is not None:
            return make(match, today, text)
    return None


def _period(period: str, sort: Sort | None = None) -> Moment:
    if not sort:
        sort = "day" if period[4:5] in ("M", "-") else "span"
    return Moment(period, *bounds(period), sort)


def _year(match: re.Match[str], today: date, text: str) -> Moment | None:
    word = match["year"]
    back = (
        3
        if word == "大前年"
        else 2
        if word == "前年"
        else 0
        if word[0] in "今本" or word.startswith("this")
        else 1
    )
    year = today.year + 1 if word == "明年" or word.startswith("next") else today.year - back
    if match["rd"]:
        named_day = day(year, int(match["rm"]), int(match["rd"]))
        return _period(named_day) if named_day else None
    if match["edge"]:
        return _period(f"{year}M01" if match["edge"][-1] == "初" else f"{year}M12")
    period = part_of(year, match, "a") or f"{year}"
    report = _REPORT.search(text[match.start() : match.end() + 2])
    return _period(period, "report" if report and len(period) != 7 else None)


def _quarter(match: re.Match[str], today: date, text: str) -> Moment:
    this = match["quarter"][0] in "本这" or match["quarter"].startswith(("this", "current"))
    index = today.year * 4 + (today.month - 1) // 3 - (0 if this else 1)
    return _period(f"{index // 4}Q{index % 4 + 1}")


def _month(match: re.Match[str], today: date, text: str) -> Moment | None:
    word = match["month"]
    back = 0 if word[0] in "本这当" or word.startswith("this") else 2 if word.startswith("上上") else 1
    first = _months_back(today.replace(day=1), back)
    if match["md"]:
        named_day = day(first.year, first.month, int(match["md"]))
        return _period(named_day) if named_day else None
    return _period(f"{first.year}M{first.month:02d}")


def _week(match: re.Match[str], today: date, text: str) -> Moment:
    word = match["week"]
    back = 0 if word[0] in "本这" or word.startswith("this") else 2 if word.startswith("上上") else 1
    monday = today - timedelta(days=today.weekday() + 7 * back)
    if match["wd"]:
        return _period(
            (monday + timedelta(days=_WEEKDAYS.index(match["wd"].replace("天", "日")))).isoformat()
        )
    return Moment("", monday, monday + timedelta(days=6), "day")


def _dayword(match: re.Match[str], today: date, text: str) -> Moment:
    word = match["dayword"]
    back = 3 if word[0] == "大" else 2 if word[0] == "前" else 1 if word[0] in "昨y" else 0
    return _period((today - timedelta(days=back)).isoformat())


def _past(match: re.Match[str], today: date, text: str) -> Moment:
    unit = match["pu"] or match["eu"]
    return Moment("", _back(today, _number(match), unit), today, "day")


def _half(match: re.Match[str], today: date, text: str) -> Moment:
    then = _months_back(today, 6)
    return _around(then, 6) if match["half_ago"] else Moment("", then, today, "day")


def _ago(match: re.Match[str], today: date, text: str) -> Moment:
    unit = match["ago"] or match["eago"]
    count = _number(match)
    then = _back(today, count, unit)
    if unit in ("天", "日", "day"):
        return _period(then.isoformat())
    return _around(then, 1 if unit[0] in "周星w" or unit.endswith("星期") else 15)


def _ytd(match: re.Match[str], today: date, text: str) -> Moment:
    return Moment("", date(today.year, 1, 1), today, "day")


def _english_month(match: re.Match[str], today: date, text: str) -> Moment | None:
    month = MONTHS[match["em"]]
    if match["em"] == "may" and match["prep"] not in ("in", "since", "last", "during", "this"):
        return None
    year = today.year - (month > today.month or (match["prep"] == "last" and month == today.month))
    if match["ed"]:
        named_day = day(year, month, int(match["ed"]))
        return _period(named_day) if named_day else None
    if match["prep"] in ("since", "from"):
        return Moment("", date(year, month, 1), today, "day")
    return _period(f"{year}M{month:02d}")


def _bare_month(match: re.Match[str], today: date, text: str) -> Moment | None:
    month = int(DIGITS.get(match["bm"]) or match["bm"])
    year = today.year - (month > today.month)
    if match["bd"]:
        number = int(match["bd"])
        named_day = day(today.year - ((month, number) > (today.month, today.day)), month, number)
        return _period(named_day) if named_day else None
    return _period(f"{year}M{month:02d}")


def _bare_part(match: re.Match[str], today: date, text: str) -> Moment | None:
    """A report or part of a year without its year: the latest that is over (reports) or has begun."""
    quarter = match["rq"] or match["eq"]
    part = f"Q{DIGITS.get(quarter) or quarter}" if quarter else "H2" if match["h2"] else "H1"
    report = match["rqr"] == "报" or bool(match["h1r"])
    for year in (today.year, today.year - 1):
        first, last = bounds(f"{year}{part}")
        if (last < today) if report else (first <= today):
            return _period(f"{year}{part}", "report" if report else "span")
    return None


def _annual(match: re.Match[str], today: date, text: str) -> Moment:
    return _period(f"{today.year - 1}", "report")


_READERS: tuple[tuple[str, Callable[[re.Match[str], date, str], Moment | None]], ...] = (
    ("year", _year),
    ("quarter", _quarter),
    ("month", _month),
    ("week", _week),
    ("dayword", _dayword),
    ("pu", _past),
    ("eu", _past),
    ("half_ago", _half),
    ("half_past", _half),
    ("ago", _ago),
    ("eago", _ago),
    ("ytd", _ytd),
    ("em", _english_month),
    ("bm", _bare_month),
    ("rq", _bare_part),
    ("eq", _bare_part),
    ("h1r", _bare_part),
    ("h1", _bare_part),
    ("h2", _bare_part),
    ("annual", _annual),
)


def _number(match: re.Match[str]) -> int:
    word = next(
        group for group in re.findall(r"\d+|[一二两三四五六七八九十]+|[a-z]+", match[0]) if _count(group)
    )
    return _count(word)


def _count(word: str) -> int:
    return int(word) if word.isdigit() and word.isascii() else DIGITS.get(word, 0) or _NUMBERS.get(word, 0)


def _back(today: date, count: int, unit: str) -> date:
    unit = unit.removeprefix("个")
    if unit in ("天", "日", "day"):
        return today - timedelta(days=count)
    if unit in ("周", "星期", "week"):
        return today - timedelta(weeks=count)
    return _months_back(today, count * {"月": 1, "month": 1, "季度": 3, "quarter": 3}.get(unit, 12))


def _months_back(today: date, count: int) -> date:
    index = today.year * 12 + today.month - 1 - count
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(today.day, calendar.monthrange(year, month)[1]))


def _around(then: date, days: int) -> Moment:
    return Moment("", then - timedelta(days=days), then + timedelta(days=days), "day")
