"""From what a user stated to facts with subject, metric and value, so that one statement is one row and the next of its
kind takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hermes_memory_hookspecs import Fact
from hermes_memory_plugin.recall import amounts, metrics
from hermes_memory_plugin.recall.lexicon import HINT
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep.dialogue_claims import RATING
from hermes_memory_plugin.upkeep.dialogue_corrections import Corrections
from hermes_memory_plugin.upkeep.dialogue_reading import Talk, plain
from hermes_memory_plugin.upkeep.dialogue_said import Said

_LEFT = re.compile(
    r"股票|个股|股|板块|行业|概念|标的|公司|品种|这?类|的|了|也|都|stocks?|shares?|names|companies|\b(?:buy|touch|trade|invest in|hold|own|like|recommend|consider|any|the|a|in|to)\b"
)


class FactReader(Corrections):
    """Reads what was stated with the names one memory knows and the rows it has."""

    def facts(self, many: Sequence[Said], talk: Talk) -> Iterator[Fact]:
        """The facts these statements make, in their order."""
        for said in many:
            yield from getattr(self, f"_{said.kind}")(said, talk)

    def concluded(self, many: Sequence[Said], talk: Talk, question: str) -> Iterator[Fact]:
        """Conclusions an answer draws itself: the model's, about what the answer or the question names."""
        for said in many:
            about = self._one(said.text) or self._one(question)
            if about is not None:
                yield (self._fact(talk, "conclusion", said.text, subject=about.entity_id, origin="model"))

    def _preference(self, said: Said, talk: Talk) -> Iterator[Fact]:
        subject = self._matter(said.about) if said.stance in ("avoid", "only") else plain(said.text)
        if subject:
            yield (self._fact(talk, "preference", said.text, subject=subject, metric="preference"))

    def _taste(self, said: Said, talk: Talk) -> Iterator[Fact]:
        subject = plain(said.text)
        yield self._fact(talk, "fact", said.text, subject=subject, metric="preference", holder=talk.holder)

    def _withdrawn(self, said: Said, talk: Talk) -> Iterator[Fact]:
        """银行股可以碰了: only where there was such a rule."""
        subject = self._matter(said.about)
        fact = self._fact(talk, "preference", said.text, subject=subject, metric="preference")
        if subject and self._has(fact):
            yield (fact)

    def _matter(self, about: str) -> str:
        """What a rule is about: the company or sector when that is all of it, else its words."""
        mentions = [one for one in self._link(about) if one.confidence >= HINT]
        if not mentions and len(about) <= 4:
            about += "股"  # 地产 alone is a word, 地产股 a sector
            mentions = [one for one in self._link(about) if one.kind == "sector"]
        if len(mentions) == 1:
            rest = normalise(about).replace(mentions[0].text, " ")
            if not any(map(str.isalnum, _LEFT.sub(" ", rest))):
                return mentions[0].entity_id
        return plain(_LEFT.sub("", normalise(about))) or plain(about)

    def _conclusion(self, said: Said, talk: Talk) -> Iterator[Fact]:
        about = self._one(said.text) or self._context(talk)
        normal = normalise(said.about)
        labelled = re.match(
            r"\W*\w{0,8}(?:结论|决定|决策|定论|判断|conclusion|decision|verdict|bottom line)[^:：]{0,6}[:：]",
            said.text,
            re.IGNORECASE,
        )
        if about is None and not labelled and not metrics.find(normal) and not any(amounts.find(normal)):
            return
        rated = about is not None and about.kind != "sector" and RATING.search(said.about)
        text = said.text
        if about is not None and about.text not in normalise(text):
            text = f"{about.name}：{text}" if not text.isascii() else f"{about.name}: {text}"
        yield (
            self._fact(
                talk,
                "conclusion",
                text,
                subject=about.entity_id if about else "",
                # Two conclusions about one company both stand; of two ratings the later one does.
                metric="rating" if rated and not labelled else "",
                holder=talk.holder,
            )
        )
