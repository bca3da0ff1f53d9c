"""The journal: what has been acknowledged can be read, by everybody, whatever happened in between."""

from __future__ import annotations

import enum
import json
import math
import os
import shutil
import stat
import threading
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.errors import JournalWriteFailed
from hermes_memory_plugin.store.ids import is_ulid
from hermes_memory_plugin.store.journal import (
    Chunk,
    Journal,
    Record,
    journal_files,
    live_journals,
    read_tails,
    retire,
)
from hermes_memory_plugin.store.mask import mask_json, mask_text

# Half characters (lone surrogates) and NUL belong to what tools return.
TEXT = st.text(st.characters(), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def records(folder: Path, limit: int = 4 << 20) -> list[Record]:
    return [record for chunk in read_tails(folder, {}, limit=limit) for record in chunk.records]


def line(fields: dict[str, Any]) -> bytes:
    body = json.dumps(fields).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def sound(number: int, version: int = 1) -> bytes:
    return line(
        {"v": version, "id": f"id{number}", "k": "event", "o": "local", "t": number, "d": {"n": number}}
    )


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "memory" / "journal")
    yield journal
    journal.close()


def test_nothing_is_created_before_the_first_append(journal: Journal) -> None:
    assert (journal.name, journal.offset) == ("", 0)
    assert not journal.folder.exists()
    journal.append("event", {"n": 1})
    assert [file.name for file in journal.folder.iterdir()] == [journal.name]
    assert journal.offset == (journal.folder / journal.name).stat().st_size


def test_file_and_folders_are_private(journal: Journal) -> None:
    journal.append("event", {})
    assert stat.S_IMODE((journal.folder / journal.name).stat().st_mode) == 0o600
    assert stat.S_IMODE(journal.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.folder.parent.stat().st_mode) == 0o700


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXT, JSON, max_size=5), TEXT)
def test_any_json_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any], owner: str
) -> None:
    assume(
        mask_json(data) == data and mask_text(owner) == owner
    )  # a "passwd" drawn by chance has its own tests
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(folder)
    record = journal.append("trace", data, owner=owner)
    journal.close()
    assert records(folder) == [record]
    assert record.data == data
    assert record.owner == owner


def test_a_line_is_checksum_blank_compact_json(journal: Journal) -> None:
    journal.append("event", {"名": "茅台\n", "n": 1}, owner="o", id="ID", at=5)
    raw = (journal.folder / journal.name).read_bytes()
    body = '{"v":1,"id":"ID","k":"event","o":"o","t":5,"d":{"名":"茅台\\n","n":1}}'.encode()
    assert raw == b"%08x " % zlib.crc32(body) + body + b"\n"


class Colour(enum.IntEnum):
    RED = 3


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def circle() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["self"] = ring
    return ring


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (1 << 70, 1 << 70),
        (10**5000, hex(10**5000)),
        (date(2024, 1, 2), "2024-01-02"),
        (b"bytes\xff", "bytes\ufffd"),
        ({1}, [1]),
        ((1, "a", None), [1, "a", None]),
        ({1: "a", (2, 3): "b", None: "c"}, {"1": "a", "(2, 3)": "b", "null": "c"}),
        (Colour.RED, 3),
        ("half \ud800 and \0", "half \ud800 and \0"),
    ],
    ids=["nan", "inf", "70-bit", "5000-digits", "date", "bytes", "set", "tuple", "keys", "enum", "half"],
)
def test_values_json_does_not_know_survive_as_text(journal: Journal, value: object, stored: object) -> None:
    journal.append("trace", {"args": {"x": value}})
    assert records(journal.folder)[0].data == {"args": {"x": stored}}


@pytest.mark.parametrize(
    "value", [Unprintable(), circle(), deep(150), deep(50_000)], ids=["str", "ring", "150", "50000"]
)
def test_hostile_values_are_stored_somehow_and_never_raise(journal: Journal, value: object) -> None:
    journal.append("trace", {"x": value, "kept": 1})
    assert records(journal.folder)[0].data["kept"] == 1


