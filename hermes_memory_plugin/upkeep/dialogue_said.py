"""What a sentence can state, and the words the rules for it share: fillers, the speaker, other people, mere pointing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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


ME = r"(?:我们?(?:组|团队|部门|这边)?|咱们?|本人|俺)(?:自己)?(?:这边|一般)?"
FILL = (
    r"(?:(?:请|麻烦你?|帮我|你(?:要|得|给我)?|给我|都给我)?(?:记住|记得|记一下|记下来?|记好|注意)(?:一下|了|哈|啊)?|另外|还有|对了|那|嗯|好的?|行|哦|噢|其实|总之|反正|不过|但是?|所以|因为|而且"
    r"|顺便(?:说一?下)?|补充一[下点]|先说[好明清]楚?|跟你说一?下?|告诉你|提醒你?(?:一下)?|说明一下|再说一遍|强调一下|我的?(?:规矩|规则|原则|纪律|偏好|习惯|要求|底线)(?:是|就是)?|规矩|规则|原则|纪律|偏好|要求|底线|习惯)[:：,，\s]*"
)
_POINTS = re.compile(
    r"^(?:这么|那么)|^(?:的|了|着|过|这|那|它|他|她|你|此|其|该|一下|下|看|吧|呢|啊|嘛|就|行|好|个|些|点|多|太多|也|都|再|什么|别的|其他的?|上面|前面|这些?|那些?|it|that|this|them|these|those|him|her|you|one|so|there|anything|everything|something|nothing|much|a lot|either|enough|any|more|all|again|here)(?:[们个些只家样种份段张篇条支边里样么]?(?:的|了|吧|就行|就好|即可|一下)?)?$"
    r"|^(?:这|那|此|该|它|他|她|你)(?:[个些只家种份段张篇条支本件位次句]|们|的|是|样|里|边)|^(?:this|that|these|those|it|them|him|her|his|their|its|your|you|he|she|they)\b",
    re.IGNORECASE,
)
SAY = r"(?:(?:ok(?:ay)?|also|and|so|well|hey|hi|hello|btw|by the way|please|note(?: that)?|remember(?: that| this)?|just|oh|but|plus|fyi|important|reminder|for the record|one more thing|thanks|thank you|yes|yeah|sure|no)[,:.!\s-]+)*"
OTHERS = re.compile(
    r"[他她它]们?(?!人)|(?:老婆|老公|妻子|丈夫|爱人|太太|先生|女朋友|男朋友|对象|朋友|同事|客户|同学|邻居|老板|领导|经理|老师|爸|妈|父亲|母亲|爷爷|奶奶|哥|姐|弟|妹|儿子|女儿|亲戚|网友|大[vVＶ]|博主|群友|散户|机构|基金|券商|北向|外资|社保|险资|大股东|股东|高管|公司|管理层|巴菲特|芒格|林奇|段永平|但斌|张坤|分析师|研报|报告|新闻|文章|市场|行业|有人|别人|大家|人家|某人|投资者|据说|听说|传闻|[\u3400-\u9fff]总(?![是体的共额股市资计会]))"
    r"|\b(?:he|she|they|him|her|them|his|their|someone|somebody|people|everyone|wife|husband|friend|boss|colleague|client|customer|buffett|munger|analysts?|fund|company|management|broker|mom|dad|mother|father|sister|brother|son|daughter)\b",
    re.IGNORECASE,
)


def points(what: str) -> bool:
    return bool(_POINTS.search(what.strip()))


def joined(clauses: Sequence[str]) -> str:
    return Sentence(tuple(clauses)).text


def cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
