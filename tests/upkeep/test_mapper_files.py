"""The user's own mappers: every problem with file and line, the others still run, and theirs come before the built-in ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_hookspecs import ToolTrace
from hermes_memory_plugin.recall import metrics
from hermes_memory_plugin.upkeep.mappers import cells
from hermes_memory_plugin.upkeep.mappers.draft import draft
from hermes_memory_plugin.upkeep.mappers.load import Mappers, built_in
from hermes_memory_plugin.upkeep.mappers.model import Mapper, canonical_tool, parse
from hermes_memory_plugin.upkeep.mappers.reader import read

GOOD = """
name: desk_quote
tools: [desk_quote]
subject: code
as_of: day
fields:
  px: {metric: price, unit: 元}
"""


def one(text: str) -> Mapper:
    found, problems = parse(text, "m.yaml", own=True)
    assert not problems
    return found[0]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (GOOD.replace("px: {metric", "px: {metrik"), 7, "unknown field 'metrik' of the field 'px'"),
        (GOOD.replace("as_of:", "asof:"), 5, "unknown field 'asof' of a mapper"),
        (GOOD.replace("[desk_quote]", '["/desk(/"]'), 3, "bad pattern '/desk(/'"),
        (GOOD.replace("[desk_quote]", '["*"]'), 3, "it takes every tool"),
        (GOOD.replace("[desk_quote]", '["/.*/"]'), 3, "it takes every tool"),
        (GOOD.replace("tools: [desk_quote]\n", ""), 2, "needs `tools`"),
        (GOOD.replace("subject: code\n", ""), 2, "needs `subject`"),
        (GOOD.replace("metric: price", "metric: prise"), 7, "unknown metric 'prise'"),
        (GOOD.replace("metric: price, ", ""), 7, "needs `metric`"),
        (GOOD.replace("unit: 元", "unit: 元, factor: zehn"), 7, "factor must be a number"),
        (GOOD.replace("unit: 元", "unit: 元, currency: Gold"), 7, "unknown currency 'Gold'"),
        (GOOD + "currency: =Gold\n", 8, "unknown currency 'Gold'"),
        (GOOD + "public: maybe\n", 8, "`public` is true or false"),
        (GOOD + "market: Mars\n", 8, "unknown market 'Mars'"),
        (GOOD + "vendor: nobody\n", 8, "unknown vendor 'nobody'"),
        (GOOD + "basis: TTM\n", 8, "`basis` takes column, values"),
        (GOOD + "pairs: [item]\n", 8, "`pairs` names two columns"),
        (GOOD.replace("  px: {metric: price, unit: 元}", "  []"), 7, "`fields` is a list of columns"),
        ("a: b: c", 1, "not YAML"),
        ("", 1, "the file is empty"),
        ("- 7", 1, "written as `key: value` lines"),
        ("a: !!python/object/apply:os.system [ls]", 1, "unknown field 'a'"),
        (GOOD.replace("code", "!!python/object/apply:os.system [ls]"), 4, "cannot be read"),
    ],
)
def test_a_problem_names_file_and_line(text: str, line: int, says: str) -> None:
    found, problems = parse(text, "memory/mappers/desk.yaml", own=True)
    assert not found and len(problems) == 1
    assert problems[0].startswith(f"memory/mappers/desk.yaml:{line}: ") and says in problems[0]


def test_of_a_list_only_the_wrong_one_is_lost() -> None:
    indented = GOOD.strip().replace("\n", "\n  ")
    text = f"- {indented}\n- {indented.replace('desk_quote', 'b').replace('metric', 'wrong')}\n- {indented.replace('desk_quote', 'c')}\n"
    found, problems = parse(text, "m.yaml", own=True)
    assert [mapper.name for mapper in found] == ["desk_quote", "c"] and len(problems) == 1


def test_a_changed_file_counts_at_once_and_a_broken_one_costs_only_itself(tmp_path: Path) -> None:
    mappers = Mappers(tmp_path)
    assert mappers.of("desk_quote", {}) == ()
    folder = tmp_path / "mappers"
    folder.mkdir()
    (folder / "desk.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "bad.yaml").write_text("a: b: c", encoding="utf-8")
    (folder / "binary.yaml").write_bytes(b"\xff\xfe")
    assert [mapper.name for mapper in mappers.of("desk_quote", {})] == ["desk_quote"]
    assert [str(folder / name) for name in ("bad.yaml:1", "binary.yaml:1")] == [
        problem[: len(str(folder / name))]
        for problem, name in zip(mappers.problems(), ("bad.yaml:1", "binary.yaml:1"), strict=True)
    ]
    (folder / "desk.yaml").write_text(GOOD.replace("[desk_quote]", "[other]"), encoding="utf-8")
    assert mappers.of("desk_quote", {}) == () and mappers.of("other", {})


def test_of_two_files_with_one_name_the_second_is_named(tmp_path: Path) -> None:
    (tmp_path / "mappers").mkdir()
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / "mappers" / name).write_text(GOOD, encoding="utf-8")
    mappers = Mappers(tmp_path)
    assert len([mapper for mapper in mappers.all() if mapper.own]) == 1
    (problem,) = mappers.problems()
    assert "b.yaml:2" in problem and "a.yaml:2" in problem


def test_the_users_mapper_of_a_built_in_name_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "mappers").mkdir()
    text = GOOD.replace("desk_quote", "tushare_daily", 1).replace("[desk_quote]", "[tushare_daily]")
    (tmp_path / "mappers" / "mine.yaml").write_text(text, encoding="utf-8")
    (mapper,) = Mappers(tmp_path).of("tushare_daily", {})
    assert mapper.own and mapper.place.endswith("mine.yaml:2")


@pytest.mark.parametrize(
    ("tool", "args", "mapper"),
    [
        ("tushare_daily_basic", {}, "tushare_daily_basic"),
        ("mcp_tushare_daily_basic", {}, "tushare_daily_basic"),
        ("mcp__tushare__daily_basic", {}, "tushare_daily_basic"),
        ("Tushare.daily-basic", {}, "tushare_daily_basic"),
        ("daily_basic", {}, "tushare_daily_basic"),
        ("tushare_query", {"api_name": "daily_basic"}, "tushare_daily_basic"),
        ("akshare_stock_zh_a_hist", {}, "akshare_stock_zh_a_hist"),
        ("stock_zh_a_hist", {}, "akshare_stock_zh_a_hist"),
        ("akshare_call", {"function": "stock_zh_a_hist"}, "akshare_stock_zh_a_hist"),
        ("query", {"api_name": "daily_basic"}, ""),
        ("my_daily_basic", {}, ""),
        ("daily_basics", {}, ""),
        ("terminal", {}, ""),
    ],
)
def test_which_mapper_reads_which_tool(tmp_path: Path, tool: str, args: dict[str, str], mapper: str) -> None:
    assert [found.name for found in Mappers(tmp_path).of(tool, args)] == ([mapper] if mapper else [])


def test_patterns_are_names_with_stars_or_regular_expressions() -> None:
    assert one(GOOD.replace("[desk_quote]", "[mcp-desk-*]")).fits_tool(canonical_tool("mcp.desk.quote"))
    mapper = one(GOOD.replace("[desk_quote]", '["/desk_(quote|px)/"]'))
    assert mapper.fits_tool("desk_px") and not mapper.fits_tool("my_desk_px")


def test_a_metric_may_be_called_by_any_of_its_names() -> None:
    assert one(GOOD.replace("metric: price", "metric: 市盈率")).fields[0].metric == "pe"
    own = one(GOOD.replace("metric: price", "metric: store_count, label: 门店数"))
    assert (own.fields[0].metric, own.fields[0].label) == ("store_count", "门店数")


def test_the_built_in_ones_are_sound() -> None:
    names = [mapper.name for mapper in built_in()]
    apis = [api for mapper in built_in() for api in mapper.api]
    assert len(set(names)) == len(names) and len(set(apis)) == len(apis)
    for mapper in built_in():
        columns = [column for field in mapper.fields for column in field.columns]
        assert len(set(columns)) == len(columns), mapper.name
        keys = [(field.metric, field.basis) for field in mapper.fields]
        doubled = {key for key in keys if keys.count(key) > 1}
        assert not doubled or mapper.name in ("tushare_income",), (mapper.name, doubled)
        assert mapper.requires or mapper.turn, f"{mapper.name} would read any table"
        for field in mapper.fields:
            known = field.metric in metrics.metrics() or field.metric in OF_FAMILIES
            assert known or field.text, (mapper.name, field.metric)
            assert field.text or field.unit.name in ("CNY", "%", "x", "股", "点", "户"), (mapper.name, field)


OF_FAMILIES = {"net_profit_parent", "net_profit_deducted", "float_cap"}
"""Figures with a name of their own within a family of `metrics`."""


@pytest.mark.parametrize("metric", sorted(OF_FAMILIES))
def test_a_figure_with_a_name_of_its_own_belongs_to_a_family_that_recall_knows(metric: str) -> None:
    from hermes_memory_plugin.recall.figures import family

    assert family(metric) in metrics.metrics()


def test_a_field_may_have_other_columns_and_a_currency_of_its_own() -> None:
    text = GOOD.replace("unit: 元}", "unit: 元, also: [最新价], currency: USD}")
    trace = ToolTrace(
        tool_call_id="c",
        tool_name="desk_quote",
        result='[{"code": "600519.SH", "day": "20260331", "最新价": 5}]',
    )
    (fact,) = read(trace, [one(text)]).facts
    assert (fact.value, fact.currency, fact.unit) == (5.0, "USD", "USD")
    assert cells.unit("百万美元") == cells.Unit(1e6, "USD", "百万美元")


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ("市盈率TTM", "{metric: pe, basis: TTM, unit: 倍}"),
        ("市盈率(TTM)", "{metric: pe, basis: TTM, unit: 倍}"),
        ("滚动市盈率", "{metric: pe, basis: TTM, unit: 倍}"),
        ("静态市盈率", "{metric: pe, basis: LYR, unit: 倍}"),
        ("股息率(TTM)", '{metric: dividend_yield, basis: TTM, unit: "%"}'),
        ("收盘价", "{metric: price, unit: 元, label: 收盘价}"),
        ("静态市盈率TTM", "{metric: ?, unit: ?}"),
        ("动态", "{metric: ?, unit: ?}"),
    ],
)
def test_a_draft_reads_the_basis_in_a_columns_name_and_guesses_none(column: str, line: str) -> None:
    row = f'[{{"代码": "000858.SZ", "日期": "2026-11-27", "pb": 3.1, "{column}": 15.2}}]'
    yaml = draft(ToolTrace(tool_call_id="c", tool_name="wind_wsd", result=row)).yaml
    assert f": {line}" in yaml.split("fields:")[1]
