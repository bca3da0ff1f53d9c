"""Standing preferences: the owner's active rules and taboos, given whole at the start of a conversation.

They are apart from relevance: "不碰银行股" matters for every recommendation, whatever words the question uses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall.normalise import normalise

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index import Index
    from hermes_memory_plugin.recall.index_row import Row

# Only what the user said himself may rule him.
_ORIGINS = frozenset({"user", "import", ""})


def preferences(
    index: Index,
    keys: frozenset[str] | None,
    *,
    now_us: int | None = None,
    project: str = "",
    shown: Iterable[str] = (),
    limit: int = 10,
) -> list[Row]:
    """The live preferences these owners may see, newest first, without what the host shows anyway (`shown`)."""
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    rows = index.scan(
        keys,
        now_us=now_us,
        layers=("L1", "L2", "L3"),
        kinds=("preference",),
        projects=("", project) if project else ("",),
    )
    seen = {plain(text) for text in shown}
    left_out = {core(text) for text in shown} - {""}
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: row.as_of or row.created, reverse=True):
        words = plain(row.text)
        if (
            row.origin not in _ORIGINS
            or not words
            or any(words in text or text in words for text in seen if text)
        ):
            continue
        rule = core(_body(row))
        if rule and rule in left_out:
            continue
        seen.add(words)
        left_out.add(rule)
        kept.append(row)
        if len(kept) == limit:
            break
    return kept


_NO = re.compile(
    r"(?:不|别|不要|不能|不想|不会|不再|勿|从不|绝不)(?:再|给我|给用户|向我|主动)*(?:碰|沾|买入|买|推荐|投资|投|考虑|持有|参与|配置|做|看)|回避|避开|远离|排除|剔除|禁忌|禁止"
    r"|\b(?:never|don't|do not|does not|doesn't|no|not|avoids?|won't)\b(?:\s(?:ever|to|wants?|buy|touch|recommend|invest in|hold|own|trade|suggest))*"
)
_FILLING = re.compile(
    r"用户|明确|要求|希望|表示|提到|说过?|我们?|从来|一直|坚决|绝对|永远|一律|以后|今后|请|任何|所有|股票|个股|股|板块|行业|类|标的|的|了|也|都|会"
    r"|\b(?:the|user|wants?|asked|said|says|i|me|my|we|any|ever|please|stocks?|shares?|names|companies|us|to|that|has|he|she|they)\b"
)


def core(text: str) -> str:
    """What a short rule of the form "no …" leaves out, in whatever words it says no; "" for any other rule."""
    normal = normalise(text)
    said, times = _NO.subn(" ", normal)
    if times != 1:
        return ""
    rest = plain(_FILLING.sub(" ", said))
    return rest if 2 <= len(rest) <= 12 and not any(map(str.isdigit, rest)) else ""


def _body(row: Row) -> str:
    """What a row says, without a note's title."""
    title = str(row.extra.get("title") or "")
    return row.text.removeprefix(f"{title}: ") if title else row.text


def plain(text: str) -> str:
    """Without spaces and punctuation, so that one rule written twice is seen as one."""
    return "".join(character for character in normalise(text) if character.isalnum())
