"""What a user's own sentences state, by rules, in Chinese and English: preferences, holdings, decisions, corrections.

A rule speaks only where the clause begins with it, after "I", an adverb or a filler: whatever else stands ahead
(他不碰银行股, "my boss never buys banks") says that it is somebody else's, or not meant as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hermes_memory_plugin.recall.context import MARKET_TALK
from hermes_memory_plugin.recall.normalise import simplified
from hermes_memory_plugin.upkeep.own_words import Sentence

Kind = Literal["preference", "taste", "withdrawn", "holding", "conclusion", "correction"]
LONGEST = 160
"""Characters of one statement."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that was stated."""

    kind: Kind
    text: str
    """In the user's words."""
    about: str = ""
    """preference: what it is about, without the words that say yes or no; correction: what the right thing is."""
    was: str = ""
    """correction: what is wrong, where it is named."""
    stance: str = ""
    """preference: avoid, only, rule."""
    clauses: tuple[str, ...] = ()
    """holding: the clauses of its sentence."""


_ME = r"(?:我们?(?:组|团队|部门|这边)?|咱们?|本人|俺)(?:自己)?(?:这边|一般)?"
_FILL = (
    r"(?:(?:请|麻烦你?|帮我|你(?:要|得|给我)?|给我|都给我)?(?:记住|记得|记一下|记下来?|记好|注意)(?:一下|了|哈|啊)?|另外|还有|对了|那|嗯|好的?|行|哦|噢|其实|总之|反正|不过|但是?|所以|因为|而且"
    r"|顺便(?:说一?下)?|补充一[下点]|先说[好明清]楚?|跟你说一?下?|告诉你|提醒你?(?:一下)?|说明一下|再说一遍|强调一下|我的?(?:规矩|规则|原则|纪律|偏好|习惯|要求|底线)(?:是|就是)?|规矩|规则|原则|纪律|偏好|要求|底线|习惯)[:：,，\s]*"
)
_EVER = r"(?:以后|今后|往后|之后|从(?:今天|现在|今|此|明天|这周|下周|本周|今年|明年|下个?月)(?:开始|起|往后|以后)?|一律|一概|永远|从来|从不|一直|一般|平时|平常|通常|坚决|绝对|再也|总是|始终|基本上?|向来|历来|每次|统一|默认)"
_ADVERB = (
    r"(?:真的|就|都|也|还是|还|是|必须|务必|千万|麻烦|请|你|给我|帮我|跟我|肯定|主要|尽量|先|要|得|现在|目前)"
)
_AHEAD = rf"^(?:{_FILL})*(?P<me>{_ME})?(?P<ever>(?:{_EVER}|{_ADVERB}|\s)*)"
_THING = r"(?P<what>\S.{0,60}?)"

