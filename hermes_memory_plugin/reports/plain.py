"""Reports that are text already: Markdown, plain text, HTML."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from html.parser import HTMLParser

from hermes_memory_plugin.reports.blocks import heading_like
from hermes_memory_plugin.reports.document import Block, Page
from hermes_memory_plugin.reports.joining import join, tidy
from hermes_memory_plugin.reports.metadata import Front
from hermes_memory_plugin.reports.tables import cells_of, markdown
from hermes_memory_plugin.reports.titles import CAPTION, SOURCE, unit_of

_PAGE = 3_000
"""Characters of a page of a text that has no pages; a form feed begins one too."""
_ENCODINGS = ("utf-8", "gb18030", "big5", "shift_jis")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_RULE = re.compile(r"\|?(?:\s*:?-{1,}:?\s*\|)+\s*(?::?-+:?\s*)?")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_META = re.compile(r"<meta[^>]+charset\s*=\s*[\"']?\s*([\w\-]+)", re.IGNORECASE)
_TEXT = frozenset(
    ("p", "li", "dd", "dt", "blockquote", "pre", "figcaption", "caption", "div", "section", "article", "br")
)
_SILENT = frozenset(
    (
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "nav",
        "footer",
        "header",
        "form",
        "head",
        "iframe",
        "button",
    )
)
_VOID = frozenset(
    ("br", "img", "meta", "link", "input", "hr", "source", "area", "base", "col", "embed", "track", "wbr")
)


def decoded(data: bytes) -> str:
    """The text of a file in one of the encodings Chinese and English reports come in.

    By its mark, else the first of UTF-8, UTF-16 (by its zero bytes) and GB18030 that fits; at worst with replacement
    characters.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    head = data[:4000]
    if head.count(0) > len(head) // 8:
        even, odd = head[::2].count(0), head[1::2].count(0)
        return data.decode("utf-16-le" if odd >= even else "utf-16-be", "replace")
    for name in _ENCODINGS:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace")


def text_pages(text: str) -> tuple[list[Page], Front]:
    """The pages of plain text: paragraphs by empty lines, or by the lines themselves where there are none."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    pages = [_blocks_of_text(part) for part in text.split("\f")]
    return _paged(pages)


def markdown_pages(text: str) -> tuple[list[Page], Front]:
    """The pages of a Markdown text."""
    return _paged([markdown_blocks(part) for part in text.replace("\r\n", "\n").split("\f")])


def html_pages(data: bytes) -> tuple[list[Page], Front, dict[str, str]]:
    """The pages of an HTML file, and its title as a property."""
    declared = _META.search(data[:2048].decode("ascii", "replace"))
    text = decoded(data)
    if declared:
        with suppress(LookupError, UnicodeDecodeError):
            text = data.decode(declared[1])
    parser = _Html()
    parser.feed(text)
    parser.close()
    parser.flush()
    properties = {"Title": tidy(parser.title)} if parser.title.strip() else {}
    return *_paged([tuple(parser.blocks)]), properties


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text, in order."""
    found: list[Block] = []
    held: list[str] = []
    fenced = False

    def finish() -> None:
        nonlocal held
        if held and all(line.lstrip().startswith("|") for line in held) and len(held) > 1:
            found.append(_table("\n".join(line.strip() for line in held), found))
        elif held:
            found.append(Block("paragraph", join(held)))
        held = []

    for line in text.split("\n"):
        line = line.rstrip()
        if _FENCE.match(line):
            fenced = not fenced
            continue
        heading = None if fenced else _HEADING.fullmatch(line)
        is_row = line.lstrip().startswith("|")
        if heading or not line.strip() or (held and is_row != held[-1].lstrip().startswith("|")):
            finish()
        if heading:
            if heading[2]:
                found.append(Block("heading", tidy(heading[2])))
        elif re.match(r"\s*(?:[-*+]|\d{1,3}[.)])\s", line) and not is_row:
            finish()
            held.append(line.strip())
        elif line.strip():
            held.append(line)
    finish()
    return tuple(block for block in found if block.text)


def _table(rows: str, before: list[Block]) -> Block:
    """A table with the caption that stands right above it, which it takes over."""
    lines = [line for line in rows.split("\n") if not _RULE.fullmatch(line)]
    text = (
        markdown(cells_of("\n".join(line if line.endswith("|") else line + " |" for line in lines)))
        if lines
        else rows
    )
    caption = ""
    if (
        before
        and before[-1].kind != "table"
        and CAPTION.match(before[-1].text)
        and len(before[-1].text) <= 80
    ):
        caption = before.pop().text
        text = f"{caption}\n{text}"
    return Block("table", text, caption, unit_of(caption))


