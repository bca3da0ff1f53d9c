"""The index on disk: several processes, kills in the middle, damaged files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_plugin.recall import index_writer
from hermes_memory_plugin.recall.index import Add, Change, Index, IndexDamaged, JournalTail, Remove, Row
from hermes_memory_plugin.recall.index_disk import MANIFEST, load, save
from hermes_memory_plugin.recall.index_files import read_container, write_container
from hermes_memory_plugin.recall.index_writer import IndexWriter
from hermes_memory_plugin.store.drain import RETIRED
from hermes_memory_plugin.store.tails import Record, read_tails, retire

from .index_kit import NOW, TOKENIZER, Home, found, ids, open_index, rows_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def spawn(code: str, home: Path) -> subprocess.Popen[str]:
    setup = "import sys\nfrom pathlib import Path\nfrom tests.recall.index_kit import *\nhome = Path(sys.argv[1])\n"
    return subprocess.Popen(
        [sys.executable, "-c", setup + code, str(home)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


# -- several processes ---------------------------------------------------------------------------------------------


def test_a_reader_in_another_process_follows_the_writer(tmp_path: Path) -> None:
    reader = spawn(
        """
import time
index = open_index(home)
print("ready", flush=True)
while "last" not in ids(index):
    index.refresh(budget_ms=50)
    time.sleep(0.01)
print(*ids(index), flush=True)
""",
        tmp_path,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    home = Home(tmp_path)
    writer = IndexWriter(home.index)
    expected = {"last"}
    for number in range(60):
        home.fact(f"f{number}", "pe")
        expected.add(f"f{number}")
        if number % 7 == 0:
            writer.commit()
        time.sleep(0.002)
    time.sleep(0.1)
    home.fact("last", "pe")
    out, _ = reader.communicate(timeout=30)
    assert set(out.split()) == expected


def test_two_processes_write_and_each_finds_everything(tmp_path: Path) -> None:
    code = """
me = Home(home)
name = sys.stdin.readline().strip()
for number in range(200):
    # A date of its own: two rows of one microsecond and one date would both stand.
    me.fact(f"{name}{number}", "pe", fact_key=f"k{number}", as_of=2 * number + (name == "b"), trust=5)
