"""Cuts a report into passages of about 300 tokens, along headings and paragraphs; a table stays whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hermes_memory_plugin.recall.budget import tokens
from hermes_memory_plugin.reports.document import Block, Page

TARGET = 300
"""Tokens a chunk should have."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage of a report."""

    page: int
    """Where it begins."""
    section: str
    """The heading it stands under; "" before the first one."""
    text: str
    table: bool
    tokens: int


def chunks(pages: Iterable[Page]) -> list[Chunk]:
    """The passages of a report, in reading order. Every character of its blocks is in exactly one of them."""
    return list(_chunks(pages))


def _chunks(pages: Iterable[Page]) -> Iterator[Chunk]:
    section = ""
    for page in pages:
        held: list[Block] = []
        for block in page.blocks:
            if block.kind == "heading":
                yield from _made(page.number, section, held)
                held, section = [], block.text
            if block.kind == "table" or sum(tokens(one.text) for one in held) + tokens(block.text) > TARGET:
                yield from _made(page.number, section, held)
                held = []
            held.append(block)
            if block.kind == "table":
                yield from _made(page.number, section, held)
                held = []
        yield from _made(page.number, section, held)


def _made(page: int, section: str, blocks: list[Block]) -> Iterator[Chunk]:
    if blocks:
        text = "\n".join(block.text for block in blocks)
        yield Chunk(page, section, text, any(block.kind == "table" for block in blocks), tokens(text))
