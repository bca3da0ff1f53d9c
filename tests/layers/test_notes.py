"""Notes: one Markdown file for each thing the user asked to remember."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.layers.notes import BODY_LENGTH, BadNote, FolderUnwritable, Notes, slug
from hermes_memory_plugin.store.files import UnsafePath

BOB = Owner(platform="telegram", user_id="101")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "memory" / "notes")


def index_of(notes: Notes) -> list[str]:
    return (notes.folder.parent / "INDEX.md").read_text(encoding="utf-8").splitlines()


def test_a_note_is_a_file_people_can_read(notes: Notes) -> None:
    saved = notes.save("不碰银行股", "任何推荐都不要银行股", "user")
    assert saved.path.name == "user_不碰银行股.md"
    assert saved.path.read_text(encoding="utf-8").endswith("任何推荐都不要银行股\n")
    assert index_of(notes) == ["- [不碰银行股](notes/user_不碰银行股.md): 不碰银行股"]


def test_the_same_title_again_replaces_body_and_index_line(notes: Notes) -> None:
    first = notes.save("PE 口径", "用 TTM", "feedback")
    second = notes.save("PE  口径", "用 LYR", "reference")
    assert first.id == second.id and [note.body for note in notes] == ["用 LYR"]
    assert len(index_of(notes)) == 1 and not first.path.exists()


TITLES = [
    "😀",
    "🎉",
    "！！！",
    "—",
    "a/b",
    "a_b",
    "a b",
    "../../etc/passwd",
    "สวัสดี",
    "مرحبا",
    "привет",
    "CON",
    "x" * 300,
    "x" * 301,
]


def test_slug_collision_distinct_titles_never_share_a_file(notes: Notes) -> None:
    for title in TITLES:
        notes.save(title, f"body of {title}", "project")
    found = {note.title: note.body for note in notes}
    assert found == {title: f"body of {title}" for title in TITLES}
    assert all(
        path.parent == notes.folder for path in notes.folder.parent.rglob("*.md") if path.name != "INDEX.md"
    )


def test_unicode_titles_keep_their_letters() -> None:
    assert [slug(text) for text in ("贵州茅台 估值", "สวัสดี ชาวโลก", "snake_case-title")] == [
        "贵州茅台_估值",
        "สวัสดี_ชาวโลก",
        "snake_case-title",
    ]


def test_two_owners_may_use_one_title(notes: Notes) -> None:
    mine = notes.save("偏好", "不碰银行股", "user")
    his = notes.save("偏好", "只看银行股", "user", owner=BOB)
    assert mine.path != his.path
    assert notes.by_title("偏好", Owner()) == mine and notes.by_title("偏好", BOB) == his


def test_a_long_body_is_cut_where_everybody_sees_it(notes: Notes) -> None:
    note = notes.save("长文", "字" * 9_000, "reference")
    assert len(note.body) == BODY_LENGTH and note.body.endswith("[… cut at 8,000 characters]")


@pytest.mark.parametrize(
    ("title", "type_"),
    [
        ("", "user"),
        (" \n\t", "user"),
        ("\u0000", "user"),
        ("\u202e\u200b", "user"),
        ("x", "secret"),
        ("x", "../user"),
    ],
)
def test_a_note_that_cannot_be_stored_is_refused_by_name(notes: Notes, title: str, type_: str) -> None:
    with pytest.raises(BadNote, match=r"title|type"):
        notes.save(title, "body", type_)
    assert list(notes) == []


def test_a_removed_note_leaves_neither_file_nor_line(notes: Notes) -> None:
    kept, gone = notes.save("留", "a", "project"), notes.save("删", "b", "project")
    notes.remove(gone)
    assert [note.title for note in notes] == ["留"] and index_of(notes) == [
        f"- [留](notes/{kept.path.name}): 留"
    ]


def test_removing_a_title_that_begins_like_another_leaves_the_other(notes: Notes) -> None:
    long, short = notes.save("茅台估值", "a", "project"), notes.save("茅台", "b", "project")
    notes.remove(short)
    assert list(notes) == [long] and len(index_of(notes)) == 1


@pytest.mark.parametrize(
    ("front", "owner"),
    [
        ("id: [unclosed", "local"),
        ("- a\n- list", "local"),
        ("id: [unclosed\nowner: telegram:101", "telegram:101"),
        ("id: [unclosed\nowner: '???'", "unreadable:front-matter"),
        ("owner: nonsense::::", "unreadable:front-matter"),
    ],
)
def test_broken_front_matter_is_plain_text_of_its_owner_and_named(
    notes: Notes, front: str, owner: str
) -> None:
    notes.folder.mkdir(parents=True)
    path = notes.folder / "user_手写.md"
    text = f"---\n{front}\n---\n不碰银行股\n"
    path.write_text(text, encoding="utf-8")
    (note,) = notes
    assert note.broken and "不碰银行股" in note.body and note.owner.key == owner
    assert path.read_text(encoding="utf-8") == text


def test_a_file_without_front_matter_is_a_note(notes: Notes) -> None:
    notes.folder.mkdir(parents=True)
    (notes.folder / "project_想法.md").write_text("茅台春节动销好", encoding="utf-8")
    (note,) = notes
    assert (note.title, note.type, note.body, note.owner, note.broken) == (
        "想法",
        "project",
        "茅台春节动销好",
        Owner(),
        "",
    )


def test_a_symlink_out_of_the_folder_is_not_read(notes: Notes, tmp_path: Path) -> None:
    notes.folder.mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (notes.folder / "user_x.md").symlink_to(tmp_path / "secret.md")
    assert list(notes) == [] and notes.read(notes.folder / "user_x.md") is None


@pytest.mark.parametrize("name", ["notes", "trash"])
def test_a_link_in_the_folders_place_that_leaves_the_memory_is_refused(
    notes: Notes, tmp_path: Path, name: str
) -> None:
    saved = notes.save("已有", "正文", "project")
    away = tmp_path / "away"
    notes.folder.rename(away) if name == "notes" else away.mkdir()
    (notes.folder.parent / name).symlink_to(away, target_is_directory=True)
    before = sorted(away.iterdir())
    with pytest.raises(FolderUnwritable, match="symbolic link"):
        notes.save("新的", "正文", "project") if name == "notes" else notes.remove(saved)
    assert sorted(away.iterdir()) == before and list(notes.trash) == []
    if name == "notes":
        assert list(notes) == [] and "symbolic link" in notes.strange()[0]


def test_a_link_that_stays_inside_the_memory_is_followed(notes: Notes) -> None:
    real = notes.folder.parent / "all-notes"
    real.mkdir(parents=True)
    notes.folder.symlink_to(real, target_is_directory=True)
    notes.save("标题", "正文", "project")
    assert [note.title for note in notes] == ["标题"] and not notes.strange()


def test_an_index_that_leads_out_is_refused_before_the_note_is_written(notes: Notes, tmp_path: Path) -> None:
    notes.folder.mkdir(parents=True)
    (notes.folder.parent / "INDEX.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(UnsafePath, match=r"INDEX\.md"):
        notes.save("标题", "正文", "project")
    assert list(notes) == [] and not (tmp_path / "elsewhere.md").exists()


def test_lines_people_wrote_into_the_index_stay_and_a_missing_one_comes(notes: Notes) -> None:
    notes.save("甲", "a", "project")
    index = notes.folder.parent / "INDEX.md"
    index.write_text("# 我的目录\n\n" + index.read_text(encoding="utf-8") + "\n备注\n\n", encoding="utf-8")
    (notes.folder / "project_手写.md").write_text("---\nname: 手写的\n---\n\n正文\n", encoding="utf-8")
    notes.save("乙", "b", "project")
    assert index_of(notes) == [
        "# 我的目录", "", "- [甲](notes/project_甲.md): 甲", "", "备注", "",
        "- [手写的](notes/project_手写.md): ", "- [乙](notes/project_乙.md): 乙",
    ]  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=st.text(min_size=1, max_size=80), body=st.text(max_size=200))
def test_any_title_and_body_come_back_from_disk(
    tmp_path_factory: pytest.TempPathFactory, title: str, body: str
) -> None:
    notes = Notes(tmp_path_factory.mktemp("notes") / "notes")
    try:
        saved = notes.save(title, body, "project")
    except BadNote:
        assert not any(character.isprintable() and not character.isspace() for character in title)
        return
    assert any(unicodedata.category(character)[0] not in "CZ" for character in saved.title)
    (read,) = notes
    assert (read.title, read.body, read.id, read.created) == (
        saved.title,
        saved.body,
        saved.id,
        saved.created,
    )
