"""Secrets masked before anything is written: `[masked:api-key]` instead of the key, never a part of it.

Three steps, each cheaper than the next. A few substring searches over a folded copy say whether a text may hold a
secret at all (False is certain for every rule but those of names unknown to us). Anchors (a long run, a telling word, `://`)
give the places worth a look. Only there a bounded regular expression or a few lines of code decide.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hermes_memory_plugin.store.mask_personal import personal_kind, personal_spans
from hermes_memory_plugin.store.mask_rules import (
    TOKENS,
    VENDOR,
    WEBHOOK,
    WEBHOOK_ANCHORS,
    is_random,
    is_value,
    kind_of,
    label_of,
)

RULES_VERSION = 1
"""Grows whenever a text masked before may be masked further now."""

Span = tuple[int, int, str]

_PASSES = 6
_DEEPEST = 300
_WORD = re.compile(r"\w", re.ASCII)


def _table(pairs: dict[str, str], other: str | None = None) -> bytes:
    return bytes(ord(pairs.get(chr(i), other or chr(i))) for i in range(256))


_UPPER, _LOWER, _DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
_ALNUM = _UPPER + _LOWER + _DIGITS
# Letters folded so that few searches find many words: token and secret become "sece…", key "cey", auth "aush".
_FOLD = {upper: upper.lower() for upper in _UPPER}
for _same in ("ts", "kc", "ore"):
    _FOLD |= {letter: _same[-1] for both in _same for letter in (both, both.upper())}
_FOLDED = _table(_FOLD)
_RUNS = _table(dict.fromkeys(_ALNUM, "x"), " ")
_NARROW = _table(dict.fromkeys(_ALNUM + "_-", "x"), " ")
_WIDE = _table(dict.fromkeys(_ALNUM + "_-.~+/=%:|", "x"), " ")
_CLASSES = _table(dict.fromkeys(_UPPER + _LOWER, "x") | dict.fromkeys(_DIGITS, "0"), " ")
_RUN = b"x" * 16
_VALUE = b"x" * 15
_CHINESE = ("密码", "密钥", "秘钥", "私钥", "口令", "令牌", "授权码")
_CHINESE_HINTS = ("密", "钥", "令", "授")
_STEMS = (
    b"passw",
    b"passp",
    b"passc",
    b"pwd",
    b"secret",
    b"token",
    b"key",
    b"auth",
    b"cred",
    b"access",
    b"_api",
    b"pass",
)

_OPERATOR = re.compile(
    r"""\\{0,4}["'`]?\]?(?:[ \t]{0,8}[,(](?=\s{0,4}\\{0,4}["'`])|\s{1,4}value\s{0,2}="""
    r"""|[ \t\w.\-]{0,20}?\\{0,4}["'`]?\]?[ \t]{0,8}(?:=>|:=|\?=|={1,3}|:{1,3}=?|：|＝|>|\|\||(?<=\s)is\s))[\s=]{0,8}""",
    re.ASCII,
)
_CHINESE_OPERATOR = re.compile(r"""\\{0,4}["'`”]?[ \t]{0,4}(?:[:：=＝]|[是为](?=[!-~“]))[\s=]{0,8}""")
_QUOTE = re.compile(r"""(\\{0,4})(["'`]{1,3})""")
_BARE = re.compile(
    r"""(?:[^\s"'`,;&<，；。、\\]|[,;&](?!\s|$|["'\]})]|[\w.\-]{1,40}\s?[=:])|\\(?!["'nrtu\\])){1,2048}"""
)
_REST = re.compile(r"""[^\s"'`,;，；。]*""")
_AUTHORIZATION = re.compile(
    r"""(?i)authori[sz]ation\\{0,4}["'`]?\]?\s{0,4}[:=,]\s{0,4}\\{0,4}["'`]?\s?"""
    r"""(?:(?:bearer|basic|token|digest|apikey|api-token|negotiate)\s{1,4})?([^\s"'`,;\\<]{6,4096})"""
)
_BEARER = re.compile(r"(?i)(?:bearer|basic)\s{1,4}((?=[\w\-.~+/=]{0,100}\d)[\w\-.~+/=]{16,4096})", re.ASCII)
_USERINFO = re.compile(r"""://[^\s/?#"'<>:@\\]{0,200}:([^\s/?#"'<>\\]{1,300})@(?=[\w.\[{$-])""")
_USERINFO_SLASH = re.compile(r"""://[^\s/?#"'<>:@\\]{0,200}:([^\s"'<>\\@]{1,100})@(?=[\w-]{1,60}[.:\w])""")
_CURL = re.compile(
    r"""(?:\s-u|\s--user|\s--proxy-user)(?:=|[ \t]{0,5})(\\{0,4}["']?)([^\s:"'\\]{0,100}:[^"'\\\s]{1,200})"""
)
_PEM = re.compile(r"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END[ A-Z0-9_-]{0,60}KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\+[nr])*")
_BEFORE = re.compile(
    r"""[`'"\s=\\]{0,6}(?:>=|=:|=\?|={1,3}|=?:{1,3}|：|>|,|\|\||\(|（)[`'"\s\]]{0,4}([ \t\w.\-]{1,80})"""
)


