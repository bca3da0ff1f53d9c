"""Cuts a report into passages of about 300 tokens, along headings and paragraphs; a table stays whole.

Every character of every block is in exactly one passage, in the order of the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hermes_memory_plugin.recall.budget import tokens
from hermes_memory_plugin.reports.document import Block, Page

TARGET = 300
"""Tokens a passage should have, and those of running text have at most."""
LARGEST_TABLE = 3_000
"""Tokens up to which a table is one passage; a larger one is cut between rows."""

_SENTENCE = re.compile(r"(?<=[。！？；])|(?<=[.!?;])(?=\s)|(?<=\n)")
_PHRASE = re.compile(r"(?<=[，、：])|(?<=[,:])(?=\s)|(?<=\s)")
_NOTICE = re.compile(
    r"免责(?:声明|条款)|法律声明|分析师(?:声明|承诺)|(?:投资|股票|行业)?评级(?:说明|标准|体系|定义)|重要(?:声明|提示)|信息披露|特别声明|disclaimers?|(?:important )?disclosures?|analyst certification|rating definitions?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage of a report."""

    page: int
    """The page it stands on."""
    section: str
    """The heading it stands under; "" before the first one."""
    text: str
    table: bool
    tokens: int
    notice: bool = False
    """It stands under a heading such as 免责声明 or Disclaimer: nothing anybody looks for."""


def chunks(pages: Iterable[Page]) -> list[Chunk]:
    """The passages of a report, in reading order."""
    return list(_chunks(pages))


def _chunks(pages: Iterable[Page]) -> Iterator[Chunk]:
    section = ""
    for page in pages:
        held: list[str] = []
        size = 0
        begun = section  # a heading at the head of a passage names it
        for block in page.blocks:
            if block.kind == "heading":
                # Headings that follow one another, such as a title and its first section, stay together.
                if held and not _only_headings(held, page):
                    yield _made(page.number, begun, held)
                    held, size = [], 0
                section = begun = block.text
            if block.kind == "table":
                if held and not _only_headings(held, page):
                    yield _made(page.number, begun, held)
                    held, size = [], 0
                parts = list(_rows(block, LARGEST_TABLE))
                for part in parts:
                    yield _made(page.number, begun, [*held, part], table=True)
                    held, size = [], 0
                continue
            for part in _parts(block.text):
                cost = tokens(part) + 1
                if held and size + cost > TARGET:
                    yield _made(page.number, begun, held)
                    held, size = [], 0
                held.append(part)
                size += cost
        if held:
            yield _made(page.number, begun, held)


def _made(page: int, section: str, parts: list[str], *, table: bool = False) -> Chunk:
    text = "\n".join(parts)
    return Chunk(page, section, text, table, tokens(text), bool(_NOTICE.search(section)))


def _only_headings(held: list[str], page: Page) -> bool:
    heads = {block.text for block in page.blocks if block.kind == "heading"}
    return all(part in heads for part in held)


def _parts(text: str) -> Iterator[str]:
    """The text in pieces of at most the target, cut behind sentences where that can be, then phrases, then anywhere."""
    if tokens(text) < TARGET:
        yield text
        return
    held = ""
    for piece in _small(text):
        if held and tokens(held + piece) >= TARGET:
            yield held
            held = ""
        held += piece
    if held:
        yield held


def _small(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        if tokens(sentence) < TARGET:
            yield sentence
            continue
        for phrase in _PHRASE.split(sentence):
            while tokens(phrase) >= TARGET:
                yield phrase[: TARGET // 2]
                phrase = phrase[TARGET // 2 :]
            yield phrase


def _rows(block: Block, most: int) -> Iterator[str]:
    """The table, cut between rows where it is far too large to hand to a model."""
    if tokens(block.text) <= most:
        yield block.text
        return
    held: list[str] = []
    size = 0
    for line in block.text.split("\n"):
        for piece in [line] if tokens(line) < most else list(_parts(line)):
            cost = tokens(piece) + 1
            if held and size + cost > most:
                yield "\n".join(held)
                held, size = [], 0
            held.append(piece)
            size += cost
    if held:
        yield "\n".join(held)
