"""Passages that answer a question, each with its report and page: the one search, narrowed to reports before it ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Owner, ReportChunk
from hermes_memory_plugin.layers.facts import microseconds, moment
from hermes_memory_plugin.recall import gate, pairs
from hermes_memory_plugin.recall.asked import Asked
from hermes_memory_plugin.recall.excerpt import excerpt
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.search import CANDIDATES, Search

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.recall.candidate import Candidate

PER_REPORT = 2
"""Places one report may take where others match as well."""


def search(
    memory: Parts,
    query: str,
    code: str | None = None,
    *,
    limit: int = 5,
    broker: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    industry: str = "",
    owner: Owner | None = None,
    now: datetime,
) -> list[ReportChunk]:
    """See `Memory.search_reports`."""
    question = query.strip() or (code or "").strip()
    if not question or limit < 1:
        return []
    memory.reader.refresh()
    reports = _meant(memory, code, broker, since, until, industry, owner)
    if reports is not None and not reports:
        return []
    settings = memory.settings
    asked = Asked.of(
        question,
        analyst=memory.reader.analyst,
        now=now,
        semantic=settings.embedding.backend != "none",
    )

    def look(among: set[str] | None) -> list[Candidate]:
        looking = Search(
            memory.reader.index,
            memory.keys(owner),
            microseconds(now) or 0,
            meaning=memory.recaller.meaning(question, settings),
            sessions=among,
        )
        rows = looking.explicit(asked, limit=max(CANDIDATES, 2 * limit), layers=("report",)).rows
        # Nothing is better than a passage that holds no word of the question and is not near it either.
        return [one for one in rows if reports is not None or one.worded or one.cosine >= gate.NEAREST]

    found = look(reports)
    chosen = _spread(asked, found, limit)
    full = {one.row.session for one in found}
    if limit <= len(found) and (len(full) == 1 or len(chosen) < limit):
        # Few reports took every place among the candidates: are there others?
        others = (reports or {row["id"] for row in memory.library.reports(owner)}) - full
        if others and (further := look(others)):
            chosen = _spread(asked, [*found, *further], limit)
    return [_chunk(one, settings.reports.quote_characters) for one in chosen]


def _meant(
    memory: Parts,
    code: str | None,
    broker: str,
    since: datetime | None,
    until: datetime | None,
    industry: str,
    owner: Owner | None,
) -> set[str] | None:
    """The ids of the reports the filters leave; None without a filter."""
    if not (code or broker or since or until or industry):
        return None
    companies = companies_of(memory, code) if code else frozenset()
    return {
        row["id"]
        for row in memory.library.reports(owner)
        if (not code or is_on(row, code, companies))
        and (not broker or normalise(broker) in normalise(row["broker"]))
        and (not industry or normalise(industry) in normalise(f"{row['industry']} {row['title']}"))
        and _within(row["date"], since, until)
    }


def companies_of(memory: Parts, code: str) -> frozenset[str]:
    """The ids of the company a code or a name means, on every exchange."""
    lexicon = memory.reader.analyst.lexicon
    found = {one.entity_id for one in memory.reader.analyst.link(code) if one.kind != "sector"}
    if identity := pairs.canonical(code) if any(map(str.isdigit, code)) else "":
        found.add(identity)
    return frozenset(found | {twin for one in found for twin in lexicon.listings(one)})


def is_on(row: Mapping[str, Any], code: str, companies: frozenset[str]) -> bool:
    """Whether a report is on the company: by the tickers it states; by its names or title where no list knows the name."""
    if not companies.isdisjoint(row["tickers"]):
        return True
    said = normalise(code).strip()
    return not companies and bool(said) and said in normalise(" ".join((row["title"], *row["names"])))


def _within(day: str, since: datetime | None, until: datetime | None) -> bool:
    """`since` and `until` are days, both included; a report without a date is in no range."""
    if since is None and until is None:
        return True
    return (
        bool(day)
        and (since is None or day >= f"{since:%Y-%m-%d}")
        and (until is None or day <= f"{until:%Y-%m-%d}")
    )


def _spread(asked: Asked, found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The best of what was found, of no report too many; the newest opinion first where the latest is asked for."""
    ranked = list(found)
    if asked.question.latest and ranked:
        least = gate.BESIDE * max(one.score for one in ranked)
        ranked.sort(key=lambda one: (one.score < least, -(one.row.as_of or 0)))
    most = PER_REPORT if len({one.row.session for one in ranked}) > 1 else limit
    chosen: list[Candidate] = []
    taken: dict[str, int] = {}
    for one in ranked:
        if taken.get(one.row.session, 0) < most:
            taken[one.row.session] = taken.get(one.row.session, 0) + 1
            chosen.append(one)
    return chosen[:limit]


def _chunk(one: Candidate, characters: int) -> ReportChunk:
    row = one.row
    return ReportChunk(
        id=row.id,
        report_id=row.session,
        title=str(row.extra.get("title") or ""),
        broker=str(row.extra.get("broker") or ""),
        date=moment(row.as_of),
        page=int(row.extra.get("page") or 0),
        text=excerpt(row.text, one.holds, characters),
        score=round(one.score, 4),
    )
