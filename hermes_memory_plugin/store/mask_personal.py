"""Personal numbers of mainland China and payment cards, told from tickers, amounts, dates and order numbers.

A resident id needs its region, a real date and its check digit. A mobile or card number needs a telling word on its
left (or to be written in groups): digits alone are far more often an amount or an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

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
_CONTEXT = 24  # how far on its left the word may stand that tells what a number is
_WINDOW = 48
_PHONE_HINTS = (b"phene", b"mebile")  # phone and mobile as they read in a folded copy
_CARD_HINT = b"caed"
_PHONE_WORDS = re.compile(r"(?i)手机|电话|联系方式|致电|拨打|微信|phone|mobile|\+86")
_CARD_WORDS = re.compile(r"(?i)银行卡|信用卡|储蓄卡|借记卡|卡号|银行账[号户]|收款账[号户]|\bcards?\b")
_ID_WORDS = re.compile(r"(?i)身份证|证件号|\bid card")
_NOT_AFTER = re.compile(r"\s?(?:[元万亿股手份张吨户美港]|%)|\.\d|,\d{3}|[A-Za-z]")
_PHONE = re.compile(
    r"(?:(?<=\\u[0-9a-fA-F]{4})|(?<![\d.,]))(\+86[ -]?|86-)?(1[3-9]\d)([ -]?)\d{4}\3\d{4}(?!\d|[.,]\d)"
)
_CARD = re.compile(
    r"(?:(?<=\\u[0-9a-fA-F]{4})|(?<![\d.,]))(?:\d{4}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{13,19})(?!\d|[.,]\d|\1\d)"
)
_ID = re.compile(
    r"(?:(?<=\\u[0-9a-fA-F]{4})|(?<=\\[nrt])|(?<![0-9A-Za-z.,]))\d{17}[\dXx](?![0-9A-Za-z]|\.\d)"
)
_OLD_ID = re.compile(r"(?:(?<=\\u[0-9a-fA-F]{4})|(?<=\\[nrt])|(?<![0-9A-Za-z.,]))\d{15}(?![0-9A-Za-z]|\.\d)")
_KEY_PHONE = re.compile(
    r"(?i)(?:^|_|\b)(?:phone|mobile)(?:_?(?:no|num|number))?$|phone_?(?:no|num|number)?$|手机|联系电话"
)
_KEY_CARD = re.compile(r"(?i)(?:bank|credit|debit)_?card|card_?(?:no|num|number)|银行卡|信用卡|卡号")
_KEY_ID = re.compile(r"(?i)^id_?card(?:_?(?:no|num|number))?$|身份证")


def is_resident_id(text: str) -> bool:
    """An 18-character id of the People's Republic: region, date of birth and check digit all fit."""
    if len(text) != 18 or text[:2] not in _PROVINCES or not _date(text[6:14]):
        return False
    return (
        _CHECKS[sum(int(digit) * weight for digit, weight in zip(text, _WEIGHTS, strict=False)) % 11]
        == text[17].upper()
    )


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
        phone = any(hint in text for hint in "手电联拨微") or any(word in words for word in _PHONE_HINTS)
        if phone or (b"+" in raw and b"+86" in raw):
            shapes.append(b"0" * 11)
        elif b"0" * 13 in classes and (any(hint in text for hint in "卡账证") or _CARD_HINT in words):
            shapes.append(b"0" * 13)
    return shapes


def personal_spans(text: str, raw: bytes, classes: bytes, words: bytes, spans: list[Span]) -> None:
    """Add the personal numbers of `text`; the copies are those of `digit_shapes`."""
    for shape in digit_shapes(text, raw, classes, words):
        first = classes.find(shape)
        while first >= 0:
            _look(text, max(0, first - 8), first + _WINDOW, spans)
            first = classes.find(shape, first + len(shape))


def _look(text: str, start: int, end: int, spans: list[Span]) -> None:
    for match in _matches(_ID, text, start, end):
        if is_resident_id(match[0]):
            spans.append((*match.span(), "resident-id"))
    for match in _matches(_OLD_ID, text, start, end):
        born = "19" + match[0][6:12]
        if match[0][:2] in _PROVINCES and _date(born) and _told(text, match.start(), _ID_WORDS):
            spans.append((*match.span(), "resident-id"))
    for match in _matches(_PHONE, text, start, end):
        if match[1] or match[3] == "-" or _told(text, match.start(), _PHONE_WORDS):
            spans.append((*match.span(), "phone"))
    for match in _matches(_CARD, text, start, end):
        told = match[1] or _told(text, match.start(), _CARD_WORDS)
        digits = re.sub(r"\D", "", match[0]) if told else ""
        if 13 <= len(digits) <= 19 and is_card(digits):
            spans.append((*match.span(), "bank-card"))


def _matches(shape: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    for match in shape.finditer(text, start, end):
        # At the edge of the window the number may go on; the next window has it whole.
        if (match.end() < end or end >= len(text)) and not _NOT_AFTER.match(text, match.end()):
            yield match


def _told(text: str, position: int, words: re.Pattern[str]) -> bool:
    return words.search(text, max(0, position - _CONTEXT), position) is not None


def _date(text: str) -> bool:
    try:
        return 1900 <= date(int(text[:4]), int(text[4:6]), int(text[6:8])).year <= date.today().year  # noqa: DTZ011
    except ValueError:
        return False


def _luhn(digits: str) -> bool:
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + index % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
