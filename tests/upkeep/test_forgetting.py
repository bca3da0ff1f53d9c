"""Forgetting: gone at once with all that follows, for good after `upkeep --purge`, and honest about what it cannot reach."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Fact, Owner, ToolTrace, Turn, hookimpl
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.layers.persona import PersonaRefused
from hermes_memory_plugin.store.packed import unpack

pytestmark = pytest.mark.slow

NOW = datetime.now(UTC)
SECRET = "红杉七七号客户要清仓宁德时代"
BOB = Owner(platform="telegram", user_id="7")


class Reads:
    """An extractor: one figure from each quote."""

    @hookimpl
    def extract_facts(self, trace: ToolTrace) -> list[Fact]:
        return [Fact(statement=f"读到 {trace.result}", subject="300750.SZ", metric="holders_note")]


@pytest.fixture
def read(home: Path) -> Iterator[Memory]:
    hooks = Hooks(lambda name, detail: None)
    hooks.register(Reads(), "reads")
    with Memory.open(home, hooks=hooks) as memory:
        yield memory


def texts(memory: Memory, question: str, **more: Any) -> list[str]:
    return [item.text for item in memory.recall(question, mode="explicit", limit=20, **more).items]


def call(memory: Memory, id: str, result: str, **more: Any) -> str:
    memory.log(ToolTrace(tool_call_id=id, tool_name="get_note", result=result, session_id="s", **more))
    memory.reader.refresh()
    return next(
        row.id for row in memory.reader.index.scan(None, now_us=0, kinds=("call",)) if row.extra["call"] == id
    )


def on_disk(home: Path) -> list[str]:
    """Files below memory/ that hold the secret, however it is packed there."""
    found = []
    for path in (home / "memory").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix in (".gz", ".zst"):
                data = unpack(data)
            if SECRET.encode() in data or SECRET.encode("unicode-escape") in data:
                found.append(str(path.relative_to(home)))
    return found


# -- at once ---------------------------------------------------------------------------------------------------------


def test_a_call_takes_the_figures_read_from_it_along_and_nobody_else_s(read: Memory) -> None:
    row = call(read, "c1", SECRET)
    call(read, "c1", "另一个人的持仓", owner=BOB)
    call(read, "c2", "还在的持仓")
    read.flush()
    assert len([text for text in texts(read, "读到 宁德时代") if SECRET in text]) == 2
    assert len(read.forget(row)) == 2
    left = texts(read, "读到 宁德时代 持仓")
    assert all(SECRET not in text for text in left) and any("还在的持仓" in text for text in left)
    assert any("另一个人" in text for text in texts(read, "读到 持仓", owner=BOB))
    read.flush()
    assert read.reader.rebuild() and all(SECRET not in text for text in texts(read, "读到 宁德时代"))


def test_a_call_forgotten_before_anybody_read_it_states_nothing(read: Memory) -> None:
    row = call(read, "c1", SECRET)
    read.forget(row)
    read.flush()
    assert texts(read, "读到 宁德时代") == [] and read.archive.facts.scan() == []


def test_no_import_and_no_rebuild_brings_it_back(memory: Memory) -> None:
    memory.remember(SECRET, id="client")
    path = memory.notes.save("客户", SECRET, "reference").path
    memory.reader.scan_files()
    text = path.read_text(encoding="utf-8")
    memory.forget("client")
    memory.forget("客户")
    memory.flush()
    memory.remember(SECRET, id="client")
    path.write_text(text, encoding="utf-8")  # from a backup
    memory.reader.scan_files()
    memory.flush()
    assert texts(memory, "红杉 宁德时代") == []
    assert memory.reader.rebuild() and texts(memory, "红杉 宁德时代") == []


def test_what_recalls_showed_of_it_is_gone_from_their_audits(memory: Memory) -> None:
    row = memory.remember(SECRET)
    memory.recall("宁德时代")
    memory.flush()
    assert SECRET[:10] in str(memory.why(5))
    memory.forget(row)
    memory.flush()
    assert SECRET[:10] not in str(memory.why(5))


@pytest.mark.parametrize("cites", ["call", "fact", "handle"])
def test_a_conclusion_that_rested_on_it_says_that_its_basis_changed(memory: Memory, cites: str) -> None:
    row = call(memory, "c1", SECRET) if cites == "call" else memory.remember(SECRET)
    memory.reader.refresh()
    source = {"call": "", "fact": row, "handle": memory.reader.index.handle(row)}[cites]
    proof = {"tool_call_id": "c1"} if cites == "call" else {"source": source}
    memory.remember("宁德时代维持买入", id="verdict", kind="conclusion", **proof)
    memory.remember("比亚迪维持买入", kind="conclusion", source="研报")
    assert memory.forgetting(row).shaken == ("verdict",)
    memory.flush()
    for _ in range(2):
        found = memory.recall("宁德时代结论 比亚迪", mode="explicit")
        shaken = {item.id: "basis changed" in item.reasons for item in found.items}
        assert shaken.pop("verdict") and not any(shaken.values()) and "依据已变" in found.block
        assert memory.reader.rebuild()


def test_a_forgotten_fact_can_be_restored_within_the_grace_period(memory: Memory) -> None:
    row = memory.remember(SECRET, subject="300750.SZ", metric="position", value=3, owner=BOB)
    memory.forget(row, owner=BOB)
    with pytest.raises(NotFound):
        memory.restore(row)
    again = memory.restore(row, owner=BOB)
    assert texts(memory, "宁德时代清仓", owner=BOB) == [SECRET] and again != row
    memory.flush()
    assert memory.archive.facts.by_ids([again])[0]["value"] == 3
    with pytest.raises(NotFound):
        memory.restore(row, owner=BOB)


# -- what it cannot reach --------------------------------------------------------------------------------------------


def host(home: Path) -> None:
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_text(f"先结论后论据\n§\n{SECRET}", encoding="utf-8")
    with sqlite3.connect(home / "state.db") as connection:
        connection.execute("CREATE TABLE messages (session_id TEXT, role TEXT, content TEXT)")
        connection.execute("INSERT INTO messages VALUES ('s', 'user', ?)", [f"记住：{SECRET}"])


def test_it_says_what_it_cannot_reach(home: Path) -> None:
    host(home)
    with Memory.open(home) as memory:
        row = memory.remember(SECRET)
        memory.log_turn(Turn(user=f"记住：{SECRET}", session_id="s", turn_id="t"))
        said = "\n".join(memory.forgetting(row, dry_run=True).unreached)
        assert (
            "MEMORY.md" in said and "Said again in d-" in said and "1 messages" in said and "--purge" in said
        )
        assert "open now" in said
        assert memory.forgetting(row).unreached and SECRET in (home / "memories" / "MEMORY.md").read_text(
            "utf-8"
        )


def test_everywhere_also_takes_the_host_s_entry_and_the_words_it_was_said_in(home: Path) -> None:
    host(home)
    with Memory.open(home) as memory:
        row = memory.remember(SECRET)
        memory.log_turn(Turn(user=f"记住：{SECRET}", session_id="s", turn_id="t"))
        call(memory, "save", f'{{"saved": "{SECRET}"}}')
        done = memory.forgetting(row, everywhere=True)
        assert len(done.ids) >= 3 and done.entries == (SECRET,)
        assert (home / "memories" / "MEMORY.md").read_text("utf-8") == "先结论后论据"
        assert SECRET in (memory.folder / done.backup / "MEMORY.md").read_text("utf-8")
        assert not any(SECRET in text for text in texts(memory, "红杉 宁德时代"))
        assert "MEMORY.md" not in "".join(done.unreached)


def test_an_entry_of_the_host_alone_goes_only_when_asked_outright(home: Path) -> None:
    host(home)
    with Memory.open(home) as memory:
        memory.mirror.follow()
        memory.reader.refresh()
        row = next(
            row.id for row in memory.reader.index.scan(None, now_us=0, layers=("L3",)) if SECRET in row.text
        )
        with pytest.raises(PersonaRefused, match="everywhere"):
            memory.forget(row)
        assert memory.forgetting(row, everywhere=True).entries == (SECRET,)
        assert not any(SECRET in text for text in texts(memory, "红杉 宁德时代"))


# -- for good --------------------------------------------------------------------------------------------------------


def test_after_upkeep_purge_its_bytes_are_in_no_file(home: Path) -> None:
    """Journal, ledgers, write-ahead logs, index, long texts, trash, audits, compactions, offloaded results, backups."""
    from hermes_memory_plugin.upkeep import offload

    host(home)
    old = NOW - timedelta(days=40)
    with Memory.open(home) as memory:
        fact = memory.remember(SECRET)
        note = memory.remember(f"{SECRET}，下周", title="客户", type="project")
        scene = memory.add_scene("宁德时代客户", SECRET)
        calls = [
            call(memory, "short", SECRET),
            call(memory, "old", f"{SECRET}\n" * 600, at=old),
            call(memory, "long", f"{SECRET}\n" * 20_000),
        ]
        offload.keep(memory, f"{SECRET}\n" * 2_000, owner=Owner(), tool="t", call="long", session="s")
        turn = memory.log_turn(Turn(user=SECRET, assistant=SECRET, session_id="s", turn_id="t"))
        memory.recall("宁德时代客户清仓")
        memory.remember("还在的事实 宁德时代")
        memory.flush()
        memory.upkeep.run()
        assert len(on_disk(home)) >= 5
        for one in (fact, note, scene, *calls, turn):
            with suppress(NotFound):  # one takes others along
                memory.forget(one, everywhere=True)
        report = memory.upkeep.run(for_good=True)
        assert report.finished and on_disk(home) == [] and not list((home / "memory").rglob("*.wal"))
        assert not memory.archive.logs.rows("SELECT * FROM payloads") and not list(
            memory.archive.logs.refs.stored()
        )
        assert "还在的事实 宁德时代" in texts(memory, "还在的事实")
        assert memory.reader.rebuild() and not any("红杉" in text for text in texts(memory, "红杉七七"))
        with pytest.raises(NotFound):
            memory.restore("客户")


HOLDER = """
import sys
from hermes_memory_plugin import Memory
memory = Memory.open(sys.argv[1])
row = memory.remember(sys.argv[2])
print(row, flush=True)
for line in sys.stdin:
    memory.remember("另一句")
    memory.flush()
    print("written", flush=True)
"""


def test_another_process_s_journal_is_named_and_goes_once_it_has_written_again(home: Path) -> None:
    with Memory.open(home) as memory:
        other = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(home), SECRET],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdin and other.stdout
        try:
            row = other.stdout.readline().strip()
            memory.forget(row)
            report = memory.upkeep.run(for_good=True)
            assert any(f"process {other.pid}" in sentence for sentence in report.left)
            assert [path for path in on_disk(home) if "journal" not in path] == []
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "written\n"
            memory.upkeep.run(for_good=True)
            assert on_disk(home) == []
        finally:
            other.stdin.close()
            other.wait(60)
        assert len(texts(memory, "另一句")) == 1
