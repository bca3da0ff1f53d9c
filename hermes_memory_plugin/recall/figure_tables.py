"""Figures in the Markdown tables of a text: the heads of row and column say what a cell is."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_memory_plugin.layers import keys
from hermes_memory_plugin.recall.figure_marks import Marks
from hermes_memory_plugin.recall.figure_names import (
    family,
    growth_of,
    in_unit,
    is_ahead,
    named_as,
    qualifier_of,
    rate_of,
)
from hermes_memory_plugin.recall.figures import Figure, states

Place = tuple[int, int]


def tables(marks: Marks, subject: str, metric: str, sure: bool) -> list[Figure]:
    """The figures of every table; `subject` …: what they are of where the table does not say."""
    found: list[Figure] = []
    for start, end in marks.tables:
        lines = list(_lines(marks.text, start, end))
        heads = list(_cells(marks.text, *lines[0]))
        above = metric
        for line in lines[2:]:
            cells = list(_cells(marks.text, *line))
            for column, cell in enumerate(cells[1:], 1):
                head = heads[column] if column < len(heads) else (0, 0)
                found += _cell(marks, cell, (cells[0], head), subject, above, sure)
            named = [one for one in marks.metrics if cells and cells[0][0] <= one.start < cells[0][1]]
            above = (
                named_as(named[-1], marks.text)[0] if named else above
            )  # a line 同比 is of the line above it
    return found


def _cell(
    marks: Marks, cell: Place, heads: tuple[Place, Place], subject: str, metric: str, sure: bool
) -> Iterator[Figure]:
    text = marks.text
    first, head = heads
    label = f"{text[first[0] : first[1]].strip()} {text[head[0] : head[1]].strip()}"
    name, exact = (family(metric), keys.metric_of(metric)[0]) if metric else ("", "")
    basis, entity = "", subject
    for start, end in heads:
        for one in marks.metrics:
            if start <= one.start < end:
                name, exact, basis = named_as(one, text)
        entity = next((e for at, _, e in marks.entities if start <= at < end), entity)
    books = [one.id for start, end in (*heads, cell) for one in marks.periods if start <= one.start < end]
    for amount in marks.amounts:
        if not cell[0] <= amount.start < cell[1]:
            continue
        for start, end in (head, first):
            amount = in_unit(amount, text[start:end].strip())
        rate = growth_of(label) if amount.unit in ("%", "pp", "") else None
        own, growth = rate_of(name, rate)
        figure = Figure(
            amount=amount,
            words=f"{label} {text[cell[0] : cell[1]].strip()}".strip(),
            subject=entity,
            metric=own,
            exact=exact,
            basis=basis,
            period=next((one for one in books if "-" not in one), ""),
            growth=growth,
            qualifier=qualifier_of(label, name),
            ahead=is_ahead(label),
        )
        if not sure or states(figure):
            yield figure


def _lines(text: str, start: int, end: int) -> Iterator[Place]:
    at = start
    for line in text[start:end].splitlines(keepends=True):
        yield at, at + len(line.rstrip("\n"))
        at += len(line)


def _cells(text: str, start: int, end: int) -> Iterator[Place]:
    """Start and end of the cells of one line of a table."""
    line = text[start:end]
    at = start + len(line) - len(line.lstrip()) + (1 if line.lstrip().startswith("|") else 0)
    for place in range(at, end + 1):
        if place == end or text[place] == "|":
            if place < end or text[at:place].strip():
                yield at, place
            at = place + 1
