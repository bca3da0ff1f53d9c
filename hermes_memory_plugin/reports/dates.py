"""The day a report is of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sep", "sept"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = re.compile(
    r"(?<!\d)(?P<y1>20\d\d|19[89]\d)\s?[年./\-]\s?(?P<m1>1[0-2]|0?[1-9])\s?[月./\-]\s?(?P<d1>3[01]|[12]\d|0?[1-9])(?!\d)\s?日?"
    rf"|(?P<d2>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?\s(?P<m2>{_MONTH})\.?,?\s(?P<y2>20\d\d)"
    rf"|(?P<m3>{_MONTH})\.?\s(?P<d3>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?,?\s(?P<y3>20\d\d)"
    r"|(?<!\d)(?P<y4>20\d\d)(?P<m4>0[1-9]|1[0-2])(?P<d4>0[1-9]|[12]\d|3[01])(?!\d)",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:报告(?:发布)?日期|发布(?:日期|时间)|撰写日期|出具日期|日期|published(?: on)?|date|report date)\s*[:：]?\s*$",
    re.IGNORECASE,
)
_OTHER = re.compile(r"收盘|股价|价格|截至|截止|行情|相关|《|price|close|as of|data", re.IGNORECASE)


def valid(year: int, month: int, day: int) -> date | None:
    """That day; None when there is none such, or none of a report's."""
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return found if 1990 <= year <= 2100 else None


def days(text: str) -> Iterator[tuple[date, int, int]]:
    """(day, start, end) of every date written out."""
    for match in _DAY.finditer(text):
        for n in "1234":
            if match[f"y{n}"]:
                month = match[f"m{n}"].lower()
                found = valid(int(match[f"y{n}"]), _MONTHS.get(month) or int(month), int(match[f"d{n}"]))
                if found:
                    yield found, match.start(), match.end()


def report_date(lines: Sequence[str], in_name: date | None, created: str) -> date | None:
    """The date of the report, by the lines of its first page, the file's name and the PDF's own; None when unsure."""
    alone: dict[date, None] = {}
    mentioned: set[date] = set()
    for line in lines:
        for day, start, end in days(line):
            mentioned.add(day)
            before, after = line[:start].strip(), line[end:].strip()
            if _OTHER.search(before) or _OTHER.search(after):
                continue
            if _LABEL.search(before) or (
                len(before) + len(after) <= 12 and not re.search(r"\d{4}", before + after)
            ):
                alone[day] = None
    if in_name and (in_name in alone or in_name in mentioned):
        return in_name
    if len(alone) == 1:
        return next(iter(alone))
    made = next((day for day, _, _ in days(created.removeprefix("D:")[:8])), None)
    near = [day for day in (alone or mentioned) if made and abs(day - made) <= timedelta(days=3)]
    if len(near) == 1:
        return near[0]
    return in_name
