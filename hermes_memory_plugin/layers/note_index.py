"""INDEX.md: one line for each note, for people and for the session that asks what there is.

Lines somebody added by hand stay; those of files that are gone go with the next change.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from hermes_memory_plugin.layers import front
from hermes_memory_plugin.store.files import atomic_write

NAME = "INDEX.md"
LINES = 200
"""Lines that count."""
Line = tuple[str, str, str]
"""(file name, title, description) of a note."""

_LINK = re.compile(r"^- \[.*\]\(notes/([^()\s]+)\)")


def read(folder: Path, files: Collection[str] | None = None) -> list[str]:
    """The first 200 lines; with `files` only lines of those files (`notes/…`)."""
    try:
        text = (folder / NAME).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    if files is not None:
        known = {name.rsplit("/", 1)[-1] for name in files}
        lines = [line for line in lines if target(line) in known]
    return lines[:LINES]


def rewrite(
    folder: Path, line: Line | None, *, drop: str, there: Collection[str], everything: Iterable[Line]
) -> None:
    """Put the note's line where its earlier one stood (else at the end), take out `drop`'s and those of missing files.

    there        names of the files in the notes folder
    everything   every note, for an index that is not there yet
    """
    path = folder / NAME
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        lines = [entry(other) for other in everything]
    out = {drop, line[0] if line else ""} - {""}
    at = next((number for number, text in enumerate(lines) if target(text) in out), len(lines))
    there = set(there)
    kept: list[str] = []
    for number, text in enumerate(lines):
        name = target(text)
        if name and (name in out or name not in there):
            at -= number < at
        else:
            kept.append(text)
    if line:
        kept.insert(min(at, len(kept)), entry(line))
    atomic_write(folder, NAME, "\n".join(kept) + "\n" if kept else "")


def entry(line: Line) -> str:
    """The line of a note."""
    name, title, description = line
    title = title.replace("[", "(").replace("]", ")")
    return f"- [{title}](notes/{name}): {front.one_line(description)[:120]}"


def target(line: str) -> str:
    """The note file a line points to; "" for other lines."""
    match = _LINK.match(line)
    return match[1] if match else ""
