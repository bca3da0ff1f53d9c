"""Reads one file in this process: which kind it is, and what becomes of one that cannot be read."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_memory_plugin.reports.document import NO_TEXT, Page, ReadReport
from hermes_memory_plugin.reports.limits import MB, Limits
from hermes_memory_plugin.reports.metadata import Front, metadata
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
        return ReadReport("no_text", NO_TEXT, sha256, about, tuple(pages))
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
    from hermes_memory_plugin.reports.pdf import read_pdf

    return read_pdf(data, password=password, limits=limits, plain=plain, on_page=on_page)
