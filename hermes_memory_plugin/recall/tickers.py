"""Codes of securities in running text, and the numbers that only look like them.

600519, 600519.SH, SH600519, sh.600519, 00700.HK, 700.HK, HK00700, $AAPL, NASDAQ:AAPL, AAPL.US. Canonical ids carry the
market: ``600519.SH``, ``00700.HK``, ``AAPL``. A phone, order or staff number, an amount or a date is none.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

_EXPLICIT = re.compile(
    r"(?<![a-z0-9_])(?:"
    r"(?P<m1>sh|sz|bj|sse|szse|xshg|xshe)\s?[.:_]?\s?(?P<c1>\d{6})|(?P<c2>\d{6})[.\s]?(?P<m2>sh|ss|sz|bj|xshg|xshe|csi)"
    r"|(?:hk[.:]?\s?(?P<h1>\d{4,5})|(?:hk[.:]|hkex[:\s]\s?|sehk[:\s]\s?)(?P<h2>\d{3,5})|(?<!\d\.)(?P<h3>\d{1,5})\.hk)"
    r"|(?P<tw>\d{4})\.tw"
    r"|(?:nasdaq|nyse|amex|otc)\s?:\s?(?P<u1>[a-z]{1,5}(?:\.[ab])?)|\$(?P<u2>[a-z]{1,5}(?:\.[ab])?)"
    r"|(?P<u3>[a-z]{1,5})\.(?:us|o|n|oq)"
    r")(?![a-z0-9_]|\.\d|\.[a-z]{2})"
)
_EXPLICIT_AHEAD = re.compile(
    r"\d\s?(?:\.?\s?s[hsz]|\.?\s?bj|\.xsh|\.csi|\.hk|\.tw)|(?:s[hz]|bj|hk|se|xsh[ge]|hkex|otc|amex|nasdaq|nyse)\s?[.:_]?\s?[a-z0-9]|\$[a-z]|\.(?:us|o|n|oq)\b"
)
_BARE = re.compile(r"(?<![\da-z_.,:#$¥£€@+\-])(?:(\d{6})|(0\d{3,4}))(?![\da-z_]|[.,:]\d|-\d|\s?%)")
_US = re.compile(r"(?<![A-Za-z0-9_.$\-/])[A-Z]{1,5}(?:\.[AB])?(?![A-Za-z0-9_\-/])")

_UNIT = re.compile(
    r"\s?(?:元|万|亿|千|块|股(?![票价份东息权比市吧的怎今昨是行目涨跌]|\s*pe)|手(?![机里])|美元|港元|港币|人民币|rmb|cny|usd|hkd|%|％|个|件|份|人|次|条|名|户|倍"
    r"|公里|千米|米|吨|公斤|千克|kg|km|台|辆|套|字|页|步|桶|平|㎡|号楼|秒|分钟|小时|天|年|日|shares?|dollars?|yuan|bucks|units?|people|users|rows|tokens|bytes|steps|times|miles|km|ms|kb|mb|gb)"
)
_OTHER_NUMBER = re.compile(
    r"(?:订单号?|单号?|尾号|后几?位|前几?位|凭证号?|工号|学号|邮编|邮政编码|验证码|校验码|动态码|确认码|识别码|快递(?:单号)?|运单号?|电话|手机号?|座机|热线|分机号?|传真|qq号?|微信号?|群号"
    r"|身份证号?|银行卡号?|卡号|账号|帐号|密码|口令|合同号?|合同编号|编号|发票号?|流水号?|房间号?|房号|门牌号?|门禁|车牌号?|序列号|批次号?|工单号?|票号|取件码|兑换码|提货码|邀请码|会议号|会议id|客户号|会员号|档案号|案号|文号|病历号|航班|车次"
    r"|里程|步数|金额|合计|总计|共计|花了|支付|付了|转账|转了|预算|工资|价值|押金|租金|房租|收款|红包|总价|人口|阅读量|播放量|浏览量|粉丝"
    r"|order(?:\s(?:no\.?|number|id))?|invoice(?:\s(?:no\.?|number))?|phone(?:\snumber)?|tel|fax|zip(?:\scode)?|postal\scode|postcode|password|passcode|pin(?:\scode)?|otp|extension|ext\.?"
    r"|ticket(?:\s(?:no\.?|number|id))?|tracking(?:\s(?:no\.?|number))?|employee\s(?:id|number|no\.?)|staff\s(?:id|number|no\.?)|verification\scode|door\scode|gate\scode|meeting\sid|room(?:\snumber)?|account(?:\snumber)?|case(?:\snumber)?"
    r"|(?<!stock\s)(?<!ticker\s)(?<!share\s)(?<!security\s)\bcode|serial(?:\snumber)?|issue|page|pull\srequest|\bpr|commit|error|port|line|pid|total|amount|paid|cost|budget|balance|population)"
    r"(?:号码|号|编号|id)?\s*(?:是|为|改为|换成|变成|改成|了|is|was|of|are|:|=|#|no\.?|的|「|“|\"|'|\(|（)?\s*(?:是|为|is|:)?\s*[#「“\"'(]?$"
)
_NUMBER_OF = re.compile(
    r"\s?(?:就?是|为)\s?(?:[我你他她]们?的?)?[\u3400-\u9fff]{0,4}?(?:单号|编号|工号|学号|卡号|账号|帐号|邮编|密码|口令|验证码|取件码|号码|手机号|电话|门牌|房号|房间号|会议号|尾号|序列号)"
    r"|\sis\s(?:(?:the|my|an?|your|his|her|our)\s)?(?:(?:order|invoice|phone|ticket|tracking|room|account|serial|employee|staff|extension)(?:\s(?:no\.?|number|id))?|zip(?:\scode)?|post(?:al\s)?code|password|passcode|pin|otp)(?![a-z-])"
)
_INDEX_TALK = re.compile(r"上证|沪指|指数|大盘|综指|\bindex\b|composite|中证|国证|沪深")
_HK_TALK = re.compile(r"港股|h股|香港|恒生|港交所|hong kong|hkex|hkd|港元|港币")
# Capitals that are words, units or trades of their own before they are tickers.
_WORD_LIST = """
A I AM AN AS AT BE BY DO GO HE IF IN IS IT ME MY NO OF OK ON OR SO TO UP US WE ALL AND ANY ARE BIG CAN CAR CEO CFO CTO DAY
EAT FOR FUN GET HAS HIM HOW KEY LOW MAN NEW NOW ONE OUT OLD RUN SEE TWO USA WAY WHO YOU BEST CASH COST EVER FAST GOOD LIFE LOVE
MAIN NEXT OPEN PLAY REAL SAFE SO TRUE VERY WELL PE PB PS EV AI API PDF ETF GDP CPI PPI PMI ROE ROA EPS IPO TTM YOY QOQ USD CNY HKD
RMB FY H1 H2 Q1 Q2 CRM V MU BA GS KO DIS META
"""
_WORDS = frozenset(_WORD_LIST.split())


class Code(NamedTuple):
    """A code, where it stands, and how sure it is that it is one (1 = its market is written out)."""

    id: str
    start: int
    end: int
    sure: float


def find(text: str, folded: str, known: Container[str], *, market_talk: bool) -> list[Code]:
    """The codes of a text: `text` normalised, `folded` the same with its capitals, `known` the ids of the lexicon."""
    found = list(_explicit(text, known)) if _EXPLICIT_AHEAD.search(text) else []
    taken = [(code.start, code.end) for code in found]
    for match in _BARE.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in taken):
            continue
        code = _bare(text, match, known, market_talk)
        if code:
            found.append(code)
    if len(folded) == len(text):
        for match in _US.finditer(folded):
            symbol = match[0]
            if symbol not in known or any(
                start < match.end() and match.start() < end for start, end in taken
            ):
                continue
            if symbol in _WORDS or len(symbol) < 3:
                if not market_talk or symbol in ("IT", "ALL", "ON", "A", "I", "US"):
                    continue
                found.append(Code(symbol, *match.span(), 0.6))
            else:
                found.append(Code(symbol, *match.span(), 0.9))
    found.sort(key=lambda code: code.start)
    return found


def market_of(digits: str) -> str:
    """The exchange a six-digit code is listed on by its first digits; empty when no exchange gives such codes."""
    if digits.startswith(("60", "68", "5", "110", "111", "113", "118", "900")):
        return "SH"
    if digits.startswith(("00", "30", "15", "16", "18", "123", "127", "128", "399", "200")):
        return "SZ"
    if digits.startswith(("43", "83", "87", "88", "920", "899")):
        return "BJ"
    return "CSI" if digits.startswith("93") else ""


def kind_of(entity: str) -> str:
    """What an id that no list knows must be, by its digits."""
    digits, _, market = entity.partition(".")
    if market in ("SH", "SZ") and digits.startswith(("11", "12")):
        return "bond"
    if market in ("SH", "SZ") and digits[0] in "15":
        return "fund"
    if market == "CSI" or digits.startswith("399"):
        return "index"
    return "stock"


def is_other_number(text: str, start: int, end: int) -> bool:
    """Whether the digits are an amount or a number of something else by the words around them."""
    return bool(
        _UNIT.match(text, end)
        or _NUMBER_OF.match(text, end)
        or _OTHER_NUMBER.search(text[max(0, start - 24) : start])
    )


def _explicit(text: str, known: Container[str]) -> list[Code]:
    found = []
    for match in _EXPLICIT.finditer(text):
        digits = match["c1"] or match["c2"]
        hong_kong = match["h1"] or match["h2"] or match["h3"]
        symbol = (match["u1"] or match["u2"] or match["u3"] or "").upper()
        if digits:
            market = (match["m1"] or match["m2"]).upper()
            market = {"SS": "SH", "SSE": "SH", "XSHG": "SH", "SZSE": "SZ", "XSHE": "SZ"}.get(market, market)
            found.append(Code(f"{digits}.{market}", *match.span(), 1.0))
        elif hong_kong:
            if int(hong_kong):
                found.append(Code(f"{hong_kong[-5:].zfill(5)}.HK", *match.span(), 1.0))
        elif match["tw"]:
            found.append(Code(f"{match['tw']}.TW", *match.span(), 1.0))
        elif match["u3"] and symbol not in known:
            continue  # main.o is a file
        else:
            found.append(Code(symbol, *match.span(), 1.0 if symbol in known or match["u1"] else 0.8))
    return found


def _bare(text: str, match: re.Match[str], known: Container[str], talk: bool) -> Code | None:
    start, end = match.span()
    if start >= 2 and text[start - 1] == "/" and text[start - 2].isascii() and text[start - 2].isalpha():
        return None  # a path
    if is_other_number(text, start, end):
        return None
    alone = end - start == len(text.strip())
    around = text[max(0, start - 10) : end + 6]
    if match[2]:
        entity = f"{match[2].zfill(5)}.HK"
        if entity in known and len(match[2]) == 5 and (alone or talk or _HK_TALK.search(around)):
            return Code(entity, start, end, 0.85)
        # Four digits are a time, a year or a PIN as well: only a company that is known, and only beside Hong Kong.
        sure = _HK_TALK.search(around) and (len(match[2]) == 5 or entity in known)
        return Code(entity, start, end, 0.7) if sure else None
    digits = match[1]
    entity = f"{digits}.SH"
    if (
        digits.startswith(("000", "93"))
        and entity in known
        and (digits == "000300" or _INDEX_TALK.search(around))
    ):
        return Code(entity, start, end, 0.9)
    market = market_of(digits)
    entity = f"{digits}.{market}"
    if not market or digits.startswith(("200", "900")):
        return None
    if entity in known and (alone or talk or not digits.endswith("000")):
        return Code(entity, start, end, 0.95)
    if alone or talk or (digits.startswith(("60", "68", "00", "30", "920")) and not digits.endswith("000")):
        return Code(entity, start, end, 0.75)
    return None
