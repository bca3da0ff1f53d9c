"""Personal numbers of mainland China and payment cards, told from tickers, amounts, dates and order numbers.

A resident id needs its region, a real date and its check digit. A mobile or card number needs a telling word on its
left (or to be written in groups): digits alone are far more often an amount or an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from operator import mul

Span = tuple[int, int, str]

_PROVINCES = frozenset(
    f"{first}{second}"
    for first, seconds in {
        1: "12345",
        2: "123",
        3: "1234567",
        4: "123456",
        5: "01234",
        6: "12345",
        7: "1",
        8: "123",
    }.items()
    for second in seconds
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHECKS = "10X98765432"
_DOUBLED = str.maketrans("0123456789", "0246813579")
_CONTEXT = 24  # how far on its left the word may stand that tells what a number is
_WINDOW = 48
_PHONE_HINTS = (
    b"phene",
    b"mebile",
    b"call",
    b"sel",
)  # phone, mobile, call, tel as they read in a folded copy
_CARD_HINT = b"caed"
_PHONE_WORDS = re.compile(r"(?i)手机|电话|联系方式|致电|拨打|微信|phone|mobile|\+86")
# Words that only count right before the number.
_CALL_WORDS = re.compile(
    r"(?i)(?:联系|联络|打给?|先生|女士|经理|老师|客服|热线|\bcall|\btel)[^\d\n，。；,;]{0,6}\Z"
)
_CARD_WORDS = re.compile(r"(?i)银行卡|信用卡|储蓄卡|借记卡|卡号|银行账[号户]|收款账[号户]|\bcards?\b")
_ID_WORDS = re.compile(r"(?i)身份证|证件号|\bid card")
_NOT_AFTER = re.compile(r"\s?(?:[元万亿股手份张吨户美港]|%)|\.\d|,\d{3}|[A-Za-z]")
# Each begins with a digit, so that the search leaps from digit to digit; what may stand before it comes second.
_START = r"(?:(?<![\d.,]\d)|(?<=\\u[0-9a-fA-F]{4}\d))"
_ID_START = r"(?:(?<![0-9A-Za-z.,]\d)|(?<=\\u[0-9a-fA-F]{4}\d)|(?<=\\[nrt]\d))"
_PHONE = re.compile(rf"1(?:{_START}|(?<=\+861))[3-9]\d([ -]?)\d{{4}}\1\d{{4}}(?!\d|[.,]\d)")
_ABROAD = re.compile(r"(?:(?<![\d.,])|(?<=\\u[0-9a-fA-F]{4}))(?:\+86[ -]?|86-)\Z")
_GROUPS = r"\d{3}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?"
_GROUPED_CARD = re.compile(rf"[1-6]{_START}{_GROUPS}(?!\d|[.,]\d|\1\d)")
_CARD = re.compile(rf"[1-6]{_START}(?:{_GROUPS}|\d{{12,18}})(?!\d|[.,]\d|\1\d)")
_BORN = r"\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_ID = re.compile(rf"[1-8]{_ID_START}\d{{5}}(?:19|20){_BORN}\d{{3}}[\dXx](?![0-9A-Za-z]|\.\d)")
_OLD_ID = re.compile(rf"[1-8]{_ID_START}\d{{5}}{_BORN}\d{{3}}(?![0-9A-Za-z]|\.\d)")
_KEY_PHONE = re.compile(
    r"(?i)(?:^|_|\b)(?:phone|mobile)(?:_?(?:no|num|number))?$|phone_?(?:no|num|number)?$|手机|联系电话"
)
_KEY_CARD = re.compile(r"(?i)(?:bank|credit|debit)_?card|card_?(?:no|num|number)|银行卡|信用卡|卡号")
_KEY_ID = re.compile(r"(?i)^id_?card(?:_?(?:no|num|number))?$|身份证")


def is_resident_id(text: str) -> bool:
    """An 18-character id of the People's Republic: region, date of birth and check digit all fit."""
    if len(text) != 18 or text[:2] not in _PROVINCES or not _date(text[6:14]):
        return False
    return _CHECKS[sum(map(mul, map(int, text[:17]), _WEIGHTS)) % 11] == text[17].upper()


def is_card(digits: str) -> bool:
    """A payment card number: known issuer range, right length, Luhn's check digit."""
    two, four = int(digits[:2]), int(digits[:4])
    known = (
        (digits[0] == "4" and len(digits) in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and len(digits) == 16)
        or (two in (34, 37) and len(digits) == 15)
        or (two == 62 and 16 <= len(digits) <= 19)
        or ((two in (30, 36, 38)) and len(digits) == 14)
        or ((two in (60, 65, 35) or two in (50, 56, 57, 58, 63, 67, 68, 69)) and 12 <= len(digits) <= 19)
        or (two in (18, 21) and len(digits) == 15)
    )
    return known and _luhn(digits)


