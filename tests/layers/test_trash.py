"""Forgotten notes and scenes: nothing finds them, and for 30 days they can come back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers.notes import BadNote

BOB = Owner(platform="telegram", user_id="101")


def found(memory: Memory, owner: Owner | None = None) -> list[str]:
    return [item.text for item in memory.recall("不碰银行股", mode="explicit", owner=owner).items]


def test_lifecycle_a_forgotten_note_can_be_restored(memory: Memory) -> None:
    row = memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    handle = memory.reader.index.handle(memory.reader.named(row, None)[0])
    memory.forget(row)
    assert found(memory) == [] and not list((memory.folder / "notes").glob("*.md"))
    back = memory.restore("不碰银行股")
    assert back == row and len(found(memory)) == 1
    (again,) = memory.reader.named(handle, None)
    assert again.id == row and memory.reader.index.handle(again) == handle, "who cited it finds it again"
    assert "不碰银行股" in (memory.folder / "INDEX.md").read_text(encoding="utf-8")
    assert list(memory.notes.trash) == []


def test_only_restore_brings_it_back(memory: Memory) -> None:
    """What was forgotten by its id stays forgotten: a copy of the file, a rebuild of the index change nothing."""
    row = memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    (path,) = (memory.folder / "notes").glob("*.md")
    copy = path.read_bytes()
    memory.forget(row)
    path.write_bytes(copy)
    memory.flush()
    assert found(memory) == []
    assert memory.reader.rebuild()
    assert found(memory) == []


def test_a_restored_note_survives_a_rebuild_and_is_there_for_every_process(
    memory: Memory, home: Path
) -> None:
    row = memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    with Memory.open(home) as other:
        assert len(found(other)) == 1
        other.forget(row)
        assert found(memory) == []
        assert memory.restore("不碰银行股") == row
        assert len(found(memory)) == len(found(other)) == 1
        memory.remember("仍然不碰银行股", title="不碰银行股", type="user")
        memory.flush()
        assert found(memory) == found(other) and len(found(other)) == 1
        assert memory.reader.rebuild()
        assert len(found(memory)) == 1
    with Memory.open(home) as later:
        assert len(found(later)) == 1


def test_what_was_restored_can_be_forgotten_for_good(memory: Memory, home: Path) -> None:
    row = memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    for _ in range(2):
        memory.forget(row)
        assert found(memory) == []
        memory.flush()
        assert memory.restore("不碰银行股") == row
        assert len(found(memory)) == 1
    (path,) = (memory.folder / "notes").glob("*.md")
    copy = path.read_bytes()
    memory.forget(row)
    path.write_bytes(copy)  # not asked back since
    assert found(memory) == []
    memory.flush()
    with Memory.open(home) as later:
        assert found(later) == []


def test_a_file_without_an_id_comes_back_as_the_row_it_was(memory: Memory) -> None:
    path = memory.notes.folder / "project_手写.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("不碰银行股", encoding="utf-8")
    memory.reader.scan_files()
    (row,) = memory.reader.named("手写", None)
    memory.forget(row.id)
    assert memory.restore("手写") == row.id and len(found(memory)) == 1


def test_a_forgotten_scene_comes_back_whole(memory: Memory) -> None:
    memory.add_scene("白酒", "不碰银行股，只看白酒", tickers=["600519.SH"], sectors=["白酒"], period="2026Q1")
    (before,) = memory.scenes
    memory.forget("白酒")
    assert memory.restore("白酒") == before.note.id
    (after,) = memory.scenes
    assert memory.reader.named(before.note.id, None)
    assert (after.tickers, after.sectors, after.period, after.note.body) == (before.tickers, before.sectors, before.period, before.note.body)  # fmt: skip


def test_a_broken_file_comes_back_byte_for_byte(memory: Memory) -> None:
    path = memory.folder / "notes" / "user_手写.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "---\nname: [unclosed\n---\n不碰银行股\n"
    path.write_text(text, encoding="utf-8")
    memory.reader.scan_files()
    memory.forget("手写")
    memory.restore("user_手写.md")
    (back,) = (memory.folder / "notes").glob("*.md")
    assert back.read_text(encoding="utf-8") == text and len(found(memory)) == 1


def test_nobody_restores_what_another_forgot(memory: Memory) -> None:
    memory.forget(memory.remember("只看银行股", title="偏好", type="user", owner=BOB), owner=BOB)
    with pytest.raises(NotFound):
        memory.restore("偏好")
    memory.restore("偏好", owner=BOB)
    assert found(memory, BOB) and not found(memory)


def test_a_newer_note_of_that_title_is_not_pushed_aside(memory: Memory) -> None:
    memory.forget(memory.remember("旧的", title="偏好", type="user"))
    memory.remember("新的", title="偏好", type="user")
    with pytest.raises(BadNote, match="newer"):
        memory.restore("偏好")
    (note,) = memory.notes
    assert note.body == "新的" and len(list(memory.notes.trash)) == 1


def test_after_the_grace_period_it_is_gone_for_good(memory: Memory) -> None:
    memory.forget(memory.remember("旧的", title="偏好", type="user"))
    assert memory.notes.trash.purge() == 0
    assert memory.notes.trash.purge(before=datetime.now(UTC) + timedelta(seconds=1)) == 1
    assert list(memory.notes.trash) == []


def test_strange_files_in_the_trash_are_left_alone(memory: Memory, tmp_path: Path) -> None:
    folder = memory.folder / "trash"
    folder.mkdir(exist_ok=True)
    (folder / "mine.md").write_text("x", encoding="utf-8")
    (folder / "20200101T000000000000Z_notes_user_x.md").symlink_to(tmp_path / "elsewhere.md")
    assert list(memory.notes.trash) == [] and memory.notes.trash.purge() == 0
    assert (folder / "mine.md").exists()


def test_uses_are_counted(memory: Memory) -> None:
    from hermes_memory_plugin.upkeep.uses import uses

    row = memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    assert uses(memory) == {}
    for _ in range(3):
        memory.recall("不碰银行股", mode="explicit")
    assert uses(memory)[row].count == 3 and uses(memory)[row].last is not None
