"""The daily upkeep: what goes, what stays because something rests on it, and what a kill in the middle costs: nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Owner, ToolTrace, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.store import compact
from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.upkeep import retention

pytestmark = pytest.mark.slow

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
BOB = Owner(platform="telegram", user_id="7")
OLD, OUTLIVED, RECENT = NOW - 400 * DAY, NOW - 190 * DAY, NOW - 2 * DAY


def settings(home: Path, **sections: Any) -> None:
    config = {"plugins": {"entries": {"hermes-memory": {"settings": sections}}}}
    (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")


def call(memory: Memory, id: str, at: datetime, result: str = "贵州茅台 1405.5") -> None:
    memory.log(ToolTrace(tool_call_id=id, tool_name="get_quote", result=result, at=at, session_id="s"))


def stored(memory: Memory) -> set[str]:
    memory.flush()
    return {row["tool_call_id"] for row in memory.archive.logs.rows("SELECT tool_call_id FROM logs")}


# -- what goes and what stays ----------------------------------------------------------------------------------------


def test_calls_and_turns_go_when_their_time_and_grace_are_over(memory: Memory) -> None:
    for id, at in (("old", OLD), ("outlived", OUTLIVED), ("recent", RECENT)):
        call(memory, id, at)
    for at in (NOW - 500 * DAY, NOW - 380 * DAY, RECENT):
        memory.log_turn(Turn(user=f"中芯国际 {at:%Y}", at=at, session_id=f"s{at:%Y%m}"))
    trial = memory.upkeep.run(dry_run=True)
    assert (trial.calls, trial.turns, len(stored(memory))) == (1, 1, 3)
    report = memory.upkeep.run()
    assert (report.calls, report.turns, report.finished) == (1, 1, True)
    assert stored(memory) == {"outlived", "recent"} and memory.trace("old") is None
    assert len(memory.archive.logs.turns()) == 2
    kinds = [row.kind for row in memory.reader.index.scan(None, now_us=0)]
    assert sorted(kinds) == ["call", "call", "turn", "turn"]
    assert memory.upkeep.run().calls == 0


def test_what_a_living_fact_conclusion_scene_or_answer_cites_is_kept(memory: Memory) -> None:
    for id in ("of-fact", "of-conclusion", "of-scene", "of-answer", "loose"):
        call(memory, id, OLD)
    memory.log(ToolTrace(tool_call_id="bob", tool_name="t", result="r", at=OLD, owner=BOB))
    memory.remember("茅台批价 2200 元", tool_call_id="of-fact")
    memory.remember("维持买入", kind="conclusion", source="of-conclusion")
    memory.scenes.save("白酒", "看库存 [of-scene]", sources=["of-scene"])
    memory.reader.scan_files()
    link = {"kind": "call", "call": "of-answer", "number": "28"}
    memory.journal.append("answer", {"id": "turn:s:t", "links": [link]})
    assert memory.upkeep.run().calls == 2
    assert stored(memory) == {"of-fact", "of-conclusion", "of-scene", "of-answer"}


def test_a_fact_that_was_replaced_keeps_its_proof_no_longer(memory: Memory) -> None:
    call(memory, "april", OLD)
    common: dict[str, Any] = {"subject": "600519.SH", "metric": "batch_price"}
    memory.remember("批价 2800", tool_call_id="april", as_of="2026-04-30", value=2800, **common)
    memory.remember("批价 2200", as_of="2026-11-30", value=2200, **common)
    assert memory.upkeep.run().calls == 1


def test_facts_outlived_for_two_years_go_and_competences_never(memory: Memory) -> None:
    facts: dict[str, Any] = {"expires_at": "2024-01-01", "created_at": "2023-01-01"}
    long_ago = int((NOW - 800 * DAY).timestamp() * 1e6)
    for id, more in (("old", facts), ("living", {}), ("house", facts | {"kind": "competence"})):
        memory.remember(f"事实 {id}", id=id, **more)
    memory.flush()
    with memory.archive.facts.visit(write=True) as connection:
        connection.execute("UPDATE facts SET recorded_at = make_timestamp(?::BIGINT)", [long_ago])
    assert memory.upkeep.run().facts == 1
    memory.flush()
    assert {row["id"] for row in memory.archive.facts.scan()} == {"living", "house"}


def test_retention_keep_purges_nothing(home: Path) -> None:
    settings(home, retention="keep")
    with Memory.open(home) as memory:
        call(memory, "old", OLD)
        assert memory.upkeep.run(dry_run=True).calls == memory.upkeep.run().calls == 0
        assert stored(memory) == {"old"}


def test_a_figure_counts_until_the_next_report_is_on_record(memory: Memory) -> None:
    common: dict[str, Any] = {"subject": "600519.SH", "metric": "revenue", "origin": "tool"}
    days = [
        (f"{NOW - n * DAY:%Y-%m-%d}", period)
        for n, period in ((60, "2026Q2"), (40, "2026M09"), (20, "2026Q3"))
    ]
    q2, _, q3 = (
        memory.remember(f"茅台{period}营收", period=period, as_of=day, **common) for day, period in days
    )
    guess = memory.remember("茅台2027Q1营收预测", period="2027Q1", as_of=days[2][0], **common)
    report = memory.upkeep.run()
    memory.reader.refresh()
    rows = {row.id: row.expires for row in memory.reader.index.scan(None, now_us=0)}
    assert report.outlived == 1 and rows[q2] <= time.time_ns() // 1000 < min(rows[q3], rows[guess])
    assert memory.upkeep.run().outlived == 0


# -- payloads --------------------------------------------------------------------------------------------------------


def test_long_results_are_compressed_once_for_each_content_and_come_back_whole(memory: Memory) -> None:
    long = "".join(f"{n} 贵州茅台 收盘 {n * 7 % 997}\n" for n in range(1_000))
    for id in ("a", "b"):
        call(memory, id, NOW - 40 * DAY, long)
    call(memory, "new", RECENT, long + "x")
    report = memory.upkeep.run()
    rows = memory.archive.logs.rows(
        "SELECT tool_call_id AS id, length(result) AS n, ref FROM logs ORDER BY id"
    )
    assert report.compressed == 2 and [row["ref"] != "" for row in rows] == [True, True, False]
    assert rows[0]["n"] < 3_000 and len(memory.archive.logs.rows("SELECT hash FROM payloads")) == 1
    assert [memory.trace(id).result for id in ("a", "new")] == [long, long + "x"]  # type: ignore[union-attr]
    memory.forget(memory.reader.call(memory.archive.logs.trace("a")[0]["ulid"], None).id)  # type: ignore[union-attr]
    memory.flush()
    assert memory.trace("b").result == long  # type: ignore[union-attr]


# -- size ------------------------------------------------------------------------------------------------------------


def test_disk_growth_is_bounded_by_size_before_age(home: Path) -> None:
    """Above the limit the oldest calls go first, cited ones and those of the last month stay."""
    settings(home, retention={"max_gb": 0.008, "compress_days": 0})
    with Memory.open(home) as memory:
        noise = [os.urandom(30_000).hex() for _ in range(200)]
        for n, text in enumerate(noise):
            call(memory, f"c{n:03}", NOW - (150 - n // 2) * DAY, text)
        memory.remember("见首次调用", tool_call_id="c000")
        memory.flush()
        assert any("retention.max_gb" in notice for notice in memory.status()["notices"])
        report = memory.upkeep.run()
        left = stored(memory)
        assert report.calls > 20 and "c000" in left and "c001" not in left and "c199" in left
        assert report.bytes_after < report.bytes_before
        assert report.bytes_after == pytest.approx(retention.size_of(memory.folder), rel=0.2)


def test_status_says_at_80_percent_and_how_far_the_calendar_knows(home: Path) -> None:
    with Memory.open(home) as memory:
        (memory.folder / "closures.txt").write_text("2099-01-01", encoding="utf-8")
        found = memory.status()["upkeep"]
        assert (found["limit"], found["notices"]) == (5 << 30, []) and found["calendar_until"] >= "2026-12-31"
    settings(home, retention={"max_gb": 0.0001})
    with Memory.open(home) as memory:
        memory.remember("一句")
        memory.flush()
        assert "retention.max_gb" in memory.status()["upkeep"]["notices"][0]


def test_wal_bounded_and_files_are_as_small_as_fresh_ones(home: Path, tmp_path: Path) -> None:
    settings(home, lifetime={"call_days": 10}, retention={"grace_days": 0, "compress_days": 0})
    with Memory.open(home) as memory:
        for n in range(300):
            call(memory, f"c{n}", NOW - (30 if n % 10 else 1) * DAY, os.urandom(20_000).hex())
        memory.flush()
        memory.upkeep.run()
        fresh = tmp_path / "fresh"
        fresh.mkdir()
        with Memory.open(fresh) as other:
            for trace in memory.traces(limit=1_000):
                other.log(trace)
            other.flush()
            assert memory.archive.logs.size() <= 1.3 * other.archive.logs.size()
        assert not list(memory.folder.glob("*.wal"))


# -- beside others, and killed ---------------------------------------------------------------------------------------


def test_only_one_process_at_a_time_does_the_upkeep(memory: Memory) -> None:
    with LockFile(memory.folder / "upkeep.lock").acquire(), pytest.raises(LockBusy):
        memory.upkeep.run()


def test_appends_and_recalls_go_on_beside_a_compaction(memory: Memory) -> None:
    for n in range(400):
        call(memory, f"c{n}", RECENT, f"结果 {n}")
    memory.flush()
    pace, over = compact.Pace(rows=50), threading.Event()
    written: list[str] = []

    def write() -> None:
        while not over.is_set() or len(written) < 20:
            id = f"w{len(written)}"
            call(memory, id, NOW)
            memory.log_turn(Turn(user=f"第 {len(written)} 句", session_id="s", turn_id="one"), half="user")
            written.append(id)
            assert memory.recall("上次get_quote调用的结果", mode="explicit").items
            memory.flush()

    thread = threading.Thread(target=write)
    thread.start()
    while len(written) < 3:
        time.sleep(0.01)
    compact._MOST, most = 50, compact._MOST
    try:
        compact.compact(memory.archive.logs, pace)
    finally:
        compact._MOST = most
        over.set()
        thread.join()
    assert len(pace.held) > 8
    assert stored(memory) == {f"c{n}" for n in range(400)} | set(written)
    assert len(memory.archive.logs.turns()) == 1
    ids = memory.archive.logs.rows("SELECT ulid FROM logs")
    assert len(ids) == len({row["ulid"] for row in ids})


def test_what_is_forgotten_during_a_compaction_does_not_come_back_with_it(memory: Memory) -> None:
    row = memory.remember("要忘的事实")
    memory.flush()
    hold = compact._copy
    done = []

    def forget_after(connection: Any, ledger: Any, table: str, *more: Any) -> None:
        hold(connection, ledger, table, *more)
        if table == "facts" and not done:
            done.append(memory.forget(row))
            memory.flush()

    compact._copy = forget_after  # type: ignore[assignment]
    try:
        compact.compact(memory.archive.facts)
    finally:
        compact._copy = hold
    memory.flush()
    assert done and memory.archive.facts.by_ids([row]) == [] and memory.archive.facts.buried([row]) == {row}


KILLED = """
import os, signal, sys
from hermes_memory_plugin import Memory
from hermes_memory_plugin.store import compact, purge
import hermes_memory_plugin.upkeep.retention as retention
step, memory = sys.argv[2], Memory.open(sys.argv[1])
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if step == "deleting":
    memory.upkeep._gone = lambda ids: (retention.Upkeep._gone(memory.upkeep, ids), die())
