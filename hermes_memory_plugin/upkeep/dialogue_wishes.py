"""Preferences: what a clause says the user wants, avoids or likes.

A rule speaks only where the clause begins with it, after "I", an adverb or a filler: whatever else stands ahead
(他不碰银行股, "my boss never buys banks") says that it is somebody else's, or not meant as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_memory_plugin.recall.context import MARKET_TALK
from hermes_memory_plugin.recall.normalise import simplified
from hermes_memory_plugin.upkeep.dialogue_said import FILL, ME, OTHERS, SAY, Kind, Said, cut, joined, points

_EVER = r"(?:以后|今后|往后|之后|从(?:今天|现在|今|此|明天|这周|下周|本周|今年|明年|下个?月)(?:开始|起|往后|以后)?|一律|一概|永远|从来|从不|一直|一般|平时|平常|通常|坚决|绝对|再也|总是|始终|基本上?|向来|历来|每次|统一|默认)"
_ADVERB = (
    r"(?:真的|就|都|也|还是|还|是|必须|务必|千万|麻烦|请|你|给我|帮我|跟我|肯定|主要|尽量|先|要|得|现在|目前)"
)
_AHEAD = rf"^(?:{FILL})*(?P<me>{ME})?(?P<ever>(?:{_EVER}|{_ADVERB}|\s)*)"
_THING = r"(?P<what>\S.{0,60}?)"
_AVOID = re.compile(
    rf"{_AHEAD}(?P<verb>(?:不|别|不要|不再|别再|不会|不想|不希望|坚决不|从不|绝不|永不|不能)(?:再|给我|向我|你|去|主动)*(?:碰|沾|推荐|推|炒|追|做空|加杠杆|融资|参与|配置|考虑|投资|投|持有|买入|买|吃|喝|用|做|看|接受|喜欢|关注|写|说|提|加|发|列|叫|讲|放|引用|使用))(?![好到懂清出得起上完不了过成为住完什么重])(?!(?<=追)[求究问溯踪]|(?<=投)[入票诉]|(?<=推)[进动迟]|(?<=吃)[力亏惊透香]|(?<=用)[心说管]|(?<=买)账)"
    rf"{_THING}$|{_AHEAD.replace('?P<', '?P<b_')}(?P<b_verb>(?:(?<=我)|(?<=我们)|(?<=一律)|(?<=以后)|(?<=坚决)|^)(?:回避|远离|避开(?!了)|排除(?!了)|剔除(?!了))|(?<=我)(?:拒绝|讨厌|最烦|最讨厌)|不碰|不追高|不加杠杆|不做空|不抄底){_THING.replace('?P<', '?P<b_')}?$"
)
_STRONG = re.compile(r"碰|沾|炒|追|做空|加杠杆|融资|推荐|推|喜欢|接受|参与|配置")
_BACKWARDS = re.compile(
    rf"^(?:{FILL})*(?:{ME})?对(?P<b_what>[\u3400-\u9fffA-Za-z0-9]{{2,12}}?)(?:{_EVER}|{_ADVERB})*(?:不感兴趣|没有?兴趣)$|^(?:{FILL})*(?P<what>[\u3400-\u9fffA-Za-z0-9]{{1,12}}?)(?:{ME})?(?:{_EVER}|{_ADVERB})*(?P<verb>(?:不|别|不要)(?:再|给我)?(?:碰|沾|推荐|买|考虑|追|做|看)(?:了)?)$"
)
_ONLY = re.compile(
    rf"{_AHEAD}只(?:能|想)?(?:看|买|投资|投|做|用|关注|考虑|持有|配置|吃|喝|接受|认|推荐|碰|信|选)(?![是见好有能剩到过了得]){_THING}$"
)
_PREFERS = re.compile(
    rf"{_AHEAD}(?:很|最|更|比较|特别|非常|偏|主要)?(?:偏好|喜欢|习惯(?:用|看|于)?(?!了)|优先(?:看|用|选)|偏爱|爱看|爱用|看重|(?<=比较|主要|特别|非常)(?:关注|在意|重视)|(?<=最|很|更)(?:关注|在意|重视)){_THING}$"
)
_HENCEFORTH = re.compile(
    rf"^(?:{FILL})*(?:{ME})?(?:以后|今后|往后|从(?:今天|现在|今|此|明天|这周|下周|本周|今年|下个?月)(?:开始|起|往后|以后)?|下次(?:开始|起)?|每次(?=都要|要|请|先|给我|务必|必须)|默认|一律|统一)"
    r"(?:都|就|请|你|给我|帮我|跟我|也|统一|一律|[,，\s])*(?:用|按|以|先|写|说|叫|给(?=我|出|个|每|所|结|上)|发|把|不要|不用|别|要|输出|回答|回复|报告|展示|标注|附上|带上|加上|默认|改用|改成|改为|查|看|只|不|单位|金额|数字|日期|报价|称呼|提醒|列|分|做|拿|走|从|所有|涉及|凡是|结论)"
    r".{2,}$"
)
_VAGUE = re.compile(
    r"(?:用|按|以|写|说|给|发|要|做|看|叫)(?:这|那|它|他|她|此)(?:[个些种份张篇样家]|们|么)?(?:方式|方法|标准|来|办|做|写|吧|的|了|就行|就好)*$"
)
_NOT_A_RULE = re.compile(
    r"再说|再看|再聊|再议|再谈|有机会|有空|会涨|会跌|会不会|也许|慢慢|打算|见(?:面)?$|不知道|怎么办|不好说|不用了|不用谢|不要紧|别客气|不客气|不好意思|没事|算了|可以吧"
)
_CALL_ME = re.compile(
    rf"^(?:{FILL})*(?:以后)?(?:请|你)?(?:可以)?(?:叫|称呼)我(?P<what>[\u3400-\u9fffA-Za-z]{{1,8}}?)(?:就好|就行|吧|即可)?$"
)
_LIMIT = re.compile(
    rf"^(?:{FILL})*(?:{ME}的?|单[只个票一]\S{{0,6}}?|每[只个]\S{{0,6}}?)?(?P<what>止损线?|止盈线?|仓位上限|单票上限|单只上限|风险偏好|风险承受(?:能力)?|投资期限|持有期|目标收益率?|最大回撤|回撤|总仓位|(?:单[只个票一]|每[只个])\S{{0,6}}?仓位?|仓位)(?:要|都|一律|控制|必须)*(?:是|为|设在?|定在?|在|不超过|不高于|不能超过|别超过|最多|至多|上限|以内|[:：]|(?=\s*\d))\s*\S.{{0,30}}$"
    rf"|^(?:{FILL})*(?:{ME})(?:最大|最多|顶多)(?:能|可以|可)?(?:接受|承受|忍受).{{0,4}}\d.{{0,12}}$"
)
_ALLERGY = re.compile(
    rf"^(?:{FILL})*(?:{ME})(?P<what>对.{{1,10}}过敏|是?吃素的?|是?素食者?|乳糖不耐受?|戒酒了?|不吃[辣肉鱼蛋奶].{{0,8}})$"
)
_ALLOWED = re.compile(
    rf"^(?:{FILL})*(?P<what>[\u3400-\u9fffA-Za-z0-9]{{2,12}}?)(?:{_EVER}|{_ADVERB})*(?:可以|能)(?:开始)?(?:再)?(?:碰|买|看|考虑|推荐|配置|做)(?:一?点|一些)?了$"
    rf"|^(?:{FILL})*(?:{ME})?(?:{_EVER}|{_ADVERB}|又)*(?:可以|能)(?:开始)?(?:再)?(?:碰|买|看|考虑|推荐|配置|做)(?P<b_what>[\u3400-\u9fffA-Za-z0-9]{{2,12}}?)了$"
)
_ONCE = re.compile(
    r"今天|今晚|明天|昨天|这次|本次|这回|此次|暂时|先不|这会儿|刚才|待会|等会|一会儿|这两天|这几天|最近|上次|当时|那时|\btoday\b|\btonight\b|\btomorrow\b|\byesterday\b|\bthis (?:time|week|morning|afternoon|evening|weekend|month)\b|\bfor now\b|\bjust (?:this )?once\b|\bright now\b|\bat the moment\b|\blast (?:time|night|week|year)\b|\bwhen i was\b|\bused to\b|\bback then\b|\banymore\b|\byet\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"一下|就行|就够|即可|这[个些只家份段张篇条种样]|那[个些只家份段张篇条种样](?!风)|(?<!除)了$|[^目以之生]前$|(?<!落)后$|时候?$|过$|[吧呗嘛]$"
)
_VERBS = "use|show|buy|recommend|suggest|touch|trade|answer|reply|respond|write|give|include|cite|call|commit|push|run|add|put|start|end|send|mention|say|format|explain|quote|round|report|skip|avoid|check|prefer|short|sell|book|order|schedule|translate|deploy|delete|log|print|test|keep|reboot|restart|merge|install|import|email|text|state|list|lead|begin|name|convert|express|assume"
_DO = "buy|trade|invest in|hold|own|touch|short|use|eat|drink|fly|book|stay at|wear|accept|drive|cook with|shop at|bet on|read|watch|pick|look at|consider|order|like|deploy|commit|run|trust"
_EN_HENCEFORTH = re.compile(
    rf"^{SAY}(?:from now on|going forward|in (?:the )?future|henceforth|from here on(?: out)?|starting (?:today|now)),?\s+(?P<what>(?:please|you|always|never|i|we|only|don't|do not|no|all|any|{_VERBS})\b.{{3,}})$",
    re.IGNORECASE,
)
_EN_RULES = (
    re.compile(rf"^{SAY}(?P<stance>never(?: ever)?|always|don't ever|do not ever|make sure to always)\s+(?P<what>(?:{_VERBS})\s+\S.{{1,}})$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?P<stance>stop) (?P<what>(?:recommending|suggesting|showing|using|sending|adding|including|mentioning)\s+\S.{{2,}})$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?P<stance>don't|do not)\s+(?P<what>(?:{_VERBS})\s+\S.{{1,}}?\s(?:ever|again|any ?more|in (?:your|the|my|our) (?:answers?|replies|reports?|summaries|responses?|e-?mails?)))$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?:i|we)\s+(?P<stance>only|never|always|don't(?: ever)?|do not|won't|will never|will not|refuse to)\s+(?:ever\s+)?(?P<what>(?:{_DO})\s+\S.{{1,}})$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?:i|we)\s+(?:really |strongly |generally |usually |always |much )?(?P<stance>prefer|avoid|hate|can't stand|cannot stand|dislike|steer clear of|stay away from|stick (?:to|with)|am allergic to|don't like|do not like)\s+(?P<what>\S.{{2,}})$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?:i'm|i am)\s+(?P<stance>allergic to|vegetarian|vegan|lactose|gluten|colou?r-?blind)(?P<what>.*)$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?P<stance>no|only)\s+(?P<what>(?:[a-z][a-z &-]{{2,30}} (?:stocks?|shares|companies|names|funds|etfs|bonds)|options|emojis?|crypto|futures|leverage|derivatives))(?: for me)?(?: please)?$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?P<stance>my|our)\s+(?P<what>(?:preferred|default|usual)\s+[a-z ]{{3,20}}|(?:rule|policy|limit|risk tolerance|stop[- ]loss|position limit|time horizon|investment horizon|max(?:imum)? drawdown|house style|style)(?: for [a-z ]{{2,20}})?)\s+(?:is|are)\s+(?P<rest>\S.{{1,}})$", re.IGNORECASE),
    re.compile(rf"^{SAY}(?:you can |please )?(?P<stance>call me)\s+(?P<what>[A-Z][\w.-]{{1,20}})$"),
)  # fmt: skip
_EN_TASTE = re.compile(r"prefer|hate|can|dislike|don't like|do not like", re.IGNORECASE)
_WORK = re.compile(
    r"表格|结论|数据|图表|图|报告|回答|回复|格式|简短|简洁|详细|数字|要点|口径|语言|中文|英文|邮件|来源|引用|代码|\b(?:tables?|prose|bullets?|charts?|answers?|repl(?:y|ies)|reports?|short|concise|brief|verbose|format|language|english|chinese|e-?mails?|sources?|citations?|code|units?|tabs|spaces|typed?|tests?)\b",
    re.IGNORECASE,
)
_EN_FEELING = re.compile(
    r"\bgive up\b|\bput your\b|\b(?:hate|stand|dislike|avoid) (?:not |being |having )|\b(?:hate|stand|dislike) \w+ing\b|\b(?:feel|felt|thought|think|know|knew|remember|forget|wonder|believe|expected|dreamed|seeing|hearing|when|because you|how|to hear|to see|about (?:it|that|this)|like (?:it|this|that))\b",
    re.IGNORECASE,
)


def preference(clause: str, rest: Sequence[str], ruled: bool = False) -> tuple[Said | None, int]:
    """(the preference a clause begins, how many clauses it takes). `ruled`: the sentence has begun with a rule."""
    plain = simplified(clause)
    if _NOT_A_RULE.search(plain):
        return None, 1
    if (match := _HENCEFORTH.match(plain)) or _lone_lead(plain):
        if match is None and len(rest) < 2:
            return None, 1
        text = joined(rest)
        if _ONCE.search(simplified(text).removeprefix("从今天")) or _VAGUE.search(simplified(text)):
            return None, 1
        stance, about = _stance(plain, ruled)
        return Said("preference", cut(text), about or text, stance=stance or "rule"), len(rest)
    if _ONCE.search(plain):
        return None, 1
    if match := _ALLOWED.match(plain):
        return Said("withdrawn", clause, match["what"] or match["b_what"], stance="allow"), 1
    stance, about = _stance(plain, ruled)
    if stance:
        kind = _rule_or_taste(plain) if "喜欢" in plain else "preference"
        return Said(kind, cut(_with_more(clause, rest)), about, stance=stance), _more(rest)
    for pattern in (_CALL_ME, _LIMIT, _ALLERGY):
        if pattern.match(plain):
            return Said("preference", cut(clause), clause, stance="rule"), 1
    match = _PREFERS.match(plain)
    if match and _thing(match["what"]) and (match["me"] or match["ever"].strip()):
        text = _with_more(clause, rest)
        return Said(_rule_or_taste(plain), cut(text), match["what"], stance="rule"), _more(rest)
    whole = joined(rest)
    if match := _EN_HENCEFORTH.match(simplified(whole)):
        if not points(match["what"]):
            return Said("preference", cut(whole), match["what"], stance="rule"), len(rest)
        return None, 1
    for pattern in _EN_RULES:
        if match := pattern.match(plain):
            what = match["what"].strip()
            if len(plain) <= 120 and not points(what) and not _EN_FEELING.search(plain):
                kind = _rule_or_taste(plain) if _EN_TASTE.match(match["stance"]) else "preference"
                text = _with_more(clause, rest)
                return Said(kind, cut(text), what, stance=_en_stance(match["stance"])), _more(rest)
    return None, 1


def _rule_or_taste(plain: str) -> Kind:
    """A liking governs the work when it speaks of it; 我喜欢跑步 is good to know where running is the matter, no more."""
    return "preference" if _WORK.search(plain) or MARKET_TALK.search(plain.lower()) else "taste"


def _stance(plain: str, ruled: bool = False) -> tuple[str, str]:
    """("avoid" or "only", what) of a Chinese clause; ("", "") when it is no such rule."""
    if match := _AVOID.match(plain):
        group = "" if match["verb"] else "b_"
        what, verb = match[group + "what"] or "", match[group + "verb"]
        sure = (
            ruled
            or _STRONG.search(verb)
            or group
            or match[group + "me"]
            or re.search(_EVER, match[group + "ever"] or "")
        )
        mood = verb.startswith("不想") and not re.search("碰|买|投", verb)
        if sure and not mood and (_thing(what) or verb in ("不追高", "不加杠杆", "不做空", "不抄底")):
            return "avoid", what or verb[1:]
    if match := _BACKWARDS.match(plain):
        what = match["what"] or match["b_what"]
        if _thing(what) and not OTHERS.search(what):
            return "avoid", what
    match = _ONLY.match(plain)
    # 只看高股息 alone may be of the question at hand; who says 我 or 以后 means it.
    meant = match and (ruled or match["me"] or re.search(_EVER, match["ever"] or ""))
    if match and meant and _thing(match["what"]):
        return "only", match["what"]
    return "", ""


def _en_stance(word: str) -> str:
    low = word.lower()
    if low == "only" or low.startswith("stick"):
        return "only"
    return (
        "avoid"
        if re.match(r"never|stop|don't|do not|won't|will n|refuse|avoid|hate|can|dislike|steer|stay|no$", low)
        else "rule"
    )


def _thing(what: str) -> bool:
    """Whether that names something a rule can be about."""
    plain = what.strip(" 的了。")
    return len(plain) >= 2 and not points(plain) and not _TASK.search(what) and not OTHERS.match(plain)


def _lone_lead(plain: str) -> bool:
    return bool(
        re.fullmatch(rf"(?:{FILL})*(?:{ME})?(?:以后|今后|往后|从(?:今天|现在|今|此)(?:开始|起|往后)?)", plain)
    )


_GOES_ON = re.compile(
    r"^(?:也|再|并且?|且|而且|然后|最后|更|尤其|特别是|包括|以及|或者?|还有|and|or|nor|not|never|而不是)(?:不|别|也)?"
)


def _more(rest: Sequence[str]) -> int:
    """How many clauses the rule goes on for: 不碰银行股，也不碰地产."""
    count = 1
    while count < len(rest) and _GOES_ON.match(simplified(rest[count])) and len(rest[count]) <= 20:
        count += 1
    return count


def _with_more(clause: str, rest: Sequence[str]) -> str:
    return joined([clause, *rest[1 : _more(rest)]])