_AVOID = re.compile(
    rf"{_AHEAD}(?P<verb>(?:不|别|不要|不再|别再|不会|不想|坚决不|从不|绝不|永不|不能)(?:再|给我|去|主动)*(?:碰|沾|推荐|推|炒|追|做空|加杠杆|融资|参与|配置|考虑|投资|投|持有|买入|买|吃|喝|用|做|看|接受|喜欢|关注|写|说|提|加|发|列|叫|讲|放|引用|使用))(?![好到懂清出得起上完不了过成为住完什么重])(?!(?<=追)[求究问溯踪]|(?<=投)[入票诉]|(?<=推)[进动迟]|(?<=吃)[力亏惊透香]|(?<=用)[心说管]|(?<=买)账)"
    rf"{_THING}$|{_AHEAD.replace('?P<', '?P<b_')}(?P<b_verb>(?:(?<=我)|(?<=我们)|(?<=一律)|(?<=以后)|(?<=坚决)|^)(?:回避|远离|避开(?!了)|排除(?!了)|剔除(?!了))|(?<=我)(?:拒绝|讨厌|最烦|最讨厌)|不碰|不追高|不加杠杆|不做空|不抄底){_THING.replace('?P<', '?P<b_')}?$"
)
_STRONG = re.compile(r"碰|沾|炒|追|做空|加杠杆|融资|推荐|推|喜欢|接受|参与|配置")
_BACKWARDS = re.compile(
    rf"^(?:{_FILL})*(?P<what>[\u3400-\u9fffA-Za-z0-9]{{1,12}}?)(?:{_ME})?(?:{_EVER}|{_ADVERB})*(?P<verb>(?:不|别|不要)(?:再|给我)?(?:碰|沾|推荐|买|考虑|追|做|看)(?:了)?)$"
)
_ONLY = re.compile(
    rf"{_AHEAD}只(?:能|想)?(?:看|买|投资|投|做|用|关注|考虑|持有|配置|吃|喝|接受|认|推荐|碰|信|选)(?![是见好有能剩到过了]){_THING}$"
)
_PREFERS = re.compile(
    rf"{_AHEAD}(?:很|最|更|比较|特别|非常|偏)?(?:偏好|喜欢|习惯(?:用|看|于)?(?!了)|优先(?:看|用|选)|偏爱|爱看|爱用|看重){_THING}$"
)
_HENCEFORTH = re.compile(
    rf"^(?:{_FILL})*(?:{_ME})?(?:以后|今后|往后|从(?:今天|现在|今|此|明天|这周|下周|本周|今年|下个?月)(?:开始|起|往后|以后)?|下次(?:开始|起)?|每次(?=都要|要|请|先|给我|务必|必须)|默认|一律|统一)"
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
    rf"^(?:{_FILL})*(?:以后)?(?:请|你)?(?:可以)?(?:叫|称呼)我(?P<what>[\u3400-\u9fffA-Za-z]{{1,8}}?)(?:就好|就行|吧|即可)?$"
)
_LIMIT = re.compile(
    rf"^(?:{_FILL})*(?:{_ME}的?|单[只个票一]\S{{0,6}}?|每[只个]\S{{0,6}}?)?(?P<what>止损线?|止盈线?|仓位上限|单票上限|单只上限|风险偏好|风险承受(?:能力)?|投资期限|持有期|目标收益率?|最大回撤|回撤|总仓位|(?:单[只个票一]|每[只个])\S{{0,6}}?仓位?|仓位)(?:要|都|一律|控制|必须)*(?:是|为|设在?|定在?|在|不超过|不高于|不能超过|别超过|最多|至多|上限|以内|[:：])\s*\S.{{0,30}}$"
)
_ALLERGY = re.compile(
    rf"^(?:{_FILL})*(?:{_ME})(?P<what>对.{{1,10}}过敏|是?吃素的?|是?素食者?|乳糖不耐受?|戒酒了?|不吃[辣肉鱼蛋奶].{{0,8}})$"
)
_ALLOWED = re.compile(
    rf"^(?:{_FILL})*(?P<what>[\u3400-\u9fffA-Za-z0-9]{{2,12}}?)(?:{_EVER}|{_ADVERB})*(?:可以|能)(?:开始)?(?:再)?(?:碰|买|看|考虑|推荐|配置|做)(?:一?点|一些)?了$"
    rf"|^(?:{_FILL})*(?:{_ME})?(?:{_EVER}|{_ADVERB}|又)*(?:可以|能)(?:开始)?(?:再)?(?:碰|买|看|考虑|推荐|配置|做)(?P<b_what>[\u3400-\u9fffA-Za-z0-9]{{2,12}}?)了$"
)
_ONCE = re.compile(
    r"今天|今晚|明天|昨天|这次|本次|这回|此次|暂时|先不|这会儿|刚才|待会|等会|一会儿|这两天|这几天|最近|上次|当时|那时|\btoday\b|\btonight\b|\btomorrow\b|\byesterday\b|\bthis (?:time|week|morning|afternoon|evening|weekend|month)\b|\bfor now\b|\bjust (?:this )?once\b|\bright now\b|\bat the moment\b|\blast (?:time|night|week|year)\b|\bwhen i was\b|\bused to\b|\bback then\b|\banymore\b|\byet\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"^(?:的|了|着|过|这|那|它|他|她|你|此|其|该|一下|下|看|吧|呢|啊|嘛|就|行|好|个|些|点|多|太多|也|都|再|什么|别的|其他的?|上面|前面|这些?|那些?|it|that|this|them|these|those|him|her|you|one|so|there|anything|everything|something|nothing|much|a lot|either|enough|any|more|all|again|here)(?:[们个些只家样种份段张篇条支边里样么]?(?:的|了|吧|就行|就好|即可|一下)?)?$"
    r"|^(?:这|那|此|该|它|他|她|你)(?:[个些只家种份段张篇条支本件位次句]|们|的|是|样|里|边)|^(?:this|that|these|those|it|them|him|her|his|their|its|your|you|he|she|they)\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"一下|就行|就够|即可|这[个些只家份段张篇条种样]|那[个些只家份段张篇条种样](?!风)|(?<!除)了$|[^目以之生]前$|(?<!落)后$|时候?$|过$|[吧呗嘛]$"
)

