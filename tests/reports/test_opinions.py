"""What a report thinks becomes facts of its broker, with the page, and goes when the report goes."""

from __future__ import annotations

from pathlib import Path

from hermes_memory_plugin import Memory
from hermes_memory_plugin.reports.opinions import forecasts
from tests.reports.shelf import SHELF

TABLE = "| 项目 | 2025A | 2026E | 2027 |\n| --- | --- | --- | --- |\n| 营业收入 | 1,857 | 1,985 | 2,110 |\n"


def test_only_a_marked_year_with_a_stated_unit_is_a_forecast() -> None:
    found = list(forecasts(f"单位：亿元\n{TABLE}| 营收同比 | 1 | 2 | 3 |", 4, "600519.SH"))
    assert [(one.metric, one.period, one.value, one.unit, one.page) for one in found] == [
        ("revenue", "2026", 1985.0, "亿元", 4)
    ]
    assert list(forecasts(TABLE, 4, "600519.SH")) == []


def test_forecasts_are_found_with_their_page_and_go_with_the_report(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home") as memory:
        id = memory.add_report(SHELF / "20260320-海岬证券-泸州老窖-000568-调研简报.md")

        def found() -> list[str]:
            items = memory.recall("泸州老窖2026年营业收入预测", mode="explicit", limit=20).items
            return [f"{one.text} {one.source}" for one in items if one.layer == "L1"]

        (said,) = [one for one in found() if "营业收入" in one]
        assert "33,100百万元" in said and "海岬证券" in said and said.endswith("2026-03-20 p.1")
        memory.library.remove(id)
        assert found() == []