def _blocks_of_text(text: str) -> tuple[Block, ...]:
    parts = [part for part in re.split(r"\n[ \t\u3000]*\n", text) if part.strip()]
    if len(parts) <= 1:
        parts = [line for line in text.split("\n") if line.strip()]
    found: list[Block] = []
    for part in parts:
        lines = part.split("\n")
        if len(lines) > 1 and all(line.lstrip().startswith("|") for line in lines):
            found.append(_table("\n".join(line.strip() for line in lines), found))
            continue
        whole = join(lines)
        if whole:
            found.append(Block("heading" if len(lines) == 1 and heading_like(whole) else "paragraph", whole))
    return tuple(found)


def _paged(parts: list[tuple[Block, ...]]) -> tuple[list[Page], Front]:
    pages: list[Page] = []
    for part in parts:
        held: list[Block] = []
        size = 0
        for block in part:
            if held and size + len(block.text) > _PAGE and block.kind != "paragraph":
                pages.append(Page(len(pages) + 1, tuple(held)))
                held, size = [], 0
            held.append(block)
            size += len(block.text)
        if held or len(parts) > 1:
            pages.append(Page(len(pages) + 1, tuple(held)))
    first = pages[0].blocks if pages else ()
    lines = tuple(line for block in first[:40] for line in block.text.split("\n"))
    heads = [block.text for block in first if block.kind == "heading"][:3]
    return pages, Front(lines, tuple([line for line in lines[:1] if len(line) <= 80] + heads))


class _Html(HTMLParser):
    """Headings, paragraphs and tables of a page; scripts, menus and hidden parts are left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.title = ""
        self._text: list[str] = []
        self._kind = "paragraph"
        self._silent: list[str] = []
        self._in_title = False
        self._tables: list[list[list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        if tag in _VOID and tag != "br":
            return
        hidden = any(
            name == "hidden" or (name == "style" and "display:none" in (value or "").replace(" ", "").lower())
            for name, value in attrs
        )
        if self._silent:
            if tag not in _VOID:
                self._silent.append(tag)
            return
        if (tag in _SILENT or hidden) and tag not in _VOID:
            self.flush()
            self._silent.append(tag)
        elif tag == "table":
            self.flush()
            self._tables.append([])
        elif tag == "tr" and self._tables:
            self._tables[-1].append([])
        elif tag in ("td", "th") and self._tables:
            self._text = []
        elif tag == "br":
            self._text.append("\n")
        elif (tag in _TEXT or re.fullmatch(r"h[1-6]", tag)) and not self._in_cell():
            self.flush()
            self._kind = "heading" if tag[0] == "h" else "paragraph"

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if self._silent:
            if tag in self._silent:
                while self._silent and self._silent.pop() != tag:
                    pass
            return
        if tag in ("td", "th") and self._in_cell():
            self._tables[-1][-1].append(join("".join(self._text).split("\n")))
            self._text = []
        elif tag == "table" and self._tables:
            rows = [row for row in self._tables.pop() if any(row)]
            if self._in_cell():  # a table within a cell: its words belong to the cell
                self._text.append(" ".join(cell for row in rows for cell in row))
            elif len(rows) > 1 and max(map(len, rows)) > 1:
                self.blocks.append(_table(markdown(rows), self.blocks))
            else:
                self.blocks.extend(Block("paragraph", cell) for row in rows for cell in row if cell)
        elif (tag in _TEXT or re.fullmatch(r"h[1-6]", tag)) and not self._in_cell():
            self.flush()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._silent:
            self._text.append(data)

    def flush(self) -> None:
        """End the block under way."""
        text = join("".join(self._text).split("\n"))
        self._text = []
        kind, self._kind = self._kind, "paragraph"
        if not text:
            return
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.kind == "table" and SOURCE.match(text):
            self.blocks[-1] = Block("table", f"{last.text}\n{text}", last.caption, last.unit)
        else:
            self.blocks.append(Block("heading" if kind == "heading" else "paragraph", text))

    def _in_cell(self) -> bool:
        return bool(self._tables and self._tables[-1])
