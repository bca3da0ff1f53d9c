"""A question as recall needs it: its words, whom and what it is about, when, and what it wants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from hermes_memory_plugin.recall import intent, metrics, periods, times
from hermes_memory_plugin.recall.lexicon import HINT, Lexicon, Mention
from hermes_memory_plugin.recall.normalise import fold, lowered
from hermes_memory_plugin.recall.segment import tokens as cut
from hermes_memory_plugin.recall.smalltalk import is_small_talk
from hermes_memory_plugin.recall.times import Moment

Language = Literal["zh", "en", "other"]

LONG = 4_000
"""Longer messages are pasted text: their question stands at one of its ends, so half of this is read at each."""
_HISTORY = 6
_SHORT = 14
_PRONOUN = re.compile(
    r"它们?|(?<![其吉])他们?(?!人)|她们?|这[家只支]|那[家只支](?!个)|该[公股]|这个?(?:公司|股票|票|标的)|前者|后者|两者|两家|二者|这两|上述"
    r"|\b(?:it|its|they|their|them|both)\b|\b(?:this|that|the) (?:one|stock|company|name|ticker)\b"
)
_ELLIPSIS = re.compile(
    r"^(?:那|那么|然后|还有|再看|换成|and\b|what about\b|how about\b|also\b|same for\b)|呢[?？!！。~\s]*$"
)
_SCOPE = re.compile(
    r"[\[【(（「]\s?((?:客户|委托人|账户|组合|产品|项目|client|account|portfolio|project)[^\]】)）」\n]{1,24}|[\u3400-\u9fff]{1,3}(?:总|先生|女士))\s?[\]】)）」]"
    r"|((?:客户|委托人)\s?(?:[甲乙丙丁戊己庚辛壬癸]|[a-z](?![a-z])|\d{1,4}|[一二三四五六七八九十]{1,2}号?|[\u3400-\u9fff]{1,2}(?:总|先生|女士)))"
    r"|(\bclient\s(?:[a-z]\b|\d{1,4}\b))"
)
_HAN = re.compile("[\u3400-\u9fff]")
_LETTERS = re.compile(r"[a-z]{2,}")
_OTHER = re.compile(r"[^\W\d_a-z\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Question:
    """What `parse` read. Tuples keep the order of the text; nothing in them repeats but `tokens`."""

    text: str
    normalised: str
    tokens: tuple[str, ...]
    """As `segment.tokens` gives them, with the period tokens of relative time and what a follow-up takes over."""
    content: tuple[str, ...]
    """The tokens that name the subject: without question and function words."""
    entities: tuple[Mention, ...] = ()
    """Companies, indices, funds; sectors are apart."""
    sectors: tuple[str, ...] = ()
    """Names of sectors, as the lexicon shows them."""
    members: frozenset[str] = frozenset()
    """Ids of the companies in those sectors."""
    metrics: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()
    """``2025``, ``2026Q1``, ``2025H1``, ``2024M04``, ``2024-04-30``."""
    moments: tuple[Moment, ...] = ()
    names_time: bool = False
    """It asks for the state of a time that is over; a period a report is on is none."""
    since: datetime | None = None
    until: datetime | None = None
    """The time it names, in UTC; `until` is the as-of instant."""
    scopes: tuple[str, ...] = ()
    past_work: bool = False
    latest: bool = False
    compare: bool = False
    pick: bool = False
    negated: bool = False
    small_talk: bool = False
    follow_up: bool = False
    """It took its company, metric or period from the messages before."""
    pasted: bool = False
    language: Language = "zh"
    hints: tuple[Mention, ...] = ()
    """Names that are ordinary words as well, with nothing beside them that tells: they lead, and exclude nothing."""

    @property
    def entity_ids(self) -> tuple[str, ...]:
        """The ids of `entities`."""
        return tuple(mention.entity_id for mention in self.entities)

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        now: datetime | None = None,
        lexicon: Lexicon | None = None,
        history: Sequence[str] = (),
    ) -> Question:
        """Read a message. `history`: the user's messages before it, oldest first. Never raises on any text."""
        lexicon = lexicon or _built_in()
        now = now or datetime.now(UTC)
        pasted = len(text) > LONG
        shown = f"{text[: LONG // 2]}\n{text[-LONG // 2 :]}" if pasted else text
        folded = fold(shown)
        normal = lowered(folded)
        linked = lexicon.link(folded, lenient=True)
        mentions = [mention for mention in linked if mention.confidence > HINT]
        hints = tuple(mention for mention in linked if mention.confidence <= HINT)
        named = metrics.find(normal)
        moments = times.read(normal, now)
        scope_names = scopes(normal)
        past = bool(intent.PAST_WORK.search(normal))
        words = cut(folded)
        pick = bool(intent.PICK.search(normal))
        small = is_small_talk(normal, anchored=bool(mentions or named or scope_names or past or pick))
        before = _Before([], [], [])
        if history and not small:
            before = _take_over(normal, mentions, named, moments, history[-_HISTORY:], lexicon, now)
            mentions, named, moments = (
                mentions + before.mentions,
                named + before.metrics,
                moments + before.moments,
            )
            for extra in (*(mention.name for mention in before.mentions), *map(_spoken, before.metrics)):
                words += cut(extra)
        ids = list(dict.fromkeys(moment.id for moment in moments if moment.id))
        known = set(words)
        words += [token for id_ in ids for token in periods.tokens_of(id_) if token not in known]
        entities = tuple(mention for mention in mentions if mention.kind != "sector")
        sectors = tuple(mention.name for mention in mentions if mention.kind == "sector")
        span = _span(moments, named, now)
        return cls(
            text=text,
            normalised=normal,
            tokens=tuple(words),
            content=intent.content(words),
            entities=entities,
            sectors=sectors,
            members=frozenset(id_ for sector in sectors for id_ in lexicon.members(sector)),
            metrics=tuple(named),
            periods=tuple(ids),
            moments=tuple(moments),
            names_time=span is not None,
            since=span[0] if span else None,
            until=span[1] if span else None,
            scopes=scope_names,
            past_work=past,
            latest=bool(intent.LATEST.search(normal)),
            compare=intent.compares(normal, len(entities)),
            pick=pick,
            negated=intent.negates(normal),
            small_talk=small,
            follow_up=bool(before.mentions or before.metrics or before.moments),
            pasted=pasted,
            language=language(normal),
            hints=hints,
        )


