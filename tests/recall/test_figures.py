"""What a text states: each number with its company, metric, period and how it moved; and which numbers state nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.recall import figures
from hermes_memory_plugin.recall.gist import Analyst

ANALYST = Analyst(Path("nowhere"))
NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
MOUTAI, WULIANGYE = "600519.SH", "000858.SZ"


def read(text: str) -> list[figures.Figure]:
    return figures.read(text, ANALYST, NOW)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("贵州茅台 PE(TTM) 28.1 倍", {"subject": MOUTAI, "metric": "pe", "basis": "ttm"}),
        ("Moutai trades at 28.1x earnings", {"subject": MOUTAI, "metric": "pe"}),
        ("28倍PE偏高", {"metric": "pe"}),
        ("91.8%的毛利率", {"metric": "gross_margin"}),
        ("茅台2025年报营收1741亿", {"subject": MOUTAI, "metric": "revenue", "period": "2025"}),
        ("归母净利润862亿元", {"metric": "net_profit", "exact": "net_profit_parent"}),
        ("扣非净利润860亿元", {"metric": "net_profit", "exact": "net_profit_deducted"}),
        ("净利润同比下降3.2%", {"metric": "net_profit", "growth": "yoy", "falls": True}),
        ("营收增速15.7%", {"metric": "revenue", "growth": "yoy"}),
        ("毛利率环比提升0.3个百分点", {"metric": "gross_margin", "growth": "qoq"}),
        ("股价上涨2.3%", {"metric": "change_pct", "growth": ""}),
        ("近五年PE均值32倍", {"metric": "pe", "qualifier": "mean"}),
        ("PE处于近五年30%分位", {"metric": "pe", "qualifier": "rank"}),
        ("目标价2000元", {"metric": "target_price", "qualifier": ""}),
        ("预计2026年营收1905亿元", {"metric": "revenue", "period": "2026", "ahead": True}),
        ("ROE was 37.0% in 2024", {"metric": "roe", "period": "2024"}),
        ("你上个月说茅台PE 28倍", {"metric": "pe", "told": True}),
    ],
)
def test_a_number_is_read_as_the_figure_it_is_of(text: str, told: dict[str, Any]) -> None:
    (figure,) = read(text)
    assert {name: getattr(figure, name) for name in told} == told


def test_what_a_clause_leaves_open_the_one_before_it_tells() -> None:
    found = read("贵州茅台2025年营收1741亿元，同比增长15.7%；归母净利润862亿元。上年同期营收1505亿元")
    assert [(one.subject, one.metric, one.period, one.growth) for one in found] == [
        (MOUTAI, "revenue", "2025", ""),
        (MOUTAI, "revenue", "2025", "yoy"),
        (MOUTAI, "net_profit", "2025", ""),
        (MOUTAI, "revenue", "2024", ""),
    ]


def test_a_word_before_a_number_ends_what_was_spoken_of() -> None:
    assert [one.metric for one in read("现价1405元，出厂价1169元")] == ["price", ""]


def test_respectively_pairs_companies_with_numbers() -> None:
    found = read("五粮液和茅台的PE分别为15.2倍和28.1倍")
    assert [(one.subject, one.amount.value) for one in found] == [(WULIANGYE, 15.2), (MOUTAI, 28.1)]


def test_the_heads_of_a_table_say_what_its_cells_are() -> None:
    found = read("| 茅台 | 2025 | 2024 |\n|---|---|---|\n| 营收(亿元) | 1741 | 1505 |\n| 同比 | 15.7% | - |\n| PE | 28.1 | 24 |\n")  # fmt: skip
    assert [(one.metric, one.growth, one.period, one.amount.value) for one in found] == [
        ("revenue", "", "2025", 1741e8),
        ("revenue", "", "2024", 1505e8),
        ("revenue", "yoy", "2025", 15.7),
        ("pe", "", "2025", 28.1),
        ("pe", "", "2024", 24),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "1. 毛利率\n2. 三个原因\n（3）渠道",
        "看了3家公司、2份研报，分4点说",
        "2026年11月27日 10:30 更新，见第7页、图3",
        "贵州茅台（600519）排名第1，Top 5",
        "第2步看估值，近5年数据，3个工作日内给你",
        "如果PE跌到25倍就加仓",
        "建议仓位不超过10%，止损1300元",
        "v2.3 版模型，编号 [f-7k2p]，call_abc123",
        "```\nPE = 28.1 倍\n```",
        "https://example.com/28.1%",
        "十倍股不常有",
    ],
)
def test_numbers_that_count_nothing_state_nothing(text: str) -> None:
    assert read(text) == []


@given(st.text(alphabet="茅台PE营收同比为是|-\n 0123456789.%倍亿年月，。（）分别和如果", max_size=160))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text: str) -> None:
    places = [(one.amount.start, one.amount.end) for one in read(text)]
    assert places == sorted(places)