print("done", flush=True)
sys.stdin.readline()
me.index.refresh()
print(len(me.index), len(ids(me.index)), flush=True)
"""
    processes = [spawn(code, tmp_path) for _ in range(2)]
    for name, process in zip("ab", processes, strict=True):
        assert process.stdin is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
    index = open_index(tmp_path)
    writer = IndexWriter(index)
    for process in processes:
        assert process.stdout is not None
        writer.commit()
        assert process.stdout.readline() == "done\n"
    writer.commit()
    answers = [process.communicate("\n", timeout=30)[0] for process in processes]
    index.refresh()
    assert answers == [f"{len(index)} {len(ids(index))}\n"] * 2
    assert (len(index), len(ids(index))) == (400, 200)


def test_offsets_on_disk_never_stand_for_a_row_that_is_still_being_made(tmp_path: Path) -> None:
    making, go_on = threading.Event(), threading.Event()

    def slow(record: Record) -> Iterable[Change]:
        making.set()
        go_on.wait(30)
        return rows_of(record)

    home = Home(tmp_path)
    home.index.tail.rows_of = slow
    record = home.journal.append("fact", {"id": "late", "words": {"pe": 1.0}})
    applying = threading.Thread(target=home.index.apply, args=(record,))
    applying.start()
    assert making.wait(30)
    writing = threading.Thread(target=IndexWriter(home.index).commit)
    writing.start()
    writing.join(0.3)  # it may wait for the row; it must not go on without it
    go_on.set()
    for thread in (writing, applying):
        thread.join(30)
    loaded = load(home.index.folder, TOKENIZER, [])
    assert loaded is not None and sum(part.segment.rows for part in loaded.parts) == 1


def test_rows_of_a_drained_and_removed_journal_stay_visible(tmp_path: Path) -> None:
    writer = spawn('me = Home(home)\nfor n in range(5): me.fact(f"f{n}", "pe")\n', tmp_path)
    reader = open_index(tmp_path)
    writer.wait(30)
    drainer = open_index(tmp_path)
    manifest = IndexWriter(drainer).commit()
    assert retire(tmp_path / "journal", manifest.offsets)
    reader.refresh()
    assert len(ids(reader)) == 5


def test_the_drain_hands_its_chunks_over(home: Home) -> None:
    home.fact("f1", "pe")
    other = open_index(home.path)
    consumer = IndexWriter(other)
    for chunk in read_tails(home.path / "journal", consumer.offsets()):
        consumer.apply(chunk)
    home.fact("f2", "pe")
    manifest = consumer.commit()
    assert sum(manifest.offsets.values()) == home.journal.offset
    assert consumer.offsets() == manifest.offsets
    assert ids(open_index(home.path)) == {"f1", "f2"}


def test_a_chunk_that_would_leave_a_gap_is_read_from_the_file(home: Home) -> None:
    home.fact("f1", "pe")
    first = home.journal.offset
    home.fact("f2", "pe")
    other = open_index(home.path)
    for chunk in read_tails(home.path / "journal", {home.journal.name: first}):
        IndexWriter(other).apply(chunk)
    IndexWriter(other).commit()
    assert ids(other) == {"f1", "f2"}


def test_a_reader_of_an_old_generation_keeps_working(home: Home) -> None:
    for number in range(30):
        home.fact(f"f{number}", "pe")
    writer = IndexWriter(home.index)
    writer.commit()
    reader = open_index(home.path)
    view = reader.view(None, now_us=0)
    for number in range(30):
        home.fact(f"f{number}", "revenue")
        writer.purge()
    assert len(view.rows(view.numbers())) == 30
    assert view.df("pe") == 30
    reader.refresh()
    assert found(reader, "pe") == {}


def test_views_and_writes_go_on_while_a_generation_is_written(home: Home) -> None:
    writer = IndexWriter(home.index)
    stop = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        reader = home.index
        while not stop.is_set():
            reader.refresh(budget_ms=5)
            count = len(reader)
            view = reader.view(None, now_us=0)
            if view.n < count or len({row.id for row in view.rows(view.numbers())}) != view.n:
                wrong.append((count, view.n))

    def write() -> None:
        while not stop.is_set():
            writer.commit()

    threads = [threading.Thread(target=target) for target in (read, read, write)]
    for thread in threads:
        thread.start()
    for number in range(300):
        home.fact(f"f{number % 200}", "pe")
    stop.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    home.index.refresh()
    writer.commit()
    assert ids(home.index) == ids(open_index(home.path)) == {f"f{number}" for number in range(200)}


def test_what_happens_while_a_generation_is_written_is_not_lost(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.fact("old", "pe", fact_key="k", as_of=1, trust=5)
    home.fact("gone", "pe")
    for number in range(5):
        home.fact(f"f{number}", "pe")
        len(home.index)

    def save_late(*arguments: Any) -> Any:
        home.forget("gone")
        home.fact("new", "pe", fact_key="k", as_of=2, trust=5)
        for number in range(5):
            home.fact(f"g{number}", "pe")
            len(home.index)  # parts in memory are folded
        return save(*arguments)

    expected = {"new", *(f"{letter}{number}" for letter in "fg" for number in range(5))}
    monkeypatch.setattr(index_writer, "save", save_late)
    IndexWriter(home.index).commit()
    monkeypatch.undo()
    rows = home.index.scan(None, now_us=NOW)
    assert sorted(row.id for row in rows) == sorted(expected)
    late = open_index(home.path)
    late.refresh()
    assert ids(late) == expected
    IndexWriter(home.index).commit()
    assert ids(open_index(home.path)) == expected


def test_a_journal_removed_in_the_middle_of_a_refresh_is_found_in_the_index(tmp_path: Path) -> None:
    """The journal of a dead process is drained and removed after the reader looked at the manifest."""
    Home(tmp_path).fact("first", "pe")
    time.sleep(0.01)
    spawn('Home(home).fact("last", "pe")\n', tmp_path).wait(30)
    drained: list[str] = []

    def rows_of_slowly(record: Record) -> Iterable[Change]:
        if not drained:
            manifest = IndexWriter(open_index(tmp_path)).commit()
            drained.extend(retire(tmp_path / "journal", manifest.offsets))
        return rows_of(record)

    reader = Index.open(
        tmp_path / "index", tail=JournalTail(tmp_path / "journal", rows_of_slowly), tokenizer=TOKENIZER
    )
    reader.refresh(budget_ms=0)
    assert drained
    assert ids(reader) == {"first", "last"}


def test_a_reader_ahead_of_a_new_generation_reads_nothing_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = open_index(home.path)
    home.fact("f1", "pe")

    def save_late(*arguments: Any) -> Any:
        home.fact("f2", "pe")
        assert reader.refresh().records == 2
        return save(*arguments)

    monkeypatch.setattr(index_writer, "save", save_late)
    IndexWriter(home.index).commit()
    refreshed = reader.refresh()
    assert (refreshed.records, refreshed.adopted, ids(reader)) == (0, True, {"f1", "f2"})


def test_a_budget_leaves_the_rest_for_later(home: Home) -> None:
    home.journal.append_many(
        ("fact", {"id": f"f{n}", "words": {"pe": 1.0}}, "local", None, None) for n in range(500)
    )
    reader = open_index(home.path)
    first = reader.refresh(budget_ms=0)
    assert first.records == 1
    assert first.backlog > 0
    IndexWriter(reader).commit()
    assert len(ids(open_index(home.path))) == 500


def test_what_was_applied_is_not_applied_again(home: Home) -> None:
    for number in range(20):
        home.fact(f"f{number}", "pe")
    assert home.index.refresh().records == 0
    home.journal.append("fact", {"id": "other", "words": {"pe": 1.0}})
    assert home.index.refresh().records == 1
    assert home.index.refresh().records == 0


# -- kills ---------------------------------------------------------------------------------------------------------


def test_a_kill_in_the_middle_of_commits_leaves_a_readable_index(tmp_path: Path) -> None:
    code = """
