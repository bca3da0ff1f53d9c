"""INDEX.md: one line for each note, for people and for the session that asks what there is.

Lines somebody added by hand stay; those of files that are gone go with the next change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
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
    folder: Path,
    changed: Iterable[Line],
    *,
    drop: str,
    there: Collection[str],
    line_of: Callable[[str], Line | None],
) -> None:
    """Put each note's line where its earlier one stood (else at the end), take out `drop`'s and those of missing files.

    there      names of the files in the notes folder; one no line names gets its line, which `line_of` makes
    """
    try:
        text = (folder / NAME).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    new = {line[0]: entry(line) for line in changed}
    moved = next(iter(new), "")  # a note that gets another file keeps its place
    kept: list[str] = []
    for line in text.splitlines():
        name = target(line)
        if name and name == drop:
            if not moved:
                continue
            name = moved
        if name in new:
            kept.append(new.pop(name))
        elif not name or name in there:
            kept.append(line)
    named = {target(line) for line in kept}
    missing = (line_of(name) for name in sorted(set(there) - named - new.keys()))
    kept += [*(entry(line) for line in missing if line), *new.values()]
    found = "".join(f"{line}\n" for line in kept)
    if found != text:
        atomic_write(folder, NAME, found)


def entry(line: Line) -> str:
    """The line of a note."""
    name, title, description = line
    title = title.replace("[", "(").replace("]", ")")
    return f"- [{title}](notes/{name}): {front.one_line(description)[:120]}"


def target(line: str) -> str:
    """The note file a line points to; "" for other lines."""
    match = _LINK.match(line)
    return match[1] if match else ""
