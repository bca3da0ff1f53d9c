"""The places of a text: where it names companies, figures and periods, and which of its numbers say how much."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall import amounts, metrics, periods
from hermes_memory_plugin.recall.amounts import Amount
from hermes_memory_plugin.recall.normalise import fold, lowered

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst

MOST = 1_000
"""Numbers of one text that are read: a page of prose has dozens."""
_COUNTER = re.compile(
    r"\s?(?:个(?!百分点|点|基点)|家|只|条|项|种|次|篇|类|页|步|位|名|大|款|年|月|日|天|周|季|号|岁|届|轮|期|档|级|点|小时|分钟|秒"
    r"|(?:days?|weeks?|months?|years?|hours?|minutes?|quarters?|points?|items?|stocks?|companies|reasons?|steps?|pages?)\b)"
)
_NUMBERED = re.compile(r"[\s>#*-]*[(\[]?")
_ORDINAL = re.compile(
    r"(?:第|no\.?\s?|top\s?|#|\bp\.?\s?|\bpage\s?|表|图|注|\[|v|版本|version\s?|问题|方案|步骤|step\s?)$"
)
_MASKED = re.compile(r"https?://\S+|\b[fdtsnrp]-[2-9a-z]{4,13}\b|\bcall[_-][\w-]+|\d{1,2}:\d{2}(?::\d{2})?")
_TABLE = re.compile(r"^[^\n|]*\|[^\n]*\n(?=[^\n]*--)[ \t:|-]+\n(?:[^\n]*\|[^\n]*(?:\n|\Z))+", re.M)


class Marks:
    """Everything of a text that has a place: whom it names, which figures, which periods, which amounts."""

    def __init__(self, text: str, analyst: Analyst, now: datetime) -> None:
        self.now = now
        folded = fold(text)
        self.text = lowered(folded)
        self.shown = folded if len(folded) == len(self.text) else self.text
        """The text with its capitals, to be shown."""
        self.text = _MASKED.sub(lambda match: " " * len(match[0]), self.text)
        self.entities = sorted(_occurrences(self.text, text, analyst))
        self.periods = periods.named(self.text)
        self.metrics = [
            one
            for one in metrics.named(self.text.replace("_", " "))
            if not self._in_entity(one.start, one.end)
            and not self.text[: one.start].endswith(("attributable to ", "attributable to the "))
        ]
        counted = (one for one in amounts.find(self.text) if self._counts(one))
        self.amounts = list(islice(counted, MOST))
        self.tables = [match.span() for match in _TABLE.finditer(self.text)]

    def _in_entity(self, start: int, end: int) -> bool:
        return any(a < end and start < b for a, b, _ in self.entities)

    def _counts(self, one: Amount) -> bool:
        start, end, text = one.start, one.end, self.text
        if any(named.start < end and start < named.end for named in self.periods) or self._in_entity(
            start, end
        ):
            return False
        before = text[max(0, start - 12) : start]
        if _ORDINAL.search(before) or re.search(r"[a-z]-$", before):
            return False
        if one.bare and _COUNTER.match(text, end):
            return False
        if one.unit == "点" or (one.unit == "x" and text[end : end + 1] in ("股", "速")):
            return False
        if (
            one.bare
            and re.match(r"[.、)\]]\s?(?!\d)", text[end : end + 2])
            and _NUMBERED.fullmatch(text, text.rfind("\n", 0, start) + 1, start)
        ):
            return False
        return not (one.value == 100 and one.unit == "%" and one.digits <= 1 and re.match(r"\s?(?:确定|可靠|同意|sure|certain)", text[end:]))  # fmt: skip


def _occurrences(normal: str, text: str, analyst: Analyst) -> Iterator[tuple[int, int, str]]:
    """Every place a text names an entity at (a link names each entity once)."""
    for mention in analyst.link(text):
        if mention.kind == "sector":
            continue
        names = {mention.text, *(name.lower() for name in analyst.lexicon.names(mention.entity_id))}
        names |= {mention.entity_id.lower(), mention.entity_id.lower().partition(".")[0]}
        taken: list[tuple[int, int]] = []
        for name in sorted((name for name in names if len(name) >= 2), key=len, reverse=True):
            edge = r"(?<![a-z0-9])", r"(?![a-z0-9])"
            pattern = re.escape(name)
            if name[0].isascii() and name[0].isalnum():
                pattern = edge[0] + pattern
            if name[-1].isascii() and name[-1].isalnum():
                pattern += edge[1]
            for match in re.finditer(pattern, normal):
                if not any(a < match.end() and match.start() < b for a, b in taken):
                    taken.append(match.span())
                    yield (*match.span(), mention.entity_id)
