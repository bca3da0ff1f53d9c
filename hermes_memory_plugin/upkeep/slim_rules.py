"""What an entry of Hermes' memory files is: persona, a fact, the background of a topic, or how something is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from hermes_memory_plugin.layers.persona import Target

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Gist

Becomes = Literal["persona", "fact", "scene", "competence"]
_LONG = 90
"""Characters from which an entry about a company is background rather than one fact."""

_PERSONA = re.compile(
    r"偏好|喜欢|不喜欢|讨厌|不要|不碰|不买|不看|不做|禁止|避免|必须|务必|总是|从不|永远|习惯|风格|语气|称呼|叫我|我叫|简洁|先.{1,8}后"
    r"|用户(?:是|叫|希望|要求|住|在|的)|回答.{0,6}用|时区|口吻|红线|底线"
    r"|\b(?:prefers?|preference|likes?|dislikes?|hates?|wants?|always|never|avoid|must|do(?:es)? not|don't|style|tone|call (?:me|him|her)"
    r"|name is|timezone|time zone|language|concise|bullet|tabo+)\b",
    re.IGNORECASE,
)
_COMPETENCE = re.compile(
    r"步骤|方法是|做法|先调|调用|接口|参数|命令|脚本|公式|口径|字段|报错|解决办法|技巧|流程|注意.{0,8}(?:要|用)|算法|怎么算|如何"
    r"|\b(?:how to|step \d|endpoint|api|command|script|parameter|flag|formula|workaround|fix(?:ed)? by|run `|use `|when .{3,40}, (?:use|run|call)|curl|pip|git|sql)\b",
    re.IGNORECASE,
)


def classify(entry: str, target: Target, read: Callable[[str], Gist]) -> tuple[Becomes, str]:
    """What an entry is, and why. In doubt it is persona, which stays where it is."""
    if _PERSONA.search(entry):
        return "persona", "a preference, habit or rule"
    found = read(entry)
    about = sorted(found.entities) or sorted(found.sectors)
    if found.entities and found.values and len(entry) < _LONG:
        return "fact", f"a figure of {', '.join(sorted(found.entities)[:3])}"
    if _COMPETENCE.search(entry):
        return "competence", "how something is done"
    if about and len(entry) >= _LONG:
        return "scene", f"background of {', '.join(about[:3])}"
    if about and (found.values or found.metrics or found.periods):
        return "fact", f"what is known of {', '.join(about[:3])}"
    if target == "memory" and found.values and found.periods:
        return "fact", "a dated figure"
    return "persona", "nothing says that it belongs elsewhere"
