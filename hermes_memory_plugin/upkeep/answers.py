"""Where the numbers of an answer came from: found without a model when the turn is over, kept, and found again later.

What an answer's numbers are held against: this turn's tool results, the rows that were put beside the question, the
passages of reports, what the user said himself, and last what the same conversation knew before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from hermes_memory_plugin.layers import footers
from hermes_memory_plugin.recall import figures
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.question import language
from hermes_memory_plugin.upkeep import derive
from hermes_memory_plugin.upkeep.match import Match, Sources
from hermes_memory_plugin.upkeep.readings import Reading, of_call, of_row, of_words

if TYPE_CHECKING:
    from hermes_memory_hookspecs import ToolTrace
    from hermes_memory_plugin.recall.gist import Analyst
    from hermes_memory_plugin.recall.index_row import Row

LinkKind = Literal["call", "fact", "report", "user", "computed", "none"]
MOST = 200
"""Numbers of one answer that are looked at."""
_TRIFLE = 160


@dataclass(frozen=True, slots=True)
class Link:
    """One number of an answer and what it came from; `kind` none: nothing on record holds it."""

    number: str
    value: float
    unit: str
    kind: LinkKind
    subject: str = ""
    metric: str = ""
    period: str = ""
    call: str = ""
    fact: str = ""
    report: str = ""
    page: int | None = None
    words: str = ""
    """What the source says; for a computed one the formula."""
    clause: str = ""
    """What the answer says."""


def read(
    answer: str,
    analyst: Analyst,
    at: datetime,
    *,
    calls: Iterable[ToolTrace] = (),
    rows: Iterable[Row] = (),
    said: str = "",
    before: Callable[[], Iterable[Reading]] = tuple,
) -> list[Link]:
    """The links of an answer's numbers, each number once, in the order of the answer.

    calls, rows  what the turn called and was given; said: the user's message
    before       what the conversation knew already, asked for when needed: held against only what nothing of this turn explains
    """
    found = figures.read(footers.without(answer), analyst, at)[:MOST]
    if not found:
        return []
    told = of_words(said, analyst, at, kind="user") if said else []
    subject = _only(one.subject for one in told)
    found = [replace(one, subject=one.subject or subject) for one in found]
    now = Sources([*_of_calls(calls, analyst), *(one for row in rows for one in of_row(row, analyst)), *told])
    matched: list[tuple[Figure, Match | derive.Computed | None]] = []
    earlier: Sources | None = None
    for figure in found:
        match: Match | derive.Computed | None = now.best(figure)
        if match is None and (figure.growth or figure.metric):
            match = derive.derive(figure, _labelled(now))
        if match is None:
            if earlier is None:
                earlier = Sources([replace(one, kind="earlier") for one in before()])
            match = earlier.best(figure) or derive.derive(
                figure, [replace(one, kind="call") for one in _labelled(earlier)]
            )
        matched.append((figure, match))
    return list(
        {(one.number, one.metric, one.subject, one.period): one for one in _links(matched, answer)}.values()
    )


def _links(matched: Sequence[tuple[Figure, Match | derive.Computed | None]], answer: str) -> Iterator[Link]:
    normal = normalise(answer)
    for figure, match in matched:
        amount = figure.amount
        link = Link(
            number=normal[amount.start : amount.end].strip() or figure.words,
            value=amount.value,
            unit=amount.unit,
            kind="none",
            subject=figure.subject,
            metric=figure.metric + (f"_{figure.growth}" if figure.growth else ""),
            period=figure.period,
            clause=figure.words[:_TRIFLE],
        )
        if isinstance(match, derive.Computed):
            first = match.inputs[0]
            yield replace(
                link,
                kind="computed",
                call=first.call,
                fact=first.fact,
                report=first.report,
                words=match.formula[:_TRIFLE],
            )
        elif match is not None:
            source = match.reading
            yield replace(
                link,
                kind=_kind(source),
                subject=link.subject or source.subject,
                metric=link.metric or source.metric,
                period=link.period or source.period,
                call=source.call,
                fact=source.fact,
                report=source.report,
                page=source.page,
                words=source.words[:_TRIFLE],
            )
        else:
            yield link


def _kind(source: Reading) -> LinkKind:
    if source.kind == "earlier":
        return "report" if source.report else "call" if source.call else "fact" if source.fact else "user"
    return source.kind


def _of_calls(calls: Iterable[ToolTrace], analyst: Analyst) -> Iterator[Reading]:
    for call in calls:
        yield from of_call(call, analyst)


def _labelled(sources: Sources) -> list[Reading]:
    return [one for one in sources if one.metric]


def _only(values: Iterable[str]) -> str:
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else ""


def footer(links: Sequence[Link], answer: str) -> str:
    """The line that goes under the answer, in its language; "" when it states no number."""
    pages = {link.page for link in links if link.kind == "report" and link.page}
    return footers.line(
        Counter(link.kind for link in links), sorted(pages), language(normalise(answer[:2_000]))
    )


# -- the record --------------------------------------------------------------------------------------------------------


def as_record(answer_id: str, session: str, turn: str, links: Sequence[Link]) -> dict[str, Any]:
    """What the journal keeps of an answer."""
    return {
        "id": answer_id,
        "session": session,
        "turn": turn,
        "links": [
            {name: value for name, value in asdict(link).items() if value not in ("", None)} for link in links
        ],
    }


def of_stored(row: Mapping[str, Any]) -> Link:
    """The link of a row of logs.db."""
    return Link(**{name: row[name] for name in Link.__dataclass_fields__})


def as_reading(link: Link, at: datetime | None = None) -> Reading | None:
    """What an earlier answer stated, as something a later one may repeat; None where nothing proved it."""
    if link.kind == "none":
        return None
    metric, growth = link.metric, ""
    if link.metric.endswith(("_yoy", "_qoq", "_change")):
        metric, _, growth = link.metric.rpartition("_")
    return Reading(
        value=link.value,
        unit=link.unit,
        subject=link.subject,
        metric=metric,
        exact=metric,
        period=link.period,
        growth=growth,  # type: ignore[arg-type]
        as_of=at or datetime.now(UTC),
        kind="earlier",
        call=link.call,
        fact=link.fact,
        report=link.report,
        page=link.page,
        words=link.words,
    )