def test_what_append_returns_is_what_a_reader_sees(journal: Journal) -> None:
    returned = journal.append("trace", {"call": "c", "result": "pass" + "word=hunter2"})
    assert returned == records(journal.folder)[0]
    assert is_ulid(returned.id)
    assert "hunter2" not in (journal.folder / journal.name).read_text()


def test_ids_of_the_host_are_never_masked(journal: Journal) -> None:
    ids = {"call": "sk-" + "a1b2c3d4" * 4, "session": "tok_" + "A1b2C3d4" * 4, "turn": "13800138000"}
    journal.append("trace", {**ids, "result": "ok"})
    assert records(journal.folder)[0].data == {**ids, "result": "ok"}


def test_redact_is_applied_after_the_masking(tmp_path: Path) -> None:
    journal = Journal(tmp_path, redact=lambda text: text.replace("茅台", "█"))
    journal.append("turn", {"user": "茅台贵不贵", "more": ["茅台", 1]})
    assert records(tmp_path)[0].data == {"user": "█贵不贵", "more": ["█", 1]}


def writes() -> int:
    counters = Path("/proc/self/io").read_text()
    return int(counters.partition("syscw: ")[2].split()[0])


def test_many_records_go_out_in_one_write_per_megabyte(journal: Journal) -> None:
    journal.append("event", {})
    small = [("event", {"n": n}, "local", None, None) for n in range(500)]
    before = writes()
    stored = journal.append_many(small)
    assert writes() - before == 1
    assert records(journal.folder)[1:] == stored
    large = [("trace", {"result": "x" * 300_000}, "local", None, None) for _ in range(8)]
    before = writes()
    journal.append_many(large)
    assert writes() - before == 2
    assert len({record.id for record in records(journal.folder)}) == 509


def test_append_many_of_nothing_creates_nothing(journal: Journal) -> None:
    assert journal.append_many([]) == []
    assert journal.name == ""


def test_threads_share_a_journal(journal: Journal) -> None:
    def work(number: int) -> None:
        for n in range(100):
            journal.append("event", {"thread": number, "n": n})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = records(journal.folder)
    assert sorted((record.data["thread"], record.data["n"]) for record in found) == [
        (number, n) for number in range(8) for n in range(100)
    ]
    assert len(list(journal.folder.iterdir())) == 1


def test_a_full_file_is_followed_by_a_new_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rotate_bytes=5_000)
    for n in range(100):
        journal.append("trace", {"n": n, "result": "x" * 200})
    files = journal_files(tmp_path)
    assert len(files) > 3
    assert all(file.size <= 5_000 for file in files)
    assert [record.data["n"] for record in records(tmp_path)] == list(range(100))
    assert [file.name for file in live_journals(tmp_path)] == [journal.name]


def test_one_record_larger_than_the_rotation_still_fits(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rotate_bytes=1_000)
    journal.append("trace", {"result": "x" * 10_000})
    assert len(records(tmp_path)[0].data["result"]) == 10_000


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_vanished_file_is_begun_anew(journal: Journal, gone: str) -> None:
    journal.append("event", {"n": 1})
    if gone == "file":
        (journal.folder / journal.name).unlink()
    else:
        shutil.rmtree(journal.folder.parent)
    journal.append("event", {"n": 2})
    assert [record.data["n"] for record in records(journal.folder)] == [2]


def test_a_descriptor_closed_by_somebody_else_is_no_way_into_their_file(
    journal: Journal, tmp_path: Path
) -> None:
    journal.append("event", {"n": 1})
    os.closerange(journal._fd, journal._fd + 1)  # as a process that becomes a daemon does
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
    try:
        assert other == journal._fd  # the kernel gives the lowest free number
        journal.append("event", {"n": 2})
        assert os.fstat(other).st_size == 0
    finally:
        os.close(other)
    assert [record.data["n"] for record in records(journal.folder)] == [1, 2]


