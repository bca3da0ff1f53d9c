"""Which of two facts stands."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin.layers import facts
from hermes_memory_plugin.layers.facts import TRUST, BadFact, KeyRank, resolve, retires

DAY = 86_400_000_000
APRIL, NOVEMBER = 20_000 * DAY, 20_200 * DAY


def rank(
    origin: str = "tool",
    as_of: int | None = NOVEMBER,
    created: int = 1,
    value: float | None = 28.0,
    approximate: bool = False,
) -> KeyRank:
    return KeyRank(TRUST[origin], as_of, created, value, approximate)


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [
        pytest.param(rank(as_of=NOVEMBER), rank(as_of=APRIL), True, id="newer as-of wins"),
        pytest.param(
            rank(as_of=APRIL, created=9), rank(as_of=NOVEMBER), False, id="late news of an old day does not"
        ),
        pytest.param(rank("web", NOVEMBER), rank("tool", APRIL), False, id="lower trust retires nothing"),
        pytest.param(
            rank("user", NOVEMBER), rank("tool", APRIL), True, id="a user's figure retires a tool's"
        ),
        pytest.param(
            rank("tool", NOVEMBER), rank("user", APRIL), False, id="a tool's does not retire a user's"
        ),
        pytest.param(rank("report"), rank("report"), False, id="the same row twice is not newer"),
        pytest.param(rank(created=2), rank(created=1), True, id="said again: one row is enough"),
        pytest.param(
            rank(created=2, value=30.0), rank(created=1), False, id="one day, two values: contradiction"
        ),
        pytest.param(
            rank("user", created=2, value=30.0), rank("tool", created=1), True, id="correction by the user"
        ),
        pytest.param(rank(as_of=None, created=9), rank(as_of=APRIL), False, id="undated never beats dated"),
        pytest.param(
            rank(as_of=None, created=2), rank(as_of=None, created=1), True, id="undated: the later one"
        ),
        pytest.param(
            rank(as_of=NOVEMBER, created=2), rank(as_of=None, created=1), True, id="dated after undated"
        ),
        pytest.param(
            rank(approximate=True, created=9), rank(as_of=APRIL), False, id="about 30 retires nothing"
        ),
    ],
)
def test_a_row_retires_only_what_it_may(newer: KeyRank, older: KeyRank, expected: bool) -> None:
    assert retires(newer, older) is expected


ranks = st.builds(
    KeyRank,
    trust=st.integers(0, 5),
    as_of=st.none() | st.integers(0, 3),
    created=st.integers(0, 3),
    value=st.sampled_from([None, 1.0, 2.0]),
    approximate=st.booleans(),
)


@given(ranks, ranks)
def test_two_rows_never_retire_each_other(one: KeyRank, other: KeyRank) -> None:
    assert not (retires(one, other) and retires(other, one))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), ranks, min_size=1, max_size=6))
def test_some_row_of_a_key_always_stands(rows: dict[str, KeyRank]) -> None:
    superseded = resolve(rows)
    assert set(superseded) < set(rows)
    assert all(retires(rows[by], rows[gone]) for gone, by in superseded.items())


def test_two_brokers_forecasts_have_two_keys() -> None:
    forecast = {"subject": "600519.SH", "metric": "eps", "period": "2026"}
    one = facts.fact_key("local", {**forecast, "holder": "中信证券"})
    other = facts.fact_key("local", {**forecast, "holder": "国泰君安"})
    assert one and other and one != other


@pytest.mark.parametrize("missing", ["subject", "metric"])
def test_an_untyped_fact_has_no_key(missing: str) -> None:
    assert facts.fact_key("local", {"subject": "600519.SH", "metric": "pe", missing: ""}) == ""


def test_another_owners_fact_has_another_key() -> None:
    fields = {"subject": "600519.SH", "metric": "pe"}
    assert facts.fact_key("local", fields) != facts.fact_key("telegram:1", fields)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("茅台PE大概30倍", True),
        ("茅台PE约30倍", True),
        ("PE 30倍左右", True),
        ("around 28x earnings", True),
        ("贵州茅台 PE(TTM) 28.1", False),
        ("大约翰公司 收入 12 亿", False),
        ("合约价 30 元", False),
    ],
)
def test_a_rough_number_is_known_as_rough(statement: str, expected: bool) -> None:
    assert facts.is_approximate(statement) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("2026-04-30", datetime(2026, 4, 30, tzinfo=UTC)),
        ("2026-4-3", datetime(2026, 4, 3, tzinfo=UTC)),
        ("2026/04/30", datetime(2026, 4, 30, tzinfo=UTC)),
        ("20260430", datetime(2026, 4, 30, tzinfo=UTC)),
        ("2026-04", datetime(2026, 4, 1, tzinfo=UTC)),
        ("2026-04-30T15:00:00+08:00", datetime(2026, 4, 30, 7, tzinfo=UTC)),
        (date(2026, 4, 30), datetime(2026, 4, 30, tzinfo=UTC)),
        (datetime(2026, 4, 30, 1, tzinfo=UTC), datetime(2026, 4, 30, 1, tzinfo=UTC)),
    ],
)
def test_dates_are_read_as_people_write_them(value: object, expected: datetime | None) -> None:
    assert facts.as_moment(value) == expected


@pytest.mark.parametrize("value", ["2026-02-30", "20260230", "yesterday", 20260430, "2026-13-01"])
def test_a_date_that_is_none_is_refused_by_name(value: object) -> None:
    with pytest.raises(BadFact, match="as_of"):
        facts.as_moment(value)


@pytest.mark.parametrize(
    ("fact", "field"),
    [
        (Fact(statement="  "), "statement"),
        (Fact(statement="x", kind="rumour"), "kind"),  # type: ignore[arg-type]
        (Fact(statement="x", origin="oracle"), "origin"),  # type: ignore[arg-type]
        (Fact(statement="x", value="28"), "value"),  # type: ignore[arg-type]
    ],
)
def test_a_fact_that_cannot_be_stored_names_its_field(fact: Fact, field: str) -> None:
    with pytest.raises(BadFact) as caught:
        facts.checked(fact)
    assert caught.value.field == field


@given(
    st.builds(
        Fact,
        id=st.just("x"),
        statement=st.text(min_size=1),
        subject=st.text(),
        metric=st.text(),
        value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        as_of=st.none() | st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC)),  # noqa: DTZ001
        owner=st.builds(Owner, platform=st.just("telegram"), user_id=st.text(min_size=1)),
        created_at=st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC)),  # noqa: DTZ001
    )
)
def test_a_fact_survives_its_journal_form(fact: Fact) -> None:
    assert facts.from_json(fact.owner, facts.as_json(fact)) == fact
