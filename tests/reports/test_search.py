"""Searching the library: filters before ranking, no report fills all places, what is handed out is a quotation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner, ReportDocument
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall.excerpt import excerpt

TABLE = (
    "图表 1：分产品收入\n单位：百万元\n| 产品 | 2025 | 2026E |\n| --- | --- | --- |\n"
    + "".join(f"| 品类{n} | {n}00 | {n}50 |\n" for n in range(40))
    + "| 系列酒 | 7,022 | 7,928 |\n资料来源：公司公告"
)


def report(
    title: str,
    *pages: str,
    broker: str = "东海证券",
    day: str = "2026-04-15",
    tickers: tuple[str, ...] = ("600519.SH",),
) -> ReportDocument:
    date = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return ReportDocument(id="", title=title, broker=broker, date=date, tickers=tickers, pages=pages)


FULL = tuple(f"第{n}部分。渠道库存处于低位，渠道库存的第{n}个观察：经销商回款正常。" for n in range(1, 8))
SHELF = (
    report("贵州茅台深度报告", *FULL),
    report("贵州茅台一季报点评", "渠道库存略有上升，回款进度同比放缓。", broker="临江证券", day="2026-04-28"),
    report("贵州茅台跟踪", "渠道库存约十五天。", broker="青禾证券", day="2026-01-10"),
    report(
        "五粮液年报点评", "普五渠道库存去化。", broker="海岬证券", tickers=("000858.SZ",), day="2026-04-26"
    ),
    report("Scale that pays", "Dealer inventory is low.", broker="Harbour & Finch", tickers=("002594.SZ",)),
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("home")) as memory:
        for one in SHELF:
            memory.add_report(one)
        memory.library.edit("五粮液年报点评", {"industry": "食品饮料"})
        memory.flush()
        yield memory


def test_a_passage_comes_with_its_report_and_page(memory: Memory) -> None:
    (found, *_) = memory.search_reports("回款进度同比放缓")
    assert (found.title, found.broker, found.page) == ("贵州茅台一季报点评", "临江证券", 1)
    assert found.date == datetime(2026, 4, 28, tzinfo=UTC) and "放缓" in found.text
    assert memory.library.report(found.report_id)["broker"] == "临江证券"


@pytest.mark.parametrize("code", ["600519", "SH600519", "600519.SH", "sh.600519", "贵州茅台", "茅台", "gzmt"])
def test_a_company_is_meant_however_it_is_spelled(memory: Memory, code: str) -> None:
    found = memory.search_reports("渠道库存", code, limit=10)
    assert {one.broker for one in found} == {"东海证券", "临江证券", "青禾证券"}


def test_a_name_no_list_knows_is_looked_for_in_titles_and_names(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home") as memory:
        memory.add_report(report("云杉智造调研", "产能利用率回升。", tickers=()))
        memory.add_report(report("贵州茅台跟踪", "产能利用率平稳。"))
        assert [one.title for one in memory.search_reports("产能利用率", "云杉智造")] == ["云杉智造调研"]
        assert memory.search_reports("产能利用率", "不存在的公司") == []


@pytest.mark.parametrize(
    ("filters", "brokers"),
    [
        ({"broker": "临江"}, {"临江证券"}),
        ({"broker": "HARBOUR"}, {"Harbour & Finch"}),
        ({"since": "2026-04-26"}, {"临江证券", "海岬证券"}),
        ({"since": "2026-04-15", "until": "2026-04-26", "code": "茅台"}, {"东海证券"}),
        ({"industry": "食品饮料"}, {"海岬证券"}),
        ({"code": "600519", "broker": "海岬证券"}, set()),
    ],
)
def test_filters_narrow_before_anything_is_ranked(
    memory: Memory, filters: dict[str, str], brokers: set[str]
) -> None:
    assert {one.broker for one in memory.search_reports("渠道库存", limit=10, **filters)} == brokers  # type: ignore[arg-type]


def test_one_report_takes_two_places_at_most_where_others_match(memory: Memory) -> None:
    found = memory.search_reports("渠道库存", "600519")
    assert [one.broker for one in found].count("东海证券") == 2
    assert {one.broker for one in found} == {"东海证券", "临江证券", "青禾证券"}
    only = memory.search_reports("渠道库存", broker="东海证券")
    assert len(only) == 5 and {one.broker for one in only} == {"东海证券"}


def test_a_long_report_does_not_keep_the_others_out_of_the_candidates(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home") as memory:
        memory.add_report(report("贵州茅台长报告", *(f"渠道库存低位 {n}。" for n in range(80))))
        memory.add_report(
            report("贵州茅台短评", "这一段说了许多别的，只在末尾谈到经销商的渠道库存。", broker="临江证券")
        )
        assert {one.broker for one in memory.search_reports("渠道库存低位")} == {"东海证券", "临江证券"}


def test_the_latest_opinion_comes_first_where_the_latest_is_asked_for(memory: Memory) -> None:
    (first, *_) = memory.search_reports("茅台最新的渠道库存")
    assert first.broker == "临江证券"
    days = [one.date for one in memory.search_reports("latest 茅台渠道库存", "600519")]
    assert days == sorted(days, reverse=True)  # type: ignore[type-var]


def test_what_no_report_speaks_of_finds_nothing(memory: Memory) -> None:
    assert memory.search_reports("量子纠缠的贝尔不等式") == []
    assert memory.search_reports("  ") == []
    assert memory.search_reports("渠道库存", limit=0) == []


def test_a_code_alone_is_a_question(memory: Memory) -> None:
    assert {one.broker for one in memory.search_reports("", "000858")} == {"海岬证券"}


def test_reports_of_another_owner_are_not_searched(tmp_path: Path) -> None:
    ann, bob = Owner("telegram", "1"), Owner("telegram", "2")
    with Memory.open(tmp_path / "home") as memory:
        memory.add_report(report("内部纪要", "渠道库存纪要。"), owner=ann)
        for code in (None, "600519"):
            assert memory.search_reports("渠道库存", code, owner=ann)
            assert not memory.search_reports("渠道库存", code, owner=bob)


def test_a_quotation_ends_at_the_limit_and_shows_what_was_asked_for(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(
        "plugins: {entries: {hermes-memory: {settings: {reports: {quote_characters: 150}}}}}\n"
    )
    with Memory.open(home) as memory:
        memory.add_report(report("贵州茅台深度", TABLE))
        (found, *_) = memory.search_reports("系列酒 2026 收入", "600519")
    assert len(found.text) <= 150 and "| 系列酒 | 7,022 | 7,928 |" in found.text
    assert "| 产品 | 2025 | 2026E |" in found.text


# -- beside a message -------------------------------------------------------------------------------------------------


def test_two_passages_at_most_come_along_by_themselves_with_their_page(memory: Memory) -> None:
    found = memory.recall("茅台的渠道库存怎么样")
    reports = [one for one in found.items if one.layer == "report"]
    assert 1 <= len(reports) <= 2
    assert all(f"p.{one.source.rpartition('p.')[2]}" in found.block for one in reports)


@pytest.mark.parametrize(
    "message", ["你好", "谢谢！", "哈哈哈", "今天天气不错", "thanks a lot", "晚上吃什么好"]
)
def test_small_talk_brings_no_report(memory: Memory, message: str) -> None:
    assert [one for one in memory.recall(message).items if one.layer == "report"] == []


def test_what_comes_along_is_the_place_that_answers_and_short(tmp_path: Path) -> None:
    filler = "".join(f"第{n}段谈的是公司治理与历史沿革。" for n in range(20))
    with Memory.open(tmp_path / "home") as memory:
        memory.add_report(
            report("贵州茅台深度报告：" + "从批价周期看长期回报与渠道改革" * 3, filler + "渠道库存约十五天。")
        )
        found = memory.recall("茅台渠道库存几天")
    assert "渠道库存约十五天" in found.block and "p.1" in found.block
    (line,) = [one for one in found.block.splitlines() if "十五天" in one]
    assert len(line) < 300


# -- excerpts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (("系列酒",), "| 系列酒 |"),
        (("品类7",), "| 品类7 |"),
        (("#revenue",), "图表 1"),
    ],
)
def test_of_a_table_the_heads_and_the_rows_asked_for_are_shown(wanted: tuple[str, ...], shown: str) -> None:
    cut = excerpt(TABLE, wanted, 200)
    assert shown in cut and "| 产品 | 2025 | 2026E |" in cut and len(cut) <= 200


@given(st.text("渠道库存。！\n| -a.", max_size=400), st.integers(60, 200))
def test_an_excerpt_is_never_longer_than_allowed(text: str, most: int) -> None:
    assert len(excerpt(text, {"渠道", "a"}, most)) <= most