def personal_kind(name: str, text: str) -> str:
    """The label of a value that stands under a telling key, or ""."""
    digits = re.sub(r"[\s-]", "", text)
    if not 11 <= len(digits) <= 22:
        return ""
    if _KEY_PHONE.search(name) and re.fullmatch(r"(?:\+?86)?1[3-9]\d{9}", digits):
        return "phone"
    if _KEY_CARD.search(name) and re.fullmatch(r"\d{13,19}", digits) and is_card(digits):
        return "bank-card"
    if (
        _KEY_ID.search(name)
        and re.fullmatch(r"\d{17}[\dXx]|\d{15}", digits)
        and (len(digits) == 15 or is_resident_id(digits))
    ):
        return "resident-id"
    return ""


def digit_shapes(text: str, raw: bytes, classes: bytes, words: bytes) -> list[bytes]:
    """The rows of digits in `classes` that are worth a look, given the telling words of the text.

    `raw` has a byte for each character of `text`; so has `classes`, with "0" for a digit and " " for a blank or dash;
    `words` has the letters only, folded.
    """
    shapes = [shape for shape in (b"000 0000 0000", b"0" * 17) if shape in classes]
    if b"0" * 11 in classes:
        phone = any(hint in text for hint in "手电联拨微打生女经老客热") or any(
            word in words for word in _PHONE_HINTS
        )
        if phone or (b"+" in raw and b"+86" in raw):
            shapes.append(b"0" * 11)
        elif b"0" * 13 in classes and (any(hint in text for hint in "卡账证") or _CARD_HINT in words):
            shapes.append(b"0" * 13)
    return shapes


def personal_spans(text: str, raw: bytes, classes: bytes, words: bytes, spans: list[Span]) -> None:
    """Add the personal numbers of `text`; the copies are those of `digit_shapes`."""
    hits: list[int] = []
    for shape in digit_shapes(text, raw, classes, words):
        first = classes.find(shape)
        while first >= 0:
            hits.append(first)
            first = classes.find(shape, first + len(shape))
    if not hits:
        return
    hits.sort()
    told = _CARD_HINT in words or any(hint in text for hint in "卡账证")
    # Windows that touch become one: a text full of digits is passed over once for each kind of number.
    start, end = max(0, hits[0] - 8), hits[0] + _WINDOW
    for first in hits:
        if first - 8 > end:
            _look(text, start, end, told, spans)
            start = first - 8
        end = first + _WINDOW
    _look(text, start, end, told, spans)


def _look(text: str, start: int, end: int, told: bool, spans: list[Span]) -> None:
    """Add what is between the two places; `told`: whether the text names a card or an id at all."""
    for match in _matches(_ID, text, start, end):
        if is_resident_id(match[0]):
            spans.append((*match.span(), "resident-id"))
    for match in _matches(_OLD_ID, text, start, end) if told else ():
        born = "19" + match[0][6:12]
        if match[0][:2] in _PROVINCES and _date(born) and _told(text, match.start(), _ID_WORDS):
            spans.append((*match.span(), "resident-id"))
    for match in _matches(_PHONE, text, start, end):
        first = match.start()
        before = text[max(0, first - _CONTEXT) : first]
        if abroad := _ABROAD.search(before):
            first -= len(before) - abroad.start()
        # Three groups in a row of more are figures of a table.
        grouped = match[1] == "-" or (match[1] == " " and not _in_table(text, match))
        if abroad or grouped or _PHONE_WORDS.search(before) or _CALL_WORDS.search(before):
            spans.append((first, match.end(), "phone"))
    for match in _matches(_CARD if told else _GROUPED_CARD, text, start, end):
        digits = match[0].replace(match[1], "") if match[1] else match[0]
        if is_card(digits) and (match[1] or _told(text, match.start(), _CARD_WORDS)):
            spans.append((*match.span(), "bank-card"))


def _in_table(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 2) : match.start()], text[match.end() : match.end() + 2]
    return bool(re.match(r"[\d%.][ \t]", before) or re.match(r"[ \t][\d+.-]", after))


def _matches(shape: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    for match in shape.finditer(text, start, end):
        # At the edge of the window the number may go on; the next window has it whole.
        if (match.end() < end or end >= len(text)) and not _NOT_AFTER.match(text, match.end()):
            yield match


def _told(text: str, position: int, words: re.Pattern[str]) -> bool:
    return words.search(text, max(0, position - _CONTEXT), position) is not None


@lru_cache(maxsize=65_536)
def _date(text: str) -> bool:
    try:
        return 1900 <= date(int(text[:4]), int(text[4:6]), int(text[6:8])).year <= date.today().year  # noqa: DTZ011
    except ValueError:
        return False


def _luhn(digits: str) -> bool:
    return sum(map(int, digits[::-2] + digits[-2::-2].translate(_DOUBLED))) % 10 == 0
