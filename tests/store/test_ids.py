"""Ids sort by time and never repeat; a handle finds its row again and never changes its meaning."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_plugin.store.ids import (
    MAX_LETTERS,
    MIN_LETTERS,
    handle_hash,
    handle_letters,
    is_ulid,
    new_ulid,
    parse_handle,
)

HASHES = st.integers(0, 2**64 - 1)


def test_each_id_is_greater_than_the_one_before() -> None:
    ids = [new_ulid() for _ in range(5_000)]
    assert ids == sorted(set(ids))
    assert all(is_ulid(id) for id in ids)


def test_threads_never_get_the_same_id() -> None:
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda: ids.extend([new_ulid() for _ in range(1_000)])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 4_000


def test_a_given_time_is_in_the_id() -> None:
    early, late = new_ulid(1_700_000_000_000_000), new_ulid(1_700_000_000_001_000)
    assert early < late
    assert early[:10] == new_ulid(1_700_000_000_000_999)[:10]
    assert is_ulid(new_ulid(-5))
    assert is_ulid(new_ulid(2**80))


def test_a_forked_child_gets_other_ids() -> None:
    new_ulid()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, " ".join(new_ulid() for _ in range(100)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    children = set(os.read(reading, 10_000).decode().split())
    os.close(reading)
    os.close(writing)
    assert len(children) == 100
    assert children.isdisjoint(new_ulid() for _ in range(100))


@pytest.mark.parametrize(
    "text", ["", "x", "0" * 25, "0" * 27, "8" + "0" * 25, "U" + "0" * 25, "01m8psnnjefagmnaaqmjy2rcwa"]
)
def test_other_text_is_no_id(text: str) -> None:
    assert not is_ulid(text)


def test_the_hash_of_an_id_is_the_same_for_ever() -> None:
    assert handle_hash("01J00000000000000000000000") == 9242115448616448554
    assert handle_letters(handle_hash("01J00000000000000000000000")) == "hjgs"
    assert 0 <= handle_hash("half \ud800") < 2**64


@given(HASHES, st.integers(MIN_LETTERS, MAX_LETTERS))
def test_a_handle_gives_a_range_that_holds_its_hash(hash: int, length: int) -> None:
    parsed = parse_handle("f-" + handle_letters(hash, length))
    assert parsed is not None
    prefix, low, high = parsed
    assert prefix == "f"
    assert low <= hash <= high
    assert handle_letters(low, length) == handle_letters(high, length) == handle_letters(hash, length)
    assert low == 0 or handle_letters(low - 1, length) != handle_letters(hash, length)
    assert high == 2**64 - 1 or handle_letters(high + 1, length) != handle_letters(hash, length)


@given(HASHES)
def test_a_longer_handle_begins_with_the_shorter(hash: int) -> None:
    longest = handle_letters(hash, MAX_LETTERS)
    assert all(longest.startswith(handle_letters(hash, length)) for length in range(MIN_LETTERS, MAX_LETTERS))
    assert not set(longest) & set("01ilo")


@pytest.mark.parametrize(
    "text", ["f-7k2p", "F-7K2P", " f-7k2p ", "[f-7k2p]", "`f-7k2p`", "【f-7k2p】", "f-7k2p。"]
)
def test_a_handle_is_understood_as_people_type_it(text: str) -> None:
    assert parse_handle(text) == parse_handle("f-7k2p") is not None


@pytest.mark.parametrize(
    "text",
    ["", "f-", "f-7k2", "f7k2p", "ff-7k2p", "f-7k20", "f-7k2o", "f-" + "7" * 14, "7-7k2p", "f-茅台酒业"],
)
def test_other_text_is_no_handle(text: str) -> None:
    assert parse_handle(text) is None


@given(st.text())
def test_parsing_never_raises(text: str) -> None:
    parse_handle(text)
    is_ulid(text)
