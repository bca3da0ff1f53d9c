"""The ruling lines of a page, from either reader, and the grids they form."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_MOST_EDGES = 1_500
"""Edges of one page; a drawing has more, a table does not."""
_MOST_CROSSINGS = 2_000
"""Corners of cells on one page; looking for cells takes time by their square."""
_MOST_OBJECTS = 20_000
_MOST_SEGMENTS = 64
_STRAIGHT = 1.0
_SHORTEST = 6.0

Box = tuple[float, float, float, float]
"""x0, top, x1, bottom"""


class Edge(NamedTuple):
    """A line that runs across or down, or one side of a rectangle."""

    x0: float
    top: float
    x1: float
    bottom: float

    @property
    def across(self) -> bool:
        return self.bottom - self.top <= self.x1 - self.x0


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of one ruled table, row by row; None where a neighbour spans."""

    box: Box
    rows: tuple[tuple[Box | None, ...], ...]


def from_pdfium(page: Any) -> list[Edge]:
    """The edges of a pypdfium2 page; [] when there are more than a table has."""
    import pypdfium2.raw as raw

    left, bottom, right, top = page.get_bbox()
    found: list[Edge] = []
    segments = _segments(raw, page.raw, raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject, None, 0)
    for seen, segment in enumerate(segments):
        if seen > _MOST_OBJECTS or len(found) > _MOST_EDGES:
            return []
        edge = _edge(*segment)
        if edge is not None:
            found.append(Edge(edge[0] - left, top - edge[3], edge[2] - left, top - edge[1]))
    turn = page.get_rotation() // 90 % 4
    return found if turn == 0 else [_turned(edge, turn, right - left, top - bottom) for edge in found]


def from_pdfplumber(page: Any) -> list[Edge]:
    """The edges of a pdfplumber page; [] when there are more than a table has."""
    edges = page.edges
    if len(edges) > _MOST_EDGES:
        return []
    left, top = page.bbox[:2]
    found = (Edge(e["x0"] - left, e["top"] - top, e["x1"] - left, e["bottom"] - top) for e in edges)
    return [edge for edge in found if max(edge.x1 - edge.x0, edge.bottom - edge.top) >= _SHORTEST]


def grids(edges: list[Edge]) -> list[Grid]:
    """The ruled tables those edges form, from top to bottom, by pdfplumber's rules."""
    across = sum(edge.across for edge in edges)
    if across < 2 or len(edges) - across < 2:
        return []
    from pdfplumber import table

    given = [
        {
            "x0": edge.x0,
            "x1": edge.x1,
            "top": edge.top,
            "bottom": edge.top if edge.across else edge.bottom,
            "width": edge.x1 - edge.x0,
            "height": 0 if edge.across else edge.bottom - edge.top,
            "orientation": "h" if edge.across else "v",
            "object_type": "line",
        }
        for edge in edges
    ]
    merged = table.merge_edges(given, 3, 3, 3, 3)
    crossings = table.edges_to_intersections(merged, 3, 3)
    if len(crossings) > _MOST_CROSSINGS:
        return []
    found = []
    for cells in table.cells_to_tables(table.intersections_to_cells(crossings)):
        made = table.Table(None, cells)  # type: ignore[arg-type]  # only its rows are asked for
        rows = tuple(tuple(_box(cell) if cell else None for cell in row.cells) for row in made.rows)
        if len(rows) >= 2 and max(len(row) for row in rows) >= 2:
            found.append(Grid(_box(made.bbox), rows))
    return sorted(found, key=lambda grid: grid.box[1])


def _box(numbers: Sequence[float]) -> Box:
    x0, top, x1, bottom = numbers
    return (x0, top, x1, bottom)


_Matrix = tuple[float, float, float, float, float, float]


def _segments(
    raw: Any, holder: Any, count: Any, get: Any, outer: _Matrix | None, depth: int
) -> Iterator[tuple[float, float, float, float]]:
    """(x0, y0, x1, y1) of every straight piece that is drawn."""
    matrix = raw.FS_MATRIX()
    x, y = ctypes.c_float(), ctypes.c_float()
    for place in range(min(count(holder), _MOST_OBJECTS)):
        item = get(holder, place)
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_FORM and depth < 3:
            raw.FPDFPageObj_GetMatrix(item, matrix)
            yield from _segments(
                raw,
                item,
                raw.FPDFFormObj_CountObjects,
                raw.FPDFFormObj_GetObject,
                _times(_plain(matrix), outer),
                depth + 1,
            )
        if kind != raw.FPDF_PAGEOBJ_PATH:
            continue
        pieces = raw.FPDFPath_CountSegments(item)
        if not 2 <= pieces <= _MOST_SEGMENTS:
            continue
        raw.FPDFPageObj_GetMatrix(item, matrix)
        a, b, c, d, e, f = _times(_plain(matrix), outer)
        points: list[tuple[float, float]] = []
        first = (0.0, 0.0)
        for one in range(pieces):
            piece = raw.FPDFPath_GetPathSegment(item, one)
            raw.FPDFPathSegment_GetPoint(piece, x, y)
            point = (a * x.value + c * y.value + e, b * x.value + d * y.value + f)
            if raw.FPDFPathSegment_GetType(piece) == raw.FPDF_SEGMENT_MOVETO:
                first = point
                points = []
            if points:
                yield (*points[-1], *point)
            if raw.FPDFPathSegment_GetClose(piece):
                yield (*point, *first)
            points.append(point)


def _plain(matrix: Any) -> _Matrix:
    return (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)


def _times(inner: _Matrix, outer: _Matrix | None) -> _Matrix:
    if outer is None:
        return inner
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return (a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u)


def _edge(x0: float, y0: float, x1: float, y1: float) -> Box | None:
    wide, high = abs(x1 - x0), abs(y1 - y0)
    if min(wide, high) > _STRAIGHT or max(wide, high) < _SHORTEST:
        return None
    return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def _turned(edge: Edge, turn: int, width: float, height: float) -> Edge:
    """The edge on the page as a viewer turns it (quarter turns, clockwise); width and height before it is turned."""
    x0, top, x1, bottom = edge
    if turn == 1:
        return Edge(height - bottom, x0, height - top, x1)
    if turn == 2:
        return Edge(width - x1, height - bottom, width - x0, height - top)
    return Edge(top, width - x1, bottom, width - x0)
