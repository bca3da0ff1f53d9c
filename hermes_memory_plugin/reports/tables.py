"""Tables: cells without lines that stand below one another, captions and sources. Written as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hermes_memory_plugin.reports.document import Block
from hermes_memory_plugin.reports.glyphs import Run
from hermes_memory_plugin.reports.joining import tidy
from hermes_memory_plugin.reports.layout import Line
from hermes_memory_plugin.reports.titles import CAPTION, SOURCE, UNIT, unit_of

Rows = tuple[tuple[str, ...], ...]

_NUMBER = re.compile(
    r"[-+−–(（]?\s?(?:[$¥￥€£]|RMB|HK\$|US\$)?\s?\d[\d,，.]*\s?[)）]?(?:[%％xX倍pP]|pct|bps?|E|A|F|年|元|[QH][1-4])?"
    r"|\d[\d,.]*\s?[-–~/]\s?\d[\d,.]*[%％]?"
    r"|(?:FY)?(?:19|20)\d\d(?:[AEFH]|[QH][1-4]E?|年报?|-\d\d(?:-\d\d)?)?|[-–—]{1,3}|N\.?[/.]?[AM]\.?|n\.?[am]\.?|不适用|[$%￥¥]",
    re.IGNORECASE,
)
_MONEY = ("$", "¥", "￥", "€", "£")
_HEAD = re.compile(r"(?:FY)?(?:19|20)\d\d.{0,6}|\D*", re.IGNORECASE)
_MOST_INSIDE = 2
"""Lines without cells that may stand between two rows: a heading of some rows, the rest of a long label."""


@dataclass(slots=True)
class Table:
    """A table on its way to be a block."""

    rows: Rows
    x0: float
    x1: float
    top: float
    bottom: float
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)

    def block(self) -> Block:
        """The caption and the unit above the rows, the source below them."""
        title = next((text for text in self.above if not _is_unit(text)), "")
        heads = self.rows[0]
        # 总股本(百万股) beside a number is a row, and its unit that row's alone.
        of_all = heads[:1] if all(_HEAD.fullmatch(cell) for cell in heads[1:]) else ()
        unit = next(filter(None, map(unit_of, (*self.above, *of_all))), "")
        text = "\n".join((*self.above, markdown(self.rows), *self.below))
        return Block("table", text, title, unit)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head. Bars in cells are escaped, lines of a cell joined."""
    width = max(len(row) for row in rows)
    made = []
    for place, row in enumerate(rows):
        cells = [tidy(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in row]
        made.append("| " + " | ".join(cells + [""] * (width - len(cells))) + " |")
        if place == 0:
            made.append("|" + " --- |" * width)
    return "\n".join(made)


def cells_of(text: str) -> list[list[str]]:
    """The rows that `markdown` wrote; other lines are passed over."""
    found = []
    for line in text.splitlines():
        if line.startswith("|") and line.endswith("|") and not re.fullmatch(r"\|(?:\s*:?-+:?\s*\|)+", line):
            parts = re.split(r"(?<!\\)((?:\\\\)*)\|", line)
            joined = ["".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]
            found.append([re.sub(r"\\([\\|])", r"\1", cell.strip()) for cell in joined[1:-1]])
    return found


def with_tables(column: Sequence[Line]) -> list[Line | Table]:
    """The lines of a column, its tables found, each with its caption and source."""
    found: list[Line | Table] = []
    at = 0
    while at < len(column):
        line = column[at]
        if line.rows:
            found.append(Table(line.rows, line.x0, line.x1, line.top, line.bottom))
            at += 1
            continue
        end = _rows_from(column, at)
        tables = _aligned(column[at:end]) if end > at else []
        if tables:
            found.extend(tables)
            at = end
        else:
            found.append(line)
            at += 1
    return list(_with_titles(found))


def in_cells(line: Line) -> list[Run]:
    """The cells of a line; numbers that stand close are cells of their own, signs of money belong to theirs."""
    parts: list[Run] = []
    for run in line.runs:
        words = run.text.split(" ")
        if len(words) > 1 and all(_NUMBER.fullmatch(word) for word in words):
            step = (run.x1 - run.x0) / len(run.text)
            at = 0
            for word in words:
                start = run.x0 + at * step
                parts.append(Run(word, start, start + len(word) * step, run.top, run.bottom))
                at += len(word) + 1
        elif len(words) > 1 and words[-1] in _MONEY:
            end = run.x1 - run.size / 2
            parts.append(Run(" ".join(words[:-1]), run.x0, end, run.top, run.bottom))
            parts.append(Run(words[-1], end, run.x1, run.top, run.bottom))
        else:
            parts.append(run)
    cells: list[Run] = []
    money = ""
    for place, part in enumerate(parts):
        after = parts[place + 1].text if place + 1 < len(parts) else ""
        if part.text in _MONEY and _NUMBER.fullmatch(after) and after[0] not in _MONEY:
            money = part.text
        elif part.text in ("%", "％", ")%") and cells and _NUMBER.fullmatch(cells[-1].text):
            before = cells[-1]
            cells[-1] = Run(before.text + part.text, before.x0, before.x1, before.top, before.bottom)
        else:
            cells.append(Run(money + part.text, part.x0, part.x1, part.top, part.bottom) if money else part)
            money = ""
    return cells


def _is_row(line: Line) -> bool:
    if line.rows:
        return False
    cells = in_cells(line)
    numbers = sum(bool(_NUMBER.fullmatch(cell.text)) for cell in cells[1:])
    return len(cells) >= 3 or (len(cells) == 2 and numbers == 1 and cells[1].x0 - cells[0].x1 > line.size)


def _heads_two(column: Sequence[Line], start: int) -> bool:
    """Whether this is the head of a table of two columns: two words, level with the cells of the row below."""
    if start + 1 >= len(column) or column[start].rows or not _is_row(column[start + 1]):
        return False
    head, row = in_cells(column[start]), in_cells(column[start + 1])
    return (
        len(head) == len(row) == 2
        and head[1].x0 - head[0].x1 > column[start].size
        and column[start + 1].top - column[start].bottom < 2 * column[start].size
        and _overlap(head[1], (row[1].x0 - 20, row[1].x1 + 20)) > 0
    )


def _rows_from(column: Sequence[Line], start: int) -> int:
    """Where the rows that begin here end; `start` when there are too few."""
    if not _is_row(column[start]) and not _heads_two(column, start):
        return start
    rows, end, at = 1, start + 1, start + 1
    while at < len(column) and not column[at].rows:
        line = column[at]
        if (
            line.top - column[at - 1].bottom > 3 * line.size
            or SOURCE.match(line.text)
            or CAPTION.match(line.text)
        ):
            break
        if _is_row(line):
            rows += 1
            end = at + 1
        elif at - end >= _MOST_INSIDE or line.x1 - line.x0 > 0.6 * (line.right - line.left):
            break
        at += 1
    captioned = any(CAPTION.match(line.text) for line in column[max(0, start - 2) : start])
    return end if rows >= (2 if captioned else 3) else start


def _aligned(rows: Sequence[Line]) -> list[Table]:
    """The table (or the tables side by side) those lines are; [] when their cells do not stand in columns."""
    cells = [in_cells(line) for line in rows]
    columns = _columns(cells)
    if len(columns) < 2:
        return []
    filled: list[list[str]] = []
    for line in cells:
        row = [""] * len(columns)
        for cell in line:
            place = max(range(len(columns)), key=lambda one: _overlap(cell, columns[one]))
            row[place] = f"{row[place]} {cell.text}".strip()
        filled.append(row)
    full = sum(sum(map(bool, row)) >= 2 for row in filled)
    if full < 0.5 * len(filled) or not _has_numbers(filled):
        return []
    made = []
    starts = _side_by_side(filled)
    for start, end in zip(starts, [*starts[1:], len(columns)], strict=True):
        held: list[tuple[tuple[str, ...], Line]] = []
        for row, origin in zip(filled, rows, strict=True):
            cells_here = tuple(row[start:end])
            # The same heads again, such as the years, are those of a further table.
            if len(held) > 1 and cells_here[1:] == held[0][0][1:] and any(cells_here[1:]):
                made.append(_table(held, columns[start][0], columns[end - 1][1]))
                held = []
            if any(cells_here):
                held.append((cells_here, origin))
        if held:
            made.append(_table(held, columns[start][0], columns[end - 1][1]))
    return made


def _table(rows: Sequence[tuple[tuple[str, ...], Line]], x0: float, x1: float) -> Table:
    return Table(tuple(row for row, _ in rows), x0, x1, rows[0][1].top, rows[-1][1].bottom)


def _columns(rows: Sequence[Sequence[Run]]) -> list[tuple[float, float]]:
    """The stretches of x that cells stand in; what crosses the space between them in few rows does not count."""
    allowed = len(rows) // 10
    events = sorted(
        event
        for row in rows
        for cell in row
        if len(row) > 1
        for event in ((cell.x0 + 0.5, 1), (cell.x1 - 0.5, -1))
    )
    columns: list[tuple[float, float]] = []
    depth = 0
    start: float | None = None
    for x, step in events:
        depth += step
        if start is None and depth > allowed:
            start = x
        elif start is not None and depth <= allowed:
            if columns and start - columns[-1][1] < 2.0:
                columns[-1] = (columns[-1][0], x)
            else:
                columns.append((start, x))
            start = None
    return columns


def _overlap(cell: Run, column: tuple[float, float]) -> float:
    """Points they share; negative: how far they are apart."""
    return min(cell.x1, column[1]) - max(cell.x0, column[0])


def _has_numbers(rows: Sequence[Sequence[str]]) -> bool:
    said = [cell for row in rows for cell in row if cell]
    return sum(bool(_NUMBER.fullmatch(cell)) for cell in said) >= 0.25 * len(said)


def _side_by_side(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns where a table begins: labels again, right of numbers and left of more."""
    shares = []
    for place in range(len(rows[0])):
        said = [row[place] for row in rows if row[place]]
        shares.append(sum(bool(_NUMBER.fullmatch(cell)) for cell in said) / len(said) if said else 1.0)
    starts = [0]
    for place in range(2, len(shares) - 1):
        if shares[place] <= 0.25 and min(shares[place - 1], shares[place + 1]) >= 0.6:
            starts.append(place)
    return starts


def _is_unit(text: str) -> bool:
    return len(text) <= 40 and not CAPTION.match(text) and bool(UNIT.match(text))


def _with_titles(items: Sequence[Line | Table]) -> Iterator[Line | Table]:
    """Captions and units above a table, and the source below it, go into it."""
    held: list[Line | Table] = []
    for item in items:
        if isinstance(item, Table):
            beside = [one for one in held if isinstance(one, Table) and one.top == item.top]
            above = held.index(beside[0]) if beside else len(held)
            _take_above(item, held, above)
        elif held and isinstance(held[-1], Table) and SOURCE.match(item.text):
            last = held[-1]
            if item.top - last.bottom < 3 * item.size and not last.below:
                last.below.append(tidy(item.text))
                continue
        held.append(item)
    yield from held


def _take_above(table: Table, held: list[Line | Table], end: int) -> None:
    """Move the caption and the unit from the lines before `held[end]` into the table."""
    for taken, place in enumerate(range(end - 1, max(-1, end - 4), -1)):
        line = held[place]
        if isinstance(line, Table) or table.top - line.bottom > (3 + 2 * taken) * line.size:
            return
        mine = line.runs
        if len(mine) > 1:  # captions of tables side by side
            mine = [run for run in mine if run.x0 < table.x1 and run.x1 > table.x0]
        text = tidy(" ".join(run.text for run in mine))
        captioned = bool(CAPTION.match(text))
        titled = (
            not taken
            and len(line.runs) == 1
            and len(text) <= 40
            and not text.endswith(("。", "；", "，", ".", ",", ";", "、"))
        )
        if not mine or not (captioned or _is_unit(text) or titled):
            return
        table.above.insert(0, text)
        rest = [run for run in line.runs if run not in mine]
        if rest:
            line.runs = rest
        else:
            del held[place]
        if captioned or (titled and not _is_unit(text)):
            return
