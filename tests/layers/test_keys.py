"""When two figures are one, and when they only look alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_plugin.layers import facts, keys

PE = {"subject": "600519.SH", "metric": "pe", "period": "", "basis": "ttm"}


def key(**fields: Any) -> str:
    return facts.fact_key("local", {**PE, **fields})


@pytest.mark.parametrize(
    "other",
    [
        {"subject": "600519"}, {"subject": "SH600519"}, {"subject": "sh.600519"}, {"subject": " 600519.sh "}, {"subject": "600519.XSHG"},
        {"metric": "市盈率"}, {"metric": "PE"}, {"metric": "pe_ttm", "basis": ""}, {"metric": "PE(TTM)", "basis": ""}, {"metric": "滚动市盈率", "basis": ""},
        {"basis": "TTM"}, {"basis": "滚动"}, {"currency": "CNY"}, {"currency": "人民币"}, {"unit": "倍"},
    ],
    ids=str,
)  # fmt: skip
def test_one_figure_by_other_names_is_one(other: dict[str, str]) -> None:
    assert key(**other) == key()


@pytest.mark.parametrize(
    "other",
    [
        {"subject": "000858.SZ"}, {"metric": "pb"}, {"basis": ""}, {"basis": "lyr"}, {"metric": "静态市盈率", "basis": ""},
        {"period": "2025"}, {"holder": "中信证券"}, {"currency": "USD"}, {"unit": "美元"}, {"unit": "亿港元"},
    ],
    ids=str,
)  # fmt: skip
def test_another_figure_stays_another(other: dict[str, str]) -> None:
    assert key(**other) != key()


@pytest.mark.parametrize(
    ("metric", "same"),
    [
        ("close", True), ("收盘价", True), ("股价", True), ("现价", True), ("最新价", True), ("Share Price", True),
        ("open", False), ("开盘价", False), ("high", False), ("最低价", False), ("target_price", False), ("pre_close", False),
    ],
)  # fmt: skip
def test_a_quote_is_its_days_last_price_whatever_it_is_called(metric: str, same: bool) -> None:
    assert (key(metric=metric, basis="") == key(metric="price", basis="")) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2025", "2025年报", True),
        ("2025", "FY2025", True),
        ("2025", "2025A", True),
        ("2025Q3", "2025年三季报", True),
        ("2025H1", "2025年中报", True),
        ("2025", "2025Q4", False),
        ("2025Q1", "2026Q1", False),
        ("2025H1", "2025Q2", False),
        ("2025-12-31", "2025", False),
    ],
)
def test_quarter_and_year_are_told_apart(one: str, other: str, same: bool) -> None:
    assert (key(period=one) == key(period=other)) is same


def test_a_profit_is_not_every_profit() -> None:
    assert len({key(metric=name) for name in ("净利润", "归母净利润", "扣非净利润", "营业利润")}) == 4


def test_a_change_in_points_is_not_a_share() -> None:
    assert key(metric="毛利率", unit="%") != key(metric="毛利率", unit="pp")
    assert key(metric="毛利率", unit="个百分点") == key(metric="gross_margin", unit="bp")


@pytest.mark.parametrize(
    ("value", "unit", "expected", "dimension"),
    [
        (1741, "亿元", 174_100_000_000, "money"),
        (17_410_000, "万元", 174_100_000_000, "money"),
        (174_100_000_000, "元", 174_100_000_000, "money"),
        (174_100, "百万元", 174_100_000_000, "money"),
        (174.1, "billion", 174_100_000_000, ""),
        (1.2, "万亿", 1_200_000_000_000, ""),
        (3, "亿美元", 300_000_000, "money"),
        (30, "%", 30, "%"),
        (30, "pp", 30, "pp"),
        (150, "bp", 1.5, "pp"),
        (28.1, "倍", 28.1, ""),
        (28.1, "", 28.1, ""),
        (5, "手", 500, "shares"),
        (2, "万股", 20_000, "shares"),
        (81.5, "GWh", 81.5, "gwh"),
        (None, "亿元", None, "money"),
    ],
)
def test_units_are_brought_to_one_scale(
    value: float | None, unit: str, expected: float | None, dimension: str
) -> None:
    assert keys.quantity(value, unit) == (expected, dimension)


def rank(value: float, unit: str, at: int = 5, created: int = 1) -> facts.KeyRank:
    return facts.rank_of({"value": value, "unit": unit, "as_of": at, "created_at": created, "trust": 4})


def test_one_value_in_two_units_is_no_contradiction() -> None:
    rows = {"a": rank(1741, "亿元"), "b": rank(17_410_000, "万元", created=2)}
    assert facts.resolve(rows) == {"a": "b"} and facts.contradictions(rows) == []


def test_equal_dates_with_different_values_contradict() -> None:
    rows = {"a": rank(1741, "亿元"), "b": rank(1740, "亿元", created=2)}
    assert facts.resolve(rows) == {}
    assert [set(pair) for pair in facts.contradictions(rows)] == [{"a", "b"}]


def test_a_restated_figure_takes_the_place_of_the_first() -> None:
    rows = {"first": rank(1741, "亿元", at=5), "restated": rank(1735, "亿元", at=9)}
    assert facts.resolve(rows) == {"first": "restated"}


@given(st.text(max_size=30))
def test_any_text_has_one_form_and_keeps_it(text: str) -> None:
    for form in (keys.subject_of, keys.period_of, keys.basis_of):
        assert form(form(text)) == form(text)
    keys.metric_of(text)
    keys.currency_of(text, text)
    keys.quantity(1.5, text)


@given(
    st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False),
    st.sampled_from(["元", "万元", "亿元", "%", "股", "倍", "bp"]),
)
def test_a_scale_never_turns_the_sign(value: float, unit: str) -> None:
    found = keys.quantity(value, unit).value
    assert found is not None and (found > 0) == (value > 0) and (found < 0) == (value < 0)
