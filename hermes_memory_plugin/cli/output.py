"""What a command prints: one JSON object, or a page for a person, never both.

Stored text may hold anything; on a terminal it is shown as text, so that no row can move the cursor or recolour
the screen.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs.types import Owner

if TYPE_CHECKING:
    from rich.console import Console


def plain(value: Any) -> Any:
    """`value` as JSON knows it: times as ISO text, owners as their key, sets sorted."""
    if isinstance(value, Owner):
        return value.key
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def print_json(data: Mapping[str, Any]) -> None:
    """One JSON object on stdout, in any script the terminal can show."""
    unicode_out = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(plain(data), ensure_ascii=not unicode_out, indent=2)
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> Console:
    """A rich console that prints data as it is: no markup, no guessing of numbers and paths."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 120
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)


def shown(text: object, limit: int = 0) -> str:
    """Text as a terminal may show it: control and direction characters out, at most `limit` characters."""
    kept = [
        character
        for character in str(text)
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    ]
    clean = "".join(kept)
    return clean if not limit or len(clean) <= limit else clean[: limit - 1] + "…"


def one_line(text: object, limit: int = 0) -> str:
    """`shown`, without line breaks."""
    return shown(" ".join(str(text).split()), limit)


def table(out: Console, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table without frame; the last column takes what room is left."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
    for number, head in enumerate(heads):
        grid.add_column(head, no_wrap=number < len(heads) - 1, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    out.print(grid)


def pairs(out: Console, rows: Iterable[tuple[str, object]]) -> None:
    """Name and value, one pair a line."""
    from rich.text import Text

    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0) + 2
    for name, value in listed:
        out.print(Text.assemble((name.ljust(width), "dim"), one_line(value)))
