"""Numbers, units, dates and periods as the cells of tables write them."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_memory_plugin.upkeep.mappers import cells, codes, dates, partial_json, shapes

YUAN, MULTIPLE, SHARE = cells.unit("元"), cells.unit("倍"), cells.unit("%")
FIGURES = st.decimals(min_value=-(10**9), max_value=10**9, places=2, allow_nan=False)
DAYS = st.dates(min_value=date(1990, 1, 1), max_value=date(2099, 12, 31))
GAPS = [
    None,
    "",
    "-",
    "--",
    "—",
    "nan",
    "NaN",
    "None",
    "null",
    "N/A",
    "不适用",
    True,
    False,
    math.nan,
    math.inf,
    [],
    {},
]


def value(cell: object, unit: cells.Unit = YUAN, money: str = "CNY") -> float | None:
    found = cells.figure(cell, unit, money)
    return found.value if found else None


@pytest.mark.parametrize("cell", GAPS, ids=repr)
def test_a_gap_is_no_figure(cell: object) -> None:
    assert value(cell) is None and dates.day(cell) is None and dates.period(cell) == ""


@given(FIGURES)
def test_a_number_is_the_same_however_it_is_written(number: Any) -> None:
    for written in (
        float(number),
        str(number),
        f"{number:,}",
        f" {number} ".strip(),
        f"{number:+,}",
        f"{number:e}",
    ):
        assert value(written) == pytest.approx(float(number), rel=1e-12)
    if number < 0:
        assert value(f"({-number:,})") == value(str(number).replace("-", "−")) == pytest.approx(float(number))


@given(FIGURES, st.sampled_from([("万", 1e4), ("亿", 1e8), ("万亿", 1e12), ("", 1.0)]))
def test_units_are_normalised_and_the_original_is_kept(number: Any, scale: tuple[str, float]) -> None:
    word, factor = scale
    told = cells.figure(f"{number}{word}元", YUAN, "CNY")
    declared = cells.figure(float(number), cells.unit(f"{word}元"), "CNY")
    assert told is not None and declared is not None
    assert told.value == pytest.approx(float(number) * factor, rel=1e-9) == declared.value
    assert (told.unit, told.currency) == ("CNY", "CNY")
    if factor != 1.0:
        assert str(number) in told.original and word in declared.original


@given(FIGURES)
def test_a_rate_is_never_scaled(number: Any) -> None:
    assert value(f"{number}%", SHARE) == value(float(number), SHARE) == pytest.approx(float(number))


@pytest.mark.parametrize(
    ("cell", "unit"), [("15.3%", YUAN), ("12.5倍", SHARE), ("862亿", MULTIPLE), ("3.2%", MULTIPLE)]
)
def test_a_unit_its_column_cannot_have_is_refused(cell: str, unit: cells.Unit) -> None:
    with pytest.raises(cells.OtherUnit):
        cells.figure(cell, unit, "CNY")


@pytest.mark.parametrize(
    ("cell", "money", "currency"),
    [
        (5.0, "HKD", "HKD"),
        ("5元", "HKD", "HKD"),
        ("5美元", "CNY", "USD"),
        ("5港元", "CNY", "HKD"),
        ("5", "CNY", "CNY"),
    ],
)
def test_yuan_is_the_money_of_the_place_and_a_dollar_is_a_dollar(
    cell: object, money: str, currency: str
) -> None:
    found = cells.figure(cell, YUAN, money)
    assert found is not None and (found.value, found.currency, found.unit) == (5.0, currency, currency)


@given(st.text(max_size=40) | st.integers() | st.floats() | st.none() | st.booleans())
@example(4133980800000.0)  # the first of 2101 in milliseconds
def test_no_cell_is_too_strange(cell: object) -> None:
    try:
        found = cells.figure(cell, YUAN, "CNY")
    except cells.OtherUnit:
        found = None
    assert found is None or math.isfinite(found.value)
    day, period = dates.day(cell), dates.period(cell)
    assert day is None or 1980 <= day.year <= 2100
    assert period == "" or dates.last_day(period)
    assert isinstance(codes.subject(cell, "A"), str)


@given(DAYS)
def test_a_day_is_the_same_however_it_is_written(day: date) -> None:
    midnight = int((day - date(1970, 1, 1)) / timedelta(milliseconds=1))
    for written in (
        int(f"{day:%Y%m%d}"), f"{day:%Y%m%d}", f"{day:%Y%m%d}.0", float(f"{day:%Y%m%d}"), day.isoformat(), f"{day:%Y/%m/%d}",
        f"{day.year}-{day.month}-{day.day}", f"{day.year}年{day.month}月{day.day}日", f"{day.isoformat()} 00:00:00",
        f"{day.isoformat()}T00:00:00.000Z", *([midnight] if midnight >= 1e11 else []),
    ):  # fmt: skip
        assert dates.day(written) == day, written
    assert dates.last_day(dates.period(f"{day:%Y%m%d}")) == day


@pytest.mark.parametrize(
    "cell", [20260230, "20260230", "2026-02-30", "2026/13/01", "20261301", "2026-00-10", 20260631, "19000101"]
)
def test_a_day_the_calendar_does_not_have_is_none(cell: object) -> None:
    assert dates.day(cell) is None and dates.period(cell) == ""


@pytest.mark.parametrize(
    ("cell", "period"),
    [
        (20260331, "2026Q1"), ("2026-06-30", "2026H1"), ("20260930", "2026Q3"), ("2026-12-31 00:00:00", "2026"), ("2026Q1", "2026Q1"),
        ("2026年一季报", "2026Q1"), ("2026中报", "2026H1"), ("2026年三季报", "2026Q3"), ("2026年报", "2026"), (2026, "2026"), ("2026.0", "2026"),
        ("2026-03", "2026M03"), ("20260228", "2026-02-28"), ("2025 vs 2026", ""), ("一季报", ""), (26, ""),
    ],
)  # fmt: skip
def test_periods(cell: object, period: str) -> None:
    assert dates.period(cell) == period


@pytest.mark.parametrize(
    ("written", "market", "id_"),
    [
        ("600519", "A", "600519.SH"), ("sz000858", "A", "000858.SZ"), ("SH.600519", "A", "600519.SH"), ("000001.XSHE", "A", "000001.SZ"),
        ("000300", "index", "000300.SH"), ("399006", "index", "399006.SZ"), ("110011", "OF", "110011.OF"), ("510300", "A", "510300.SH"),
        ("700", "HK", "00700.HK"), ("0700.HK", "A", "00700.HK"), ("AAPL", "US", "AAPL"), ("105.AAPL", "US", "AAPL"), ("801120.SI", "A", "801120.SI"),
        ("0", "A", ""), ("600519,000858", "A", ""), ("茅台", "A", ""), ("13800138000", "A", ""), ("AAPL", "A", ""), ("", "A", ""),
    ],
)  # fmt: skip
def test_codes(written: str, market: str, id_: str) -> None:
    assert codes.canonical(written, market) == id_


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.integers() | st.text(max_size=8) | st.none(),
            "b": st.floats(allow_nan=False, allow_infinity=False),
        }
    ),
    min_size=1,
    max_size=6,
)


@given(ROWS, st.data())
def test_of_json_that_was_cut_off_every_row_is_a_whole_one(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    text = json.dumps({"code": 0, "data": rows}, ensure_ascii=False)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    try:
        found, whole = partial_json.loads(cut)
    except ValueError:
        return
    assert not whole
    kept = found.get("data", [])
    assert kept == rows[: len(kept)]


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=6), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4), max_leaves=25))  # fmt: skip
def test_any_json_is_survived(value: Any) -> None:
    for table in shapes.read(json.dumps(value, ensure_ascii=False)).tables:
        assert all(len(column) == table.size for column in table.columns.values())


@given(st.text(alphabet="ab1,|-\t\n{}[]\"':. ", max_size=200))
def test_any_text_is_survived(text: str) -> None:
    for table in shapes.read(text).tables:
        assert all(len(column) == table.size for column in table.columns.values())


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 50_000, "[[" * 30_000 + "1", '"' * 10_000, "{" * 10_000]
)
def test_deep_nesting_is_survived(text: str) -> None:
    assert shapes.read(text).tables == ()
