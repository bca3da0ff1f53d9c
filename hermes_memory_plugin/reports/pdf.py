"""Reads PDF pages: pdfium for speed, pdfplumber where pdfium's text is not to be trusted."""

from __future__ import annotations

import io
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from hermes_memory_plugin.reports import garbled, glyphs, ruled, rules
from hermes_memory_plugin.reports.blocks import blocks, body_size
from hermes_memory_plugin.reports.document import NO_TEXT, NOT_READ, Page, ReadReport
from hermes_memory_plugin.reports.glyphs import Sheet
from hermes_memory_plugin.reports.joining import join, tidy
from hermes_memory_plugin.reports.layout import Line, reading_order
from hermes_memory_plugin.reports.limits import Limits
from hermes_memory_plugin.reports.metadata import Front
from hermes_memory_plugin.reports.refused import Refused
from hermes_memory_plugin.reports.repeated import repeated

OnPage = Callable[[int, int], None]
_SLOW_PAGE = 5.0
"""Seconds the slow reader may take for one page."""
_MOST_GLYPHS = 60_000
"""Characters of one page; what has more is no page of a report."""


@dataclass(slots=True)
class _Read:
    """One page, before what repeats on every page is known."""

    height: float
    columns: list[list[Line]]
    problems: list[str]


class _Native:
    """pdfium."""

    def __init__(self, data: bytes, password: str | None) -> None:
        import pypdfium2

        try:
            self._document = pypdfium2.PdfDocument(data, password=password)
        except pypdfium2.PdfiumError as error:
            raise _refused(error, password) from None
        self.pages = len(self._document)
        with suppress(pypdfium2.PdfiumError):
            self.properties: dict[str, str] = self._document.get_metadata_dict()

    def sheet(self, number: int) -> tuple[Sheet, list[rules.Edge]]:
        page = self._document[number]
        try:
            sheet = glyphs.from_pdfium(page)
            return sheet, rules.from_pdfium(page) if sheet.glyphs else []
        finally:
            page.close()


class _Reference:
    """pdfplumber: slow, and all Python."""

    def __init__(self, data: bytes, password: str | None) -> None:
        import pdfplumber

        try:
            self._document = pdfplumber.open(io.BytesIO(data), password=password)
            self.pages = len(self._document.pages)
        except MemoryError:
            raise
        except Exception as error:  # the parser meets every kind of nonsense
            raise _refused(error, password) from None
        self.properties = {
            str(name): str(value) for name, value in (self._document.metadata or {}).items() if value
        }

    def sheet(self, number: int) -> tuple[Sheet, list[rules.Edge]]:
        page = self._document.pages[number]
        try:
            with _time_limit(_SLOW_PAGE):
                return glyphs.from_pdfplumber(page), rules.from_pdfplumber(page)
        finally:
            page.close()


def read_pdf(
    data: bytes, *, password: str | None, limits: Limits, plain: bool, on_page: OnPage
) -> tuple[list[Page], Front, dict[str, str]]:
    """The pages, the lines of the first one and the properties of a PDF. Raises Refused with the reason."""
    first = _opened(data, password, plain)
    if first.pages > limits.pages:
        raise Refused(ReadReport("too_big", f"it has {first.pages:,} pages; the limit is {limits.pages:,}"))
    other: list[_Reference | None] = []

    def reference() -> _Reference | None:
        if not other:
            with suppress(Refused):
                other.append(_Reference(data, password))
            if not other:
                other.append(None)
        return other[0]

    on_page(0, first.pages)
    read = []
    characters = 0
    hurry = time.monotonic() + limits.seconds_for(first.pages) / 2
    for number in range(first.pages):
        late = time.monotonic() > hurry
        page, count = _page(first, None if plain or late else reference, number, tables=not late)
        characters += count
        if characters > limits.characters:
            raise Refused(ReadReport("too_big", f"it has more than {limits.characters:,} characters of text"))
        read.append(page)
        on_page(number + 1, first.pages)
    return *_pages(read), first.properties


def _opened(data: bytes, password: str | None, plain: bool) -> _Native | _Reference:
    if plain:
        return _Reference(data, password)
    try:
        return _Native(data, password)
    except Refused as refused:
        with suppress(Refused):
            return _Reference(data, password)
        raise refused from None


