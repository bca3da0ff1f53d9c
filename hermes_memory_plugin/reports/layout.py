"""Puts the runs of a page in reading order: columns one after the other, then lines from top to bottom.

A strip of a page is in columns when a gutter runs through it that no run crosses, and when what stands on both sides
reads down, not across: full lines of text, or lines that do not stand level with those on the other side. The cells of a
table stand level, and stay on their line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from hermes_memory_plugin.reports.glyphs import Run
from hermes_memory_plugin.reports.titles import CAPTION

_BAND = 3.0
"""Points: how fine the page is looked at for gutters."""
_GUTTER = 4.0
"""Points a gutter has at least."""
_DEPTH = 3
_LEVEL = 0.7
"""Share of the lines of one side that stand level with one of the other; those of a table do."""
_SAME_GUTTER = 20.0
"""Points by which the gutters of two strips may differ that are the same columns going on."""


@dataclass(slots=True)
class Line:
    """One line of one column."""

    runs: list[Run]
    x0: float
    x1: float
    top: float
    bottom: float
    size: float
    """Height of its characters, points."""
    left: float = 0.0
    right: float = 0.0
    """The column it stands in."""

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells, where it is a table."""
        return self.runs[0].rows

    @property
    def text(self) -> str:
        """Its runs; two spaces where there is more than a word's space between them."""
        parts = [self.runs[0].text]
        for before, run in pairwise(self.runs):
            gap = (run.x0 - before.x1) / self.size
            parts.append(("" if gap < 0.2 else " " if gap < 1.2 else "  ") + run.text)
        return "".join(parts)


def reading_order(page: Sequence[Run]) -> list[list[Line]]:
    """The lines of a page, column by column, in the order they are read."""
    return [column for column in _ordered(list(page), _DEPTH) if column]


def _ordered(page: list[Run], depth: int) -> list[list[Line]]:
    if len(page) < 6 or depth == 0:
        return [lines(page)]
    made: list[list[Line]] = []
    plain: list[Run] = []
    sides: tuple[list[Run], list[Run]] = ([], [])
    gutter_before = 0.0

    def finish() -> None:
        nonlocal plain, sides
        made.append(lines(plain))
        for side in sides:
            made.extend(_ordered(side, depth - 1))
        plain, sides = [], ([], [])

    for zone, gutters in _zones(page):
        gutter = next((one for one in gutters if sides[0] and abs(one - gutter_before) < _SAME_GUTTER), 0.0)
        if not gutter:
            if sides[0]:
                finish()
            gutter = next((one for one in gutters if _in_columns(*_split(zone, one))), 0.0)
        if gutter:
            if not sides[0]:
                plain, zone = _pulled(plain, zone, gutter)
            for side, part in zip(sides, _split(zone, gutter), strict=True):
                side.extend(part)
            gutter_before = gutter
        else:
            plain.extend(zone)
    finish()
    return made


def _pulled(plain: list[Run], zone: list[Run], gutter: float) -> tuple[list[Run], list[Run]]:
    """The lines right above columns that keep to them belong to them."""
    above = lines(plain)
    pulled: list[Run] = []
    while above and all(run.x1 <= gutter or run.x0 >= gutter for run in above[-1].runs):
        pulled.extend(above.pop().runs)
    if not any(run.x0 >= gutter for run in pulled):
        return plain, zone
    return [run for line in above for run in line.runs], pulled + zone


def _split(zone: list[Run], gutter: float) -> tuple[list[Run], list[Run]]:
    return [run for run in zone if run.x1 <= gutter], [run for run in zone if run.x1 > gutter]


