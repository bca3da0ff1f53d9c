"""From a stored call to facts that recall, supersede and trace know: through the journal, the drain and the ledgers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Fact, Owner, ToolTrace, hookimpl
from hermes_memory_plugin import Memory
from hermes_memory_plugin.extensions import OURS, Hooks
from hermes_memory_plugin.plugin import MemoryPlugin
from hermes_memory_plugin.upkeep.mappers import facts as mapped
from hermes_memory_plugin.upkeep.mappers import shapes
from hermes_memory_plugin.upkeep.mappers.backfill import backfill
from hermes_memory_plugin.upkeep.mappers.draft import NothingToMap, draft
from hermes_memory_plugin.upkeep.mappers.load import Mappers
from hermes_memory_plugin.upkeep.mappers.reader import read
from hermes_memory_plugin.upkeep.mappers.tally import MOST, Tally

NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = f"{NOW - timedelta(days=1):%Y%m%d}"
NAMES = ["ts_code", "trade_date", "pe_ttm", "pb", "total_mv"]


def frame(*rows: list[Any], names: list[str] = NAMES) -> str:
    return json.dumps({"code": 0, "data": {"fields": names, "items": rows}})


def call(memory: Memory, id: str, result: str, tool: str = "tushare_daily_basic", **given: Any) -> None:
    given.setdefault("at", NOW)
    memory.log(ToolTrace(tool_call_id=id, tool_name=tool, result=result, session_id="s1", **given))


def stored(memory: Memory) -> list[dict[str, Any]]:
    memory.flush()
    return list(memory.archive.facts.scan())


def test_a_tables_figures_are_recalled_with_their_call(memory: Memory) -> None:
    call(memory, "c1", frame(["600519.SH", TODAY, 22.1, 7.4, 180601200.0]))
    memory.flush()
    item = memory.recall("茅台的PE TTM是多少").items[0]
    assert "22.1 倍" in item.text and item.source == "tushare_daily_basic"
    (pe,) = [row for row in stored(memory) if row["metric"] == "pe"]
    assert (pe["origin"], pe["tool_call_id"], pe["basis"]) == ("tool", "c1", "TTM")
    assert memory.trace(pe["tool_call_id"]) is not None


def test_a_newer_figure_takes_the_place_of_an_older_one(memory: Memory) -> None:
    for n, pe in ((40, 28.0), (1, 22.1)):
        day = NOW - timedelta(days=n)
        call(
            memory, f"c{n}", frame(["600519.SH", f"{day:%Y%m%d}", pe, None, None]), at=day + timedelta(days=1)
        )
    old, new = sorted(stored(memory), key=lambda row: row["as_of"])
    assert (old["value"], old["superseded_by"], new["superseded_by"]) == (28.0, new["id"], "")


def test_the_same_call_looked_at_twice_gives_the_same_rows(memory: Memory) -> None:
    for _ in range(2):
        call(memory, "c1", frame(["600519.SH", TODAY, 22.1, 7.4, 180601200.0]))
    rows = stored(memory)
    assert len(rows) == 3
    journal = memory.archive.folder / "journal" / "extract.json"
    journal.unlink()
    assert {row["id"] for row in stored(memory)} == {row["id"] for row in rows}


def test_a_quarter_is_no_year_and_a_dollar_no_yuan(memory: Memory) -> None:
    report = [
        {"SECUCODE": "600519.SH", "REPORT_DATE": end, "NOTICE_DATE": "2026-04-20", "CURRENCY": money, "PARENT_NETPROFIT": value}
        for end, money, value in (("2025-12-31", "CNY", 8.6e10), ("2026-03-31", "CNY", 2.7e10), ("2025-12-31", "USD", 1.2e10))
    ]  # fmt: skip
    call(memory, "c1", json.dumps(report), tool="akshare_stock_profit_sheet_by_report_em")
    rows = stored(memory)
    assert {(row["period"], row["currency"]) for row in rows} == {
        ("2025", "CNY"),
        ("2026Q1", "CNY"),
        ("2025", "USD"),
    }
    assert not [row for row in rows if row["superseded_by"]]


def test_facts_belong_to_whoever_called(memory: Memory) -> None:
    ann = Owner(platform="telegram", user_id="1")
    call(memory, "c1", frame(["600519.SH", TODAY, 22.1, None, None]), owner=ann)
    (row,) = stored(memory)
    assert row["owner"] == ann.key
    assert not memory.recall("茅台PE", mode="explicit").items


def test_market_data_is_marked_public_and_the_original_is_kept(memory: Memory) -> None:
    call(memory, "c1", frame(["600519.SH", TODAY, None, None, 180601200.0]))
    (row,) = stored(memory)
    extra = json.loads(row["extra"])
    assert (extra["public"], extra["original"], row["value"]) == (True, "180,601,200 万元", 1806012000000.0)


def test_a_failed_call_states_nothing(memory: Memory) -> None:
    call(memory, "c1", frame(["600519.SH", TODAY, 22.1, None, None]), status="error")
    assert stored(memory) == []


# -- many rows -------------------------------------------------------------------------------------------------------


def series(count: int) -> str:
    return frame(
        *(["600519.SH", f"{NOW - timedelta(days=n + 1):%Y%m%d}", 20 + n % 9, 7.0, None] for n in range(count))
    )


def test_a_frame_of_5000_rows_is_its_newest_row_and_a_summary_and_it_is_said(memory: Memory) -> None:
    call(memory, "c1", series(5_000))
    rows = stored(memory)
    single = [row for row in rows if row["value"] is not None]
    summed = [row for row in rows if row["value"] is None]
    assert {row["metric"]: row["value"] for row in single} == {"pe": 20.0, "pb": 7.0}
    assert {row["basis"] for row in summed} == {"TTM range", "range"}
    (pe,) = [row["statement"] for row in summed if row["metric"] == "pe"]
    assert "共 5,000 条" in pe and "最低 20 倍" in pe and "最高 28 倍" in pe and "该次调用" in pe
    (event,) = memory.archive.logs.rows("SELECT detail FROM events WHERE name = 'facts_bounded'")
    assert "c1: 5,000 rows, 1 kept one by one" in event["detail"]
    assert memory.status()["tables"]["bounded"] == 1


def test_a_short_series_is_kept_day_by_day_as_the_chain_of_what_was(memory: Memory) -> None:
    call(memory, "c1", series(4))
    rows = [row for row in stored(memory) if row["metric"] == "pe"]
    assert len(rows) == 4 and sum(not row["superseded_by"] for row in rows) == 1


def test_the_whole_market_at_once_is_a_summary(memory: Memory) -> None:
    codes = (f"{600000 + n}.SH" for n in range(900))
    call(memory, "c1", frame(*([code, TODAY, n / 10, 1.0, None] for n, code in enumerate(codes))))
    rows = stored(memory)
    assert {row["subject"] for row in rows} == {"tushare_daily_basic"} and len(rows) == 2
    (pe,) = [row for row in rows if row["metric"] == "pe"]
    assert "900 个标的" in pe["statement"] and "中位数 44.95 倍" in pe["statement"]


@pytest.mark.parametrize(("subjects", "periods"), [(1, 80), (3, 30), (30, 1), (30, 20), (149, 1), (400, 3)])
def test_no_call_gives_more_facts_than_allowed(tmp_path: Path, subjects: int, periods: int) -> None:
    names = ["ts_code", "end_date", "ann_date", "roe", "grossprofit_margin", "netprofit_margin", "eps", "bps"]
    ends = [f"{2026 - n // 4}{('0930', '0630', '0331', '1231')[n % 4]}" for n in range(periods)]
    rows = [
        [
            f"{600000 + n}.SH",
            end if end[4:] != "1231" else f"{int(end[:4]) - 1}1231",
            "20261030",
            1.0,
            2.0,
            3.0,
            4.0,
            5.0,
        ]
        for n in range(subjects)
        for end in ends
    ]
    trace = ToolTrace(
        tool_call_id="c",
        tool_name="tushare_fina_indicator",
        result=frame(*rows, names=names),
        at=datetime(2026, 11, 20, tzinfo=UTC),
    )
    found = read(trace, Mappers(tmp_path).of(trace.tool_name, {}))
    single = [fact for fact in found.facts if fact.value is not None]
    assert len(single) <= mapped.MOST and len(found.facts) <= mapped.MOST + mapped.FEW * mapped.SUMMED
    assert bool(found.bounded) == (subjects * periods * 5 > mapped.MOST)
    if subjects <= mapped.MOST:
        newest = max(fact.period for fact in single)
        assert {fact.subject for fact in single if fact.period == newest} == {row[0] for row in rows}


def test_of_a_giant_result_the_beginning_is_read_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "MOST_TEXT", 20_000)
    trace = ToolTrace(tool_call_id="c", tool_name="tushare_daily_basic", result=series(5_000))
    found = read(trace, Mappers(tmp_path).of(trace.tool_name, {}))
    assert 100 < found.rows < 1_000 and "beginning" in found.bounded
    assert any("只读到结果的开头" in fact.statement for fact in found.facts)


# -- what is not read ------------------------------------------------------------------------------------------------


WIND = json.dumps({"Codes": ["600519.SH"], "Fields": ["CLOSE", "PE_TTM", "MKT_CAP_ARD"], "Times": ["2026-03-30", "2026-03-31"], "Data": [[1470.0, 1480.5], [26.1, 26.8], [1.84, 1.85]]})  # fmt: skip


def test_what_no_mapper_reads_is_counted_and_nothing_is_guessed(home: Path) -> None:
    for _ in range(2):  # across processes
        with Memory.open(home) as memory:
            for n in range(2):
                call(memory, f"w{n}", WIND, tool="wind_wsd")
            call(memory, "t", '{"output": "total 12"}', tool="terminal")
            call(memory, "m", '"done"', tool="ping")
            memory.flush()
            found = memory.status()["tables"]
    assert found["unread"] == [{"tool": "wind_wsd", "calls": 4}] and found["facts"] == 0


def test_the_list_of_tools_is_bounded() -> None:
    tally = Tally()
    for n in range(MOST + 50):
        tally.add(f"tool_{n}", 0, n)
    again = Tally(json.loads(json.dumps(tally.as_json())))
    assert len(again.tools()) == MOST and "tool_0" not in again.as_json()
    assert Tally({"x": "?", "y": [1, 2]}).tools() == Tally(None).tools() == []


def test_growth_over_week_what_is_recalled_is_not_stored_again(memory: Memory) -> None:
    """Our own tools' answers and what they quote of tables are no new facts."""
    call(memory, "c1", frame(["600519.SH", TODAY, 22.1, 7.4, None]))
    before = len(stored(memory))
    for n in range(5):
        told = memory.recall("茅台PE", mode="explicit")
        answer = json.dumps(
            {
                "items": [{"text": item.text} for item in told.items],
                "result": frame(["600519.SH", TODAY, 22.1, 7.4, None]),
            }
        )
        for tool in ("remember", "memory_trace", "session_search"):
            call(memory, f"r{n}{tool}", answer, tool=tool)
    assert len(stored(memory)) == before
    assert not memory.status()["tables"]["unread"]


