"""Decisions, corrections and holdings: what a sentence of the user's claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hermes_memory_plugin.recall.normalise import simplified
from hermes_memory_plugin.upkeep.dialogue_said import FILL, ME, OTHERS, SAY, Said, cut, joined, points
from hermes_memory_plugin.upkeep.own_words import Sentence

CONCLUDES = re.compile(
    r"^(?:所以|因此|综上|总之|最终|最后|那么?|好|我的?|我们的?)*[,，\s]*(?:投资)?(?P<label>结论|决定|决策|定论|最终判断|我的判断|投资评级)(?:是|为|如下)?(?:\s*[:：]|(?<=是))\s*(?P<what>\S.{3,})$"
    r"|^(?:so|final|my|our|the|in|\s)*\b(?P<en>conclusion|decision|verdict|final call|bottom line)\s*(?::|is that|is to)\s*(?P<en_what>\S.{5,})$",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    rf"^(?:{FILL})*(?:{ME})?(?:最终|最后|已经|就|还是|先|继续)*(?P<verb>决定|维持|上调|下调|调高|调低|给予|给到|打算定)(?P<what>\S.{{1,60}})$"
    r"|^(?:so |ok,? |okay,? |then |finally,? )*(?:i|we)(?:'ve| have)?\s+(?:finally |now )?(?P<en>decided (?:to|that|on|against)|maintain|keep|reiterate|upgrade|downgrade|raised?|cut)\s+(?P<en_what>\S.{4,})$",
    re.IGNORECASE,
)
RATING = re.compile(
    r"(?:强烈)?(?:买入|增持|推荐|持有|中性|减持|卖出|回避|跑赢大市|优于大市|谨慎推荐|审慎增持)(?=$|[\s，,。（(]|评级|不变)|\b(?:strong buy|buy|overweight|outperform|hold|neutral|underweight|underperform|sell|reduce)\b(?=\s*(?:rating|$|on|for))",
    re.IGNORECASE,
)
_WRONG_ZH = r"(?:(?:这个?|那个?|上面的?)?(?:数据|数字|数|结果|这里)(?:不对|错了|有误|有问题|搞错了)|不对|不是这样的?|错了|说错了|搞错了|记错了|写错了|算错了|弄错了|有误|更正(?:一下)?|纠正(?:一下)?|(?:你|我|刚才|上面|前面|之前)+(?:的)?(?:说|算|记|查|写|搞|弄|讲|看)?(?:的)?(?:有误|错了|不对|记错了|说错了|写错了))"
_WRONG_EN = r"(?:no|nope|wrong|that's (?:wrong|not right|incorrect|not correct)|that is (?:wrong|not right|incorrect)|not quite|correction|actually|sorry|i was wrong|you're wrong|my mistake|i misspoke)"
_CORRECTS = (
    re.compile(rf"^(?:{FILL})*(?:不[,，\s]+)?{_WRONG_ZH}[:：,，。!！\s]*(?P<topic>.{{0,24}}?)(?:应该|应当|应|实际上?|其实|正确的?|准确的?|准确地?说)?(?:改成|改为|是|为|不是(?P<was>[^,，]{{1,24}}?)[,，]\s*(?:而)?(?:应该)?是)(?!不|因为|由于|否|我|你)(?P<new>\S.{{0,60}})$"),
    re.compile(rf"^(?:{FILL})*(?P<topic>[^,，]{{0,24}}?)(?:不是|并非)(?P<was>[^,，]{{1,24}}?)[,，]\s*(?:而)?(?:应该|应)?是(?P<new>\S.{{0,60}})$"),
    re.compile(rf"^(?:{FILL})*(?P<topic>[^,，]{{1,24}}?)(?:应该|应当|正确的?|实际上?|其实)(?:是|为)(?P<new>\S.{{0,40}}?)(?:[,，]?(?:而)?不是(?P<was>[^,，]{{1,24}}))?$"),
    re.compile(rf"^{SAY}(?:{_WRONG_EN}[,:.!\s-]+)+(?:i mean[t,]*\s+)?(?:it's|it is|it was|it should be|should be|should have been|that's|make (?:that|it)|i meant|(?P<topic>(?:the |its |my |our )?[a-z0-9 '/&().-]{{2,40}}?) (?:is|was|should be|were|are))\s+(?!not\b)(?P<new>\S.{{0,60}}?)(?:,?\s+not\s+(?P<was>[^,]{{1,30}}))?$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?P<topic>(?:it|that|(?:the |its |my |our )?[a-z0-9 '/&().-]{{2,40}}?)) (?:is|was|should be)\s+(?!not\b)(?P<new>\S{{1,30}}(?:\s\S{{1,15}}){{0,2}}),?\s+not\s+(?P<was>\S{{1,20}}(?:\s\S{{1,15}})?)$", re.IGNORECASE),
)  # fmt: skip
_NUMBER = re.compile(r"\d|[一二两三四五六七八九十百千万亿]{2,}|[一二两三四五六七八九]成")
_HOLDS = re.compile(
    r"持有|持仓|仓位|成本价|成本|买入价|建仓|买的|买了|买入|入手|加仓|补仓|减仓|清仓|卖了|卖光|卖掉|卖完|卖出|手[里上](?:有|还有|拿)|拿着|套在|被套|重仓|满仓|(?<!一)半仓(?!位)|[0-9一二两三四五六七八九]成仓"
    r"|\b(?:i|we)(?:'m| am|'ve| have)? (?:still |also |currently |just |only )?(?:own|hold|holding|have|bought|buy|long|added|sold|got)\b|\bmy (?:cost|cost basis|average|avg|entry|position|holding|stake)\b",
    re.IGNORECASE,
)
_NOT_HELD = re.compile(
    r"换成|换到|调仓|方案|倾向|(?:没有?|不|未|没再|尚未|从未)(?:持有|买|建仓|加仓|持仓|卖|清仓|减仓|入手|仓位)|[想要]买|打算|准备|考虑|计划|建议|推荐|值得|适合|能买|可以买|可买|该买|等.{0,8}(?:再|就)|目标|评级|要不要|差点|后悔没|模拟盘|虚拟|假装|应该(?:买|卖)|本来想|挂单|[买卖](?:不|没)[到成]|股东|成本(?:端|率|压力|上升|下降|控制|优势|线|费用|结构|曲线)|(?:生产|原材料|人工|制造|营业|销售|资金|融资|单位|完全|现金)成本|收入成本|成本(?:涨|降|高|低)(?!到|至|了)"
    r"|\b(?:don't|do not|didn't|never|not|want to|plan to|going to|thinking of|should|could|might|wish|almost|nearly|watchlist|paper trad\w+)\b",
    re.IGNORECASE,
)


def conclusion(clause: str, rest: Sequence[str]) -> Said | None:
    text = joined(rest)
    plain = simplified(text)
    if match := CONCLUDES.match(plain):
        what = match["what"] or match["en_what"]
        return None if points(what) else Said("conclusion", cut(text), what)
    match = _DECIDES.match(simplified(clause))
    if match is None or OTHERS.match(simplified(clause)):
        return None
    what = match["what"] or match["en_what"]
    verb = (match["verb"] or match["en"]).lower()
    if points(what) or (not verb.startswith(("决定", "decided")) and not RATING.search(what)):
        return None
    return Said("conclusion", cut(text), what)


def correction(sentence: Sentence) -> Said | None:
    text = sentence.text
    plain = simplified(text)
    for number, pattern in enumerate(_CORRECTS):
        match = pattern.match(plain)
        if match is None:
            continue
        groups = match.groupdict()
        new, was = (match["new"] or "").strip(), (groups.get("was") or "").strip()
        topic = (groups.get("topic") or "").strip()
        told = bool(_NUMBER.search(new)) or bool(was)
        # Without "wrong" ahead (应该是…) only a figure in place of a figure is a correction.
        if number in (1, 2, 4) and not (_NUMBER.search(new) and (number == 2 or _NUMBER.search(was))):
            continue
        if number == 2 and not was and not re.search("应该|应当|正确", plain):
            continue
        if told and not points(new) and not OTHERS.match(plain):
            return Said("correction", cut(text), f"{topic} {new}".strip(), was)
    return None


def holdings(sentence: Sentence) -> Iterator[Said]:
    """Clauses that may say what the user holds; whether they name a security is for the reader of names."""
    plain = simplified(sentence.text)
    if not _HOLDS.search(plain) or OTHERS.search(plain):
        return
    if any(_NOT_HELD.search(simplified(one)) for one in sentence.clauses if _HOLDS.search(simplified(one))):
        return
    yield Said("holding", cut(sentence.text), clauses=sentence.clauses)