def _zones(page: list[Run]) -> list[tuple[list[Run], list[float]]]:
    """Strips of the page from top to bottom, each with the middles of its gutters, the widest first."""
    left, right = min(run.x0 for run in page), max(run.x1 for run in page)
    margin = 0.1 * (right - left)
    inner = (left + margin, right - margin)
    bands: dict[int, list[Run]] = {}
    for run in page:
        inset = 0.2 * run.size
        for band in range(int((run.top + inset) / _BAND), int((run.bottom - inset) / _BAND) + 1):
            bands.setdefault(band, []).append(run)
    zones: list[tuple[list[Run], list[float]]] = []
    taken: set[int] = set()
    current: list[Run] = []
    gaps = [inner]
    for band in sorted(bands):
        fresh = [run for run in bands[band] if id(run) not in taken]
        narrowed = _without(gaps, bands[band])
        if not narrowed and current:
            zones.append((current, _middles(gaps)))
            current, gaps = [], [inner]
            narrowed = _without(gaps, bands[band])
        gaps = narrowed or gaps
        if not narrowed:
            # A line across the whole width: a strip of its own.
            zones.append((fresh, []))
            taken.update(map(id, fresh))
            continue
        current.extend(fresh)
        taken.update(map(id, fresh))
    if current:
        zones.append((current, _middles(gaps)))
    return zones


def _without(gaps: list[tuple[float, float]], across: Iterable[Run]) -> list[tuple[float, float]]:
    for run in across:
        cut = []
        for start, end in gaps:
            if run.x1 <= start or run.x0 >= end:
                cut.append((start, end))
                continue
            cut.extend(part for part in ((start, run.x0), (run.x1, end)) if part[1] - part[0] >= _GUTTER)
        gaps = cut
        if not gaps:
            break
    return gaps


def _middles(gaps: list[tuple[float, float]]) -> list[float]:
    return [(start + end) / 2 for start, end in sorted(gaps, key=lambda gap: gap[0] - gap[1])]


def _in_columns(left: list[Run], right: list[Run]) -> bool:
    if not left or not right:
        return False
    sides = lines(left), lines(right)
    if min(len(side) for side in sides) < 3:
        return False
    level = _level(*sides)
    for one in sides[0]:
        for other in sides[1]:
            if abs(one.top - other.top) < one.size and CAPTION.match(one.text) and CAPTION.match(other.text):
                return True
    text_like = sum(_fills(side) for side in sides)
    return text_like == 2 or level < _LEVEL


def _fills(side: list[Line]) -> bool:
    """Whether the lines run from edge to edge, as those of a text do."""
    width = max(line.x1 for line in side) - min(line.x0 for line in side)
    filled = median(sum(run.x1 - run.x0 for run in line.runs) for line in side)
    return filled >= 0.6 * width and filled >= 10 * median(line.size for line in side)


def _level(one: list[Line], other: list[Line]) -> float:
    """The share of lines that stand level with one of the other side."""
    few, many = sorted((one, other), key=len)
    heights = [run.middle for line in many for run in line.runs]
    return sum(
        any(abs((line.top + line.bottom) / 2 - height) < 0.25 * line.size for height in heights)
        for line in few
    ) / len(few)


def lines(column: Iterable[Run]) -> list[Line]:
    """The lines of one column, from top to bottom."""
    found: list[Line] = []
    for run in sorted(column, key=lambda run: (run.middle, run.x0)):
        last = found[-1] if found else None
        # A raised note mark is smaller than its line and stands within it.
        if (
            last
            and not run.rows
            and not last.rows
            and min(run.bottom, last.bottom) - max(run.top, last.top) > 0.5 * min(run.size, last.size)
        ):
            last.runs.append(run)
            last.x0, last.x1 = min(last.x0, run.x0), max(last.x1, run.x1)
            if run.size > last.size:
                last.top, last.bottom, last.size = run.top, run.bottom, run.size
        else:
            found.append(Line([run], run.x0, run.x1, run.top, run.bottom, run.size))
    if found:
        left, right = min(line.x0 for line in found), max(line.x1 for line in found)
        for line in found:
            line.runs.sort(key=lambda run: run.x0)
            line.left, line.right = left, right
    return found