def _page(
    first: _Native | _Reference, other: Callable[[], _Reference | None] | None, number: int, *, tables: bool
) -> tuple[_Read, int]:
    """One page and how many characters it has; `tables`: whether there is time to look for ruled ones."""
    best, worst = _one(first, number)
    if worst >= garbled.NOTICED and other is not None:
        second = other()
        if second is not None and number < second.pages:
            again, share = _one(second, number)
            if share < 0.5 * worst:
                best, worst = again, share
    sheet, edges = best
    problems = []
    if not sheet.glyphs:
        return _Read(sheet.height, [], [NOT_READ if worst else NO_TEXT]), 0
    if worst >= garbled.HOPELESS:
        return _Read(sheet.height, [], [garbled.BAD_FONT]), 0
    if worst >= garbled.NOTICED:
        problems.append(f"{worst:.0%} of its characters could not be read")
    if not tables and edges:
        problems.append("its ruled tables were not looked for: half the time of the file was over")
    found, taken = ruled.ruled(rules.grids(edges) if tables else [], sheet.glyphs)
    free = [glyph for place, glyph in enumerate(sheet.glyphs) if place not in taken]
    columns = reading_order([*glyphs.runs(free), *found])
    return _Read(sheet.height, columns, problems), len(sheet.glyphs)


def _one(reader: _Native | _Reference, number: int) -> tuple[tuple[Sheet, list[rules.Edge]], float]:
    """A page and the share of it that is not text: 0 to 1."""
    try:
        sheet, edges = reader.sheet(number)
    except MemoryError:
        raise
    except Exception:  # a page that cannot be parsed is that page's loss alone
        return (Sheet(0.0, 1.0, ()), []), 1.0
    if len(sheet.glyphs) > _MOST_GLYPHS:
        sheet = Sheet(sheet.width, sheet.height, sheet.glyphs[:_MOST_GLYPHS])
    text = "".join(f" {glyph.char}" if glyph.spaced else glyph.char for glyph in sheet.glyphs)
    return (sheet, edges), garbled.share(text)


def _pages(read: Sequence[_Read]) -> tuple[list[Page], Front]:
    everything = [(page.height, [line for column in page.columns for line in column]) for page in read]
    gone = repeated(everything)
    body = body_size(line for _, lines in everything for line in lines)
    front = _front(read, gone, body)
    pages = []
    for number, page in enumerate(read, start=1):
        columns = [[line for line in column if id(line) not in gone] for column in page.columns]
        pages.append(Page(number, blocks(columns, body), tuple(page.problems)))
    return pages, front


def _front(read: Sequence[_Read], gone: set[int], body: float) -> Front:
    """Taken before blocks are made: it wants the lines as they stand, those that repeat included."""
    everywhere = {
        tidy(line.text): None
        for page in read
        for column in page.columns
        for line in column
        if id(line) in gone
    }
    if not read:
        return Front()
    page = read[0]
    lines: list[str] = []
    heads: list[tuple[float, str]] = []
    before: Line | None = None
    for column in page.columns:
        for line in column:
            if line.rows:
                lines.extend(tidy(" ".join(filter(None, row))) for row in line.rows)
                continue
            # What stands far apart says different things: a label and its value stand close.
            lines.append(tidy(line.text))
            lines.extend(tidy(run.text) for run in line.runs if len(line.runs) > 1)
            if line.size < 1.15 * body or line.top > 0.6 * page.height:
                continue
            if (
                before
                and abs(line.size - before.size) < 0.1 * line.size
                and 0 < line.top - before.top < 2 * line.size
            ):
                heads[-1] = (heads[-1][0], join((heads[-1][1], line.text)))
            else:
                heads.append((line.size, tidy(line.text)))
            before = line
    heads.sort(key=lambda head: -head[0])
    return Front(
        tuple(filter(None, lines)), tuple(garbled.bullets(text) for _, text in heads[:8]), tuple(everywhere)
    )


def _refused(error: Exception, password: str | None) -> Refused:
    said = f"{type(error).__name__} {error} {type(error.__context__).__name__} {error.__context__}".lower()
    if "password" in said:
        if password is None:
            return Refused(ReadReport("encrypted", "it is encrypted; give its password with --password"))
        return Refused(ReadReport("encrypted", "it is encrypted, and the password given does not open it"))
    if "security" in said or "encrypt" in said:
        return Refused(ReadReport("encrypted", "it is encrypted in a way that cannot be opened here"))
    return Refused(ReadReport("broken", "it is no PDF, or a damaged one (cut off, or not fully downloaded)"))


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in Python code that takes longer; only where the system and the thread allow it."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
