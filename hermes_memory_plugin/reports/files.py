"""The report files below folders: links are followed once, what cannot be entered is said."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = frozenset((".pdf", ".md", ".markdown", ".txt", ".html", ".htm"))


def report_files(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """(file, "") for each report, sorted within its folder, each file once; (path, reason) for what cannot be entered.

    A file that is named itself comes whatever its suffix. Hidden files and folders, and those of other suffixes, are
    passed over.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        try:
            found = path.stat()
        except OSError as error:
            yield path, (error.strerror or str(error)).lower()
            continue
        if path.is_dir():
            yield from _below(path, seen)
        elif (found.st_dev, found.st_ino) not in seen:
            seen.add((found.st_dev, found.st_ino))
            yield path, ""


def _below(folder: Path, seen: set[tuple[int, int]]) -> Iterator[tuple[Path, str]]:
    try:
        here = folder.stat()
        if (here.st_dev, here.st_ino) in seen:
            return  # a link to a folder above, or to one we have been in
        seen.add((here.st_dev, here.st_ino))
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith((".", "~$")))
    except OSError as error:
        yield folder, (error.strerror or str(error)).lower()
        return
    for name in names:
        path = folder / name
        try:
            found = path.stat()
        except OSError as error:
            if path.suffix.lower() in SUFFIXES:
                yield path, (error.strerror or str(error)).lower()
            continue
        if path.is_dir():
            yield from _below(path, seen)
        elif path.suffix.lower() in SUFFIXES and (found.st_dev, found.st_ino) not in seen:
            seen.add((found.st_dev, found.st_ino))
            yield path, ""
