"""From the record of one session to drafts of scenes, by rules alone: what was concluded, what the data said, what was asked.

A draft is of one topic (a company, or a sector where none is named). Each of its sentences names the rows it rests on;
a sentence that rests on none is not written.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hermes_memory_plugin.layers.calls import call_of
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.poison import is_instruction
from hermes_memory_plugin.recall.question import language

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.lexicon import Lexicon

Section = Literal["said", "data", "asked"]
TOPICS = 3
"""Scenes one session may give."""
LONGEST = 160
"""Characters of one sentence."""
_MOST: dict[Section, int] = {"said": 8, "data": 10, "asked": 4}

_STOP = re.compile(r"(?<=[。！？!?；;])|\n+|(?<=[.])\s+(?=[A-Z\d\"“(])")
_TELLS = re.compile(
    r"\d|结论|认为|判断|看好|看空|风险|因此|所以|由于|因为|主要|说明|高于|低于|增长|下滑|下降|上升|改善|恶化|估值|建议"
    r"|\b(?:conclu|because|therefore|risk|above|below|higher|lower|grow|grew|declin|rose|fell|improv|valuation|expect)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•·>]|#{1,6}|\d{1,2}[.、)])\s*")
_MARKS = re.compile(r"\*\*|__|`")
_HANDLE = re.compile(r"\[?\b([ftd]-[2-9a-hjkmnp-z]{4,13})\b\]?")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One line of a scene."""

    text: str
    cites: tuple[str, ...]
    """Handles of the rows it rests on; never empty."""
    section: Section
    day: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a scene is about: companies, else sectors; and a period where one stands out."""

    tickers: tuple[str, ...] = ()
    sectors: tuple[str, ...] = ()
    period: str = ""
    name: str = ""

    @property
    def title(self) -> str:
        """The title of a new scene."""
        return f"{self.name} {self.period}".strip()

    def same(self, tickers: Iterable[str], sectors: Iterable[str], period: str) -> bool:
        """Whether a scene of those tickers, sectors and period is about this topic."""
        if self.tickers or tuple(tickers):
            about = set(self.tickers) == set(tickers)
        else:
            about = bool(set(self.sectors) & set(sectors))
        return about and (self.period == period or not self.period or not period)


@dataclass(frozen=True, slots=True)
class Draft:
    """What one session adds to one topic."""

    topic: Topic
    sentences: tuple[Sentence, ...]
    sources: tuple[str, ...]
    """Ids of the rows the sentences cite."""
    at: int
    """Epoch microseconds of the newest row."""
    chinese: bool = True


@dataclass(slots=True)
class _Part:
    """The rows of one topic."""

    turns: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Material:
    """The rows of one session: its turns and calls, and the facts it stated, each oldest first."""

    turns: Sequence[Row]
    calls: Sequence[Row]
    facts: Sequence[Row]

    @property
    def newest(self) -> int:
        """When the last of them was made (epoch microseconds); 0 without any."""
        return max((row.created for row in (*self.turns, *self.calls)), default=0)


def drafts(
    material: Material, *, handle: Callable[[Row], str], lexicon: Lexicon, day: Callable[[int], str]
) -> list[Draft]:
    """The drafts of a session, the topic most spoken of first; [] when it was about nothing in particular."""
    made = []
    for topic, part in _topics(material, lexicon):
        found = _draft(topic, part, handle, day)
        if found is not None:
            made.append(found)
    return made[:TOPICS]


def _topics(material: Material, lexicon: Lexicon) -> list[tuple[Topic, _Part]]:
    """The topics with their rows; a row that names nothing belongs to the topic before it."""
    parts: defaultdict[tuple[str, str], _Part] = defaultdict(_Part)
    weight: Counter[tuple[str, str]] = Counter()
    before: list[tuple[str, str]] = []
    of_turn: dict[str, list[tuple[str, str]]] = {}
    for row in material.turns:
        keys = _keys(row, lexicon) or before
        before = keys
        of_turn[str(row.extra.get("turn") or "")] = keys
        for key in keys:
            parts[key].turns.append(row)
            weight[key] += 2
    for rows, name in ((material.calls, "calls"), (material.facts, "facts")):
        for row in rows:
            for key in _keys(row, lexicon) or of_turn.get(str(row.extra.get("turn") or ""), []):
                getattr(parts[key], name).append(row)
                weight[key] += 1
    listed = []
    for key, _ in weight.most_common():
        part = parts[key]
        if len(part.turns) < 2 and len(part.calls) < 2:
            continue  # one question in passing is no scene
        listed.append((_topic(key, part, lexicon), part))
    return listed


def _keys(row: Row, lexicon: Lexicon) -> list[tuple[str, str]]:
    found = []
    for name in row.extra.get("entities") or ():
        entity = lexicon.entity(str(name))
        if entity is None or entity.kind != "sector":
            found.append(("ticker", str(name)))
    if not found:
        found = [("sector", str(name)) for name in row.extra.get("sectors") or ()]
    return found[:4]


def _topic(key: tuple[str, str], part: _Part, lexicon: Lexicon) -> Topic:
    periods = Counter(str(one) for row in part.turns for one in row.extra.get("periods") or ())
    best = periods.most_common(2)
    period = best[0][0] if best and (len(best) == 1 or best[0][1] > best[1][1]) else ""
    kind, name = key
    if kind == "sector":
        return Topic(sectors=(name,), period=period, name=name)
    entity = lexicon.entity(name)
    return Topic((name,), tuple(lexicon.sectors_of(name)), period, entity.name if entity else name)


def _draft(
    topic: Topic, part: _Part, handle: Callable[[Row], str], day: Callable[[int], str]
) -> Draft | None:
    sentences: list[Sentence] = []
    sources: dict[str, str] = {}

    def add(section: Section, text: str, row: Row, *more: str) -> None:
        plain = block.cut(block.harmless(_MARKS.sub("", text)), LONGEST)
        # A tool's or a page's orders to the reader are kept in the log, not carried on as knowledge.
        if not plain or is_instruction(plain) or any(plain == one.text for one in sentences):
            return
        name = handle(row)
        sources[name] = str(row.extra.get("call") or row.id)
        cites = tuple(dict.fromkeys((*more, name)))
        sentences.append(Sentence(plain, cites, section, day(row.as_of or row.created)))

    for row in part.facts[-_MOST["data"] :]:
        add("data", row.text, row)
    shown = " ".join(one.text for one in sentences)
    calls = [row for row in part.calls if str(row.extra.get("status") or "ok") == "ok"]
    for row in calls[-_MOST["data"] :]:
        call = call_of(row, handle(row))
        said = call.conclusion(100)
        if said and said not in shown:
            add("data", f"{call.tool}({call.asked(60)}): {said}", row)
    known = {handle(row) for row in (*calls, *part.facts)}
    said_lines = [
        (row, text) for row in part.turns for text in _sentences(str(row.extra.get("assistant") or ""))
    ]
    for row, text in said_lines[-_MOST["said"] :]:
        # What the answer cites itself is the better proof; the turn proves that it was said.
        own = [one for one in _HANDLE.findall(text) if one in known]
        add("said", _HANDLE.sub("", text), row, *own)
    if not sentences:
        return None
    for row in part.turns[-_MOST["asked"] :]:
        add("asked", str(row.extra.get("user") or ""), row)
    words = " ".join(str(row.extra.get("user") or "") for row in part.turns)
    rows = (*part.turns, *part.calls)
    return Draft(
        topic,
        tuple(sentences),
        tuple(dict.fromkeys(sources.values())),
        max(row.created for row in rows),
        language(normalise(words)) != "en",
    )


def _sentences(answer: str) -> list[str]:
    """The sentences of an answer that say how something is."""
    found = []
    for part in _STOP.split(answer[:20_000]):
        text = _BULLET.sub("", part or "").strip()
        if (
            6 <= len(text) <= 2 * LONGEST
            and not text.endswith(("?", "？", ":", "："))
            and _TELLS.search(text)
        ):
            found.append(text)
    return found
