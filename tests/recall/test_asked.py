"""A question in the terms of the index, and what a text speaks of."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_memory_plugin.recall.asked import Asked
from hermes_memory_plugin.recall.gist import Analyst

NOW = datetime(2026, 8, 20, tzinfo=UTC)
ANALYST = Analyst(Path("/nonexistent"))


def ask(text: str, *history: str) -> Asked:
    return Asked.of(text, analyst=ANALYST, now=NOW, history=history)


def test_an_entity_counts_once_however_it_is_spelled() -> None:
    for text in ("贵州茅台的毛利率", "600519的毛利率", "Moutai gross margin", "gzmt 毛利率"):
        asked = ask(text)
        assert asked.entities == {"600519.SH"}
        assert [token for token in asked.content if "茅台" in token or "600519" in token] == ["@600519.SH"]


def test_what_a_word_stands_for_covers_it() -> None:
    assert "#pb" in ask("哪家便宜").same["便宜"]
    assert any(token.startswith("=") for token in ask("回购的公司").same["回购"])


def test_pairs_across_words_count_little() -> None:
    content = ask("渠道库存偏高").content
    assert content["渠道"] == 1.0
    assert content["道库"] < 0.5


def test_a_name_left_out_is_not_looked_for() -> None:
    asked = ask("除了海康，安防还有谁")
    assert asked.excluded == {"002415.SZ"}
    assert not asked.entities
    assert not {"@002415.SZ", "海康"} & {*asked.weights, *asked.content}


def test_both_listings_are_the_company_unless_a_code_says_which() -> None:
    assert "02318.HK" in ask("中国平安营运利润").listings
    assert not ask("601318.SH营运利润").listings


def test_a_theme_is_told_by_its_figure() -> None:
    asked = ask("挑三只高股息的")
    assert not asked.sectors
    assert {"dividend", "dividend_yield"} <= asked.metrics | asked.families


@pytest.mark.parametrize(
    ("text", "aside"),
    [
        ("今天心情真好", True), ("why do cats purr", True), ("tell me a funny story", True), ("我的止损规则是什么", False), ("部署流程是怎样的", False), ("what is our naming convention", False), ("宏观数据怎么看", False),
    ],
)  # fmt: skip
def test_asides_are_nearer_to_asides(text: str, aside: bool) -> None:
    assert (ask(text).aside > 0.4) == aside


def test_months_of_a_statement_are_those_before_its_day() -> None:
    at = datetime(2026, 8, 1, tzinfo=UTC)
    assert "2026M07" in ANALYST.read("比亚迪7月销量35万辆", at).periods
    assert "2026Q2" in ANALYST.read("二季度毛利率环比提升", at).periods
    assert not ANALYST.read("one more cut in December", at).periods
    assert not ANALYST.read("比亚迪7月销量35万辆").periods


def test_digits_of_a_ticker_are_no_words() -> None:
    gist = ANALYST.read("000858 五粮液渠道")
    assert gist.entities == {"000858.SZ"}
    assert "000858" not in gist.tokens


def test_a_question_says_how_it_was_read() -> None:
    understood = ask("除了海康，茅台2025年毛利率和ERR_5021").understood()
    assert understood["left_out"] == ["002415.SZ"]
    assert understood["periods"] == ["2025"]
    assert understood["identifiers"] == ["err_5021"]
