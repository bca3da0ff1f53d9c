"""Ruled tables: the cells of a grid of lines, filled with the characters that stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_memory_plugin.reports.glyphs import Glyph, Run, runs
from hermes_memory_plugin.reports.joining import join
from hermes_memory_plugin.reports.layout import lines
from hermes_memory_plugin.reports.rules import Grid
from hermes_memory_plugin.reports.tables import Rows, in_cells

_LONGEST_CELL = 400


def ruled(grids: Iterable[Grid], glyphs: Sequence[Glyph]) -> tuple[list[Run], set[int]]:
    """The grids that are tables, each as one run, and the places in `glyphs` of what stands in them."""
    held = [(grid, _inside(grid, glyphs)) for grid in grids]
    ruled_off = {place for _, inside in held for place in inside}
    free = [glyph for place, glyph in enumerate(glyphs) if place not in ruled_off]
    found, taken = [], set()
    for grid, inside in held:
        rows = _filled(grid, [glyphs[place] for place in inside])
        if rows and not _part_of_lines(grid, [glyphs[place] for place in inside], free):
            x0, top, x1, bottom = grid.box
            found.append(Run("", x0, x1, top, bottom, rows))
            taken.update(inside)
    return found, taken


def _inside(grid: Grid, glyphs: Sequence[Glyph]) -> list[int]:
    x0, top, x1, bottom = grid.box
    return [
        place
        for place, glyph in enumerate(glyphs)
        if x0 <= (glyph.x0 + glyph.x1) / 2 <= x1 and top <= (glyph.top + glyph.bottom) / 2 <= bottom
    ]


def _part_of_lines(grid: Grid, inside: Sequence[Glyph], outside: Sequence[Glyph]) -> bool:
    """Whether the rows go on outside the lines: a shaded column of a table that has no lines otherwise."""
    levels = {round((glyph.top + glyph.bottom) / 2) for glyph in outside if glyph.x1 < grid.box[0]}
    rows = lines(runs(inside))
    level = sum(
        bool(levels & {round((row.top + row.bottom) / 2) + step for step in (-1, 0, 1)}) for row in rows
    )
    return level >= 0.7 * len(rows)


def _filled(grid: Grid, glyphs: list[Glyph]) -> Rows:
    """The text of each cell; () when the lines are a frame around something else."""
    held: dict[tuple[int, int], list[Glyph]] = {}
    boxes = [
        (box, (at, place))
        for at, row in enumerate(grid.rows)
        for place, box in enumerate(row)
        if box is not None
    ]
    for glyph in glyphs:
        x, y = (glyph.x0 + glyph.x1) / 2, (glyph.top + glyph.bottom) / 2
        where = next((key for box, key in boxes if box[0] <= x <= box[2] and box[1] <= y <= box[3]), None)
        if where is None:
            return ()
        held.setdefault(where, []).append(glyph)
    width = max(len(row) for row in grid.rows)
    rows = [[""] * width for _ in grid.rows]
    crowded = 0
    for (at, place), chars in held.items():
        inside = lines(runs(chars))
        crowded += any(len(in_cells(line)) >= 3 for line in inside)
        rows[at][place] = join(line.text for line in inside)
    said = [cell for row in rows for cell in row if cell]
    kept = [tuple(row) for row in rows if any(row)]
    columns = sum(any(row[place] for row in kept) for place in range(width))
    if len(kept) < 2 or columns < 2 or max(map(len, said)) > _LONGEST_CELL or crowded > 0.2 * len(said):
        return ()
    return _without_empty_columns(kept)


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> Rows:
    used = [place for place in range(len(rows[0])) if any(row[place] for row in rows)]
    return tuple(tuple(row[place] for place in used) for row in rows)