from hermes_memory_plugin.recall.index_writer import IndexWriter
me = Home(home)
writer = IndexWriter(me.index)
number = len(me.index)
while True:
    for _ in range(5):
        me.fact(f"f{number}", "pe")
        print(number, flush=True)
        number += 1
    writer.commit() if number % 3 else writer.purge()
"""
    acknowledged = -1
    for pause in (0.0, 0.003, 0.011, 0.02, 0.031):
        process = spawn(code, tmp_path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate(timeout=30)
        acknowledged = max([acknowledged, *(int(line) for line in out.split("\n")[:-1])])
        index = open_index(tmp_path)
        index.refresh()
        assert index.notice is None
        assert ids(index) >= {f"f{number}" for number in range(acknowledged + 1)}
    IndexWriter(index).purge()
    assert not list((tmp_path / "index").glob("*.tmp"))
    assert len(list((tmp_path / "index").iterdir())) == len(index.corpus.disk) + 2


# -- damage --------------------------------------------------------------------------------------------------------


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data), 97):
        data[at] ^= 0xFF
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b'{"generation": [] }' * 50)


@pytest.mark.parametrize("harm", [cut_in_half, flip_bytes, empty, garbage, Path.unlink])
@pytest.mark.parametrize("suffix", ["json", "seg", "rows"])
def test_a_damaged_index_is_noticed_and_built_again(
    home: Home, suffix: str, harm: Callable[[Path], None]
) -> None:
    home.fact("f1", "pe")
    home.fact("f2", "pe")
    home.forget("f2")
    IndexWriter(home.index).commit()
    for path in (home.path / "index").glob(f"*.{suffix}"):
        harm(path)
    index = open_index(home.path)
    assert index.missing
    assert (index.notice is None) == (suffix == "json" and harm is Path.unlink)
    if index.notice is not None:
        assert "rebuild" in str(index.notice)
    index.refresh()  # the journals are still there
    assert ids(index) == {"f1"}
    rows = [Add(Row(id=id_, layer="L1", text="pe", weights={"pe": 1.0})) for id_ in ("f1", "f2", "f3")]
    IndexWriter(index).rebuild([*rows, Remove(("f2",))], index.tail.offsets)
    assert (index.notice, index.missing) == (None, False)
    late = open_index(home.path)
    late.refresh()
    assert (late.notice, ids(late)) == (None, {"f1", "f3"})


def test_damage_under_a_running_reader_keeps_its_rows(home: Home) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    reader = open_index(home.path)
    garbage(home.path / "index" / MANIFEST)
    reader.refresh()
    assert reader.notice is not None
    assert ids(reader) == {"f1"}
    IndexWriter(home.index).rebuild([], {})
    reader.refresh()
    assert (reader.notice, ids(reader)) == (None, {"f1"})


@pytest.mark.parametrize("change", [{"format": 99}, {"tokenizer": "jieba-7"}])
def test_an_index_of_another_version_is_not_used(home: Home, change: dict[str, object]) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    path = home.path / "index" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    index = open_index(home.path)
    assert index.notice is not None
    index.refresh()
    assert ids(index) == {"f1"}


def test_other_words_make_another_index(home: Home) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    assert open_index(home.path, tokenizer="words-2").notice is not None
    assert open_index(home.path, tokenizer=TOKENIZER).notice is None


@pytest.mark.parametrize(
    ("recorded", "own", "fitting"),
    [
        ("1/rjieba-0.1.11+gist4", "1/jieba-0.42.1+gist4", True),
        ("1/pairs+gist4", "1/rjieba-0.1.11+gist4", True),
        ("1/rjieba-0.1.11+gist4", "1/rjieba-0.2+gist5", False),
        ("1/rjieba-0.1.11+gist5", "1/rjieba-0.1.11+gist4", True),
        ("1/rjieba-0.1.11+gist5", "2/rjieba-0.1.11+gist4", False),
        ("words-1", "1/jieba-0.42.1+gist4", False),
        ("", "1/jieba-0.42.1+gist4", False),
    ],
)
def test_which_index_another_segmenter_or_version_makes_anew(
    home: Home, recorded: str, own: str, fitting: bool
) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    path = home.path / "index" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer": recorded}))
    index = open_index(home.path, tokenizer=own)
    assert (index.notice is None) is fitting
    if fitting:
        home.fact("f2", "pb")
        IndexWriter(index).commit()
        assert json.loads(path.read_text())["tokenizer"] == recorded


def test_a_rebuild_from_an_older_state_reads_the_journals_again(home: Home) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    reader = open_index(home.path)
    reader.refresh()
    IndexWriter(home.index).rebuild([], {})
    reader.refresh()
    assert ids(reader) == ids(home.index) == {"f1"}


def test_a_failed_write_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    home.fact("f2", "pe")
    (home.path / "index").rename(home.path / "moved")
    (home.path / "index").write_text("in the way")
    with pytest.raises(OSError):
        IndexWriter(home.index).commit()
    assert ids(home.index) == {"f1", "f2"}
    (home.path / "index").unlink()
    (home.path / "moved").rename(home.path / "index")
    IndexWriter(home.index).commit()
    assert ids(open_index(home.path)) == {"f1", "f2"}


def test_files_are_private_and_old_ones_go(home: Home) -> None:
    writer = IndexWriter(home.index)
    for number in range(5):
        home.fact(f"f{number}", "pe")
        writer.commit()
    folder = home.path / "index"
    old = time.time() - 3_600
    for path in folder.iterdir():
        os.utime(path, (old, old))
    home.fact("last", "pe")
    writer.commit()
    loaded = load(folder, TOKENIZER)
    assert loaded is not None
    assert len(list(folder.iterdir())) == len(loaded.parts) + 2
    if os.name == "posix":
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_damage_is_never_merged_into_a_new_file(home: Home) -> None:
    home.fact("f1", "pe")
    writer = IndexWriter(home.index)
    writer.commit()
    for path in (home.path / "index").glob("*.seg"):
        flip_bytes(path)
    home.fact("f2", "pe")
    with pytest.raises(IndexDamaged):
        writer.commit()


def test_nothing_is_written_over_a_lost_index_the_journals_cannot_replace(home: Home) -> None:
    """Otherwise the next process would take the few rows that are left for all there are."""
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    (home.path / RETIRED).touch()
    (home.path / "index" / MANIFEST).unlink()
    index = open_index(home.path)
    with pytest.raises(IndexDamaged):
        IndexWriter(index).commit()
    IndexWriter(index).rebuild([Add(Row(id="f0", layer="L1", text="pe"))], {})
    assert not index.missing
    assert ids(index) == ids(open_index(home.path)) == {"f0", "f1"}
    IndexWriter(index).commit()


def test_a_drain_counts_only_what_is_on_disk(home: Home) -> None:
    """The rows may be in memory long before; their journal must not go while they are only there."""
    home.fact("f1", "pe")
    reader = open_index(home.path)
    reader.refresh()
    consumer = IndexWriter(reader)
    assert consumer.offsets() == {}
    for chunk in read_tails(home.path / "journal", {}):
        consumer.apply(chunk)
    promised = consumer.offsets()
    assert sum(promised.values()) == home.journal.offset
    assert consumer.commit().offsets == promised == IndexWriter(reader).offsets()


def test_rows_stay_visible_while_the_index_is_rebuilt(home: Home) -> None:
    home.fact("f1", "pe")

    def changes() -> Iterator[Add]:
        assert ids(home.index) == {"f1"}
        yield Add(Row(id="f0", layer="L1", text="pe"))

    IndexWriter(home.index).rebuild(changes(), {})
    assert ids(home.index) == {"f0", "f1"}


def test_a_rebuild_keeps_what_was_dropped_and_came_back(home: Home) -> None:
    home.fact("note", "taboo")
    home.forget("note", kind="drop")
    home.fact("note", "taboo")
    offsets = dict(IndexWriter(home.index).commit().offsets)
    IndexWriter(home.index).rebuild([Add(Row(id="note", layer="L2", text="taboo"))], offsets)
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    assert ids(home.index) == ids(open_index(home.path)) == {"note", "f1"}


def test_every_file_can_be_verified(home: Home) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    reader = open_index(home.path)
    reader.verify()
    flip_bytes(next((home.path / "index").glob("*.seg")))
    with pytest.raises(IndexDamaged):
        reader.verify()
    assert reader.notice is not None


def test_records_without_rows_move_only_the_offsets(home: Home) -> None:
    home.fact("f1", "pe")
    writer = IndexWriter(home.index)
    before = writer.commit()
    home.journal.append("audit", {"question": "pe"})
    after = writer.commit()
    assert (after.files, after.overlay) == (before.files, before.overlay)
    assert sum(after.offsets.values()) == home.journal.offset
    reader = open_index(home.path)
    assert (reader.refresh().records, ids(reader)) == (0, {"f1"})


def test_offsets_of_removed_journals_are_dropped(tmp_path: Path) -> None:
    spawn('Home(home).fact("f1", "pe")\n', tmp_path).wait(30)
    index = open_index(tmp_path)
    writer = IndexWriter(index)
    assert retire(tmp_path / "journal", writer.commit().offsets)
    Home(tmp_path).fact("f2", "pe")
    assert len(writer.commit().offsets) == 1
    assert ids(open_index(tmp_path)) == {"f1", "f2"}


def test_a_forked_child_has_its_own_index(home: Home) -> None:
    home.fact("f1", "pe")
    IndexWriter(home.index).commit()
    home.fact("f2", "pe")
    with home.index.lock, home.index.reading:  # as other threads may hold them at that moment
        child = os.fork()
        if child == 0:
            home.index.refresh()
            os._exit(0 if ids(home.index) == {"f1", "f2"} else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_container_is_checked_when_it_is_read(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "x.seg"
    size, crc = write_container(path, {"a": 1}, {"one": np.arange(7), "none": np.zeros((0, 3), np.int8)})
    meta, arrays = read_container(path, size=size, crc=crc)
    assert meta == {"a": 1}
    assert arrays["one"].tolist() == list(range(7)) and arrays["none"].shape == (0, 3)
    assert not arrays["one"].flags.writeable
    for wrong in ({"size": size + 1}, {"crc": crc ^ 1}):
        with pytest.raises(IndexDamaged):
            read_container(path, **wrong)
