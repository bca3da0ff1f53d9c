"""The parts of reading, one by one: joining lines, Markdown tables, chunks, names, dates, ratings, prices."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_plugin.recall.budget import tokens
from hermes_memory_plugin.reports import filename, garbled, opinion, people
from hermes_memory_plugin.reports.brokers import broker
from hermes_memory_plugin.reports.chunk import LARGEST_TABLE, TARGET, chunks
from hermes_memory_plugin.reports.dates import report_date
from hermes_memory_plugin.reports.document import Block, Page
from hermes_memory_plugin.reports.files import report_files
from hermes_memory_plugin.reports.joining import join
from hermes_memory_plugin.reports.plain import decoded, html_pages, markdown_blocks, markdown_pages
from hermes_memory_plugin.reports.tables import cells_of, markdown
from tests.reports.shelf import QINGHE, YUNLING, report

PRINTED = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=30)
LINES = st.lists(st.text(st.sampled_from("公司收入，。（）aZz 0129%.-,/\u3000“”"), max_size=20), max_size=8)


def letters(text: str) -> str:
    return re.sub(r"[\s-]", "", text)


@given(LINES)
def test_joining_loses_nothing_but_spaces_and_hyphens(lines: list[str]) -> None:
    joined = join(lines)
    assert letters(joined) == letters("".join(lines))
    assert "\n" not in joined and joined == joined.strip()


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["公司实现营业收", "入一百亿元"], "公司实现营业收入一百亿元"),
        (["expects additional improve-", "ments from"], "expects additional improvements from"),
        (["rose year-", "on-year in the"], "rose year-on-year in the"),
        (["目标价上调至2,", "150元"], "目标价上调至2,150元"),
        (["毛利率为91.", "9%"], "毛利率为91.9%"),
        (["net profit", "of RMB 5bn"], "net profit of RMB 5bn"),
        (["2026 年 4 月 15 日"], "2026年4月15日"),
        (["公司 EPS", "为 75.1 元"], "公司 EPS为 75.1元"),
        (["A-", "B股"], "A-B股"),
    ],
)
def test_lines_are_joined_as_they_are_written(lines: list[str], joined: str) -> None:
    assert join(lines) == joined


@given(
    st.lists(
        st.lists(PRINTED | st.sampled_from(["|", "\\", "\\|", "---", "a|b\\"]), min_size=2, max_size=5),
        min_size=1,
        max_size=6,
    )
)
def test_a_markdown_table_gives_its_cells_back(rows: list[list[str]]) -> None:
    width = max(map(len, rows))
    want = [[join([cell]) for cell in row] + [""] * (width - len(row)) for row in rows]
    # A row of dashes alone cannot be told from the line below the head.
    kept = [row for row in want if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    assert cells_of(markdown(rows)) == kept


BLOCKS = st.lists(
    st.builds(
        Block,
        st.sampled_from(["heading", "paragraph", "paragraph", "table"]),
        st.text(st.sampled_from("贵州茅台收入增长。，；abc def.\n| 12"), min_size=1, max_size=900),
    ),
    max_size=8,
)


@given(st.lists(BLOCKS, max_size=4))
def test_every_character_is_in_exactly_one_chunk_of_fitting_size(parts: list[list[Block]]) -> None:
    pages = [Page(number, tuple(blocks)) for number, blocks in enumerate(parts, start=1)]
    made = chunks(pages)
    for page in pages:
        said = "".join(block.text for block in page.blocks)
        cut = "".join(chunk.text for chunk in made if chunk.page == page.number)
        assert re.sub(r"\n", "", cut) == re.sub(r"\n", "", said)
    for chunk in made:
        assert chunk.tokens == tokens(chunk.text)
        assert chunk.table or chunk.tokens <= TARGET + 10
    for page in pages:
        for table in page.tables:
            if tokens(table.text) <= LARGEST_TABLE:
                assert any(chunk.table and table.text in chunk.text for chunk in made)


def test_chunks_carry_page_section_and_whole_tables() -> None:
    made = chunks(report(QINGHE).pages)
    forecast = next(chunk for chunk in made if "图表 1" in chunk.text)
    assert (forecast.page, forecast.table) == (2, True)
    assert "归母净利润" in forecast.text and "资料来源" in forecast.text
    risk = next(chunk for chunk in made if "批价大幅波动" in chunk.text)
    assert (risk.page, risk.section) == (2, "风险提示")
    notices = [chunk for chunk in made if chunk.notice]
    assert notices and all(chunk.page == 3 for chunk in notices)


def test_a_table_too_large_for_a_model_is_cut_between_rows() -> None:
    rows = "\n".join(f"| 指标{number} | {number} |" for number in range(2_000))
    made = chunks([Page(1, (Block("table", rows),))])
    assert len(made) > 1
    assert all(
        line.startswith("| 指标") and line.endswith(" |") for chunk in made for line in chunk.text.split("\n")
    )
    assert max(chunk.tokens for chunk in made) <= LARGEST_TABLE


@pytest.mark.parametrize(
    ("stem", "day", "house", "codes"),
    [
        ("20260415-中信证券-贵州茅台-600519-一季度平稳", date(2026, 4, 15), "中信证券", ("600519",)),
        ("中信建投_宁德时代(300750.SZ)_2026.05.06", date(2026, 5, 6), "中信建投", ("300750.SZ",)),
        ("2026-5-6 【国金证券】比亚迪深度", date(2026, 5, 6), "国金证券", ()),
        ("腾讯控股 0700.HK Goldman Sachs 20260319", date(2026, 3, 19), "高盛", ("0700.HK",)),
        ("1234567", None, "", ()),
        ("20261399-无此日", None, "", ()),
        ("H3_AP202604151656789012_1", None, "", ()),
    ],
)
def test_file_names_say_date_house_and_code(
    stem: str, day: date | None, house: str, codes: tuple[str, ...]
) -> None:
    named = filename.read(stem)
    assert (named.date, named.broker, named.codes) == (day, house, codes)


@pytest.mark.parametrize(
    ("lines", "text", "rating"),
    [
        (["增持（维持）"], "", "增持"),
        (["投资评级：买入（首次）"], "", "买入"),
        (["Rating: BUY"], "", "Buy"),
        ([], "维持“买入”评级。", "买入"),
        ([], "评级由“买入”下调至“增持”评级", "增持"),
        (["行业评级：看好", "公司评级：增持"], "", "增持"),
        # Two that differ: nobody knows which.
        (["买入", "减持"], "", ""),
        (["买入：预期涨幅在20%以上；", "增持：预期涨幅在5%以上；"], "", ""),
        ([], "公司买入理财产品，股东减持股份。", ""),
        ([], "He would hold the shares and sell later.", ""),
    ],
)
def test_a_rating_is_taken_where_it_is_given(lines: list[str], text: str, rating: str) -> None:
    assert opinion.rating(lines, text) == rating


@pytest.mark.parametrize(
    ("text", "price", "currency"),
    [
        ("目标价2,150元", 2150.0, "CNY"),
        ("目标价由2,050元上调至2,150元", 2150.0, "CNY"),
        ("12-month target price: HK$612.50", 612.5, "HKD"),
        ("| 目标价（港元） | 612.50 |", 612.5, "HKD"),
        ("原目标价1,900元，目标价2,000元", 2000.0, "CNY"),
        ("目标价区间为1,800-2,000元", None, ""),
        ("目标价1,800元。目标价2,000元", None, ""),
        ("目标价较现价有20%的空间", None, ""),
        ("收盘价1,725元", None, ""),
    ],
)
def test_a_target_price_is_one_number_or_none(text: str, price: float | None, currency: str) -> None:
    assert opinion.target_price(text, ["600519.SH"]) == (price, currency)


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (
            ["证券分析师", "倪明远", "资格编号：S0120521020003", "研究助理", "杨云逍", "邮箱：a@b.cn"],
            ("倪明远",),
        ),
        (["分析师：张三丰、李时珍"], ("张三丰", "李时珍")),
        (["分析师 陶景行 SAC：S0550519040007   分析师 纪云舒 SAC：S0550521080003"], ("陶景行", "纪云舒")),
        (["分析师声明", "本人具有证券投资咨询执业资格"], ()),
        (["Analysts: Jane Doe, CFA, John Q. Smith"], ("Jane Doe", "John Q. Smith")),
        (["张三丰出席了发布会"], ()),
    ],
)
def test_analysts_are_those_with_a_label_or_a_certificate(lines: list[str], names: tuple[str, ...]) -> None:
    assert people.analysts(lines) == names


@pytest.mark.parametrize(
    ("lines", "in_name", "created", "day"),
    [
        (["报告日期：2026年4月15日"], None, "", date(2026, 4, 15)),
        (["15 April 2026"], None, "", date(2026, 4, 15)),
        (["收盘价（2026年4月14日）"], None, "", None),
        (["2026-04-15", "2026-03-01"], None, "", None),
        (["2026-04-15", "2026-03-01"], date(2026, 4, 15), "", date(2026, 4, 15)),
        (["2026-04-15", "2026-03-01"], None, "D:20260416093000", date(2026, 4, 15)),
        ([], None, "D:20260416093000", None),
    ],
)
def test_the_date_is_the_reports_own_or_none(
    lines: list[str], in_name: date | None, created: str, day: date | None
) -> None:
    assert report_date(lines, in_name, created) == day


def test_the_house_is_who_signs_and_not_who_is_quoted() -> None:
    quoted = [
        "据中信证券观点，行业见底。",
        "资料来源：Wind，海岬证券研究所",
        "海岬证券股份有限公司具有资格。",
    ]
    assert broker([], quoted, "") == "海岬证券"
    assert broker([], ["上海证券交易所公告，中国证券业协会数据"], "") == ""
    assert broker([], ["资料来源：甲乙证券研究所", "资料来源：丙丁证券研究所"], "") == ""


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("公司实现营业收入一百亿元，同比增长。", False),
        ("La société a été créée à Genève, déjà célèbre.", False),
        ("• 事件：公司公告", False),
        ("(cid:12)(cid:7)(cid:99) 营收", True),
        ("ÍÆ¼öÂòÈë£¬Ä¿±ê¼Û", True),
        ("\ue001\ue002\ue003\ue004 abc", True),
        ("锟斤拷\ufffd\ufffd\ufffd", True),
    ],
)
def test_garbled_text_is_told_from_text(text: str, bad: bool) -> None:
    assert (garbled.share(text) >= garbled.HOPELESS) is bad


@given(
    st.text(st.sampled_from("白酒渠道周报，茅台批价2185元。\nABC"), min_size=1),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"]),
)
def test_texts_are_decoded_whatever_wrote_them(text: str, encoding: str) -> None:
    whole = "白酒渠道周报：" + text
    assert decoded(whole.encode(encoding)) == whole


@given(st.text(max_size=200))
def test_no_markdown_or_html_breaks_the_reader(text: str) -> None:
    markdown_pages(text)
    html_pages(f"<p>{text}<table><tr><td>{text}".encode("utf-8", "replace"))


def test_markdown_tables_become_tables_with_their_caption() -> None:
    blocks = markdown_blocks(
        "## 预测\n\n表1：盈利预测（百万元）\n\n| 项目 | 2025A |\n|---|---:|\n| 收入 | 1,2 |\n\n- 一\n- 二"
    )
    assert [block.kind for block in blocks] == ["heading", "table", "paragraph", "paragraph"]
    assert (blocks[1].caption, blocks[1].unit) == ("表1：盈利预测（百万元）", "百万元")


def test_html_keeps_text_and_tables_and_leaves_the_rest() -> None:
    read = report("网页另存-白酒行业点评.pdf")
    text = read.pages[0].text
    assert "次高端表现好于预期" in text
    for outside in ("首页", "广告", "备案号", "color:red"):
        assert outside not in text
    assert cells_of(read.pages[0].tables[0].text)[1] == ["飞天散瓶", "2,190", "-10"]


def test_folders_are_walked_once_and_what_cannot_be_entered_is_said(tmp_path: Path) -> None:
    inner = tmp_path / "研报 2026"
    inner.mkdir()
    for name in ("甲.pdf", "b.txt", "c.docx", ".hidden.pdf", "~$d.md"):
        (inner / name).write_bytes(b"x")
    (inner / "up").symlink_to(tmp_path, target_is_directory=True)
    (inner / "again.pdf").symlink_to(inner / "甲.pdf")
    (inner / "loop.pdf").symlink_to(inner / "loop.pdf")
    found = list(report_files([tmp_path, inner / "甲.pdf", tmp_path / "gone"]))
    assert sorted(path.name for path, why in found if not why) in (
        ["again.pdf", "b.txt"],
        ["b.txt", "甲.pdf"],
    )
    assert sorted(path.name for path, why in found if why) == ["gone", "loop.pdf"]


def test_a_long_report_of_repeated_words_keeps_its_pages() -> None:
    assert all(page.text for page in report(YUNLING).pages)
