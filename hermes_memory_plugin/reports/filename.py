"""What the name of a report's file says: 20260415-中信证券-贵州茅台-600519-一季度开门红.pdf."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from hermes_memory_plugin.reports.brokers import of_name
from hermes_memory_plugin.reports.dates import valid

_DATE = re.compile(
    r"(?<!\d)(20\d\d)[-._年]?(0?[1-9]|1[0-2])[-._月]?(0[1-9]|[12]\d|3[01]|(?<=[-._月])[1-9])日?(?!\d)"
)
_CODE = re.compile(
    r"(?<![\dA-Za-z])(\d{6})(?:\.(SH|SZ|BJ|SS))?(?![\d])|(?<![\dA-Za-z])(\d{4,5})\.?HK(?![A-Za-z])|\((\d{6})\)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[-_—–~·\s]+|[（()）\[\]【】]")
_NOISE = re.compile(
    r"\d+页?|[A-Z]{0,3}\d{10,}|(?:深度|点评|研究)?报告|研报|公司(?:研究|点评|深度)|\d+[pP]|copy|副本|final|download",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Named:
    """What a file name says; empty where it says nothing."""

    date: date | None = None
    broker: str = ""
    codes: tuple[str, ...] = ()
    """As written: ``600519``, ``600519.SH``, ``0700.HK``."""
    rest: tuple[str, ...] = ()
    """The parts that are none of these: a company's name, a title."""


def read(stem: str) -> Named:
    """The parts of a file name without its suffix."""
    day = None
    for match in _DATE.finditer(stem):
        day = valid(int(match[1]), int(match[2]), int(match[3]))
        if day:
            stem = stem[: match.start()] + "-" + stem[match.end() :]
            break
    codes = []
    for match in _CODE.finditer(stem):
        number = match[1] or match[4] or match[3]
        market = f".{match[2].upper().replace('SS', 'SH')}" if match[2] else ".HK" if match[3] else ""
        codes.append(number + market)
    stem = _CODE.sub("-", stem)
    broker, rest = "", []
    # A title may hold spaces and dashes of its own; a broker's name is a part of its own.
    whole = [part.strip() for part in re.split(r"[-_—–~]+|[（()）\[\]【】]", stem) if part.strip()]
    for part in whole:
        name = of_name(part)
        if name and not broker:
            broker = name
            continue
        words = _PARTS.split(part)
        inner = next((one for one in words if not broker and len(words) > 1 and of_name(one)), "")
        if inner:
            broker = of_name(inner)
            part = part.replace(inner, " ").strip()
        if part and not _NOISE.fullmatch(part):
            rest.append(part)
    return Named(day, broker, tuple(dict.fromkeys(codes)), tuple(rest))