def might_hold_secret(data: str | bytes) -> bool:
    """Whether a text (or JSON, or its UTF-8 bytes) may hold something to mask; a few fast passes, no expression."""
    if isinstance(data, bytes):
        if not data.isascii():
            data = data.decode("utf-8", "replace")
            return _suspicious(data, data.encode("latin-1", "replace"))
        return _suspicious("", data)
    return _suspicious(data, data.encode("latin-1", "replace"))


def _suspicious(text: str, raw: bytes) -> bool:
    if _RUN in raw.translate(_RUNS):
        return True
    classes = raw.translate(_CLASSES)
    if b"x0x" in classes or b"00000000000" in classes or b"000 0000 0000" in classes:
        return True
    folded = raw.translate(_FOLDED)
    if b"sece" in folded or b"cey" in folded or b"pass" in folded or b"pwd" in folded or b"aushe" in folded:
        return True
    if b"://" in raw and (b"@" in raw or b"curl" in raw):
        return True
    return any(hint in text for hint in _CHINESE_HINTS) and any(word in text for word in _CHINESE)


def mask_text(text: str) -> str:
    """`text` with secrets and personal numbers replaced; masking twice changes nothing more."""
    if len(text) < 6:
        return text
    for _ in range(_PASSES):
        if "\\u" in text and text.lstrip()[:1] in "{[":
            text = _mask_escaped(text)
        raw = text.encode("latin-1", "replace")  # one byte for each character: places in both are the same
        if not _suspicious(text, raw):
            return text
        spans = _spans(text, raw)
        if not spans:
            return text
        text = _replace(text, spans)
    return text


def _mask_escaped(text: str) -> str:
    # JSON that spells every Chinese character as an escape hides the telling words.
    try:
        value = json.loads(text)
        masked = mask_json(value)
        return text if masked == value else json.dumps(masked)
    except (ValueError, RecursionError):
        return text


def mask_json(value: Any) -> Any:
    """A JSON value with secrets masked in strings and keys; a value under a telling key goes by its key."""
    return _mask(value, 0)


