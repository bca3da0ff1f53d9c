"""The fixture reports, read once; and small PDF files written by hand."""

from __future__ import annotations

import importlib.util
import zlib
from functools import cache
from pathlib import Path

from hermes_memory_plugin.reports.document import ReadReport
from hermes_memory_plugin.reports.reader import read

SHELF = Path(__file__).parents[2] / "fixtures" / "reports"
PASSWORD = "research-2026"
QINGHE = "20260415-青禾证券-贵州茅台-600519-一季度平稳开局.pdf"
LINJIANG = "20260428-临江证券-贵州茅台-600519.pdf"
YUNLING = "云岭证券：贵州茅台(600519)深度报告-20260506.pdf"
ENGLISH = "Harbour & Finch - BYD (002594.SZ) - Initiation 2026-03-18.pdf"
BESIDE = "五粮液 (000858) 年报点评.pdf"
LOCKED = "加密-内部路演纪要.pdf"

_spec = importlib.util.spec_from_file_location("fixtures_raw", SHELF / "raw.py")
assert _spec and _spec.loader
raw = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(raw)


@cache
def report(name: str, *, plain: bool = False) -> ReadReport:
    """A fixture, read in this process."""
    return read(SHELF / name, plain=plain)


def text(name: str, page: int) -> str:
    """The text of one page of a fixture."""
    return report(name).pages[page - 1].text


def pdf(content: bytes, *, pages: int = 1, filters: bytes = b"") -> bytes:
    """A PDF whose pages all show the same content; `filters` name how it is packed already."""
    shown = b"<< /Length %d /Filter [%s] >>\nstream\n%s\nendstream" % (len(content), filters, content)
    return bytes(
        raw.pdf(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join([b"3 0 R"] * pages), pages),
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
                b" /Resources << /Font << /F1 5 0 R >> >> >>",
                shown if filters else raw.stream(content),
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            ]
        )
    )


def words(count: int) -> bytes:
    """Content that shows so many pieces of text."""
    each = (
        b"1 0 0 1 %d %d Tm (word %d and more) Tj" % (50 + 7 * n % 400, 40 + 3 * n % 760, n)
        for n in range(count)
    )
    return b"BT /F1 10 Tf " + b"\n".join(each) + b" ET"


def bomb(megabytes: int) -> bytes:
    """A PDF of a few kilobytes whose page unpacks to so many megabytes."""
    squeeze = zlib.compressobj(1)
    parts = [squeeze.compress(b" " * (1 << 20)) for _ in range(megabytes)]
    once = b"".join([*parts, squeeze.flush()])
    return pdf(zlib.compress(once, 9), filters=b"/FlateDecode /FlateDecode")
