"""What a user's own sentences state, by rules, in Chinese and English: preferences, holdings, decisions, corrections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hermes_memory_plugin.recall.normalise import simplified
from hermes_memory_plugin.upkeep.dialogue_claims import CONCLUDES, conclusion, correction, holdings
from hermes_memory_plugin.upkeep.dialogue_said import Said, cut
from hermes_memory_plugin.upkeep.dialogue_wishes import preference
from hermes_memory_plugin.upkeep.own_words import Sentence


def read(sentences: Sequence[Sentence]) -> Iterator[Said]:
    """Everything stated, in the order of the text."""
    for sentence in sentences:
        if sentence.listed:
            yield Said("preference", cut(sentence.text), sentence.text, stance="rule")
            continue
        corrected = correction(sentence)
        if corrected is not None:
            yield corrected
            continue
        skip, ruled = 0, False
        for number, clause in enumerate(sentence.clauses):
            if skip:
                skip -= 1
                continue
            rest = sentence.clauses[number:]
            said, used = preference(clause, rest, ruled)
            if said is None:
                said, used = conclusion(clause, rest), 1
                if said is not None:
                    used = len(rest)
            if said is not None:
                ruled = ruled or said.stance in ("avoid", "only")
                yield said
                skip = used - 1
        yield from holdings(sentence)


def assistants(sentences: Sequence[Sentence]) -> Iterator[Said]:
    """What an answer marks as its conclusion itself; nothing else of an answer counts."""
    for sentence in sentences:
        match = CONCLUDES.match(simplified(sentence.text))
        if match:
            yield Said("conclusion", cut(sentence.text), match["what"] or match["en_what"])


def may_state(text: str) -> bool:
    """A quick look: whether a message can hold anything for `read` at all."""
    return bool(_CUE.search(simplified(text)))


_CUE = re.compile(
    r"[不别只]|以后|今后|往后|从今|从现在|偏好|喜欢|习惯|倾向|优先|记住|规则|规矩|原则|纪律|要求|底线|回避|避开|远离|讨厌|叫我|称呼我|过敏|吃素|素食|止损|仓|回撤|风险|期限|持有|成本|买|卖|套|结论|决定|判断|评级|维持|上调|下调|更正|纠正|错|应该|可以|能.{1,12}了|默认|每次|一律|统一"
    r"|兴趣|never|always|stop |from now|going forward|future|henceforth|starting|prefer|avoid|hate|stand|dislike|steer|stay away|stick|allergic|vegan|vegetarian|only|don't|do not|won't|will not|refuse|call me|\bmy\b|\bno\b|own|hold|bought|long|sold|added|have|conclusion|decision|verdict|decided|bottom line|final call|maintain|upgrade|downgrade|actually|wrong|correction|should|mistake|meant|, ?not",
    re.IGNORECASE,
)
