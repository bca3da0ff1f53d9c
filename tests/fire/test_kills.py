"""Processes that write, read, forget, drain and tidy up are killed at random; what was acknowledged is there, once.

HERMES_MEMORY_FIRE_SECONDS makes it longer (`make fire`), HERMES_MEMORY_FIRE_SEED repeats a run's choices.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from hermes_memory_plugin.store.locks import LockFile

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("HERMES_MEMORY_FIRE_SECONDS", "12"))
SEED = int(os.environ.get("HERMES_MEMORY_FIRE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
PROCESSES = 4 if SECONDS < 60 else 8


def _count(diary: Path, verb: str) -> int:
    return diary.read_text(encoding="utf-8").count(f"{verb}\t") if diary.exists() else 0


def test_every_acknowledged_record_is_there_once_and_nothing_forgotten_after_random_kills(
    tmp_path: Path,
) -> None:
    print(f"HERMES_MEMORY_FIRE_SEED={SEED}")
    chance = random.Random(SEED)
    home, diary = tmp_path / "home", tmp_path / "diary"
    home.mkdir()
    running: list[subprocess.Popen[bytes]] = []
    started = kills = 0
    ends = time.monotonic() + SECONDS
    try:
        # On a busy machine until there is something to judge, for up to three minutes more.
        while (now := time.monotonic()) < ends or (now < ends + 180 and _count(diary, "forgotten") < 3):
            while len(running) < PROCESSES:
                started += 1
                command = [sys.executable, "-m", "tests.fire.worker", home, diary, f"p{started}"]
                running.append(subprocess.Popen([*map(str, command), str(SEED + started)]))
            time.sleep(chance.uniform(0.1, 1.5) if SECONDS < 60 else chance.uniform(0.1, 3))
            victim = running.pop(chance.randrange(len(running)))
            assert victim.poll() is None, f"a worker ended by itself with {victim.returncode}"
            victim.kill()
            victim.wait()
            kills += 1
    finally:
        for process in running:
            process.kill()
            process.wait()
    lines = [line.split("\t") for line in diary.read_text(encoding="utf-8").splitlines()]
    told: dict[str, dict[str, str]] = {}
    for verb, id, text in lines:
        told.setdefault(verb, {})[id] = text
    doubtful, forgotten = told.get("forgetting", {}), told.get("forgotten", {})
    kept = {id: text for id, text in told["fact"].items() if id not in doubtful}
    print(f"{kills} kills, {len(kept)} facts kept, {len(forgotten)} forgotten, {len(told['asked'])} turns")
    assert kept
    assert forgotten
    assert told["answered"]

    with Memory.open(home) as memory:
        memory.flush(120)
        facts = Counter(row["id"] for row in memory.archive.facts.rows("SELECT id FROM facts"))
        turns = memory.archive.logs.rows("SELECT turn_id, user_text, assistant_text FROM turns")
        assert memory.archive.logs.rows("SELECT kind FROM other WHERE kind IN ('turn', 'fact')") == []
        index = memory.archive._index()
        index.refresh()
        rows = Counter(row.id for row in index.scan(None, now_us=time.time_ns() // 1000, layers=("L1",)))
    assert {id: facts[id] for id in kept} == dict.fromkeys(kept, 1)
    assert [id for id in forgotten if facts[id]] == []
    assert rows == facts
    found = Counter(row["turn_id"] for row in turns)
    assert {id: found[id] for id in told["asked"]} == dict.fromkeys(told["asked"], 1)
    answers = {row["turn_id"]: (row["user_text"], row["assistant_text"]) for row in turns}
    assert {id: answers[id] for id in told["answered"]} == {
        id: (text, "好的") for id, text in told["answered"].items()
    }
    for lock in (home / "memory").rglob("*.lock"):
        file = LockFile(lock)
        assert file.try_acquire(), f"{lock.name} is still held"
        file.release()
