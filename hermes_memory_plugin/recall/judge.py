"""What entities, figures, periods, identifiers, clients, origin and denial say of one candidate.

Each rule changes the score and leaves a reason in plain words; a verdict that is not empty puts the row out of
automatic recall and far down in explicit recall.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall import context, marks, metrics, periods, polarity
from hermes_memory_plugin.recall.candidate import Candidate
from hermes_memory_plugin.recall.poison import is_instruction

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.asked import Asked

_NOT = re.compile(r"[不未没无][有再曾予进行]{0,2}$|\b(?:no|not|without)\s$")
FACT, STATEMENT = 100, 600
"""Characters up to which a text is about the figures it names and no others, and the periods it names and no others."""
UNNAMED = 2.0
"""A row that names nobody the question names loses this times their share of the question, half its score at most."""
UNTRUSTED = frozenset({"tool", "web", "report", "model"})
_ORIGIN = {"web": 0.85, "model": 0.95}
"""What a statement nobody vouches for is worth beside one that somebody does."""


def verdict(asked: Asked, one: Candidate) -> str:
    """Why the row is out, "" when it is in; score, reasons and flags are adjusted on the way."""
    row = one.row
    if row.kind == "scene" and (row.extra.get("scene") or {}).get("status") == "proposed":
        return "a draft nobody has confirmed yet"
    if one.words > 0:
        one.reasons.append("same words" if one.coverage else "related words")
    else:
        one.reasons.append("similar meaning")
    if row.origin in UNTRUSTED and is_instruction(row.text):
        return "speaks like an instruction, from an untrusted origin"
    if asked.scopes and row.scope and row.scope not in asked.scopes:
        return f"belongs to {row.scope}"
    if asked.scopes and row.scope:
        one.score += 0.2
        one.reasons.append(f"about {row.scope}")
    why = _entities(asked, one) or _identifiers(asked, one)
    if why:
        return why
    _metrics(asked, one)
    _periods(asked, one)
    _denial(asked, one)
    if asked.calls and row.kind == "call":
        one.score += 0.1
        one.reasons.append("a call, as asked")
    if asked.people and row.layer != "L0" and asked.people.isdisjoint(one.holds):
        # A name that half the rows hold tells little, and so does one name in a long question.
        one.score *= max(0.5, 1 - UNNAMED * one.whom)
        one.off = True
        one.reasons.append("does not name whom the question names")
    one.score *= _ORIGIN.get(row.origin, 1.0)
    if row.approximate:
        one.score *= 0.95
    return ""


def _entities(asked: Asked, one: Candidate) -> str:
    entities = one.facet("entities")
    if asked.excluded and entities and entities <= asked.excluded:
        return "the question leaves it out"
    if asked.marks and entities.isdisjoint(asked.entities) and marks.lookalikes(asked.marks, entities):
        return "a ticker that only looks like the number"
    house = asked.entities & one.facet("houses")
    rest = asked.entities - house
    if house and not (rest and entities and entities.isdisjoint(rest | asked.listings)):
        one.named = True
        one.score += 0.3
        one.reasons.append("from whom the question names")
        return ""
    if asked.entities and entities:
        if entities.isdisjoint(asked.entities):
            if entities.isdisjoint(asked.listings):
                return "another company"
            one.named = True
            one.score += 0.2
            one.reasons.append("same company, listed elsewhere")
            return ""
        one.named = True
        one.score += 0.35
        one.reasons.append("same company")
    elif asked.entities:
        if any(_longer_name(one.normal, name) for _, name in asked.names):
            return "another company with a similar name"
        one.score *= 0.8
    elif asked.sectors:
        sectors = one.facet("sectors")
        if asked.sectors & sectors:
            one.score += 0.2
            one.named = True
            one.reasons.append("of that sector")
        elif entities or sectors:
            return "another sector"
    elif asked.hinted & (one.facet("sectors") | entities):
        one.score += 0.1
        one.reasons.append("of what it may mean")
    return ""


def _longer_name(text: str, name: str) -> bool:
    """Whether a short name stands in the text only as a part of longer ones."""
    at = text.find(name)
    if at < 0:
        return False
    while at >= 0:
        if text[max(0, at - 2) : at] != "中国" and not context.OTHER_COMPANY.match(text, at + len(name)):
            return False
        at = text.find(name, at + 1)
    return True


def _identifiers(asked: Asked, one: Candidate) -> str:
    if not asked.marks:
        return ""
    said = marks.compare(asked.marks, marks.find(one.normal))
    if said == "same":
        one.score += 0.3
        one.answers = True
        one.reasons.append("same identifier")
    elif said == "other":
        one.off = True
        one.reasons.append("another identifier")
    return ""


def _metrics(asked: Asked, one: Candidate) -> None:
    told = one.facet("metrics")
    if not told or not (asked.metrics or asked.families) or len(one.row.text) > FACT:
        return
    if asked.metrics & told:
        one.score += 0.15
        one.answers = True
        one.reasons.append("same figure")
    elif asked.families & told:
        one.score += 0.1
        one.answers = True
        one.reasons.append("a figure of that kind")
    elif asked.metrics:
        one.score *= 0.6
        one.reasons.append("another figure")


def _periods(asked: Asked, one: Candidate) -> None:
    told = one.facet("periods")
    if not asked.periods or not told:
        return
    if asked.span[0] is not None and one.row.as_of is not None and _is_event(asked, one):
        return  # its date says when it was; the months it names besides are others' (see Search._valid_then)
    relations = {_relation(wanted, own) for wanted in asked.periods for own in told}
    if "same" in relations:
        # A year by itself says little: half of all rows are of this one.
        one.score += 0.2 if one.named or one.worded else 0.05
        if len(asked.periods) > 1 and max(asked.periods) in told:
            one.score += 0.01  # of two that are asked for, the later ahead
        one.answers = True
        one.reasons.append("same period")
    elif "within" in relations:
        one.score += 0.1
        one.reasons.append("within that period")
    elif "around" in relations or len(one.row.text) > STATEMENT:
        one.reasons.append("a longer period")
    else:
        one.score *= 0.4
        one.off = True
        one.reasons.append("another period")


def _is_event(asked: Asked, one: Candidate) -> bool:
    """Whether neither question nor row is about a company or a figure: those have periods, events have dates."""
    return not (
        asked.entities or asked.metrics or asked.families or one.facet("metrics") or one.facet("entities")
    )


@lru_cache(4_096)
def _relation(wanted: str, own: str) -> str:
    if wanted == own:
        return "same"
    try:
        (start, end), (first, last) = periods.bounds(wanted), periods.bounds(own)
    except ValueError:
        return "other"
    if start <= first and last <= end:
        return "within"
    return "around" if first <= start and end <= last else "other"


def _denial(asked: Asked, one: Candidate) -> None:
    denied = _denies_the_figure(asked, one)
    if not asked.denies:
        if denied:
            one.score *= 0.7
            one.reasons.append("says that there is none")
    elif denied or polarity.says_no(one.normal):
        one.score += 0.15
        one.reasons.append("says no, as asked")
    else:
        one.score *= 0.6
        one.off = True
        one.reasons.append("does not say no")


def _denies_the_figure(asked: Asked, one: Candidate) -> bool:
    """Whether it says that what was asked for is not: 不分红, no dividend."""
    figures = asked.metrics | asked.families
    if asked.entities or figures.isdisjoint(one.facet("metrics")):
        return False
    return any(
        _NOT.search(one.normal[max(0, named.start - 4) : named.start])
        for named in metrics.named(one.normal)
        if not figures.isdisjoint(named.ids)
    )
