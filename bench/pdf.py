"""Reading PDF files: what becomes of each, pages a second, memory of a worker, and plain pdfplumber beside it.

    python -m bench.pdf [--data FOLDER] [--filings FOLDER] [--workers 2] [--report bench/results/pdf] [--json FILE]

FOLDER holds ``files/`` and ``manifest.csv`` (file, pages, pdfplumber_outcome …); ``--filings`` is a folder of long reports
whose text pages are timed. Both are looked for in ``../shared/data`` and left out where they are missing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.figures import ROOT, quantile
from hermes_memory_plugin.reports.document import ReadReport
from hermes_memory_plugin.reports.pool import read_many

DATA = ROOT.parent / "shared" / "data"
ENDS = ("text", "no_text", "encrypted", "broken", "too_big")


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA / "pdf-corpus")
    parser.add_argument("--filings", type=Path, default=DATA / "financebench" / "pdfs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--plumber-pages", type=int, default=20, help="pages of each filing read by plain pdfplumber"
    )
    parser.add_argument("--report", type=Path, help="write a table to FILE.md")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    figures: dict[str, Any] = {"fixtures": read(ROOT / "fixtures" / "reports", chosen.workers)}
    if (chosen.data / "files").is_dir():
        figures["corpus"] = {
            **read(chosen.data / "files", chosen.workers),
            **kept(chosen.data, chosen.workers),
        }
    if chosen.filings.is_dir():
        figures["filings"] = read(chosen.filings, chosen.workers)
        figures["filings"]["pdfplumber, pages/s of CPU"] = plumber(chosen.filings, chosen.plumber_pages)
    table = f"{rendered(figures)}\n\nLoad average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {chosen.workers} workers."
    print(table)
    if chosen.report:
        chosen.report.with_suffix(".md").write_text(table + "\n", encoding="utf-8")
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False), encoding="utf-8")


def read(folder: Path, workers: int) -> dict[str, Any]:
    """Read every PDF of a folder; the figures."""
    paths = sorted(folder.rglob("*.pdf"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    results = dict(read_many(paths, workers=workers))
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pages = sum(len(report.pages) for report in results.values())
    tables = sum(len(page.tables) for report in results.values() for page in report.pages)
    ends = Counter(report.status for report in results.values())
    return {
        "files": len(paths),
        **{end: ends[end] for end in ENDS},
        "hangs, crashes": sum(hung(report) for report in results.values()),
        "pages": pages,
        "tables": tables,
        "pages/s": round(pages / seconds, 1),
        "pages/s of CPU": round(pages / cpu, 1),
        "seconds a file, p95": round(quantile((report.seconds for report in results.values()), 0.95), 2),
        # Of the largest worker so far in this run.
        "peak memory of a worker, MB": round(after.ru_maxrss / 1024),
    }


def hung(report: ReadReport) -> bool:
    """Whether the file took its worker's time or life."""
    return any(words in report.reason for words in ("longer than the limit", "died"))


def kept(folder: Path, workers: int) -> dict[str, Any]:
    """How much of the text that pdfplumber found is there: white space apart, files of at least 200 characters."""
    with (folder / "manifest.csv").open(encoding="utf-8") as file:
        manifest = {row["file"]: row for row in csv.DictReader(file)}
    shares = []
    agreed = 0
    for path, report in read_many(sorted((folder / "files").iterdir()), workers=workers):
        row = manifest[path.name]
        found = sum(len(page.text) for page in report.pages[:30])
        if row["pdfplumber_outcome"] == "ok" and int(row["chars_first_30_pages"]) >= 200:
            shares.append(found / int(row["chars_first_30_pages"]))
        if row["pdfplumber_outcome"] == "no-text":
            agreed += report.status == "no_text"
    silent = sum(row["pdfplumber_outcome"] == "no-text" for row in manifest.values())
    return {
        "characters beside pdfplumber's, median": round(quantile(shares, 0.5), 2),
        "files with at least 80 % of them": f"{sum(share >= 0.8 for share in shares)} of {len(shares)}",
        "files without text named so": f"{agreed} of {silent}",
    }


def plumber(folder: Path, most: int) -> float:
    """Pages a second of CPU that pdfplumber's extract_text alone reads."""
    import pdfplumber

    pages, began = 0, time.process_time()
    for path in sorted(folder.glob("*.pdf"))[:4]:
        with pdfplumber.open(path) as document:
            for page in document.pages[:most]:
                page.extract_text()
                page.close()
                pages += 1
    return round(pages / (time.process_time() - began), 1) if pages else 0.0


def rendered(figures: dict[str, dict[str, Any]]) -> str:
    """A Markdown table, one column for each set."""
    names = list(dict.fromkeys(name for column in figures.values() for name in column))
    lines = ["| | " + " | ".join(figures) + " |", "|---|" + "---|" * len(figures)]
    lines += [
        f"| {name} | " + " | ".join(str(column.get(name, "")) for column in figures.values()) + " |"
        for name in names
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
