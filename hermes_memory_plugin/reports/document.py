"""What reading a report gives: pages of headings, paragraphs and tables, and what the report says of itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Literal

from hermes_memory_hookspecs import ReportDocument
from hermes_memory_plugin.errors import ReportUnreadable

BlockKind = Literal["heading", "paragraph", "table"]
Status = Literal["text", "no_text", "encrypted", "broken", "too_big"]
NO_TEXT = "no text layer, needs OCR"
NOT_READ = "it could not be read"

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph or table of a page."""

    kind: BlockKind
    text: str
    """One line for headings and paragraphs; for a table its caption, its unit and its Markdown rows, each on lines of its own."""
    caption: str = ""
    """Of a table: ``图表 3：盈利预测``."""
    unit: str = ""
    """Of a table: ``百万元``."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page in reading order, without what repeats on every page."""

    number: int
    """From 1, as a PDF viewer counts."""
    blocks: tuple[Block, ...] = ()
    problems: tuple[str, ...] = ()
    """What of this page could not be read, in words for a person: ``no text layer, needs OCR``."""

    @property
    def text(self) -> str:
        """All blocks, an empty line between them."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def tables(self) -> tuple[Block, ...]:
        """The tables of the page."""
        return tuple(block for block in self.blocks if block.kind == "table")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a report says of itself. A field nobody could be sure of is empty."""

    title: str = ""
    broker: str = ""
    analysts: tuple[str, ...] = ()
    date: date | None = None
    tickers: tuple[str, ...] = ()
    """Canonical ids, the company the report is on first: ``600519.SH``."""
    names: tuple[str, ...] = ()
    """The companies' names, in the order of `tickers`."""
    industry: str = ""
    rating: str = ""
    """As the broker words it: 买入, 增持, Outperform."""
    target_price: float | None = None
    currency: str = ""
    """Of the target price: CNY, HKD, USD."""


@dataclass(frozen=True, slots=True)
class ReadReport:
    """One report file as it was read. `pages` is empty unless `status` is "text" or "no_text"."""

    status: Status
    reason: str = ""
    """Why it is not text, in words for a person."""
    sha256: str = ""
    """Of the file's bytes; empty when they could not be read."""
    metadata: Metadata = field(default_factory=Metadata)
    pages: tuple[Page, ...] = ()
    seconds: float = 0.0
    """What reading it took."""

    @property
    def text_sha256(self) -> str:
        """The same for two files with the same words: spaces and line breaks do not count. Empty without text."""
        words = _SPACE.sub("", "".join(page.text for page in self.pages))
        return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest() if words else ""

    @property
    def problems(self) -> tuple[tuple[int, str], ...]:
        """(page, what could not be read there), in the order of the pages."""
        return tuple((page.number, problem) for page in self.pages for problem in page.problems)

    def checked(self, path: Path) -> ReadReport:
        """Itself. Raises ReportUnreadable where there is nothing to store: encrypted, broken, too big."""
        if self.status in ("encrypted", "broken", "too_big"):
            raise ReportUnreadable(path, self.reason)
        return self

    def as_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        plain = asdict(self)
        day = self.metadata.date
        plain["metadata"]["date"] = day.isoformat() if day else None
        return plain

    def as_document(self, report_id: str) -> ReportDocument:
        """The form that crosses the contract."""
        about = self.metadata
        return ReportDocument(
            id=report_id,
            title=about.title,
            date=datetime.combine(about.date, time(), UTC) if about.date else None,
            broker=about.broker,
            analysts=about.analysts,
            tickers=about.tickers,
            rating=about.rating,
            target_price=about.target_price,
            pages=tuple(page.text for page in self.pages),
        )


def from_json(plain: Mapping[str, Any]) -> ReadReport:
    """What `ReadReport.as_json` wrote. Raises KeyError, TypeError or ValueError on anything else."""
    about = dict(plain["metadata"])
    about["date"] = date.fromisoformat(about["date"]) if about["date"] else None
    for name in ("analysts", "tickers", "names"):
        about[name] = tuple(about[name])
    pages = tuple(
        Page(page["number"], tuple(Block(**block) for block in page["blocks"]), tuple(page["problems"]))
        for page in plain["pages"]
    )
    return ReadReport(**{**plain, "metadata": Metadata(**about), "pages": pages})


def from_document(document: ReportDocument) -> ReadReport:
    """A report somebody else has read, as if it were read here."""
    from hermes_memory_plugin.reports.plain import markdown_blocks

    pages = tuple(Page(number, markdown_blocks(text)) for number, text in enumerate(document.pages, start=1))
    about = Metadata(
        title=document.title,
        broker=document.broker,
        analysts=tuple(document.analysts),
        date=document.date.date() if document.date else None,
        tickers=tuple(document.tickers),
        rating=document.rating,
        target_price=document.target_price,
    )
    report = ReadReport("text", metadata=about, pages=pages)
    if not report.text_sha256:
        return replace(report, status="no_text", reason=NO_TEXT)
    return replace(report, sha256=report.text_sha256)