def _mask(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return mask_text(value)
    if depth > _DEEPEST:
        return "[masked:too-deep]" if isinstance(value, dict | list | tuple) else value
    if isinstance(value, dict):
        masked: dict[Any, Any] = {}
        for key, item in value.items():
            item = _mask_named(key, item, depth) if isinstance(key, str) else _mask(item, depth + 1)
            name = mask_text(key) if isinstance(key, str) else key
            while name in masked:
                name = f"{name}'"  # two secrets as keys: neither value is lost
            masked[name] = item
        if isinstance(name := value.get("name", value.get("key")), str) and "value" in value:
            masked["value"] = _mask_named(name, value["value"], depth)
        return masked
    if isinstance(value, list | tuple):
        return [_mask(item, depth + 1) for item in value]
    return value


def _mask_named(name: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | dict):
        return _mask(value, depth + 1)
    if isinstance(value, list | tuple):
        return [
            _mask_named(name, item, depth + 1) if isinstance(item, str | int) else _mask(item, depth + 1)
            for item in value
        ]
    text = value if isinstance(value, str) else str(value)[:64]
    kind = kind_of(name[-80:])
    if kind and is_value(kind, name, text, quoted=True) and not (kind == "password" and " " in text.strip()):
        return (
            text
            if text.startswith("[masked:")
            else f"[masked:{'password' if kind == 'password' else 'secret'}]"
        )
    if label := personal_kind(name, text):
        return f"[masked:{label}]"
    return _mask(value, depth + 1)


def _replace(text: str, spans: list[Span]) -> str:
    spans.sort()
    parts: list[str] = []
    position = 0
    start, end, label = spans[0]
    for begin, stop, name in [*spans[1:], (len(text) + 1, 0, "")]:
        if begin < end:
            end = max(end, stop)
            continue
        parts += (text[position:start], f"[masked:{label}]")
        position = end
        start, end, label = begin, stop, name
    parts.append(text[position:])
    return "".join(parts)


def _spans(text: str, raw: bytes) -> list[Span]:
    spans: list[Span] = []
    lower = raw.lower()
    narrow = raw.translate(_NARROW)
    _find_runs(text, raw, narrow, spans)
    _find_named(text, lower, narrow, spans)
    _find_headers(text, lower, spans)
    if b"://" in raw:
        _find_urls(text, raw, lower, spans)
    if b"-----BEGIN" in raw:
        _find_pem(text, raw, spans)
    personal_spans(text, raw.translate(_CLASSES), spans)
    return spans


def _each(data: bytes, anchor: bytes) -> Any:
    position = data.find(anchor)
    while position >= 0:
        yield position
        position = data.find(anchor, position + len(anchor))


def _find_runs(text: str, raw: bytes, narrow: bytes, spans: list[Span]) -> None:
    wide = raw.translate(_WIDE)
    clean: set[str] = set()
    start = wide.find(_VALUE)
    while start >= 0:
        end = wide.find(b" ", start)
        end = len(wide) if end < 0 else end
        start = _behind_escape(text, start)
        word = text[start:end]
        if word not in clean:
            found = len(spans)
            _tokens(word, start, narrow, spans)
            _assigned(text, word, start, spans)
            if found == len(spans) and len(word) < 200 and not any(c.isdigit() for c in word):
                clean.add(word)
        start = wide.find(_VALUE, end)


def _behind_escape(text: str, start: int) -> int:
    # In JSON within a text the run may begin with the rest of \\n or \\uff1a.
    if start and text[start - 1] == "\\":
        return start + (5 if text[start] == "u" else 1)
    return start


def _tokens(word: str, offset: int, narrow: bytes, spans: list[Span]) -> None:
    match = TOKENS.search(word)
    while match:
        end = narrow.find(b" ", offset + match.end())
        end = min(len(narrow) if end < 0 else end, offset + len(word))
        spans.append((offset + match.start(), end, label_of(match)))
        match = TOKENS.search(word, end - offset)


def _assigned(text: str, word: str, start: int, spans: list[Span]) -> None:
    # A value without a shape of its own: known by the service named on its left.
    name, operator, value = word.partition("=") if "=" in word[:80] else ("", "", "")
    if not operator:
        name, operator, value = word.partition(":")
    if operator and value.lstrip("=:") and name and VENDOR.search(name.lower()):
        body = value.lstrip("=:>")
        if is_random(body):
            spans.append((start + len(word) - len(body), start + len(word), "secret"))
        return
    body = word.lstrip("=:|")
    if not is_random(body.ljust(16, "0") if len(body) == 15 else body):
        return
    begin = start + len(word) - len(body)
    before = _BEFORE.match(text[max(0, begin - 100) : begin][::-1])
    if before and VENDOR.search(before[1][::-1].lower()):
        spans.append((begin, start + len(word), "secret"))


def _find_named(text: str, lower: bytes, narrow: bytes, spans: list[Span]) -> None:
    for stem in _STEMS:
        position = lower.find(stem)
        while position >= 0:
            end = narrow.find(b" ", position)
            end = len(narrow) if end < 0 else end
            start = narrow.rfind(b" ", max(0, position - 64), position) + 1 or max(0, position - 64)
            if end - start <= 128:
                _value_after(text, text[start:end], end, spans)
            position = lower.find(stem, end)
    if any(hint in text for hint in _CHINESE_HINTS):
        for word in _CHINESE:
            position = text.find(word)
            while position >= 0:
                end = position + len(word)
                _value_after(text, word, end, spans, _CHINESE_OPERATOR)
                position = text.find(word, end)


def _value_after(
    text: str, name: str, end: int, spans: list[Span], operators: re.Pattern[str] = _OPERATOR
) -> None:
    kind = kind_of(name)
    operator = operators.match(text, end) if kind else None
    if operator is None:
        return
    start = operator.end()
    quote = _QUOTE.match(text, start)
    if quote:
        start = quote.end()
        stop = _closing(text, start, quote[2], len(quote[1]))
        if stop >= 0:
            if is_value(kind, name, text[start:stop], quoted=True):
                spans.append((start, stop, "password" if kind == "password" else "secret"))
            return
    bare = _BARE.match(text, start)
    if bare is None:
        return
    stop = bare.end()
    if stop - start >= 2048:
        stop = _REST.match(text, stop).end()  # type: ignore[union-attr]  # matches always
    if is_value(kind, name, text[start:stop].rstrip(".)]}"), quoted=False):
        spans.append((start, stop, "password" if kind == "password" else "secret"))


def _closing(text: str, start: int, quote: str, escapes: int) -> int:
    position = text.find(quote, start, start + 4096)
    while position >= 0:
        slashes = 0
        while position - slashes > start and text[position - slashes - 1] == "\\":
            slashes += 1
        if slashes <= escapes:
            return position - slashes
        position = text.find(quote, position + 1, start + 4096)
    return -1


def _find_headers(text: str, lower: bytes, spans: list[Span]) -> None:
    for position in _each(lower, b"authori"):
        match = _AUTHORIZATION.match(text, position)
        if match and is_value("password", "authorization", match[1], quoted=False):
            spans.append((*match.span(1), "authorization"))
    for anchor in (b"bearer", b"basic"):
        for position in _each(lower, anchor):
            if match := _BEARER.match(text, position):
                spans.append((*match.span(1), "authorization"))


def _find_urls(text: str, raw: bytes, lower: bytes, spans: list[Span]) -> None:
    if b"@" in raw:
        for position in _each(raw, b"://"):
            match = _USERINFO.match(text, position) or _USERINFO_SLASH.match(text, position)
            if match and not match[1].startswith(("[masked:", "${", "{{", "<")) and set(match[1]) != {"*"}:
                spans.append((*match.span(1), "password"))
    for position in _each(lower, b"curl"):
        match = _CURL.search(text, position, position + 400)
        if match and "[masked:" not in match[2]:
            spans.append((*match.span(2), "password"))
    for anchor in WEBHOOK_ANCHORS:
        for position in _each(raw, anchor):
            for match in WEBHOOK.finditer(text, max(0, position - 64), position + 500):
                spans.append((*match.span(), "webhook"))


def _find_pem(text: str, raw: bytes, spans: list[Span]) -> None:
    done = 0
    for position in _each(raw, b"-----BEGIN"):
        begin = _PEM.match(text, position) if position >= done else None
        if begin is None:
            continue
        close = raw.find(b"-----END", begin.end())
        end = _PEM_END.match(text, close) if close >= 0 else None
        other = raw.find(b"-----BEGIN", begin.end())
        if end and (other < 0 or close < other):
            done = end.end()
        else:  # cut off: everything that can belong to the key
            done = _PEM_BODY.match(text, begin.end()).end()  # type: ignore[union-attr]  # matches always
        spans.append((position, done, "private-key"))
