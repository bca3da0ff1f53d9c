"""Where things stand on a page decides what they are: columns, tables, axes, what repeats."""

from __future__ import annotations

import pytest

from hermes_memory_plugin.reports.blocks import blocks
from hermes_memory_plugin.reports.document import Block
from hermes_memory_plugin.reports.glyphs import Glyph, Run, runs
from hermes_memory_plugin.reports.layout import Line, lines, reading_order
from hermes_memory_plugin.reports.repeated import repeated
from hermes_memory_plugin.reports.ruled import ruled
from hermes_memory_plugin.reports.rules import Grid
from hermes_memory_plugin.reports.tables import cells_of


def run(text: str, x: float, top: float, *, size: float = 10.0, right: float | None = None) -> Run:
    """Text as wide as its characters at that size, from `x`, or up to `right`."""
    width = sum(size if ord(char) > 0x2E80 else size / 2 for char in text)
    x = right - width if right is not None else x
    return Run(text, x, x + width, top, top + size)


def made(page: list[Run], body: float = 10.0) -> list[Block]:
    return list(blocks(reading_order(page), body))


def test_level_cells_stay_on_their_line_and_become_a_table() -> None:
    rows = [
        ("项目", "2025A", "2026E"),
        ("收入", "1,000", "1,100"),
        ("利润", "500", "560"),
        ("毛利率", "91%", "92%"),
    ]
    page = [
        run(cell, 50, 100 + 15 * at, right=None if place == 0 else 200.0 + 100 * place)
        for at, row in enumerate(rows)
        for place, cell in enumerate(row)
    ]
    (table,) = made(page)
    assert cells_of(table.text) == [list(row) for row in rows]


def test_columns_whose_lines_stand_level_are_still_read_down() -> None:
    left = [run("左栏的文字从这里开始一直写到右边" * 1, 50, 100 + 15 * at) for at in range(8)]
    right = [run("右栏的文字从这里开始一直写到右边" * 1, 300, 100 + 15 * at) for at in range(8)]
    order = [line.text[0] for column in reading_order([*left, *right]) for line in column]
    assert order == ["左"] * 8 + ["右"] * 8


def test_a_title_above_two_columns_comes_first() -> None:
    title = [run("横贯两栏的大标题写得很长很长很长很长很长很长很长很长", 50, 60, size=18)]
    sides = [
        run(f"{side}栏的文字从这里开始一直写到右边", x, 100 + 15 * at)
        for side, x in (("左", 50), ("右", 300))
        for at in range(6)
    ]
    order = [line.text[0] for column in reading_order([*sides, *title]) for line in column]
    assert order == ["横"] + ["左"] * 6 + ["右"] * 6


def test_the_axis_of_a_chart_is_left_out_and_other_numbers_stay() -> None:
    axis = [run(f"{number}%", 50, 100 + 8 * at, size=6) for at, number in enumerate((40, 30, 20, 10, 0))]
    figures = [
        run(number, 50, 300 + 8 * at, size=6) for at, number in enumerate(("1,203", "877", "15.2", "9", "64"))
    ]
    text = "".join(
        block.text
        for block in made([run("正文文字在这里", 50, 60), *axis, run("图下的说明文字", 50, 200), *figures])
    )
    assert "30%" not in text
    assert all(number in text for number in ("1,203", "877", "15.2", "64"))


def glyphs_of(*held: Run) -> list[Glyph]:
    return [
        Glyph(char, one.x0 + 6 * at, one.x0 + 6 * at + 6, one.top, one.bottom, False)
        for one in held
        for at, char in enumerate(one.text)
    ]


def test_a_grid_is_a_table_and_a_shaded_column_is_part_of_one() -> None:
    labels = [run(label, 50, 100 + 20 * at) for at, label in enumerate(("Revenue", "Profit", "Margin"))]
    values = [run(value, 205, 100 + 20 * at) for at, value in enumerate(("$ 1,2", "$ 3,4", "56 %"))]
    boxes = tuple((200.0, 95.0 + 20 * at, 260.0, 115.0 + 20 * at) for at in range(3))
    halves = tuple(((box[0], box[1], 220.0, box[3]), (220.0, *box[1:])) for box in boxes)
    column = Grid((200.0, 95.0, 260.0, 155.0), halves)
    assert ruled([column], glyphs_of(*labels, *values)) == ([], set())
    (alone,), taken = ruled([column], glyphs_of(*values))
    assert len(alone.rows) == 3
    assert len(taken) == 14


def test_signs_of_money_and_percent_belong_to_their_numbers() -> None:
    rows = [
        ("Revenue", "$", "44,538", ""),
        ("Cost $", "", "24,576", ""),
        ("Margin", "", "44.8", "%"),
        ("Tax", "", "(348)", ""),
    ]
    page = [
        run(cell, (50, 200, 0, 262)[place], 100 + 15 * at, right=260.0 if place == 2 else None)
        for at, row in enumerate(rows)
        for place, cell in enumerate(row)
        if cell
    ]
    (table,) = made(page)
    assert cells_of(table.text) == [
        ["Revenue", "$44,538"],
        ["Cost", "$24,576"],
        ["Margin", "44.8%"],
        ["Tax", "(348)"],
    ]


@pytest.mark.parametrize(
    ("char", "again", "text"),
    [("利", 0.3, "利润"), ("f", 0.3, "f润"), ("f", 0.0, "ff润")],
    ids=["drawn twice to look bold", "Latin drawn twice", "a ligature holds two"],
)
def test_what_is_drawn_twice_is_read_once(char: str, again: float, text: str) -> None:
    first = Glyph(char, 10, 20, 0, 10, False)
    second = Glyph(char, 10 + again, 20 + again, 0, 10, False)
    assert runs([first, second, Glyph("润", 20.5, 30.5, 0, 10, False)])[0].text == text


def page_of(*texts: tuple[str, float]) -> tuple[float, list[Line]]:
    return 800.0, [lines([run(text, 50, top)])[0] for text, top in texts]


def gone(pages: list[tuple[float, list[Line]]]) -> list[list[str]]:
    ids = repeated(pages)
    return [[line.text for line in held if id(line) in ids] for _, held in pages]


def test_headers_footers_and_notices_go_by_repetition_and_the_text_stays() -> None:
    pages = [
        page_of(
            ("海岬证券 公司点评", 30),
            (f"{'甲乙丙丁戊'[number - 1]}页才有的正文，内容各不相同，篇幅也长得多", 100 + number),
            ("每页都有的一句正文，它不在页边", 400),
            (f"只在{'子丑寅卯辰'[number - 1]}页出现的另一段文字，同样比页眉长", 500),
            ("免责声明请见末页，本公司不承担责任", 740),
            (f"{number} / 5", 770),
        )
        for number in range(1, 6)
    ]
    for number, texts in enumerate(gone(pages), start=1):
        assert texts == ["海岬证券 公司点评", "免责声明请见末页，本公司不承担责任", f"{number} / 5"]


def test_pages_that_say_the_same_are_not_emptied() -> None:
    pages = [page_of(("同样的一行", 30), ("同样的二行", 45), ("同样的三行", 60)) for _ in range(5)]
    assert gone(pages) == [[]] * 5


def test_of_two_pages_only_what_stands_in_the_same_place_goes() -> None:
    pages = [
        page_of(
            ("页眉", 30), (f"正文{'甲乙'[at]}比页眉长出不少的一行文字", 200 + at), ("小结", 700 + 20 * at)
        )
        for at in range(2)
    ]
    assert gone(pages) == [["页眉"], ["页眉"]]
