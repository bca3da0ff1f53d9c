"""Texts that stay as they are: until nobody reads them any more."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hermes_memory_plugin import Memory
from hermes_memory_plugin.store.frozen import Frozen
from hermes_memory_plugin.upkeep import handover, snapshots

DAY = 86_400


def old(folder: Path, key: str, days: int) -> None:
    at = time.time() - days * DAY
    os.utime(folder / f"{key}.md", (at, at))


def test_whoever_stores_first_decides(tmp_path: Path) -> None:
    first, second = Frozen(tmp_path / "frozen"), Frozen(tmp_path / "frozen")
    assert first.put("persona-1", "甲") == "甲" and second.put("persona-1", "乙") == "甲"


def test_a_text_that_is_still_read_outlives_one_nobody_reads(tmp_path: Path) -> None:
    frozen = Frozen(tmp_path / "frozen")
    for key in ("still-read", "unread-by-all"):
        frozen.put(key, key)
        old(frozen.folder, key, 40)
    assert frozen.get("still-read") == "still-read"
    assert frozen.prune(30 * DAY) == 1
    assert Frozen(frozen.folder).get("still-read") == "still-read" and frozen.get("unread-by-all") is None


def test_states_of_compactions_go_when_nobody_reads_them_for_a_quarter(memory: Memory) -> None:
    states = Frozen(memory.folder / handover.FOLDER)
    for key, days in (("long-over", 100), ("last-month", 40)):
        states.put(key, "Current agent state:")
        old(states.folder, key, days)
    memory.drafts.catch_up()
    assert [path.stem for path in states.folder.iterdir()] == ["last-month"]
    assert snapshots.KEPT < snapshots.KEPT_STATES


def test_a_link_out_of_the_memory_is_neither_read_nor_pruned(tmp_path: Path) -> None:
    Frozen(tmp_path / "away").put("somebodys", "x")
    old(tmp_path / "away", "somebodys", 400)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "frozen").symlink_to(tmp_path / "away", target_is_directory=True)
    frozen = Frozen(tmp_path / "memory" / "frozen")
    assert frozen.get("somebodys") is None and frozen.prune(DAY) == 0
    assert (tmp_path / "away" / "somebodys.md").exists()