def scopes(normal: str) -> tuple[str, ...]:
    """The clients, accounts and projects a normalised text is confined to: ``[客户甲]``, ``客户甲``, ``[client acme]``."""
    return tuple(dict.fromkeys("".join((a or b or c).split()) for a, b, c in _SCOPE.findall(normal)))


def language(normal: str) -> Language:
    """The language to answer in, by the letters of a normalised text."""
    han, latin = len(_HAN.findall(normal)), len(_LETTERS.findall(normal))
    if len(_OTHER.findall(normal)) > han + 2 * latin:
        return "other"
    return "zh" if han and 2 * han >= latin else "en" if latin else "zh" if han else "other"


@dataclass(slots=True)
class _Before:
    mentions: list[Mention]
    metrics: list[str]
    moments: list[Moment]


def _take_over(
    normal: str,
    mentions: list[Mention],
    named: list[str],
    moments: list[Moment],
    history: Sequence[str],
    lexicon: Lexicon,
    now: datetime,
) -> _Before:
    """What the messages before add: 它的PE呢 lacks its company, 那五粮液呢 its figure."""
    before = _Before([], [], [])
    pronoun, ellipsis = _PRONOUN.search(normal), _ELLIPSIS.search(normal)
    short = len(normal) <= _SHORT and bool(named or moments) and not intent.PICK.search(normal)
    if not (pronoun or ellipsis or short) or len(normal) > 400:
        return before
    wants_company = not mentions
    wants_metric = bool(ellipsis) and bool(mentions or moments) and not named
    wants_time = bool(ellipsis) and not moments and not intent.LATEST.search(normal)
    for message in reversed(history):
        earlier = lowered(fold(message[:LONG]))
        if wants_company and not before.mentions:
            before.mentions = _meant(lexicon.link(message[:LONG]), pronoun[0] if pronoun else "")
        if wants_metric and not before.metrics:
            before.metrics = metrics.find(earlier)
            if wants_time and before.metrics:
                before.moments = [moment for moment in times.read(earlier, now) if moment.sort != "day"]
        if (before.mentions or not wants_company) and (before.metrics or not wants_metric):
            break
    return before


def _meant(mentions: list[Mention], pronoun: str) -> list[Mention]:
    if pronoun == "前者":
        return mentions[:1]
    return mentions[-1:] if pronoun == "后者" else mentions


def _span(moments: list[Moment], named: list[str], now: datetime) -> tuple[datetime, datetime] | None:
    """The time whose state is asked for: days always, years and quarters unless a figure of that period is."""
    flows = bool(named) and all(metrics.metrics()[name].kind == "flow" for name in named)
    today = now.astimezone(times.SHANGHAI).date()
    over = [
        moment
        for moment in moments
        if moment.start < today
        and (moment.sort == "day" or (moment.sort == "span" and not flows and moment.end < today))
    ]
    if not over:
        return None
    return times.midnight(min(m.start for m in over)), min(
        times.instant(max(m.end for m in over)), now.astimezone(UTC)
    )


def _spoken(metric: str) -> str:
    known = metrics.metrics().get(metric)
    return " ".join(known.names[:2]) if known else metric


@cache
def _built_in() -> Lexicon:
    return Lexicon()
