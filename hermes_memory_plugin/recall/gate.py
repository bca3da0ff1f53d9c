"""The floor: whether anything found is about the question at all, and which rows are too weak beside the best."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.answer import Cut
from hermes_memory_plugin.recall.candidate import Candidate

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked

SHORT, LONG = 0.28, 0.55
"""Least coverage plus cosine of the best row, for questions of up to 3 and from 8 content words."""
UNANCHORED = 0.12
"""How much more it takes when the question names nothing a memory is about."""
UNKNOWN = 0.2
"""How much more when it names an identifier no row holds."""
ASIDE, ASIDE_UNTOUCHED, NEARER, COVERED = 0.5, 0.42, 0.05, 0.6
"""Cosine to an aside from which a message is like it, the same where no row holds a word of it, how much nearer a row may be, and how much of it a row may hold."""
AS_MUCH = 0.75
"""A row that covers this share of what the best one covers comes along, however rare its words are."""
LITTLE = 0.55
"""Below this share of what the best row covers, a row must hold something the others do not."""
NEAREST = 0.5
"""Cosine from which the row whose meaning is nearest comes along, whatever its words."""
REST = 0.2
"""How much of the question a row must hold that names none of its companies, where others do."""
BESIDE = 0.45
"""The share of the best score a row must reach."""
BESIDE_OFF = 0.7
"""The same for one that something speaks against."""
UNWORDED = 0.42
"""Cosine the best row needs when no row holds a word of a message that rather is an aside."""
LONG_MESSAGE = 90
_WORK = re.compile(
    r"(?:please\s|can you\s|could you\s|let's\s|now\s|ok,?\s|we need to\s|i need (?:you )?to\s|help me\s|next,?\s)*"
    r"(?:write|add|fix|refactor|implement|update|review|deploy|summari[sz]e|draft|analy[sz]e|create|build|make|run|check|test|rename|move|remove|delete|document|generate|prepare|plan|design|set up|configure|install|migrate|port|clean|format|commit|merge|open|start|finish|debug|profile|optimi[sz]e|list|compare|send|book|order|schedule|read|look)\b"
    r"|(?:请|请你|麻烦|帮我|帮忙|给我|我们|我要|我想|来|先|再|继续|现在|把|将|替我|你)*(?:写|改|加|修|分析|总结|整理|做|生成|起草|评估|复盘|对比|比较|部署|实现|重构|优化|测试|检查|审阅|翻译|安排|准备|规划|设计|拟|算|跑|查|看看|看一下|梳理|汇总|归纳|出一份|出个|列)"
)
_RULES = re.compile(
    r"我.{0,6}(?:规则|偏好|习惯|禁忌|忌讳|忌口|要求|原则|纪律)|(?:别|不要|少|不许|不准)(?:再)?(?:给|跟|对|向|帮)我|我(?:不|讨厌|最烦)(?:想|要|爱|喜欢)?(?:看|听|买|吃|碰|做)"
    r"|\b(?:my|our) (?:\w+ )?(?:rules?|preferences?|conventions?|guidelines?|principles?)\b|\bdo (?:i|we) (?:like|want|prefer|avoid|never)\b|\b(?:never|don't) (?:show|tell|give|send) me\b"
)
_GENERAL = re.compile(
    r"(?:why|how (?:do|does|did|can|could|would|many|far|long|old|tall|big|to)|what(?:'s| is| are| was| were| does| do| causes)|who (?:is|was|were|invented|wrote|discovered)"
    r"|when (?:did|was|were)|where (?:is|are|was)|is it true|can you (?:explain|tell|write|give)|explain|define)\b"
    r"|is (?:a|an|the|it)\b|are (?:there|all)\b|do(?:es)? (?:a|an|the|people|you|fish|birds|cats|dogs)\b"
    r"|.*(?:有多[高长大远深重快厚宽]|哪一?年|是哪[个里座一国]|多少[年岁个块]|怎么办|吃什么药|什么颜色|第几)|谁(?:是|赢|最|写|发明)"
    r"|为什么|为何|为啥|怎么(?!看|样)|如何|什么是|什么叫|谁(?:发明|发现|写)|.*(?:是什么意思|的原理|怎么写|怎么念|怎么读)"
)
_OWN = re.compile(r"我|咱|\b(?:my|our|ours|mine|we|us|i|i'm|i've)\b")


def need(asked: Asked) -> float:
    """How near the best row must come."""
    length = sum(1.0 for weight in asked.content.values() if weight >= 1.0)
    share = min(1.0, max(0.0, (length - 3) / 5))
    least = SHORT + (LONG - SHORT) * share
    return least + (UNANCHORED if is_general(asked) else 0.0)


def is_general(asked: Asked) -> bool:
    """Whether it is put like a question anybody might be asked: why is the sky blue, 为什么天是蓝的."""
    normal = asked.question.normalised
    return (
        not asked.anchored
        and not asked.people
        and bool(_GENERAL.match(normal.lstrip()))
        and not _OWN.search(normal)
    )


def wants_nothing(asked: Asked, candidates: list[Candidate]) -> bool:
    """Whether the message is an aside (see `asides`): nearer to one than to anything stored, and hardly worded like it."""
    if asked.anchored or _names_somebody(asked, candidates) or _RULES.search(asked.question.normalised):
        return False
    nearest = max((one.cosine for one in candidates), default=0.0)
    covered = max((one.coverage for one in candidates if one.worded), default=0.0)
    if asked.aside >= (ASIDE if covered else ASIDE_UNTOUCHED):
        return covered < COVERED and asked.aside >= nearest - NEARER
    return False


def _names_somebody(asked: Asked, candidates: list[Candidate]) -> bool:
    """Whether it names somebody or something by a name that is stored: Dana, Lisbon, but not Java where no row has it."""
    return any(asked.people & one.holds for one in candidates)


def is_work(asked: Asked) -> bool:
    """Whether a message that touches nothing stored still hands over work, to which standing preferences apply."""
    normal = asked.question.normalised
    return (
        asked.anchored
        or asked.question.pasted
        or len(normal) > LONG_MESSAGE
        or bool(_RULES.search(normal))
        or bool(_WORK.match(normal.lstrip()))
    )


def passed(
    asked: Asked, candidates: list[Candidate], cut: list[Cut], *, least: float | None = None
) -> list[Candidate]:
    """The rows that are about the question."""
    if not candidates:
        return []
    floor = need(asked) if least is None else least
    unknown = any(len(mark) >= 6 for mark in asked.marks or ()) and not any(one.answers for one in candidates)
    if unknown:
        floor += UNKNOWN
    surely = bool(asked.entities) or not unknown
    best = max(one.coverage + one.cosine for one in candidates)
    identified = any("same identifier" in one.reasons for one in candidates)
    if best < floor and not identified and not (surely and any(one.named for one in candidates)):
        cut += [Cut(one.row.id, "nothing stored comes near the question") for one in candidates[:5]]
        return []
    covered = max((one.coverage for one in candidates if one.worded), default=0.0)
    general = is_general(asked) and not _names_somebody(asked, candidates)
    if general and covered < COVERED and len(asked.content) > 1:
        cut += [Cut(one.row.id, "a general question, hardly touched") for one in candidates[:5]]
        return []
    nearest = max(one.cosine for one in candidates)
    if not covered and not asked.anchored and nearest < UNWORDED and asked.aside >= nearest:
        cut += [Cut(one.row.id, "only its meaning is near, and not very") for one in candidates[:5]]
        return []
    return _beside(asked, candidates, cut, floor)


def _beside(asked: Asked, candidates: list[Candidate], cut: list[Cut], floor: float) -> list[Candidate]:
    """The rows that are not too weak beside the best."""
    best = max(one.score for one in candidates)
    answered = any("same identifier" in one.reasons for one in candidates)
    dated = any("same period" in one.reasons for one in candidates)
    named = bool(asked.entities) and any(one.named for one in candidates)
    covered = max(one.coverage for one in candidates)
    worded = any(one.worded for one in candidates) and covered >= 0.2
    nearest = max(one.cosine for one in candidates)
    kept: list[Candidate] = []
    told: set[str] = set()
    for one in candidates:
        why = ""
        if answered and "another identifier" in one.reasons:
            why = "another identifier"
        elif dated and "another period" in one.reasons:
            why = "another period"
        elif named and not one.named:
            if _completes(one, told):
                one.reasons.append("holds the rest of the question")
            else:
                why = "names none of the companies and adds nothing"
        elif one.cosine >= max(NEAREST, nearest - 0.02) and not one.off:
            one.reasons.append("nearest in meaning")
        elif kept and one.holds <= told and one.coverage < LITTLE * covered and not one.answers:
            why = "holds little of the question, and nothing new"
        elif one.coverage >= max(AS_MUCH * covered, 0.4) and one.worded and not one.off:
            one.reasons.append("holds as much of the question")
        elif one.score < (BESIDE_OFF if one.off else BESIDE) * best or (
            one.coverage + one.cosine < 0.6 * floor and not one.named
        ):
            why = "weaker"
        elif not (one.worded or one.named or one.answers) and (worded or one.cosine < nearest - 0.12):
            why = "only its meaning is near, and others are nearer"
        if why:
            cut.append(Cut(one.row.id, why))
        else:
            kept.append(one)
            told |= one.holds
    return kept


def beside_the_best(ranked: list[Candidate], cut: list[Cut]) -> list[Candidate]:
    """Without the rows that hold no word of the question and are weak beside the best, once all layers are together."""
    best = max((one.score for one in ranked), default=0.0)
    kept = []
    for one in ranked:
        if one.worded or one.named or one.score >= BESIDE * best:
            kept.append(one)
        else:
            cut.append(Cut(one.row.id, "weaker"))
    return kept


def _completes(one: Candidate, told: set[str]) -> bool:
    """Whether a row that names no company holds what the rows about the company leave open (打分档位 beside 83分)."""
    rest = [token for token in one.holds - told if token[0] != "~"]
    return one.coverage >= REST and len(rest) >= 2 and not one.off and not one.facet("entities")
