"""Reads one file in this process: which kind it is, and what becomes of one that cannot be read."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_memory_plugin.reports.document import NO_TEXT, NOT_READ, Page, ReadReport
from hermes_memory_plugin.reports.garbled import BAD_FONT, HOPELESS, share
from hermes_memory_plugin.reports.limits import MB, Limits
from hermes_memory_plugin.reports.metadata import Front, metadata
from hermes_memory_plugin.reports.pdf import read_pdf
from hermes_memory_plugin.reports.plain import decoded, html_pages, markdown_pages, text_pages
from hermes_memory_plugin.reports.refused import Refused

OnPage = Callable[[int, int], None]


def read(
    path: Path,
    *,
    password: str | None = None,
    limits: Limits | None = None,
    plain: bool = False,
    on_page: OnPage = lambda at, of: None,
) -> ReadReport:
    """Read one file. For `worker`: here a hostile file may take any time and memory, or crash the process.

    plain   read PDF without pdfium
    """
    limits = limits or Limits()
    try:
        data = _bytes(path, limits)
    except Refused as refused:
        return refused.report
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        pages, front, properties = _pages(path, data, password, limits, plain, on_page)
    except Refused as refused:
        return replace(refused.report, sha256=sha256)
    about = metadata(pages, front, path.stem, properties)
    if not any(page.blocks for page in pages):
        said = {problem for page in pages for problem in page.problems}
        if said == {NOT_READ}:
            return ReadReport("broken", "none of its pages could be read", sha256)
        return ReadReport("no_text", BAD_FONT if said == {BAD_FONT} else NO_TEXT, sha256, about, tuple(pages))
    return ReadReport("text", "", sha256, about, tuple(pages))


def _bytes(path: Path, limits: Limits) -> bytes:
    """The whole file at once: what happens to it later does not matter."""
    try:
        # A pipe must not make us wait for its writer.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise Refused(ReadReport("broken", "it is not a file"))
            if found.st_size > limits.file_bytes:
                raise Refused(
                    ReadReport(
                        "too_big",
                        f"it has {found.st_size / MB:.0f} MB; the limit is {limits.file_bytes / MB:.0f} MB",
                    )
                )
            data = file.read(limits.file_bytes + 1)
    except OSError as error:
        raise Refused(ReadReport("broken", (error.strerror or str(error)).lower())) from None
    if not data:
        raise Refused(ReadReport("broken", "it is empty (0 bytes)"))
    return data


def _pages(
    path: Path, data: bytes, password: str | None, limits: Limits, plain: bool, on_page: OnPage
) -> tuple[Sequence[Page], Front, Mapping[str, str]]:
    """By what the file holds, and by its suffix only where that says nothing."""
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    suffix = path.suffix.lower()
    if b"%PDF-" in data[:1024] or (suffix == ".pdf" and not _is_html(head)):
        return read_pdf(data, password=password, limits=limits, plain=plain, on_page=on_page)
    if _is_archive(head):
        raise Refused(ReadReport("broken", "it is an archive or an Office file; save it as PDF"))
    properties: Mapping[str, str] = {}
    if _is_html(head) or suffix in (".html", ".htm"):
        pages, front, properties = html_pages(data)
    elif suffix in (".md", ".markdown"):
        pages, front = markdown_pages(decoded(data))
    else:
        pages, front = text_pages(decoded(data))
    on_page(len(pages), len(pages))
    if share("".join(page.text for page in pages[:5])[:20_000]) > HOPELESS:
        raise Refused(ReadReport("broken", "it is not text, or in an encoding that is not known here"))
    return pages, front, properties


def _is_html(head: bytes) -> bool:
    start = head[:512].lower()
    return start.startswith((b"<!doctype html", b"<html", b"<?xml")) or b"<html" in start or b"<body" in start


def _is_archive(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"\x1f\x8b", b"Rar!", b"7z\xbc\xaf", b"\xd0\xcf\x11\xe0"))