def test_close_then_append_begins_a_new_file(journal: Journal) -> None:
    journal.append("event", {"n": 1})
    journal.close()
    assert live_journals(journal.folder) == []
    journal.append("event", {"n": 2})
    assert [record.data["n"] for record in records(journal.folder)] == [1, 2]


def test_a_folder_that_is_no_folder_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JournalWriteFailed) as raised:
        Journal(tmp_path / "file").append("event", {})
    assert raised.value.path == tmp_path / "file"
    assert "Nothing was stored" in str(raised.value)


# ---- reading


def test_reading_goes_on_where_it_ended(journal: Journal) -> None:
    journal.append("event", {"n": 1})
    (first,) = read_tails(journal.folder, {})
    journal.append("event", {"n": 2})
    (second,) = read_tails(journal.folder, {first.journal: first.end})
    assert (second.start, second.end) == (first.end, journal.offset)
    assert [record.data["n"] for record in second.records] == [2]
    assert list(read_tails(journal.folder, {second.journal: second.end})) == []


@pytest.mark.parametrize("limit", [1, 100, 1_000, 10_000])
def test_chunks_are_bounded_and_lose_nothing(journal: Journal, limit: int) -> None:
    for n in range(50):
        journal.append("trace", {"n": n, "result": "字" * (n * 7 % 200)})
    chunks = list(read_tails(journal.folder, {}, limit=limit))
    assert [record.data["n"] for chunk in chunks for record in chunk.records] == list(range(50))
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks[:-1])]
    longest = max(map(len, (journal.folder / journal.name).read_bytes().splitlines())) + 1
    assert all(chunk.end - chunk.start <= max(limit, longest) + limit for chunk in chunks)


def test_a_record_far_longer_than_the_limit_is_read(journal: Journal) -> None:
    journal.append("trace", {"result": "x" * 9_000_000})
    journal.append("event", {"n": 1})
    found = [record for chunk in read_tails(journal.folder, {}, limit=1 << 20) for record in chunk.records]
    assert [len(found[0].data["result"]), found[1].data] == [9_000_000, {"n": 1}]


def test_the_oldest_journal_comes_first_whatever_the_pid(tmp_path: Path) -> None:
    for name, number in (("5-300.jsonl", 3), ("900-100.jsonl", 1), ("70-200.jsonl", 2)):
        (tmp_path / name).write_bytes(sound(number))
    assert [record.at for record in records(tmp_path)] == [1, 2, 3]


def test_files_of_other_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "x-1.jsonl", "1-2.jsonl.bak", "drain.lock"):
        (tmp_path / name).write_bytes(sound(1))
    assert list(read_tails(tmp_path, {})) == []
    assert retire(tmp_path, {}) == []
    assert len(list(tmp_path.iterdir())) == 4


def test_a_symlink_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(sound(1))
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / "1-1.jsonl").symlink_to(tmp_path / "secret")
    assert list(read_tails(folder, {})) == []
    assert retire(folder, {"1-1.jsonl": 10**9}) == []


GARBLED = [
    b"garbage\n",
    sound(1)[:40] + b"\n",
    b"00000000 " + sound(1)[9:],
    b"zzzzzzzz " + sound(1)[9:],
    b"\xff\xfe\x00\n",
    line({"v": 1, "id": "x"}),
    line({"v": 1, "id": 7, "k": "event", "o": "local", "t": 1, "d": {}}),
    line({"v": 1, "id": "x", "k": "event", "o": "local", "t": "now", "d": {}}),
    line({"v": 1, "id": "x", "k": "event", "o": "local", "t": 1, "d": []}),
    line({"v": True, "id": "x", "k": "event", "o": "local", "t": 1, "d": {}}),
    b"%08x [1]\n" % zlib.crc32(b"[1]"),
]


