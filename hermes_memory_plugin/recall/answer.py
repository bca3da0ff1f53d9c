"""What a recall gives back, and how ranked rows become a block under the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta, timezone

from hermes_memory_hookspecs import Recalled
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.recall.budget import Budget, tokens

_DAY = timezone(timedelta(hours=8))  # a trading day is a day in Shanghai
FACT_LENGTH = 500
CHUNK_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of one recall. `items` are in the order of their worth; `standing` preferences are apart from them."""

    items: tuple[Recalled, ...] = ()
    block: str = ""
    tokens: int = 0
    standing: tuple[Recalled, ...] = ()
    handles: dict[str, str] = field(default_factory=dict)
    """{id: the short handle shown for it}"""
    milliseconds: float = 0.0
    degraded: str = ""
    """What was missing from this recall, in one line; empty when nothing was."""


@dataclass(frozen=True, slots=True)
class Picked:
    """One row on its way into the block."""

    item: Recalled
    line: block.Line


@dataclass(frozen=True, slots=True)
class Cut:
    """A candidate that was not injected, and why."""

    id: str
    why: str


def shown_line(
    item: Recalled,
    handle: str,
    *,
    later: str = "",
    replaces: str = "",
    contradicts: str = "",
    shaken: bool = False,
    length: int = FACT_LENGTH,
) -> block.Line:
    """How a row stands in the block."""
    return block.Line(
        handle=handle,
        text=block.cut(item.text, CHUNK_LENGTH if item.layer == "report" else length),
        source=item.source,
        as_of=day_of(item),
        state=item.state,
        later=later,
        replaces=replaces,
        contradicts=contradicts,
        shaken=shaken,
    )


def day_of(item: Recalled) -> str:
    """The as-of date as people write it; a time other than midnight counts as the day in Shanghai."""
    if item.as_of is None:
        return ""
    utc = item.as_of
    if (utc.hour, utc.minute, utc.second) == (0, 0, 0):
        return utc.date().isoformat()
    return utc.astimezone(_DAY).date().isoformat()


def compose(
    picked: Sequence[Picked],
    budget: Budget,
    *,
    standing: Sequence[Picked] = (),
    standing_tokens: int = 300,
    language: str = "zh",
    weaker: int = 0,
    notice: str = "",
) -> tuple[str, list[Picked], list[Picked], list[Cut]]:
    """(block, items in it, standing items in it, what did not fit). Whole items only; the strongest first."""
    cuts: list[Cut] = []
    kept: list[Picked] = []
    kept_standing: list[Picked] = []
    lines: list[str] = []
    rules: list[str] = []
    spent = 0
    for one in standing:
        rule = block.line(one.line, language)
        cost = tokens(rule)
        if spent + cost > standing_tokens:
            cuts.append(Cut(one.item.id, "standing preferences are full"))
            continue
        kept_standing.append(one)
        rules.append(rule)
        spent += cost
    text = block.render(lines, standing=rules, language=language)
    while kept_standing and not budget.fits(text):
        cuts.append(Cut(kept_standing.pop().item.id, "budget"))
        rules.pop()
        text = block.render(lines, standing=rules, language=language)
    for one in picked:
        line = block.line(one.line, language)
        grown = block.render([*lines, line], standing=rules, language=language)
        if budget.fits(grown):
            kept.append(one)
            lines.append(line)
            text = grown
            continue
        cuts.append(Cut(one.item.id, "budget"))
        if not kept:  # the best row in part is worth more than nothing
            for length in (200, 100, 60):
                part = replace(one, line=replace(one.line, text=block.cut(one.line.text, length)))
                line = block.line(part.line, language)
                shorter = block.render([line], standing=rules, language=language)
                if budget.fits(shorter):
                    kept.append(part)
                    lines.append(line)
                    text = shorter
                    break
    if text:
        for more, said in ((weaker, notice), (0, notice), (weaker, "")):
            richer = block.render(lines, standing=rules, language=language, more=more, notice=said)
            if (more or said) and budget.fits(richer):
                text = richer
                break
    return text, kept, kept_standing, cuts
