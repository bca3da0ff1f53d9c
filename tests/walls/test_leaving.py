"""One who leaves: all of it in one file for him, none of it in any file afterwards, nobody else's row touched."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli import main
from hermes_memory_plugin.upkeep import leaving

from .people import ASKED, JIA, YI, town


def files_with(home: Path, word: str) -> list[str]:
    return [
        str(path.relative_to(home))
        for path in (home / "memory").rglob("*")
        if path.is_file() and word.encode() in path.read_bytes()
    ]


@pytest.mark.slow
def test_export_hands_out_every_kind_of_row_of_one_owner_and_no_other_s(tmp_path: Path) -> None:
    town(tmp_path)
    file = tmp_path / "jia.jsonl"
    with Memory.open(tmp_path) as memory:
        counts = leaving.export(memory, JIA.owner, file)
    text = file.read_text(encoding="utf-8")
    kinds = {"fact", "trace", "turn", "note", "scene", "trash", "audit", "passages"}
    assert kinds <= {json.loads(line)["kind"] for line in text.splitlines()}
    assert sum(counts.values()) == len(text.splitlines())
    assert JIA.canary in text and YI.canary not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.slow
def test_without_yes_erase_only_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    town(tmp_path)
    assert main(["--home", str(tmp_path), "--json", "owners", "erase", JIA.key]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["erased"] is False and told["rows"]["fact"] >= 1
    with Memory.open(tmp_path) as memory:
        assert JIA.canary in memory.recall(ASKED, mode="explicit", owner=JIA.owner).block


@pytest.mark.slow
def test_after_erase_no_file_has_a_byte_of_it_and_no_rebuild_brings_it_back(tmp_path: Path) -> None:
    town(tmp_path)
    assert files_with(tmp_path, JIA.canary)
    with Memory.open(tmp_path) as memory:
        before = memory.recall(ASKED, mode="explicit", owner=YI.owner, limit=50, recorded=False).items
        left = leaving.erase(memory, JIA.owner, dry_run=False)
        assert left.done and left.rows["turn"] == 1
    assert files_with(tmp_path, JIA.canary) == []
    with Memory.open(tmp_path) as memory:
        assert memory.reader.rebuild()
        assert (
            memory.recall(JIA.canary, mode="explicit", owner=JIA.owner, limit=50, recorded=False).items == ()
        )
        assert JIA.key not in memory.reader.index.owners()
        assert memory.archive.facts.graves(100, {JIA.key})
        after = memory.recall(ASKED, mode="explicit", owner=YI.owner, limit=50, recorded=False).items
        assert [one.text for one in after] == [one.text for one in before]


@pytest.mark.parametrize("key", ["shared", "any"])
def test_what_belongs_to_all_cannot_leave(tmp_path: Path, key: str) -> None:
    with Memory.open(tmp_path) as memory, pytest.raises(leaving.NotLeaving):
        leaving.erase(memory, Owner.parse(key), dry_run=True)