@pytest.mark.parametrize("bad", GARBLED, ids=range(len(GARBLED)))
def test_a_garbled_line_is_counted_and_its_neighbours_are_read(tmp_path: Path, bad: bytes) -> None:
    (tmp_path / "1-1.jsonl").write_bytes(sound(1) + bad + sound(2))
    (chunk,) = read_tails(tmp_path, {})
    assert [record.at for record in chunk.records] == [1, 2]
    assert chunk.torn == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=60) | st.just(sound(1)) | st.just(sound(2)[:30]), max_size=8),
    st.integers(1, 200),
)
def test_reading_never_raises_and_always_arrives(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    content = b"".join(pieces)
    (folder / "1-1.jsonl").write_bytes(content)
    chunks = list(read_tails(folder, {}, limit=limit))
    assert (chunks[-1].end if chunks else 0) == len(content)
    assert all(record.at == 1 for chunk in chunks for record in chunk.records)


def test_a_piece_at_the_end_waits_for_a_living_owner_and_goes_with_a_dead_one(journal: Journal) -> None:
    journal.append("event", {"n": 1})
    path = journal.folder / journal.name
    with path.open("ab") as file:
        file.write(sound(2)[:25])
    (chunk,) = read_tails(journal.folder, {})
    assert (chunk.owner_alive, chunk.torn, chunk.end) == (True, 0, journal.offset)
    assert list(read_tails(journal.folder, {path.name: chunk.end})) == []
    journal.close()
    (rest,) = read_tails(journal.folder, {path.name: chunk.end})
    assert (rest.owner_alive, rest.torn, rest.records, rest.end) == (False, 1, (), path.stat().st_size)
    assert retire(journal.folder, {path.name: rest.end}) == [path.name]


def test_a_record_behind_a_torn_piece_begins_on_a_line_of_its_own(journal: Journal) -> None:
    journal.append("event", {"n": 1})
    with (journal.folder / journal.name).open("ab") as file:
        file.write(b"a torn piece")
    journal._torn = True  # as after a failed write that could not be taken back
    journal.append("event", {"n": 2})
    (chunk,) = read_tails(journal.folder, {})
    assert [record.data["n"] for record in chunk.records] == [1, 2]
    assert chunk.torn == 1
    assert chunk.end == journal.offset


def test_a_newer_record_stops_the_reader_and_keeps_the_file(tmp_path: Path) -> None:
    old, path = sound(1) + sound(2), tmp_path / "1-1.jsonl"
    path.write_bytes(old + sound(3, version=2) + sound(4) + sound(5, version=2))
    (chunk,) = read_tails(tmp_path, {})
    assert [record.at for record in chunk.records] == [1, 2]
    assert (chunk.end, chunk.newer) == (len(old), 2)
    (again,) = read_tails(tmp_path, {path.name: chunk.end})
    assert again == Chunk(path.name, len(old), len(old), (), 0, False, 2)
    assert retire(tmp_path, {path.name: chunk.end}) == []
    assert path.exists()


def test_a_newer_record_in_one_journal_does_not_hold_up_the_others(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl").write_bytes(sound(1, version=9))
    (tmp_path / "1-2.jsonl").write_bytes(sound(2))
    assert [record.at for record in records(tmp_path)] == [2]


# ---- retiring


def test_only_dead_and_passed_journals_go(journal: Journal) -> None:
    journal.append("event", {})
    dead = "1-1.jsonl"
    (journal.folder / dead).write_bytes(sound(1))
    ends = {chunk.journal: chunk.end for chunk in read_tails(journal.folder, {})}
    assert retire(journal.folder, {**ends, dead: ends[dead] - 1}) == []
    assert retire(journal.folder, ends) == [dead]
    assert [file.name for file in journal.folder.iterdir()] == [journal.name]
    journal.append("event", {})
    assert len(records(journal.folder)) == 2


def test_the_empty_file_of_a_dead_process_goes(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl").touch()
    assert retire(tmp_path, {}) == ["1-1.jsonl"]


def test_a_missing_folder_is_an_empty_one(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert list(read_tails(missing, {})) == []
    assert retire(missing, {}) == []
    assert live_journals(missing) == []