def test_junk_rate_of_results_that_state_no_figure_is_zero(memory: Memory) -> None:
    for n, (tool, result) in enumerate(
        [
            (
                "tushare_daily_basic",
                '{"code": 40203, "msg": "抱歉，您每分钟最多访问该接口1次", "data": null}',
            ),
            ("tushare_daily_basic", frame()),
            ("tushare_daily_basic", frame(["600519.SH", "20260230", 22.1, 1.0, 1.0])),
            ("tushare_daily_basic", frame(["茅台", TODAY, 22.1, 1.0, 1.0])),
            ("tushare_news", '[{"datetime": "2026-11-19 10:00", "content": "茅台 PE 22.1 倍"}]'),
            ("web_extract", "贵州茅台 PE 22.1 倍"),
            ("daily", '[{"date": "20261119", "note": "PE 22.1"}]'),
        ]
    ):
        call(memory, f"c{n}", result, tool=tool)
    assert stored(memory) == []
    (event,) = [
        row["detail"]
        for row in memory.archive.logs.rows("SELECT detail FROM events WHERE name = 'rows_refused'")
        if "20260230" in row["detail"]
    ]
    assert "1 x no such date (20260230)" in event


def test_a_mapper_that_fails_costs_neither_the_drain_nor_the_other_extractors(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_memory_plugin.upkeep.mappers import reader

    def fail(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(reader, "read", fail)

    class Other:
        @hookimpl
        def extract_facts(self, trace: ToolTrace) -> list[Fact]:
            return [Fact(statement="别的提取器也在")]

    said: list[tuple[str, str]] = []
    hooks = Hooks(lambda name, detail: said.append((name, detail)))
    hooks.register(MemoryPlugin(hooks), OURS)
    hooks.register(Other(), "other")
    with Memory.open(home, hooks=hooks) as memory:
        call(memory, "c1", frame(["600519.SH", TODAY, 22.1, None, None]))
        assert [row["statement"] for row in stored(memory)] == ["别的提取器也在"]
    assert said == [("plugin_failed", f"{OURS}.extract_facts: RuntimeError: out of order")]


# -- drafts and old calls --------------------------------------------------------------------------------------------


@pytest.fixture
def mapped_wind(memory: Memory) -> Iterator[Memory]:
    call(memory, "w1", WIND, tool="wind_wsd", at=datetime(2026, 4, 1, tzinfo=UTC))
    memory.flush()
    trace = memory.trace("w1")
    assert trace is not None
    folder = memory.folder / "mappers"
    folder.mkdir()
    (folder / "wind_wsd.yaml").write_text(draft(trace).yaml, encoding="utf-8")
    yield memory


def test_a_draft_writes_what_is_known_and_leaves_the_rest_to_a_person(mapped_wind: Memory) -> None:
    text = (mapped_wind.folder / "mappers" / "wind_wsd.yaml").read_text(encoding="utf-8")
    assert "PE_TTM: {metric: pe, basis: TTM, unit: 倍" in text and "# MKT_CAP_ARD: {metric: ?" in text
    assert not mapped_wind.extraction.mappers.problems()


def test_old_calls_are_read_once_their_mapper_is_there_and_again_changes_nothing(mapped_wind: Memory) -> None:
    trial = backfill(mapped_wind, dry_run=True)
    assert trial.facts == {"wind_wsd": 4} and stored(mapped_wind) == []
    for _ in range(2):
        assert backfill(mapped_wind).facts == {"wind_wsd": 4}
        rows = stored(mapped_wind)
        assert sorted((row["metric"], row["value"]) for row in rows) == [
            ("pe", 26.1),
            ("pe", 26.8),
            ("price", 1470.0),
            ("price", 1480.5),
        ]
        assert mapped_wind.status()["tables"] | {"refused": 0} == {
            "tools": 1,
            "facts": 4,
            "bounded": 0,
            "refused": 0,
            "unread": [],
        }


def test_what_was_forgotten_does_not_come_back_with_old_calls(mapped_wind: Memory) -> None:
    backfill(mapped_wind)
    gone = stored(mapped_wind)[0]["id"]
    mapped_wind.forget(gone)
    backfill(mapped_wind)
    assert gone not in {row["id"] for row in stored(mapped_wind)}


PRINTED = "     ts_code trade_date  pe_ttm    pb\n0  600519.SH   20260331    22.1   7.4\n"


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("df = pro.daily_basic(ts_code='600519.SH')\nprint(df)", 2),
        ("df = pro.query('daily_basic', ts_code='600519.SH')\nprint(df)", 2),
        ("df = pro.daily_basic(ts_code='600519.SH')\ndf['pb'] = df['pb'] * 2\nprint(df)", 0),
        ("df = pro.daily_basic(ts_code='600519.SH').rename(columns={'pe': 'pe_ttm'})\nprint(df)", 0),
        ("a = pro.daily_basic(trade_date='1')\nb = pro.daily_basic(trade_date='2')\nprint(b)", 0),
        ("print(open('x.csv').read())", 0),
    ],
)  # fmt: skip
def test_printed_tables_are_read_where_the_source_says_whose_they_are(
    memory: Memory, source: str, facts: int
) -> None:
    result = json.dumps({"status": "success", "output": PRINTED})
    call(memory, "c1", result, tool="execute_code", args={"code": source})
    assert stored(memory) == []
    assert backfill(memory).facts["execute_code"] == facts
    assert len(stored(memory)) == facts


def test_a_printed_tables_adjustment_is_that_of_its_source(memory: Memory) -> None:
    result = json.dumps({"output": "日期,收盘\n2026-03-31,1411.9\n"})
    source = "python -c \"import akshare as ak; print(ak.stock_zh_a_hist(symbol='600519', adjust='qfq').to_csv())\""
    call(memory, "c1", result, tool="terminal", args={"command": source})
    assert backfill(memory, tool="terminal").facts == {"terminal": 1}
    (row,) = stored(memory)
    assert (row["subject"], row["basis"], row["value"]) == ("600519.SH", "qfq", 1411.9)


@pytest.mark.parametrize(
    ("result", "why"),
    [("没有数据", "holds no table"), ('[{"city": "上海", "high": 18}]', "code of a security"), ('[{"ts_code": "600519.SH", "zzz": 1}]', "none of its columns")],
)  # fmt: skip
def test_what_no_mapper_can_be_drafted_from_is_said(result: str, why: str) -> None:
    with pytest.raises(NothingToMap, match=why):
        draft(ToolTrace(tool_call_id="c", tool_name="t", result=result))
