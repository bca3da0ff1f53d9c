"""The answers of `fixtures/answers.jsonl`, and how well their numbers are led back to where they came from.

In an answer ``{26.1 倍|daily}`` marks a number and its source: a tool result or fact by its name there, ``reports7`` page 7 of
a report, ``user``, ``computed``, or ``none`` for an invented one. Numbers that are not marked state nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.upkeep import answers
from hermes_memory_plugin.upkeep.answers import Link

FILE = Path(__file__).parents[2] / "fixtures" / "answers.jsonl"
AT = datetime(2026, 11, 30, 2, tzinfo=UTC)
_MARKED = re.compile(r"\{([^|{}]+)\|(\w+)\}")


@dataclass(frozen=True, slots=True)
class Answer:
    """One written answer: `marked` are its numbers, each with its source."""

    sources: tuple[str, ...]
    said: str
    text: str
    marked: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Tally:
    """How the numbers of all answers fared; `wrong` says which did not."""

    right_links: int = 0
    wrong_links: int = 0
    right_flags: int = 0
    wrong_flags: int = 0
    missed: int = 0
    wrong: list[str] = field(default_factory=list)


class Lab:
    """A memory that holds the facts of the file, and its tool results."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._calls: dict[str, ToolTrace] = {}
        self._facts: dict[str, str] = {}
        self.answers: list[Answer] = []
        for line in FILE.read_text(encoding="utf-8").splitlines():
            self._take(json.loads(line))

    def _take(self, one: dict[str, Any]) -> None:
        if "source" in one:
            self._calls[one["source"]] = ToolTrace(
                tool_call_id=one["source"],
                tool_name=one["tool"],
                args=one["args"],
                result=one["result"],
                at=AT,
            )
        elif "fact" in one:
            name = one.pop("fact")
            self._facts[name] = self._memory.remember(one.pop("statement"), **one)
        else:
            marked = tuple((normalise(number), source) for number, source in _MARKED.findall(one["answer"]))
            self.answers.append(
                Answer(tuple(one["sources"]), one["said"], _MARKED.sub(lambda m: m[1], one["answer"]), marked)
            )

    def links(self, answer: Answer) -> list[Link]:
        """What the product finds."""
        self._memory.reader.refresh()
        index = self._memory.reader.index
        rows = [index.find(self._facts[name], None) for name in answer.sources if name in self._facts]
        return answers.read(
            answer.text,
            self._memory.reader.analyst,
            AT,
            calls=[self._calls[name] for name in answer.sources if name in self._calls],
            rows=[row for row in rows if row is not None],
            said=answer.said,
        )

    def judge(self, answer: Answer, tally: Tally) -> None:
        """Hold the links against the marks."""
        left = list(self.links(answer))
        for number, source in answer.marked:
            link = next((one for one in left if _same(one.number, number)), None)
            if link is None:
                tally.missed += 1
                tally.wrong.append(f"{number} ({source}) was not seen: {answer.text}")
                continue
            left.remove(link)
            found = self._source(link)
            if link.kind == "none":
                tally.right_flags += source == "none"
                tally.wrong_flags += source != "none"
            else:
                tally.right_links += found == source
                tally.wrong_links += found != source
            if found != source:
                tally.wrong.append(f"{number}: {found}, not {source}: {answer.text}")
        for link in left:
            tally.wrong_flags += link.kind == "none"
            tally.wrong_links += link.kind != "none"
            tally.wrong.append(f"{link.number} states nothing: {answer.text}")

    def _source(self, link: Link) -> str:
        if link.kind == "report":
            return f"{'reports' if link.report == 'R-MT' else link.report}{link.page}"
        if link.kind == "fact":
            return next((name for name, row in self._facts.items() if row == link.fact), "?")
        return link.call if link.kind == "call" else link.kind


def _same(found: str, marked: str) -> bool:
    return "".join(found.split()) in "".join(marked.split()) or "".join(marked.split()) in "".join(
        found.split()
    )


def tally(memory: Memory) -> Tally:
    """Over every answer of the file."""
    lab, counts = Lab(memory), Tally()
    for answer in lab.answers:
        lab.judge(answer, counts)
    return counts
