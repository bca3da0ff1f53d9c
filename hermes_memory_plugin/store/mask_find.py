"""Where the secrets of a text are.

Three steps, each cheaper than the next. A few substring searches over folded copies say whether a text may hold a
secret at all. Anchors (a long run, a telling word, `://`) give the places worth a look. Only there a bounded regular
expression or a few lines of code decide. All copies have one byte for each character: places are the same in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_memory_plugin.store.mask_personal import digit_shapes, personal_spans
from hermes_memory_plugin.store.mask_rules import (
    TOKENS,
    VENDOR,
    WEBHOOK,
    WEBHOOK_ANCHORS,
    has_digit,
    is_random,
    is_value,
    kind_of,
    label_of,
)

Span = tuple[int, int, str]


def _table(pairs: dict[str, str], other: str | None = None) -> bytes:
    return bytes(ord(pairs.get(chr(i), other or chr(i))) for i in range(256))


_UPPER, _LOWER, _DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
_ALNUM = _UPPER + _LOWER + _DIGITS
# Letters folded so that few searches find many words: token and secret become "sece…", key "cey", auth "aush".
_FOLD = {upper: upper.lower() for upper in _UPPER}
for _same in ("ts", "kc", "ore"):
    _FOLD |= {letter: _same[-1] for both in _same for letter in (both, both.upper())}
_FOLDED = _table(_FOLD)
_NO_LETTERS = (
    b"0123456789?.,:;{}[]%+-"  # left out: what remains is shorter to search; quotes and blanks part words
)
_RUNS = _table(dict.fromkeys(_ALNUM, "x"), " ")
_NARROW = _table(dict.fromkeys(_ALNUM + "_-", "x"), " ")
_WIDE = _table(dict.fromkeys(_ALNUM + "_-.~+/=%:|", "x"), " ")
_CLASSES = _table(
    dict.fromkeys(_UPPER + _LOWER, "x") | dict.fromkeys(_DIGITS, "0") | {" ": " ", "-": " "}, "."
)
_RUN = b"x" * 15
# How far a decision about a named value looks when no quote opens it, and how many are kept.
_SEEN = 700
_OPENING = 130
_KNOWN = 256
# Looking for one character is far cheaper than for two.
_CHINESE = {"密": ("密码", "密钥"), "钥": ("秘钥", "私钥"), "令": ("口令", "令牌"), "授": ("授权码",)}
_QUOTES = tuple("\"'`“")
_STEMS = (b"pass", b"pwd", b"secret", b"token", b"key", b"auth", b"cred", b"access", b"_api")

# Escapes of JSON within a text become blanks of the same length: `\"key\": \"…\"` reads like `"key": "…"`.
_ESCAPES = re.compile(r"""\\+(?:[nrtbf]|u[0-9a-fA-F]{4})|\\+(?=["'`/])""")
_OPERATOR = re.compile(
    r"""(?:[ ]?["'`]?\]?\s{0,8}[,(](?=\s{0,8}["'`])|[ ]{0,4}["'`]\s{1,24}value\s{0,8}="""
    r"""|[ \t\w.\-]{0,20}?[\s"'`\]]{0,16}(?:=>|:=|\?=|={1,3}|:{1,3}=?|：|＝|>|\|\||(?<=\s)is\s|[是为](?=\s{0,3}[!-~“])))"""
    r"""([\s="'`]{0,24})""",
    re.ASCII,
)
_CHINESE_OPERATOR = re.compile(
    r"""[\s"'`”』]{0,8}(?:[:：=＝]|[是为](?=\s{0,3}[!-~“]))([\s="'`“]{0,24})(?=[!-~])"""
)
# A password right behind the word: only what no name of an algorithm is.
_CHINESE_BARE = re.compile(
    r"[ ]?(?=[!-~]{0,40}\d)(?=[!-~]{0,40}[a-z])()(?=[A-Za-z0-9][\w!@#$%^&*.\-]{7})", re.ASCII
)
_BARE = re.compile(
    r"""(?:[^\s"'`,;&<，；。、\\]{1,64}+|[,;&](?!\s|$|["'\]})]|[\w.\-]{1,40}\s?[=:])|\\(?!["'nrtu\\])){1,8}+"""
)
_REST = re.compile(r"""[^\s"'`,;，；。]*""")
_AUTHORIZATION = re.compile(
    r"""(?i)authori[sz]ation[\s"'`\]]{0,8}[:=,][\s"'`]{0,8}"""
    r"""(?:(?:bearer|basic|token|digest|apikey|api-token|negotiate)\s{1,4})?([^\s"'`,;\\<]{6,4096})"""
)
_BEARER = re.compile(r"(?i)(?:bearer|basic)\s{1,4}((?=[\w\-.~+/=]{0,100}\d)[\w\-.~+/=]{16,4096})", re.ASCII)
# A password may hold "/" and "@" although it should not; a port before a path is none.
_USERINFO = re.compile(r"""://[^\s/?#"'<>:@\\]{0,200}:(?!\d{1,5}/)([^\s?"'<>\\,]{1,300})@(?=[\w.\[{$-])""")
_USER = re.compile(r"""://([^\s/?#"'<>:@\\]{15,300})@(?=[\w.\[{$-])""")
_COOKIE = re.compile(r"""(?i)cookie["'`\]]?\s{0,4}[:=,]\s{0,4}["'`]?([^\n"'`\\]{6,4096})""")
_CRUMB = re.compile(r"""([\w.\-]{1,64})=([^;\s,"']{6,4096})""")
_LOGGED_IN = re.compile(r"(?i)sess|sid$|token|auth|jwt|login|passport|remember")
_CURL = re.compile(
    r"""\s(?:-u|--user|--proxy-user)(?:=|\s{0,5})"""
    r"""(?:"([^":\n]{0,100}:[^"\n]{1,200})"|'([^':\n]{0,100}:[^'\n]{1,200})'|([^\s:"']{0,100}:[^"'\s]{1,200}))"""
)
_GAP = re.compile(r"""[\s"'`]{0,12}""")
_PEM = re.compile(r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s:,\\-]*")
_INNER = re.compile(r"[\w.\-~]{1,80}[=:|]+", re.ASCII)
_BEFORE = re.compile(
    r"""[`'"\s=]{0,12}(?:>=|=:|=\?|={1,3}|=?:{1,3}|：|>|,|\|\||\(|（)[`'"\s\]]{0,12}([ \t\w.\-]{1,80})"""
)


def suspicious(text: str) -> bool:
    """Whether `text` is worth the search; a few fast passes, no expression."""
    raw = text.encode("latin-1", "replace")
    if _RUN in raw.translate(_RUNS):
        return True
    classes = raw.translate(_CLASSES)
    if b"x0x" in classes:
        return True
    words = raw.translate(_FOLDED, _NO_LETTERS)
    if b"sece" in words or b"cey" in words or b"pass" in words or b"pwd" in words or b"aushe" in words:
        return True
    if b"ceecie" in words:
        return True
    if b"/" in raw and (b"cuel" in words or (b"@" in raw and b"://" in raw)):
        return True
    if digit_shapes(text, raw, classes, words):
        return True
    return any(hint in text and any(word in text for word in words) for hint, words in _CHINESE.items())


def find_secrets(text: str) -> list[Span]:
    """(start, end, label) of every secret and personal number; in no order, possibly overlapping."""
    plain = text
    if "\\" in text:
        text = _ESCAPES.sub(lambda match: " " * len(match[0]), text)
    spans: list[Span] = []
    raw = text.encode("latin-1", "replace")
    lower = raw.lower()
    narrow = raw.translate(_NARROW)
    _find_runs(text, raw, narrow, spans)
    _find_named(text, plain, lower, narrow, spans)
    _find_headers(text, lower, spans)
    _find_urls(text, raw, lower, spans)
    if b"-----BEGIN" in raw:
        _find_pem(text, raw, spans)
    personal_spans(text, raw, raw.translate(_CLASSES), raw.translate(_FOLDED, _NO_LETTERS), spans)
    return spans


def _each(data: bytes, anchor: bytes) -> Iterator[int]:
    position = data.find(anchor)
    while position >= 0:
        yield position
        position = data.find(anchor, position + len(anchor))


def _end(copy: bytes, position: int) -> int:
    end = copy.find(b" ", position)
    return len(copy) if end < 0 else end


def _find_runs(text: str, raw: bytes, narrow: bytes, spans: list[Span]) -> None:
    wide = raw.translate(_WIDE)
    clean: set[str] = set()
    start = wide.find(_RUN)
    while start >= 0:
        end = _end(wide, start)
        word = text[start:end]
        if word not in clean:
            found = len(spans)
            _tokens(word, start, narrow, spans)
            _assigned(text, word, start, spans)
            if found == len(spans) and len(word) < 200 and not any("0" <= letter <= "9" for letter in word):
                clean.add(word)  # nothing on its left could make a secret of it
        start = wide.find(_RUN, end)


def _tokens(word: str, offset: int, narrow: bytes, spans: list[Span]) -> None:
    match = TOKENS.search(word)
    while match:
        end = min(_end(narrow, offset + match.end()), offset + len(word))
        spans.append((offset + match.start(), end, label_of(match)))
        match = TOKENS.search(word, end - offset)


def _assigned(text: str, word: str, start: int, spans: list[Span]) -> None:
    # A value without a shape of its own: known by the service it is assigned to.
    operator = _INNER.match(word)
    for skipped in (operator.end() if operator else 0, 0):
        body = word[skipped:].lstrip("=:|>")
        begin = start + len(word) - len(body)
        if is_random(body) and text[start + len(word) : start + len(word) + 1] != "@":
            before = _BEFORE.match(text[max(0, begin - 120) : begin][::-1])
            if before and VENDOR.search(before[1][::-1].lower()):
                spans.append((begin, start + len(word), "secret"))
                return
        if not skipped:
            return


def _find_named(text: str, plain: str, lower: bytes, narrow: bytes, spans: list[Span]) -> None:
    known: dict[tuple[str, str], tuple[int, Span | None]] = {}
    for stem in _STEMS:
        position = lower.find(stem)
        while position >= 0:
            end = _end(narrow, position)
            start = narrow.rfind(b" ", max(0, position - 64), position) + 1 or max(0, position - 64)
            lead = text[max(0, start - 8) : start]
            closes = (
                text[end : end + 1] == ">" and lead[-1:] != "<"
            )  # of `<your password>` nothing is assigned
            if end - start <= 128 and lead != "[masked:" and not closes:
                end = _remembered(text, plain, text[start:end], end, spans, known)
            position = lower.find(stem, end)
    for hint, words in _CHINESE.items():
        if hint in text:
            for word in words:
                position = text.find(word)
                while position >= 0:
                    end = _value_after(text, plain, word, position + len(word), _CHINESE_OPERATOR, spans)
                    position = text.find(word, end)


def _remembered(
    text: str,
    plain: str,
    name: str,
    end: int,
    spans: list[Span],
    known: dict[tuple[str, str], tuple[int, Span | None]],
) -> int:
    """`_value_after`, decided once for the same name with the same text behind it."""
    if not kind_of(name):
        return end
    key = name, plain[end : end + _SEEN]
    if (same := known.get(key)) is not None:
        if same[1] is not None:
            spans.append((end + same[1][0], end + same[1][1], same[1][2]))
        return end + same[0]
    before = len(spans)
    after = _value_after(text, plain, name, end, _OPERATOR, spans)
    quoted = any(quote in key[1][:_OPENING] for quote in _QUOTES)
    if after - end < _SEEN - 8 and len(key[1]) == _SEEN and len(known) < _KNOWN and not quoted:
        begin, stop, label = spans[-1] if len(spans) > before else (end, end, "")
        known[key] = after - end, (begin - end, stop - end, label) if label else None
    return after


def _value_after(
    text: str, plain: str, name: str, end: int, operators: re.Pattern[str], spans: list[Span]
) -> int:
    """Add the value that is assigned to `name`, which ends at `end`; where to go on."""
    kind = kind_of(name)
    operator = operators.match(text, end) if kind else None
    if operator is None and kind and operators is _CHINESE_OPERATOR:
        operator = _CHINESE_BARE.match(text, end)
    if operator is None:
        return end
    start = operator.end()
    gap = operator[1]
    if gap is None:  # a call: the quote is still to come
        gap = _GAP.match(text, start)[0]  # type: ignore[index]  # matches always
        start += len(gap)
    quotes = [letter for letter in gap if letter in _QUOTES]
    stop = -1
    if len(quotes) == 1 and gap.endswith(quotes[0]):
        stop = _closing(plain, start, "”" if quotes[0] == "“" else quotes[0])
    bare = _BARE.match(text, start) if stop < 0 else None
    if bare is not None:
        stop = bare.end()
    if stop < 0:
        return end
    value = text[start:stop].rstrip(" " if quotes else ".)]}")
    if not is_value(kind, name, value, quoted=bool(quotes)):
        return end
    stop = start + len(value)
    if bare is not None and _BARE.match(text, bare.end()):  # longer than the expression looks
        stop = _REST.match(text, stop).end()  # type: ignore[union-attr]  # matches always
    spans.append((start, stop, "password" if kind == "password" else "secret"))
    return stop


def _slashes(plain: str, position: int) -> int:
    before = plain[max(0, position - 8) : position]
    return len(before) - len(before.rstrip("\\"))


def _closing(plain: str, start: int, quote: str) -> int:
    """Where the text that was opened just before `start` is closed: by a quote as often escaped."""
    escapes = _slashes(plain, start - 1)
    position = plain.find(quote, start, start + 4096)
    while position >= 0:
        slashes = _slashes(plain, position)
        if slashes <= escapes:
            return position - slashes
        position = plain.find(quote, position + 1, start + 4096)
    return -1


def _find_headers(text: str, lower: bytes, spans: list[Span]) -> None:
    for position in _each(lower, b"authori"):
        match = _AUTHORIZATION.match(text, position)
        if match and is_value("password", "authorization", match[1], quoted=False):
            spans.append((*match.span(1), "authorization"))
    for position in _each(lower, b"cookie"):
        if match := _COOKIE.match(text, position):
            for crumb in _CRUMB.finditer(text, *match.span(1)):
                told = _LOGGED_IN.search(crumb[1]) and has_digit(crumb[2])
                if (told or is_random(crumb[2])) and "[masked:" not in crumb[2]:
                    spans.append((*crumb.span(2), "cookie"))
    for anchor in (b"bearer", b"basic"):
        for position in _each(lower, anchor):
            if match := _BEARER.match(text, position):
                spans.append((*match.span(1), "authorization"))


def _find_urls(text: str, raw: bytes, lower: bytes, spans: list[Span]) -> None:
    if b"@" in raw:
        for position in _each(raw, b"://"):
            match = _USERINFO.match(text, position)
            if match and not match[1].startswith(("[masked:", "${", "{{", "<")) and set(match[1]) != {"*"}:
                spans.append((*match.span(1), "password"))
            user = _USER.match(text, position)
            if user and is_random(user[1]):
                spans.append((*user.span(1), "token"))
    for position in _each(lower, b"curl"):
        match = _CURL.search(text, position, position + 400)
        if match and "[masked:" not in match[match.lastindex or 0]:
            spans.append((*match.span(match.lastindex or 0), "password"))
    for anchor in WEBHOOK_ANCHORS:
        for position in _each(raw, anchor):
            for match in WEBHOOK.finditer(text, max(0, position - 72), position + 500):
                spans.append((*match.span(), "webhook"))


def _find_pem(text: str, raw: bytes, spans: list[Span]) -> None:
    done = 0
    for position in _each(raw, b"-----BEGIN"):
        begin = _PEM.match(text, position) if position >= done else None
        if begin is None:
            continue
        other = raw.find(b"-----BEGIN", begin.end())
        end = _PEM_END.search(text, begin.end(), len(text) if other < 0 else other)
        # Cut off: everything that can belong to the key.
        done = end.end() if end else _PEM_BODY.match(text, begin.end()).end()  # type: ignore[union-attr]
        spans.append((position, done, "private-key"))
