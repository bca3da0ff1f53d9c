"""Notes and scenes never hold a secret, and a file a person wrote never brings one into recall."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Session, hookimpl
from hermes_memory_plugin import Memory
from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.tools import remember
from hermes_memory_plugin.tools.base import Caller
from hermes_memory_plugin.upkeep.importing import vibe_trading

MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
KEY = "sk" + "-proj-" + MIXED


def holding(home: Path, secret: str) -> list[str]:
    """The files below the home whose name or content has eight characters of the secret in a row."""
    pieces = [secret[at : at + 8] for at in range(8, len(secret) - 7)]
    found = []
    for path in home.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if any(piece.encode() in data or piece.lower() in path.name.lower() for piece in pieces):
            found.append(str(path.relative_to(home)))
    return found


def started_anew(home: Path) -> None:
    shutil.rmtree(home / "memory" / "index", ignore_errors=True)
    for file in (home / "memory").rglob("facts.db*"):
        file.unlink()


@pytest.mark.parametrize("how", ["remember", "title", "scene", "scene title", "tool"])
def test_no_file_holds_a_secret_that_was_remembered(tmp_path: Path, how: str) -> None:
    with Memory.open(tmp_path) as memory:
        if how == "remember":
            memory.remember(f"接口 token {KEY} 请保管", title="接口")
        elif how == "title":
            memory.remember("接口说明", title=f"接口 {KEY}", type="reference")
        elif how == "scene":
            memory.add_scene("接口", f"接口背景 {KEY}", tickers=[KEY], period=KEY)
        elif how == "scene title":
            memory.add_scene(f"接口 {KEY}", "接口背景")
        else:
            caller = Caller(Session("s"), lambda: memory)
            asked = {"action": "save", "title": f"接口 {KEY}", "content": f"接口 {KEY}"}
            assert remember.run(caller, asked)["status"] == "saved"
        memory.flush()
        assert memory.recall("接口", mode="explicit").items
    assert holding(tmp_path, KEY) == []
    started_anew(tmp_path)
    with Memory.open(tmp_path) as memory:
        found = memory.recall("接口", mode="explicit").items
        assert found and not any(MIXED[:8] in item.text for item in found)
    assert holding(tmp_path, KEY) == []


def test_a_title_with_a_secret_is_found_again_by_itself(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        first = memory.remember("一", title=f"接口 {KEY}", type="reference")
        assert memory.remember("二", title=f"接口 {KEY}", type="reference") == first
        assert [note.body for note in memory.notes] == ["二"]


def test_a_file_written_by_hand_stays_and_its_secret_stays_out_of_recall(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.remember("占位", title="占位")
    folder = tmp_path / "memory"
    (folder / "scenarios").mkdir(exist_ok=True)
    text = f"---\nname: 行情接口 {KEY}\ntype: reference\n---\n\n行情接口的口令 {KEY}\n"
    files = [folder / "notes" / "reference_行情接口.md", folder / "scenarios" / "行情接口.md"]
    for file in files:
        file.write_text(text, encoding="utf-8")
    (folder / "INDEX.md").unlink()
    for _ in range(2):
        with Memory.open(tmp_path) as memory:
            found = memory.recall("行情接口", mode="explicit").items
            assert found and not any(MIXED[:8] in item.text for item in found)
            memory.remember("另一条", title="另一条")
        assert set(holding(tmp_path, KEY)) == {str(file.relative_to(tmp_path)) for file in files}
        assert all(file.read_text(encoding="utf-8") == text for file in files)
        started_anew(tmp_path)


def test_a_restored_note_is_masked(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.remember("占位", title="接口")
        (file,) = (tmp_path / "memory" / "notes").glob("*.md")
        file.write_text(file.read_text(encoding="utf-8") + KEY, encoding="utf-8")
        memory.forget("接口")
        memory.restore("接口")
    assert holding(tmp_path, KEY) == []


def test_an_import_is_masked_and_known_the_second_time(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "feed.md").write_text(f"---\nname: 接口\n---\n\n接口 {KEY}\n", encoding="utf-8")
    home = tmp_path / "home"
    with Memory.open(home) as memory:
        assert vibe_trading(memory, source).rows[0].became == "note"
        assert vibe_trading(memory, source).rows[0].became == "unchanged"
    assert holding(home, KEY) == []


def test_a_redactor_works_on_notes_and_scenes_too(tmp_path: Path) -> None:
    class Desk:
        @hookimpl
        def redact(self, text: str) -> str:
            return text.replace("蓝鲸计划", "[masked:desk]")

    hooks = Hooks()
    hooks.register(Desk(), "desk")
    with Memory.open(tmp_path, hooks=hooks) as memory:
        memory.remember("蓝鲸计划进展", title="蓝鲸计划")
        memory.add_scene("蓝鲸计划", "蓝鲸计划背景", as_of=datetime(2026, 1, 1, tzinfo=UTC))
        memory.flush()
    named = [path for path in tmp_path.rglob("*") if "蓝鲸" in path.name]
    assert not named
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and "蓝鲸计划".encode() in path.read_bytes()
    ]
