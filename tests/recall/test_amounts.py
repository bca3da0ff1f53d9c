"""Numbers of a text: how much they say, in which unit, and which other number could have been said like that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_plugin.recall import amounts
from hermes_memory_plugin.recall.normalise import normalise


def one(text: str) -> amounts.Amount:
    (amount,) = amounts.find(normalise(text))
    return amount


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("茅台PE 28倍", 28, "x"),
        ("营收1741.4亿元", 1741.4e8, "CNY"),
        ("174,140百万元", 1741.4e8, "CNY"),
        ("revenue of $174.14 billion", 174.14e9, "USD"),
        ("目标价 HK$520", 520, "HKD"),
        ("收盘 1,523.50元", 1523.5, "CNY"),
        ("同比-3.2%", -3.2, "%"),
        ("净利润-5.3亿", -5.3e8, ""),
        ("毛利率91.8％", 91.8, "%"),
        ("百分之三十", 30, "%"),
        ("三成", 30, "%"),
        ("提高2个百分点", 2, "pp"),
        ("加息25bp", 0.25, "pp"),
        ("二十八倍", 28, "x"),
        ("一点五倍", 1.5, "x"),
        ("一千七百亿元", 1.7e11, "CNY"),
        ("一万二千户", 12_000, "户"),
        ("1.5万亿", 1.5e12, ""),
        ("28多倍", 28, "x"),
        ("EPS 4.21", 4.21, ""),
        ("持有2万股", 20_000, "股"),
    ],
)
def test_an_amount_is_read_in_base_units(text: str, value: float, unit: str) -> None:
    found = one(text)
    assert (found.value, found.unit) == (pytest.approx(value), unit)


def test_both_ends_of_a_range_have_its_unit() -> None:
    assert [(a.value, a.unit) for a in amounts.find("估值25-30倍")] == [(25, "x"), (30, "x")]


@pytest.mark.parametrize("text", ["v1.2.3", "第一季度", "十分看好", "一方面", "pe_28a"])
def test_what_counts_nothing_is_no_amount(text: str) -> None:
    assert list(amounts.find(text)) == []


@pytest.mark.parametrize(
    ("said", "value", "agree"),
    [
        ("28倍", 27.96, True),
        ("28.0倍", 27.96, True),
        ("28.0倍", 27.94, False),
        ("28倍", 28.6, False),
        ("28倍", 26.1, False),
        ("约28倍", 27.4, True),
        ("约28倍", 26.1, False),
        ("1741亿", 174_144_000_000, True),
        ("1741亿", 174_190_000_000, True),  # cut, not rounded
        ("1700亿", 174_144_000_000, True),
        ("1,710亿", 174_144_000_000, False),
        ("超1700亿", 174_144_000_000, True),
        ("超1700亿", 169_000_000_000, False),
        ("近30%", 29.4, True),
        ("近30%", 31, False),
        ("30%", 30.2, True),
        ("30%", 32, False),
        ("-3.2%", 3.2, False),
    ],
)
def test_a_number_agrees_with_what_rounds_to_it(said: str, value: float, agree: bool) -> None:
    assert amounts.agrees(one(said), value) is agree


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1,741.44亿", 1741.44e8), ("28.10", 28.1), ("(12.5)", -12.5), ("-3.2%", -3.2), (28.1, 28.1), (0, 0)],
)
def test_a_cell_is_an_amount(cell: object, value: float) -> None:
    found = amounts.parse(cell)
    assert found is not None and found.value == pytest.approx(value)


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "--",
        "-",
        "NaN",
        "None",
        None,
        True,
        float("nan"),
        10**400,
        "2026-04-30",
        "20260230日",
        "600519.SH",
        "贵州茅台",
        "1e9999",
    ],
)
def test_a_cell_without_an_amount_is_none(cell: object) -> None:
    assert amounts.parse(cell) is None


@pytest.mark.parametrize(
    ("name", "factor", "unit"),
    [("万元", 1e4, "CNY"), ("亿股", 1e8, "股"), ("%", 1, "%"), ("元", 1, "CNY"), ("百万港元", 1e6, "HKD"), ("倍", 1, "x")],
)  # fmt: skip
def test_a_unit_has_its_factor(name: str, factor: float, unit: str) -> None:
    assert amounts.unit(name) == (factor, unit)


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    normal = normalise(text)
    for amount in amounts.find(normal):
        assert 0 <= amount.start < amount.end <= len(normal) and amount.step > 0
        assert amounts.agrees(amount, amount.value)


@given(
    st.floats(min_value=0.01, max_value=9_999, allow_nan=False),
    st.integers(0, 3),
    st.sampled_from(["倍", "%", "亿元", "万股", ""]),
)
def test_a_rounded_number_agrees_with_what_it_was_rounded_from(value: float, places: int, unit: str) -> None:
    (said,) = amounts.find(f"为 {value:.{places}f}{unit}")
    factor = {"亿元": 1e8, "万股": 1e4}.get(unit, 1.0)
    assert amounts.agrees(said, value * factor)
