"""The rating and the target price that the first page of a report states; what it says twice differently is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CHINESE = "强烈推荐|谨慎推荐|审慎推荐|审慎增持|谨慎增持|优于大市|强于大市|弱于大市|同步大市|跑赢大市|跑输大市|跑赢行业|跑输行业|领先大市|落后大市|大市同步|买入|增持|强推|推荐|中性|持有|减持|卖出|回避|区间操作|观望"
_ENGLISH = "Strong Buy|Buy|Overweight|Outperform|Accumulate|Hold|Neutral|Equal-?weight|Market Perform|Underweight|Underperform|Reduce|Sell"
_RATING = rf"(?:{_CHINESE})"
_CHANGE = r"(?:维持|首次(?:覆盖|评级)?|上调|下调|调高|调低|重申|不变|maintained?|reiterated?|initiat(?:ed|ion)|upgraded?|downgraded?|unchanged|new)"
_INDUSTRY = re.compile(r"行业(?:投资)?评级|industry rating|sector rating", re.IGNORECASE)
_ALONE = re.compile(
    rf"[“\"【\[]?(?P<rating>{_RATING}|(?i:{_ENGLISH}))[”\"】\]]?(?:-?[ABＡＢ])?\s*(?:[（(｜|/·\-—]?\s*{_CHANGE}(?:评级)?\s*[)）]?)?",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    rf"(?:(?:股票|公司|投资|最新|当前)?(?:投资)?评级|(?:stock |current |investment )?(?:rating|recommendation))\s*(?:[（(][^）)]{{0,8}}[)）])?\s*[:：|为]?\s*[“\"]?"
    rf"(?P<rating>{_RATING}|(?i:{_ENGLISH})\b)(?!\s*(?:[:：]|评级的|or\b|/))",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    rf"(?:维持|给予|重申|首次覆盖[，,]?(?:并)?给予|调[高低]至|[上下]调(?:评级|投资评级)?[至为到])(?:公司|其|“)?[“\"‘「]?\s?(?P<rating>{_RATING})\s?[-－]?[ABＡＢ]?[”\"’」]?\s?(?:的)?(?:投资)?评级"
    rf"|(?:maintain|reiterate|initiate(?: coverage)?(?: at| with)?(?: an?)?|upgrade(?: \w+)? to|downgrade(?: \w+)? to)(?: our| an?| the)?\s[“\"]?(?P<english>{_ENGLISH})\b",
    re.IGNORECASE,
)
_TITLE_CASE = re.compile(r"[A-Za-z]")

_NUMBER = r"\d{1,3}(?:[,，]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_BEFORE = re.compile(r"(?:原|前次|此前|上次|之前|前期|旧|前|previous|prior|old|from)\s*$", re.IGNORECASE)
_MONEY = r"人民币|RMB|CNY|HK\$|HKD|US\$|USD|[$¥￥]"
_TARGET = re.compile(
    rf"(?:(?:合理)?目标价(?:格|位)?|(?:12[- ]?(?:month|m) )?(?:target price|price target|\bTP\b))\s*"
    rf"(?P<unit>[（(]\s*[^（()）]{{1,12}}\s*[)）])?[^\d\n。；;|]{{0,14}}?(?P<bar>\|)?\s*(?P<money>{_MONEY})?\s?(?P<value>{_NUMBER})(?P<after>\s?(?:港元|港币|美元|元|HKD|USD|RMB|[-–~至到]\s?\d|%|％|倍|x|年|月|个月)?)"
    rf"(?=(?P<more>[^。；;|\n]{{0,24}}))",
    re.IGNORECASE,
)
_RAISED = re.compile(
    rf"^[^\d]{{0,12}}(?:调[高升低至]|raised?|cut|lower(?:ed)?|lifted|to)[^\d]{{0,12}}?(?P<value>{_NUMBER})(?P<after>\s?(?:港元|美元|元|%|％)?)",
    re.IGNORECASE,
)
_NOT_A_PRICE = re.compile(r"\s?(?:[-–~至到]\s?\d|%|％|倍|x|年|月|个月)", re.IGNORECASE)


def rating(lines: Sequence[str], text: str) -> str:
    """The rating of the company (of the industry, where the report is on one); "" when unsure.

    lines   of the first page, one each
    text    of the first page, its paragraphs whole
    """
    alone: set[str] = set()
    labelled: set[str] = set()
    industry: set[str] = set()
    for line in lines:
        line = line.strip()
        if _INDUSTRY.search(line):
            found = _LABELLED.search(line)
            if found:
                industry.add(_named(found["rating"]))
            continue
        whole = _ALONE.fullmatch(line)
        if whole:
            alone.add(_named(whole["rating"]))
        elif len(line) <= 40:
            labelled.update(_named(found["rating"]) for found in _LABELLED.finditer(line))
    given = {_named(found["rating"] or found["english"]) for found in _GIVEN.finditer(text)}
    for said in (labelled, alone, given, industry):
        if len(said) == 1:
            return said.pop()
        if said:
            both = said & given if said is not given else set()
            return both.pop() if len(both) == 1 else ""
    return ""


def _named(said: str) -> str:
    return said.title() if _TITLE_CASE.match(said) else said


def target_price(text: str, tickers: Iterable[str]) -> tuple[float | None, str]:
    """The target price and its currency; (None, "") when there is none, or more than one."""
    found: dict[float, str] = {}
    for match in _TARGET.finditer(text):
        if _BEFORE.search(text[max(0, match.start() - 10) : match.start()]):
            continue
        value, after = match["value"], match["after"] or ""
        raised = _RAISED.match(match["more"] or "")
        if raised:
            value, after = raised["value"], raised["after"] or ""
        elif _NOT_A_PRICE.match(after):
            continue
        said = f"{match['unit'] or ''}{match['money'] or ''}{after}"
        price = float(value.replace(",", "").replace("，", ""))
        if 0 < price < 1_000_000:
            found[price] = found.get(price) or _currency(said)
    if len(found) != 1:
        return None, ""
    price, currency = found.popitem()
    home = {one.rpartition(".")[2] for one in tickers}
    if not currency and home and home <= {"SH", "SZ", "BJ"}:
        currency = "CNY"
    return price, currency


def _currency(said: str) -> str:
    said = said.upper()
    for name, signs in (
        ("HKD", ("港", "HK")),
        ("USD", ("美元", "US$", "USD")),
        ("CNY", ("人民币", "元", "RMB", "CNY", "¥", "￥")),
    ):
        if any(sign in said for sign in signs):
            return name
    return ""
