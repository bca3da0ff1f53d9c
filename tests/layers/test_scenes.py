"""Scene files: what is written can be read, whatever people do to it, and no file is lost or takes another's place."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_plugin import Memory
from hermes_memory_plugin.layers.notes import BadNote, FolderUnwritable, Notes
from hermes_memory_plugin.layers.scenes import Scene, Scenes

DAY = datetime(2026, 4, 30, tzinfo=UTC)


@pytest.fixture
def scenes(tmp_path: Path) -> Scenes:
    return Scenes(tmp_path / "memory" / "scenarios")


def only(scenes: Scenes) -> Scene:
    (scene,) = scenes
    return scene


def test_everything_a_scene_knows_comes_back(scenes: Scenes) -> None:
    saved = scenes.save(
        "贵州茅台 2026Q1", "摘要。\n\n正文。", as_of=DAY, tickers=["600519.SH"], sectors=["白酒", "消费"], period="2026Q1",
        status="proposed", sources=["call_1", "f-1"], origin="model", expires=DAY,
    )  # fmt: skip
    assert only(scenes) == saved
    assert saved.summary == "摘要。" and saved.note.path.name == "贵州茅台_2026q1.md"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    title=st.text(min_size=1, max_size=60),
    body=st.text(max_size=200),
    tickers=st.lists(st.text(max_size=12), max_size=3),
    sources=st.lists(st.text(max_size=20), max_size=3),
)
def test_any_title_body_and_list_come_back_from_disk(
    tmp_path_factory: pytest.TempPathFactory, title: str, body: str, tickers: list[str], sources: list[str]
) -> None:
    scenes = Scenes(tmp_path_factory.mktemp("scenes") / "scenarios")
    try:
        saved = scenes.save(title, body, tickers=tickers, sources=sources)
    except BadNote:
        return
    read = only(scenes)
    assert (read.note.title, read.note.body, read.note.id) == (
        saved.note.title,
        saved.note.body,
        saved.note.id,
    )
    assert not read.note.broken and (read.tickers, read.sources) == (saved.tickers, saved.sources)


@pytest.mark.parametrize(
    "title", ["สวัสดี ชาวโลก", "مرحبا بالعالم", "snake_case title", "😀", "!!!", "../../etc/passwd"]
)
def test_every_script_gets_a_file_of_its_own_inside_the_folder(scenes: Scenes, title: str) -> None:
    first, second = scenes.save(title, "a"), scenes.save(f"{title}2", "b")
    assert first.note.path != second.note.path
    assert {one.note.path.parent for one in scenes} == {scenes.folder}
    assert {one.note.title for one in scenes} == {first.note.title, second.note.title}


def test_lists_written_by_hand_in_one_line_are_read(scenes: Scenes) -> None:
    scenes.folder.mkdir(parents=True)
    (scenes.folder / "a.md").write_text("---\ntitle: 白酒\ntickers: 600519.SH, 000858.SZ\nsectors: [白酒]\nperiod: 2026\nstatus: Proposed\n---\n看库存\n", encoding="utf-8")  # fmt: skip
    scene = only(scenes)
    assert (scene.tickers, scene.sectors, scene.period, scene.status) == (("600519.SH", "000858.SZ"), ("白酒",), "2026", "proposed")  # fmt: skip


def test_a_confirmed_scene_differs_in_its_status_and_expiry_alone(scenes: Scenes) -> None:
    saved = scenes.save("白酒", "看库存", status="proposed", expires=DAY, sectors=["白酒"])
    path = saved.note.path
    before = path.read_text(encoding="utf-8").replace("sectors:", "my_own_key: 保留\nsectors:")
    path.write_text(before, encoding="utf-8")
    confirmed = scenes.confirm(saved)
    assert confirmed.status == "active" and confirmed.expires is None
    expected = before.replace("status: proposed", "status: active")
    assert path.read_text(encoding="utf-8") == "".join(line for line in expected.splitlines(True) if not line.startswith("expires:"))  # fmt: skip


# -- bad input -------------------------------------------------------------------------------------------------------

BROKEN = "---\ntitle: [unclosed\nstatus: proposed\n---\n白酒库存仍高\n"


def test_broken_front_matter_is_named_found_as_plain_text_and_never_rewritten(memory: Memory) -> None:
    folder = memory.scenes.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "手写.md"
    path.write_text(BROKEN, encoding="utf-8")
    memory.add_scene("手写", "另一个")
    found = memory.recall("白酒库存", mode="explicit").items
    assert any("白酒库存仍高" in item.text for item in found)
    (broken,) = [scene for scene in memory.scenes if scene.note.broken]
    assert broken.summary == "白酒库存仍高" and "[unclosed" in broken.note.body
    assert any("手写.md" in problem for problem in memory.status()["problems"])
    assert path.read_text(encoding="utf-8") == BROKEN
    with pytest.raises(BadNote):
        memory.scenes.confirm(memory.scenes.read(path))  # type: ignore[arg-type]
    assert path.read_text(encoding="utf-8") == BROKEN


def test_a_broken_note_is_never_rewritten_by_one_of_its_name(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "memory" / "notes")
    notes.folder.mkdir(parents=True)
    path = notes.folder / "user_手写.md"
    path.write_text(BROKEN, encoding="utf-8")
    saved = notes.save("手写", "新的", "user")
    assert saved.path != path and path.read_text(encoding="utf-8") == BROKEN


@pytest.mark.parametrize("layer", ["notes", "scenarios"])
def test_two_files_with_one_title_are_two_rows_and_go_together(memory: Memory, layer: str) -> None:
    if layer == "notes":
        memory.remember("白酒库存高", title="白酒", type="project")
    else:
        memory.add_scene("白酒", "白酒库存高")
    (path,) = (memory.folder / layer).glob("*.md")
    (path.parent / "copy.md").write_bytes(path.read_bytes())  # the copy names the same id
    for _ in range(3):
        memory.reader.scan_files()
    items = memory.recall("白酒库存", mode="explicit").items
    assert sorted(item.source for item in items) == sorted([f"{layer}/{path.name}", f"{layer}/copy.md"])
    assert len(memory.forget("白酒")) == 2
    assert memory.recall("白酒库存", mode="explicit").items == ()


def test_a_note_written_edited_or_deleted_by_hand_is_in_the_index_as_it_is(memory: Memory) -> None:
    memory.remember("正文", title="先有的")
    path = memory.notes.folder / "project_手写.md"
    for title in ("手写的", "改过的"):
        path.write_text(f"---\nname: {title}\n---\n\n正文\n", encoding="utf-8")
        memory.reader.scan_files()
        assert [line for line in memory.notes.index() if path.name in line] == [
            f"- [{title}](notes/{path.name}): "
        ]
    path.unlink()
    memory.reader.scan_files()
    assert [line.partition("]")[0] for line in memory.notes.index()] == ["- [先有的"]


def test_a_renamed_file_stays_the_row_it_was(memory: Memory) -> None:
    row = memory.remember("白酒库存高", title="白酒", type="project")
    (path,) = (memory.folder / "notes").glob("*.md")
    path.rename(path.parent / "project_另一个名字.md")
    memory.reader.scan_files()
    (item,) = memory.recall("白酒库存", mode="explicit").items
    assert (item.id, item.source) == (row, "notes/project_另一个名字.md")


def test_a_folder_of_2000_scenes_is_read_and_searched(memory: Memory) -> None:
    folder = memory.scenes.folder
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(2_000):
        text = f"---\nid: scene-{number}\ntitle: 主题{number}\ntickers:\n- '{600000 + number}.SH'\n---\n\n第{number}号背景，库存正常。\n"
        (folder / f"topic_{number}.md").write_text(text, encoding="utf-8")
    memory.reader.scan_files()
    assert memory.reader.rows_by_layer()["L2"] == 2_000
    assert memory.recall("601234 的背景", mode="explicit").items[0].id == "scene-1234"
    assert memory.reader.scan_files() == 0, "what did not change is not read again"


def test_a_symlink_that_leaves_the_folder_is_not_read_and_said(memory: Memory, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("机密：不要读", encoding="utf-8")
    folder = memory.scenes.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "link.md").symlink_to(secret)
    assert list(memory.scenes) == []
    assert memory.recall("机密", mode="explicit").items == ()
    assert any("link.md" in problem for problem in memory.status()["problems"])
    saved = memory.scenes.save("link", "自己的")
    assert saved.note.path.name != "link.md" and secret.read_text(encoding="utf-8") == "机密：不要读"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A file in its place stands for every refusal of the disk: permissions do not bind every user."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "scenarios").write_text("", encoding="utf-8")
    scenes = Scenes(tmp_path / "memory" / "scenarios")
    with pytest.raises(FolderUnwritable, match="scenarios"):
        scenes.save("白酒", "看库存")
    assert list(scenes) == []


def test_a_scene_is_never_shown_before_its_time_is_over_or_after(memory: Memory) -> None:
    memory.add_scene("白酒", "白酒库存高")
    path = next(memory.scenes.folder.glob("*.md"))
    path.write_text(path.read_text(encoding="utf-8").replace("status: active", "status: active\nexpires: 2020-01-01"), encoding="utf-8")  # fmt: skip
    time.sleep(0.01)
    memory.reader.scan_files()
    assert memory.recall("白酒库存").items == ()


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ({}, {}, 1),
        ({"as_of": "2026-03-11"}, {"as_of": "2026-03-11"}, 1),
        ({"as_of": "2026-03-11"}, {}, 1),
        ({"as_of": "2026-03-11"}, {"as_of": "2026-09-11"}, 2),
        ({"tickers": ["600519.SH"]}, {"tickers": ["600519.SH", "000858.SZ"]}, 1),
        ({"tickers": ["600519.SH"]}, {"tickers": ["300124.SZ"]}, 2),
        ({"period": "2026Q1"}, {"period": "2026Q2"}, 2),
        ({"id": "s1"}, {"id": "s1", "as_of": "2026-09-11"}, 1),
        ({"id": "s1"}, {"id": "s2"}, 2),
    ],
)
def test_a_scene_replaces_its_own_older_text_and_never_another_scene_of_that_title(
    memory: Memory, first: dict[str, Any], second: dict[str, Any], kept: int
) -> None:
    memory.add_scene("调研纪要", "工控需求见底", **first)
    one = memory.add_scene("调研纪要", "工控需求温和复苏", **second)
    texts = [item.text for item in memory.recall("工控需求调研", mode="explicit").items]
    assert len(texts) == kept == len(list(memory.scenes)) and any("温和复苏" in text for text in texts)
    again = memory.add_scene("调研纪要", "工控需求全面复苏", **second)
    assert again == one and len(list(memory.scenes)) == kept
