"""What becomes of whole reports: order, tables, repetition, pages that cannot be read, metadata."""

from __future__ import annotations

from datetime import date

import pytest

from hermes_memory_plugin.reports.document import ReadReport, from_document, from_json
from hermes_memory_plugin.reports.garbled import BAD_FONT
from hermes_memory_plugin.reports.tables import cells_of
from tests.reports.shelf import BESIDE, ENGLISH, LINJIANG, QINGHE, SHELF, YUNLING, report, text

MOUTAI = {"tickers": ("600519.SH",), "names": ("贵州茅台",)}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "20260110-青禾证券-贵州茅台-600519-首次覆盖：护城河仍深.pdf",
            {
                "broker": "青禾证券",
                "date": date(2026, 1, 10),
                "rating": "买入",
                "target_price": 2050.0,
                **MOUTAI,
            },
        ),
        (
            QINGHE,
            {
                "title": "一季度平稳开局，直销占比再提升",
                "broker": "青禾证券",
                "analysts": ("沈知远",),
                "date": date(2026, 4, 15),
                "industry": "食品饮料",
                "rating": "买入",
                "target_price": 2150.0,
                "currency": "CNY",
                **MOUTAI,
            },
        ),
        (
            LINJIANG,
            {
                "broker": "临江证券",
                "analysts": ("顾明川",),
                "date": date(2026, 4, 28),
                "rating": "增持",
                "target_price": 1820.0,
                **MOUTAI,
            },
        ),
        (
            YUNLING,
            {
                "title": "贵州茅台深度报告：从批价周期看长期回报",
                "broker": "云岭证券",
                "analysts": ("陶景行", "纪云舒"),
                "date": date(2026, 5, 6),
                "rating": "推荐",
                "target_price": 2000.0,
                "currency": "CNY",
                **MOUTAI,
            },
        ),
        (
            ENGLISH,
            {
                "broker": "Harbour & Finch Securities",
                "analysts": ("Eleanor Whitcombe",),
                "date": date(2026, 3, 18),
                "tickers": ("002594.SZ",),
                "industry": "Automobiles",
                "rating": "Outperform",
                "target_price": 138.0,
                "currency": "CNY",
            },
        ),
        # No target price is stated, so there is none.
        (
            BESIDE,
            {"broker": "海岬证券", "rating": "持有", "target_price": None, "currency": "", "industry": ""},
        ),
        # An industry's report is on no company, however many its table names.
        (
            "20260509_食品饮料行业周报_临江证券.pdf",
            {"tickers": (), "industry": "食品饮料", "rating": "强于大市", "date": date(2026, 5, 9)},
        ),
        (
            "20260320-海岬证券-泸州老窖-000568-调研简报.md",
            {"broker": "海岬证券", "tickers": ("000568.SZ",), "rating": "增持", "date": date(2026, 3, 20)},
        ),
        (
            "渠道周报-GB18030.txt",
            {
                "title": "白酒渠道周报",
                "broker": "青禾证券",
                "date": date(2026, 5, 11),
                "rating": "",
                "analysts": (),
            },
        ),
        (
            "网页另存-白酒行业点评.pdf",
            {"title": "白酒行业点评：五一动销平稳", "broker": "云岭证券", "rating": ""},
        ),
        (
            "混合扫描-渠道访谈.pdf",
            {"broker": "", "date": None, "rating": "", "target_price": None, "tickers": ()},
        ),
    ],
)
def test_metadata_is_what_the_report_states_and_nothing_else(name: str, said: dict[str, object]) -> None:
    about = report(name).metadata
    assert {field: getattr(about, field) for field in said} == said


def test_two_columns_are_read_one_after_the_other() -> None:
    page = text(YUNLING, 2)
    order = [
        page.index(words)
        for words in ("社会库存", "十二个城市", "渠道的掌控力", "历史复盘", "股息率", "海外业务")
    ]
    assert order == sorted(order)


def test_the_facts_beside_the_text_do_not_run_into_it() -> None:
    blocks = [block.text for block in report(QINGHE).pages[0].blocks]
    assert "目标价（元）：2,150.00" in blocks
    assert any(
        block.startswith("事件：公司发布2026年一季报") and block.endswith("此前的预期。") for block in blocks
    )


def test_hyphenated_words_and_numbers_over_two_lines_come_together() -> None:
    page = text(ENGLISH, 1)
    for word in ("competitors will", "normalises", "considerably more", "year-on-year"):
        assert word in page
    assert "- " not in page.replace(" - ", "")
    assert "上调至2,150元" in text(QINGHE, 1)


