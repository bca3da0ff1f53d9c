"""How titles of tables and figures, their units and their sources are written."""

from __future__ import annotations

import re

CAPTION = re.compile(
    r"\s*[【\[]?(?:图表|表格|图|表)\s?[\dA-Z一二三四五六七八九十][\d.\-–]{0,6}\s?(?:[:：.、\s]|(?=[\u4e00-\u9fff]))"
    r"|\s*(?:Table|Exhibit|Figure|Chart|Fig\.)\s?\d[\d.\-]{0,5}\s?(?:[:：.|\-–—]|\s|$)",
    re.IGNORECASE,
)
SOURCE = re.compile(r"\s*(?:资料来源|数据来源|来源|资料來源|Sources?)\s?[:：]", re.IGNORECASE)
UNIT = re.compile(
    r"\s*[（(]?\s?(?:(?:货币)?单位|單位|units?|in)\s?[:：]?\s?(?P<said>[^）)\n|]{1,24})[）)]?\s*$",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?:人民币|港币)?(?:百万|千万|十亿|亿|万|千)?(?:元|美元|港元|港币|股|吨|千升)(?:人民币|/股|/吨)?"
    r"|(?:RMB|CNY|HK\$|HKD|US\$|USD|\$)\s?(?:mn|mln|m|bn|million|billion|thousand)s?"
    r"|(?:RMB |US\$ ?|\$ ?)?(?:in )?(?:millions?|billions?|thousands?)(?: of (?:RMB|yuan|(?:US |U\.S\. )?dollars))?",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[（(]([^（()）]{1,40})[)）]")


def unit_of(text: str) -> str:
    """The unit a title or a head cell names: 百万元 of 利润表（百万元）; "" when it names none."""
    said = UNIT.search(text[-60:])
    parts = [said["said"]] if said else _IN_BRACKETS.findall(text)
    if _AMOUNT.fullmatch(text.strip()):
        return text.strip()
    for part in parts:
        amount = _AMOUNT.search(part)
        if amount:
            return amount[0].strip()
    return ""
