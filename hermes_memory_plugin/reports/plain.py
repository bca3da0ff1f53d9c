"""Reports that are text already: Markdown, plain text, HTML."""

from __future__ import annotations

import re

from hermes_memory_plugin.reports.document import Block

_PARTS = re.compile(r"\n\s*\n")


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text, in order."""
    found = []
    for part in _PARTS.split(text):
        part = part.strip()
        if part.startswith("#"):
            found.append(Block("heading", part.lstrip("# ").strip()))
        elif part.startswith("|"):
            found.append(Block("table", part))
        elif part:
            found.append(Block("paragraph", part))
    return tuple(found)
