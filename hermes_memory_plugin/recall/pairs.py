"""Name–code pairs that text states: 贵州茅台（600519.SH）, ``{"ts_code": "600519.SH", "name": "贵州茅台"}``."""

from __future__ import annotations

import re

from hermes_memory_plugin.recall.tickers import market_of

_MOST_TEXT = 200_000
_MOST_PAIRS = 2_000
_CODE = r"(?:(?:sh|sz|bj|hk)[.:]?)?\d{5,6}(?:\.(?:sh|ss|sz|bj|hk|csi))?"
_BESIDE = re.compile(
    rf"([\u3400-\u9fffA-Za-z*][\u3400-\u9fffA-Za-z0-9*\-]{{1,15}})\s?[（(\[【]\s?(?:股票代码|证券代码|代码)?[:：]?\s?({_CODE})\s?[)）\]】]",
    re.IGNORECASE,
)
_CODE_KEYS = r"(?:ts_?code|symbol|code|ticker|stock_?code|sec_?code|证券代码|股票代码|代码)"
_NAME_KEYS = r"(?:name|short_?name|stock_?name|sec_?name|security_?name|display_?name|证券简称|股票简称|股票名称|证券名称|名称|简称)"
_OBJECT = re.compile(r"\{[^{}]{8,4000}\}")
_CODE_FIELD = re.compile(rf"[\"']{_CODE_KEYS}[\"']\s*:\s*[\"']({_CODE})[\"']", re.IGNORECASE)
_NAME_FIELD = re.compile(rf"[\"']{_NAME_KEYS}[\"']\s*:\s*[\"']([^\"'{{}}\\]{{2,16}})[\"']", re.IGNORECASE)
_HAN = re.compile("[\u3400-\u9fff]")
_LEAD = re.compile(
    r"^.*(?:关于|对于|买入|卖出|持有|看好|看空|推荐|关注|包括|例如|比如|以及|其中|查询|公司|股票|个股|标的|龙头|和|与|及|或|的|如|即|、)"
)
_SENTENCE = re.compile("[我你他它这那哪什么吗呢吧谁请问怎样多少今昨明天年月日]")


def find(text: str) -> list[tuple[str, str]]:
    """(canonical code, name) in the order of the text; nothing doubtful."""
    text = text[:_MOST_TEXT]
    out: dict[tuple[str, str], None] = {}
    for match in _BESIDE.finditer(text):
        code, name = canonical(match[2]), _name(match[1])
        if code and name:
            out[code, name] = None
        if len(out) >= _MOST_PAIRS:
            break
    if '"' in text or "'" in text:
        for item in _OBJECT.finditer(text):
            codes, names = _CODE_FIELD.findall(item[0]), _NAME_FIELD.findall(item[0])
            code = canonical(codes[0]) if codes else ""
            if code and names and _HAN.search(names[0]):
                out[code, names[0].replace(" ", "")] = None
            if len(out) >= _MOST_PAIRS:
                break
    return list(out)


def canonical(code: str) -> str:
    """The id of a written code; empty when it has no market and none can be told from its digits."""
    code = code.upper()
    digits = re.sub(r"\D", "", code)
    letters = re.sub(r"[^A-Z]", "", code).replace("SS", "SH")
    market = letters or (market_of(digits) if len(digits) == 6 else "HK")
    if market == "HK":
        return f"{digits[-5:].zfill(5)}.HK" if int(digits) else ""
    return f"{digits}.{market}" if len(digits) == 6 and market else ""


def _name(run: str) -> str:
    """The name at the end of the words before a code; empty when it cannot be told where it begins."""
    name = _LEAD.sub("", run) if len(run) > 4 else run
    if not 2 <= len(name) <= 8 or _SENTENCE.search(name) or not _HAN.search(name):
        return ""
    return name
