"""One recall from question to block: what to look for, what was found, what fits, and the record of it all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Owner, Recalled, Session
from hermes_memory_plugin.layers.facts import microseconds, moment
from hermes_memory_plugin.recall import block, budget, polarity
from hermes_memory_plugin.recall.answer import CHUNK_LENGTH, Cut, Picked, Recall, compose, shown_line
from hermes_memory_plugin.recall.asked import Asked
from hermes_memory_plugin.recall.candidate import Candidate, Found
from hermes_memory_plugin.recall.excerpt import excerpt
from hermes_memory_plugin.recall.meaning import Encoding, Meaning
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.search import Search
from hermes_memory_plugin.recall.standing import plain, preferences

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.reader import Reader
    from hermes_memory_plugin.settings import Settings

_QUOTE = re.compile('[“"](.+)[”"]')
NOTE_AUTOMATIC, NOTE_EXPLICIT, LOG_LENGTH = 500, 2_000, 500
PATIENCE = 20.0
"""Seconds a caller who is no running turn gives an encoder to load and to answer."""
REFRESH_MS = 150.0
"""How long a running turn waits for rows other processes have just written; what is left comes with the next."""
_RULES, _TABOO = 50, 60
"""Rules that are looked at for taboos, and how many characters such a rule has at most."""


class Recaller:
    """Recalls for one home. Stateless but for what `reader` holds."""

    def __init__(
        self,
        reader: Reader,
        *,
        settings: Callable[[], Settings],
        keys: Callable[[Owner | None], frozenset[str] | None],
        audit: Callable[[dict[str, Any], Owner], None],
        encoding: Callable[[float], Encoding | None] = lambda patience: None,
        count: Callable[[str, str], None] = lambda name, detail: None,
    ) -> None:
        self._reader = reader
        self._settings = settings
        self._keys = keys
        self._audit = audit
        self._encoding = encoding
        self._count = count

    def recall(
        self,
        question: str,
        *,
        mode: str,
        history: Sequence[str],
        owner: Owner | None,
        session: str = "",
        standing: bool = False,
        turn_id: str = "",
        now: datetime,
        limit: int | None = None,
        project: str = "",
        allowance: budget.Budget | None = None,
        present: frozenset[str] = frozenset(),
        shown: Sequence[str] = (),
        spoken: Sequence[str] = (),
        hurried: bool = False,
        degraded: str = "",
        recorded: bool = True,
    ) -> Recall:
        """See `Memory.recall`. `present`: handles that are in the transcript already; `shown`: what the host shows;
        `spoken`: the user's messages in the transcript, the one at hand included.

        With `standing` the standing preferences that are not in the transcript come along.
        """
        began = time.perf_counter()
        settings = self._settings()
        refreshed = self._reader.refresh(budget_ms=REFRESH_MS if hurried else None)
        if hurried and refreshed.backlog:
            degraded = degraded or "the newest records are still being read"
        if not hurried or mode == "explicit":
            self._reader.scan_files(now=mode == "explicit")
        keys = self._keys(owner)
        now_us = microseconds(now) or 0
        asked = Asked.of(
            question,
            analyst=self._reader.analyst,
            now=now,
            history=history,
            semantic=settings.embedding.backend != "none",
        )
        quiet = asked.small_talk and mode != "explicit"
        meaning = None if quiet else self.meaning(question, settings, hurried=hurried)
        search = Search(self._reader.index, keys, now_us, project=project, meaning=meaning)
        allowance = allowance or budget.Budget(10**9, 10**9)
        if mode == "explicit":
            found = search.explicit(asked, limit=limit or 5)
            picked = [self._picked(one, keys, explicit=True) for one in found.rows]
            rules: list[Picked] = []
        elif mode == "automatic":
            limits = settings.recall
            found = search.automatic(asked, facts=limits.max_facts, scenes=limits.max_scenes)
            if asked.pick:
                found = self._without_taboos(found, keys, now_us, project)
            rows = list(found.rows)[:limit] if limit else list(found.rows)
            rows, found = _without_spoken(rows, found, session, spoken)
            picked, found = self._without_repeats(rows, found, keys, present, shown)
            # Whoever asks what to buy must hear the rules, also where no session says whether he has.
            wanted = (standing or asked.pick) and not found.aside
            rules = (
                [
                    one
                    for one in self._standing(
                        keys, now_us, project, present, shown, settings.standing.max_items
                    )
                    if not self._spoken_here(one.item.id, session, spoken)
                ]
                if wanted
                else []
            )
            if not standing:
                picked, rules = [*picked, *rules], []
        else:
            raise ValueError(f"mode {mode!r}: automatic or explicit")
        apart = {one.item.id for one in rules}
        picked = list({one.item.id: one for one in picked if one.item.id not in apart}.values())
        text, kept, kept_standing, cuts = compose(
            picked,
            allowance,
            standing=rules,
            standing_tokens=settings.standing.max_tokens,
            language=asked.language,
            weaker=found.weaker if mode == "automatic" else 0,
            notice=degraded,
        )
        result = Recall(
            items=tuple(one.item for one in kept),
            block=text,
            tokens=budget.tokens(text),
            standing=tuple(one.item for one in kept_standing),
            handles={one.item.id: one.line.handle for one in (*kept, *kept_standing)},
            milliseconds=(time.perf_counter() - began) * 1000,
            degraded=degraded,
        )
        if recorded:
            self._audit(
                _record(question, mode, session, turn_id, asked, result, [*found.cut, *cuts], now_us),
                owner or Owner(),
            )
        return result

    def meaning(self, question: str, settings: Settings, *, hurried: bool = False) -> Meaning | None:
        """What is not words alone or the table by coverage: the encoder's part, or the other fusion."""
        limits = settings.recall
        within = limits.encoder_ms / 1000 if hurried else PATIENCE
        encoding = self._encoding(0.0 if hurried else PATIENCE) if within else None
        if encoding is None and limits.fusion != "rrf":
            return None
        return Meaning(encoding, question, within, limits.fusion, limits.second_pass, self._count)

    def _without_taboos(self, found: Found, keys: frozenset[str] | None, now_us: int, project: str) -> Found:
        """Who asks what to buy is not shown what his own rules leave out: no bank's dividend under "不碰银行股"."""
        sectors: set[str] = set()
        entities: set[str] = set()
        for rule in preferences(self._reader.index, keys, now_us=now_us, project=project, limit=_RULES):
            if len(rule.text) <= _TABOO and polarity.says_no(normalise(rule.text)):
                gist = self._reader.analyst.read(rule.text)
                sectors |= gist.sectors
                entities |= gist.entities
        kept, cut = [], list(found.cut)
        for one in found.rows:
            named = not entities.isdisjoint(one.row.extra.get("entities") or ())
            if named or not sectors.isdisjoint(one.row.extra.get("sectors") or ()):
                cut.append(Cut(one.row.id, "against a standing rule"))
            else:
                kept.append(one)
        return replace(found, rows=tuple(kept), cut=tuple(cut))

    def _without_repeats(
        self,
        rows: list[Candidate],
        found: Found,
        keys: frozenset[str] | None,
        present: frozenset[str],
        shown: Sequence[str] = (),
    ) -> tuple[list[Picked], Found]:
        """Rows that are in the transcript already stay out; one that took the place of such a row says so."""
        picked, cut = [], list(found.cut)
        visible = {plain(text) for text in shown}
        for one in rows:
            if visible and plain(one.row.text) in visible:
                cut.append(Cut(one.row.id, "the host shows it"))
                continue
            handle = self._reader.index.handle(one.row)
            if handle in present or one.row.id in present:
                cut.append(Cut(one.row.id, "already in the conversation"))
                continue
            replaced = self._replaced(one.row, present)
            picked.append(self._picked(one, keys, replaces=replaced))
        return picked, replace(found, cut=tuple(cut))

    def _replaced(self, row: Row, present: frozenset[str]) -> str:
        if not present or not row.fact_key:
            return ""
        for other in self._reader.index.same_key(row.fact_key, row.owner):
            handle = self._reader.index.handle(other)
            if other.id != row.id and handle in present:
                return handle
        return ""

    def _picked(
        self, one: Candidate, keys: frozenset[str] | None, *, explicit: bool = False, replaces: str = ""
    ) -> Picked:
        row = one.row
        shaken = bool(row.extra.get("basis_changed"))
        item = Recalled(
            id=row.id,
            layer=row.layer,  # type: ignore[arg-type]
            text=row.text,
            source=str((row.extra.get("call") and row.source) or row.source),
            as_of=moment(row.as_of),
            score=round(one.score, 4),
            reasons=tuple(dict.fromkeys((*one.reasons, *(("basis changed",) if shaken else ())))),
            state=one.state,  # type: ignore[arg-type]
        )
        shown = item
        if row.layer == "report":  # of a passage what speaks to the question
            shown = replace(item, text=excerpt(row.text, one.holds, CHUNK_LENGTH))
        length = NOTE_EXPLICIT if explicit else NOTE_AUTOMATIC
        if row.layer == "L0":
            length = LOG_LENGTH
        index = self._reader.index
        line = shown_line(
            shown,
            index.handle(row),
            later=_later(one.later) if one.later is not None else "",
            replaces=replaces,
            contradicts=index.handle(one.contradicts) if one.contradicts is not None else "",
            shaken=shaken,
            length=length,
        )
        return Picked(item, line)

    def _spoken_here(self, id: str, session: str, spoken: Sequence[str]) -> bool:
        row = self._reader.index.find(id, None) if session and spoken else None
        return row is not None and stated_here(row, session, [plain(text) for text in spoken])

    def _standing(
        self,
        keys: frozenset[str] | None,
        now_us: int,
        project: str,
        present: frozenset[str],
        shown: Sequence[str],
        most: int,
    ) -> list[Picked]:
        """The standing preferences that are not in the conversation."""
        index = self._reader.index
        rows = (
            preferences(index, keys, now_us=now_us, project=project, shown=shown, limit=most) if most else []
        )
        picked = []
        for row in rows:
            handle = index.handle(row)
            if handle in present:
                continue
            item = Recalled(
                id=row.id,
                layer=row.layer,  # type: ignore[arg-type]
                text=row.text,
                source="",
                as_of=moment(row.as_of),
                reasons=("standing preference",),
            )
            picked.append(Picked(item, block.Line(handle, block.cut(row.text, 300))))
        return picked