_SAY = r"(?:(?:ok(?:ay)?|also|and|so|well|hey|hi|hello|btw|by the way|please|note(?: that)?|remember(?: that| this)?|just|oh|but|plus|fyi|important|reminder|for the record|one more thing|thanks|thank you|yes|yeah|sure|no)[,:.!\s-]+)*"
_VERBS = "use|show|buy|recommend|suggest|touch|trade|answer|reply|respond|write|give|include|cite|call|commit|push|run|add|put|start|end|send|mention|say|format|explain|quote|round|report|skip|avoid|check|prefer|short|sell|book|order|schedule|translate|deploy|delete|log|print|test|keep|reboot|restart|merge|install|import|email|text|state|list|lead|begin|name|convert|express|assume"
_DO = "buy|trade|invest in|hold|own|touch|short|use|eat|drink|fly|book|stay at|wear|accept|drive|cook with|shop at|bet on|read|watch|pick|look at|consider|order|like|deploy|commit|run|trust"
_EN_HENCEFORTH = re.compile(
    rf"^{_SAY}(?:from now on|going forward|in (?:the )?future|henceforth|from here on(?: out)?|starting (?:today|now)),?\s+(?!it'll|it will|things|life|he|she|they)(?P<what>[a-z].{{4,}})$",
    re.IGNORECASE,
)
_EN_RULES = (
    re.compile(rf"^{_SAY}(?P<stance>never(?: ever)?|always|don't ever|do not ever|make sure to always)\s+(?P<what>(?:{_VERBS})\s+\S.{{1,}})$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?:i|we)\s+(?P<stance>only|never|always|don't(?: ever)?|do not|won't|will never|will not|refuse to)\s+(?:ever\s+)?(?P<what>(?:{_DO})\s+\S.{{1,}})$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?:i|we)\s+(?:really |strongly |generally |usually |always |much )?(?P<stance>prefer|avoid|hate|can't stand|cannot stand|dislike|steer clear of|stay away from|stick (?:to|with)|am allergic to|don't like|do not like)\s+(?P<what>\S.{{2,}})$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?:i'm|i am)\s+(?P<stance>allergic to|vegetarian|vegan|lactose|gluten|colou?r-?blind)(?P<what>.*)$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?P<stance>no|only)\s+(?P<what>[a-z][a-z &-]{{2,30}} (?:stocks?|shares|companies|names|funds|etfs|bonds|options|emojis?))(?: for me)?(?: please)?$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?P<stance>my|our)\s+(?P<what>(?:preferred|default|usual)\s+[a-z ]{{3,20}}|(?:rule|policy|limit|risk tolerance|stop[- ]loss|position limit|time horizon|investment horizon|max(?:imum)? drawdown|house style|style)(?: for [a-z ]{{2,20}})?)\s+(?:is|are)\s+(?P<rest>\S.{{2,}})$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?:you can |please )?(?P<stance>call me)\s+(?P<what>[A-Z][\w.-]{{1,20}})$"),
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

_CONCLUDES = re.compile(
    r"^(?:所以|因此|综上|总之|最终|最后|那么?|好|我的?|我们的?)*[,，\s]*(?:投资)?(?P<label>结论|决定|决策|定论|最终判断|我的判断|投资评级)(?:是|为|如下)?\s*[:：]\s*(?P<what>\S.{3,})$"
    r"|^(?:so|final|my|our|the|in|\s)*\b(?P<en>conclusion|decision|verdict|final call|bottom line)\s*(?::|is that|is to)\s*(?P<en_what>\S.{5,})$",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    rf"^(?:{_FILL})*(?:{_ME})?(?:最终|最后|已经|就|还是|先|继续)*(?P<verb>决定|维持|上调|下调|调高|调低|给予|给到|打算定)(?P<what>\S.{{1,60}})$"
    r"|^(?:so |ok,? |okay,? |then |finally,? )*(?:i|we)(?:'ve| have)?\s+(?:finally |now )?(?P<en>decided (?:to|that|on|against)|maintain|keep|reiterate|upgrade|downgrade|raised?|cut)\s+(?P<en_what>\S.{4,})$",
    re.IGNORECASE,
)
RATING = re.compile(
    r"(?:强烈)?(?:买入|增持|推荐|持有|中性|减持|卖出|回避|跑赢大市|优于大市|谨慎推荐|审慎增持)(?=$|[\s，,。（(]|评级|不变)|\b(?:strong buy|buy|overweight|outperform|hold|neutral|underweight|underperform|sell|reduce)\b(?=\s*(?:rating|$|on|for))",
    re.IGNORECASE,
)

_WRONG_ZH = r"(?:不对|不是这样的?|错了|说错了|搞错了|记错了|写错了|算错了|弄错了|有误|更正(?:一下)?|纠正(?:一下)?|(?:你|我|刚才|上面|前面|之前)+(?:的)?(?:说|算|记|查|写|搞|弄|讲|看)?(?:的)?(?:有误|错了|不对|记错了|说错了|写错了))"
_WRONG_EN = r"(?:no|nope|wrong|that's (?:wrong|not right|incorrect|not correct)|that is (?:wrong|not right|incorrect)|not quite|correction|actually|sorry|i was wrong|you're wrong|my mistake|i misspoke)"
_CORRECTS = (
    re.compile(rf"^(?:{_FILL})*(?:不[,，\s]+)?{_WRONG_ZH}[:：,，。!！\s]*(?P<topic>.{{0,24}}?)(?:应该|应当|应|实际上?|其实|正确的?|准确的?|准确地?说)?(?:改成|改为|是|为|不是(?P<was>[^,，]{{1,24}}?)[,，]\s*(?:而)?(?:应该)?是)(?!不|因为|由于|否|我|你)(?P<new>\S.{{0,60}})$"),
    re.compile(rf"^(?:{_FILL})*(?P<topic>[^,，]{{0,24}}?)(?:不是|并非)(?P<was>[^,，]{{1,24}}?)[,，]\s*(?:而)?(?:应该|应)?是(?P<new>\S.{{0,60}})$"),
    re.compile(rf"^(?:{_FILL})*(?P<topic>[^,，]{{1,24}}?)(?:应该|应当|正确的?|实际上?|其实)(?:是|为)(?P<new>\S.{{0,40}})$"),
    re.compile(rf"^{_SAY}(?:{_WRONG_EN}[,:.!\s-]+)+(?:i mean[t,]*\s+)?(?:it's|it is|it was|it should be|should be|should have been|that's|make (?:that|it)|i meant|(?P<topic>(?:the |its |my |our )?[a-z0-9 '/&().-]{{2,40}}?) (?:is|was|should be|were|are))\s+(?!not\b)(?P<new>\S.{{0,60}}?)(?:,?\s+not\s+(?P<was>[^,]{{1,30}}))?$", re.IGNORECASE),
    re.compile(rf"^{_SAY}(?P<topic>(?:it|that|(?:the |its |my |our )?[a-z0-9 '/&().-]{{2,40}}?)) (?:is|was|should be)\s+(?!not\b)(?P<new>\S{{1,30}}(?:\s\S{{1,15}}){{0,2}}),?\s+not\s+(?P<was>\S{{1,20}}(?:\s\S{{1,15}})?)$", re.IGNORECASE),
)  # fmt: skip
_NUMBER = re.compile(r"\d|[一二两三四五六七八九十百千万亿]{2,}|[一二两三四五六七八九]成")

OTHERS = re.compile(
    r"[他她它]们?(?!人)|(?:老婆|老公|妻子|丈夫|爱人|太太|先生|女朋友|男朋友|对象|朋友|同事|客户|同学|邻居|老板|领导|经理|老师|爸|妈|父亲|母亲|爷爷|奶奶|哥|姐|弟|妹|儿子|女儿|亲戚|网友|大[vVＶ]|博主|群友|散户|机构|基金|券商|北向|外资|社保|险资|大股东|股东|高管|公司|管理层|巴菲特|芒格|林奇|段永平|但斌|张坤|分析师|研报|报告|新闻|文章|市场|行业|有人|别人|大家|人家|某人|投资者|据说|听说|传闻|[\u3400-\u9fff]总(?![是体的共额股市资计会]))"
    r"|\b(?:he|she|they|him|her|them|his|their|someone|somebody|people|everyone|wife|husband|friend|boss|colleague|client|customer|buffett|munger|analysts?|fund|company|management|broker|mom|dad|mother|father|sister|brother|son|daughter)\b",
    re.IGNORECASE,
)
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


def read(sentences: Sequence[Sentence]) -> Iterator[Said]:
    """Everything stated, in the order of the text."""
    for sentence in sentences:
        if sentence.listed:
            yield Said("preference", _cut(sentence.text), sentence.text, stance="rule")
            continue
        corrected = _correction(sentence)
        if corrected is not None:
            yield corrected
            continue
        skip = 0
        for number, clause in enumerate(sentence.clauses):
            if skip:
                skip -= 1
                continue
            rest = sentence.clauses[number:]
            said, used = _preference(clause, rest)
            if said is None:
                said, used = _conclusion(clause, rest), 1
                if said is not None:
                    used = len(rest)
            if said is not None:
                yield said
                skip = used - 1
        yield from _holdings(sentence)


def assistants(sentences: Sequence[Sentence]) -> Iterator[Said]:
    """What an answer marks as its conclusion itself; nothing else of an answer counts."""
    for sentence in sentences:
        match = _CONCLUDES.match(simplified(sentence.text))
        if match:
            yield Said("conclusion", _cut(sentence.text), match["what"] or match["en_what"])


def may_state(text: str) -> bool:
    """A quick look: whether a message can hold anything for `read` at all."""
    return bool(_CUE.search(simplified(text)))


_CUE = re.compile(
    r"[不别只]|以后|今后|往后|从今|从现在|偏好|喜欢|习惯|倾向|优先|记住|规则|规矩|原则|纪律|要求|底线|回避|避开|远离|讨厌|叫我|称呼我|过敏|吃素|素食|止损|仓|回撤|风险|期限|持有|成本|买|卖|套|结论|决定|判断|评级|维持|上调|下调|更正|纠正|错|应该|可以|能.{1,12}了|默认|每次|一律|统一"
    r"|never|always|from now|going forward|future|henceforth|starting|prefer|avoid|hate|stand|dislike|steer|stay away|stick|allergic|vegan|vegetarian|only|don't|do not|won't|will not|refuse|call me|\bmy\b|\bno\b|own|hold|bought|long|sold|added|have|conclusion|decision|verdict|decided|bottom line|final call|maintain|upgrade|downgrade|actually|wrong|correction|should|mistake|meant|, ?not",
    re.IGNORECASE,
)


def _preference(clause: str, rest: Sequence[str]) -> tuple[Said | None, int]:
    """(the preference a clause begins, how many clauses it takes)."""
    plain = simplified(clause)
    if _NOT_A_RULE.search(plain):
        return None, 1
    if (match := _HENCEFORTH.match(plain)) or _lone_lead(plain):
        if match is None and len(rest) < 2:
            return None, 1
        text = _joined(rest)
        if _ONCE.search(simplified(text).removeprefix("从今天")) or _VAGUE.search(simplified(text)):
            return None, 1
        stance, about = _stance(plain)
        return Said("preference", _cut(text), about or text, stance=stance or "rule"), len(rest)
    if _ONCE.search(plain):
        return None, 1
    if match := _ALLOWED.match(plain):
        return Said("withdrawn", clause, match["what"] or match["b_what"], stance="allow"), 1
    stance, about = _stance(plain)
    if stance:
        kind = _rule_or_taste(plain) if "喜欢" in plain else "preference"
        return Said(kind, _cut(_with_more(clause, rest)), about, stance=stance), _more(rest)
    for pattern in (_CALL_ME, _LIMIT, _ALLERGY):
        if pattern.match(plain):
            return Said("preference", _cut(clause), clause, stance="rule"), 1
    match = _PREFERS.match(plain)
    if match and _thing(match["what"]) and (match["me"] or match["ever"].strip()):
        return Said(_rule_or_taste(plain), _cut(clause), match["what"], stance="rule"), 1
    whole = _joined(rest)
    if match := _EN_HENCEFORTH.match(simplified(whole)):
        if not _points(match["what"]):
            return Said("preference", _cut(whole), match["what"], stance="rule"), len(rest)
        return None, 1
    for pattern in _EN_RULES:
        if match := pattern.match(plain):
            what = match["what"].strip()
            if len(plain) <= 120 and not _points(what) and not _EN_FEELING.search(plain):
                kind = _rule_or_taste(plain) if _EN_TASTE.match(match["stance"]) else "preference"
                return Said(kind, _cut(clause), what, stance=_en_stance(match["stance"])), 1
    return None, 1


def _rule_or_taste(plain: str) -> Kind:
    """A liking governs the work when it speaks of it; 我喜欢跑步 is good to know where running is the matter, no more."""
    return "preference" if _WORK.search(plain) or MARKET_TALK.search(plain.lower()) else "taste"


def _stance(plain: str) -> tuple[str, str]:
    """("avoid" or "only", what) of a Chinese clause; ("", "") when it is no such rule."""
    if match := _AVOID.match(plain):
        group = "" if match["verb"] else "b_"
        what, verb = match[group + "what"] or "", match[group + "verb"]
        sure = (
            _STRONG.search(verb)
            or group
            or match[group + "me"]
            or re.search(_EVER, match[group + "ever"] or "")
        )
        mood = verb.startswith("不想") and not re.search("碰|买|投", verb)
        if sure and not mood and (_thing(what) or verb in ("不追高", "不加杠杆", "不做空", "不抄底")):
            return "avoid", what or verb[1:]
    if (match := _BACKWARDS.match(plain)) and _thing(match["what"]) and not OTHERS.search(match["what"]):
        return "avoid", match["what"]
    if (match := _ONLY.match(plain)) and _thing(match["what"]):
        return "only", match["what"]
    return "", ""


def _en_stance(word: str) -> str:
    low = word.lower()
    if low == "only" or low.startswith("stick"):
        return "only"
    return (
        "avoid"
        if re.match(r"never|don't|do not|won't|will n|refuse|avoid|hate|can|dislike|steer|stay|no$", low)
        else "rule"
    )


def _thing(what: str) -> bool:
    """Whether that names something a rule can be about."""
    plain = what.strip(" 的了。")
    return len(plain) >= 2 and not _points(plain) and not _TASK.search(what) and not OTHERS.match(plain)


def _points(what: str) -> bool:
    return bool(_POINTS.search(what.strip()))


def _lone_lead(plain: str) -> bool:
    return bool(
        re.fullmatch(
            rf"(?:{_FILL})*(?:{_ME})?(?:以后|今后|往后|从(?:今天|现在|今|此)(?:开始|起|往后)?)", plain
        )
    )


_GOES_ON = re.compile(
    r"^(?:也|再|并且?|且|而且|然后|最后|更|尤其|特别是|包括|以及|或者?|还有|and|or|nor)(?:不|别|也)?"
)


def _more(rest: Sequence[str]) -> int:
    """How many clauses the rule goes on for: 不碰银行股，也不碰地产."""
    count = 1
    while count < len(rest) and _GOES_ON.match(simplified(rest[count])) and len(rest[count]) <= 20:
        count += 1
    return count


def _with_more(clause: str, rest: Sequence[str]) -> str:
    return _joined([clause, *rest[1 : _more(rest)]])


def _conclusion(clause: str, rest: Sequence[str]) -> Said | None:
    text = _joined(rest)
    plain = simplified(text)
    if match := _CONCLUDES.match(plain):
        what = match["what"] or match["en_what"]
        return None if _points(what) else Said("conclusion", _cut(text), what)
    match = _DECIDES.match(simplified(clause))
    if match is None or OTHERS.match(simplified(clause)):
        return None
    what = match["what"] or match["en_what"]
    verb = (match["verb"] or match["en"]).lower()
    if _points(what) or (not verb.startswith(("决定", "decided")) and not RATING.search(what)):
        return None
    return Said("conclusion", _cut(text), what)


def _correction(sentence: Sentence) -> Said | None:
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
        if told and not _points(new) and not OTHERS.match(plain):
            return Said("correction", _cut(text), f"{topic} {new}".strip(), was)
    return None


def _holdings(sentence: Sentence) -> Iterator[Said]:
    """Clauses that may say what the user holds; whether they name a security is for the reader of names."""
    plain = simplified(sentence.text)
    if not _HOLDS.search(plain) or OTHERS.search(plain):
        return
    if any(_NOT_HELD.search(simplified(one)) for one in sentence.clauses if _HOLDS.search(simplified(one))):
        return
    yield Said("holding", _cut(sentence.text), clauses=sentence.clauses)


def _joined(clauses: Sequence[str]) -> str:
    return Sentence(tuple(clauses)).text


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