elif step == "copying":
    copy = compact._copy
    compact._copy = lambda *given: die() if given[2] == "turns" else copy(*given)
elif step == "swapping":
    compact._swap = die
elif step == "swapped":
    swap = compact._swap
    compact._swap = lambda *given: (swap(*given), die())
else:
    setattr(retention.Upkeep, "_" + step, die)
retention._SMALL, retention.FRESH = 0, -1
memory.upkeep.run()
"""


@pytest.mark.parametrize("step", ["deleting", "facts", "copying", "swapped"])
def test_kill_during_upkeep_loses_nothing_living_and_the_next_run_goes_on(home: Path, step: str) -> None:
    with Memory.open(home) as memory:
        for n in range(30):
            call(memory, f"old{n}", OLD)
            call(memory, f"new{n}", RECENT, "长" * 5_000)
        memory.log_turn(Turn(user="中芯国际的产能", at=RECENT, session_id="s"))
        row = memory.remember("宁德时代 PE 20 倍")
        memory.flush()
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(home), step], capture_output=True, timeout=120, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    with Memory.open(home) as memory:
        assert {f"new{n}" for n in range(30)} <= stored(memory)
        report = memory.upkeep.run()
        assert report.finished and stored(memory) == {f"new{n}" for n in range(30)}
        assert len(memory.archive.logs.turns()) == 1 and memory.archive.facts.by_ids([row])
        assert not list(memory.folder.glob("*.new*"))
        assert {one.kind for one in memory.reader.index.scan(None, now_us=0)} == {"call", "turn", "fact"}


def test_a_run_out_of_time_goes_on_where_it_was(memory: Memory) -> None:
    call(memory, "old", OLD)
    memory.flush()
    stopped = memory.upkeep.run(budget=1e-9)
    assert not stopped.finished and memory.upkeep.due() and stopped.left
    assert memory.upkeep.run().finished and stored(memory) == set() and not memory.upkeep.due()


def test_the_daily_run_comes_by_itself(memory: Memory) -> None:
    call(memory, "old", OLD)
    memory.upkeep.soon(0.0)
    deadline = time.monotonic() + 60
    while memory.upkeep.due() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert stored(memory) == set()
    memory.upkeep.soon(0.0)
    assert memory.upkeep._thread is None