@pytest.mark.parametrize("name", [QINGHE, LINJIANG, YUNLING, BESIDE, ENGLISH])
def test_headers_footers_and_page_numbers_are_gone(name: str) -> None:
    read = report(name)
    everything = "\n".join(page.text for page in read.pages)
    for running in (
        "请务必阅读",
        "请仔细阅读",
        "｜公司点评｜",
        "Please refer to the disclosures",
        "公司点评报告",
    ):
        assert running not in everything
    for page in read.pages:
        assert str(page.number) not in page.text.split("\n")


@pytest.mark.parametrize(
    ("name", "page", "caption", "unit", "row"),
    [
        (
            QINGHE,
            2,
            "图表 1：盈利预测与估值",
            "百万元",
            ["归母净利润", "86,228", "89,620", "95,720", "104,140", "112,740"],
        ),
        (QINGHE, 2, "图表 2：基础数据", "", ["总市值（亿元）", "21,675.73"]),
        (LINJIANG, 1, "表1：盈利预测", "", ["EPS（元）", "71.34", "74.68", "79.33", "84.25"]),
        (LINJIANG, 2, "表2：分产品收入", "", ["其他|未分类", "22", "19", "-13.6%"]),
        (
            YUNLING,
            3,
            "图表 8：财务预测（百万元）",
            "百万元",
            ["每股收益（元）", "71.34", "75.71", "82.15", "89.08"],
        ),
        (BESIDE, 1, "图表 3：利润表", "百万元", ["EPS（元）", "8.38", "8.71"]),
        (BESIDE, 1, "图表 4：现金流量表", "百万元", ["筹资活动现金流", "-22,870", "-24,100"]),
        (ENGLISH, 2, "Exhibit 1: Forecasts", "RMB mn", ["EPS (RMB)", "4.42", "4.81", "5.62", "6.55"]),
    ],
)
def test_tables_keep_caption_unit_head_and_cells(
    name: str, page: int, caption: str, unit: str, row: list[str]
) -> None:
    (table,) = [one for one in report(name).pages[page - 1].tables if one.caption == caption]
    rows = cells_of(table.text)
    assert table.unit == unit
    assert row in rows
    assert {len(one) for one in rows} == {len(row)}
    assert table.text.startswith(caption)


def test_the_source_of_a_table_stays_with_it() -> None:
    assert report(LINJIANG).pages[0].tables[0].text.endswith("资料来源：Wind，临江证券研究所")


@pytest.mark.parametrize("name", [QINGHE, LINJIANG, YUNLING, BESIDE])
def test_both_readers_find_the_same_tables_and_words(name: str) -> None:
    fast, reference = report(name), report(name, plain=True)
    tables = [[cells_of(table.text) for table in page.tables] for page in fast.pages]
    assert tables == [[cells_of(table.text) for table in page.tables] for page in reference.pages]
    for one, other in zip(fast.pages, reference.pages, strict=True):
        assert "".join(one.text.split()) == "".join(other.text.split())


@pytest.mark.parametrize(
    ("name", "status", "problems"),
    [
        (
            "扫描件-贵州茅台调研纪要.pdf",
            "no_text",
            [(1, "no text layer, needs OCR"), (2, "no text layer, needs OCR")],
        ),
        ("混合扫描-渠道访谈.pdf", "text", [(2, "no text layer, needs OCR")]),
        ("缺字体映射-cid.pdf", "text", [(1, BAD_FONT)]),
        ("乱码字体.pdf", "text", [(1, BAD_FONT)]),
        (QINGHE, "text", []),
    ],
)
def test_pages_that_cannot_be_read_are_named(name: str, status: str, problems: list[tuple[int, str]]) -> None:
    read = report(name)
    assert read.status == status
    assert list(read.problems) == problems
    for number, _ in problems:
        assert not read.pages[number - 1].blocks, "nothing of an unreadable page may be taken for text"
    assert all(page.text for page in read.pages if page.number not in dict(problems))


def test_a_report_survives_json_and_the_contract() -> None:
    read = report(QINGHE)
    assert from_json(read.as_json()) == read
    document = read.as_document("r-1")
    again = from_document(document)
    assert again.metadata.title == read.metadata.title
    assert again.metadata.date == read.metadata.date
    assert [len(page.tables) for page in again.pages] == [len(page.tables) for page in read.pages]


def test_the_same_words_in_another_file_are_the_same_text() -> None:
    gb, utf = report("渠道周报-GB18030.txt"), report("渠道周报-UTF16.txt")
    assert gb.sha256 != utf.sha256
    assert gb.text_sha256 == utf.text_sha256 != report(QINGHE).text_sha256
    assert ReadReport("no_text").text_sha256 == ""


def test_the_fixtures_are_small() -> None:
    files = [path for path in SHELF.iterdir() if path.is_file()]
    assert len([path for path in files if path.suffix == ".pdf"]) >= 12
    assert sum(path.stat().st_size for path in files) < 1_500_000