def stated_here(row: Row, session: str, words: Collection[str]) -> bool:
    """Whether a fact says what one of these messages (`plain`) of the same session says."""
    if not session or not str(row.extra.get("turn") or "").startswith(f"turn:{session}:"):
        return False
    quoted = _QUOTE.search(row.text)
    said = plain(quoted[1] if quoted else row.text)
    return bool(said) and any(said in one for one in words)


def _without_spoken(
    rows: list[Candidate], found: Found, session: str, spoken: Sequence[str]
) -> tuple[list[Candidate], Found]:
    """Turns of this conversation that the transcript shows stay out, also when another process took them down."""
    words = {plain(text) for text in spoken} if session else set()
    there = [
        one
        for one in rows
        if (
            one.row.layer == "L0"
            and one.row.session == session
            and plain(str(one.row.extra.get("user") or "")) in words
        )
        or stated_here(one.row, session, words)
    ]
    if not there:
        return rows, found
    cut = (*found.cut, *(Cut(one.row.id, "already in the conversation") for one in there))
    return [one for one in rows if one not in there], replace(found, cut=cut)


def _later(row: Row) -> str:
    at = moment(row.as_of)
    figure = row.extra.get("value", row.value)
    value = f"{figure:g}{row.extra.get('unit') or ''}" if figure is not None else block.cut(row.text, 60)
    return f"{value} ({at.date().isoformat()})" if at else value


def _record(
    question: str,
    mode: str,
    session: str,
    turn_id: str,
    asked: Asked,
    result: Recall,
    cuts: Sequence[Cut],
    now_us: int,
) -> dict[str, Any]:
    items = [
        {
            "id": item.id,
            "handle": result.handles.get(item.id, ""),
            "layer": item.layer,
            "text": item.text[:160],
            "score": item.score,
            "reasons": list(item.reasons),
        }
        for item in (*result.items, *result.standing)
    ]
    return {
        "question": question[:500],
        "mode": mode,
        "session": session,
        "turn": turn_id,
        "tokens": result.tokens,
        "ms": round(result.milliseconds, 2),
        "items": items,
        "cut": [{"id": one.id, "why": one.why} for one in cuts[:20]],
        "degraded": [result.degraded] if result.degraded else [],
        "understood": asked.understood(),
    }


def session_id(session: Session | str | None) -> str:
    """The id of a session given in either form."""
    return session.id if isinstance(session, Session) else (session or "")
