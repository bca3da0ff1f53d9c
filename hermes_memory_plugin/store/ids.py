"""Identifiers: ULIDs for records, short handles for people and models.

A handle such as `f-7k2p` is a letter for the layer and the first letters of the id's hash. Rule: a row's handle is the
shortest prefix (at least four letters) that no OLDER row shares, so an old handle never changes its meaning; a
newer row that collides simply gets a longer one.
"""

from __future__ import annotations

import os
import re
import threading
import time
from hashlib import blake2b

MIN_LETTERS = 4
MAX_LETTERS = 13  # 31 ** 13 > 2 ** 64: more letters would say nothing

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _CROCKFORD for b in _CROCKFORD)
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0/o, 1/i/l
_VALUES = {letter: value for value, letter in enumerate(_LETTERS)}
_HANDLE = re.compile(rf"([a-z])-([{_LETTERS}]{{{MIN_LETTERS},{MAX_LETTERS}}})")
_WRAPPING = " \t\r\n[]()<>{}`'\"“”‘’【】（）《》,.;:，。；："
_RANDOM_BITS = 80
_MILLISECONDS = (1 << 48) - 1

_lock = threading.Lock()
_pid = 0
_last = 0


def new_ulid(at_us: int | None = None) -> str:
    """A fresh ULID.

    Without `at_us` each id of a process is greater than the one before, also when the clock steps back. With it the
    id carries that time (epoch microseconds) and a random rest. A forked child never repeats its parent's ids.
    """
    global _pid, _last
    if at_us is not None:
        milliseconds = min(max(at_us // 1000, 0), _MILLISECONDS)
        return _encode(milliseconds << _RANDOM_BITS | int.from_bytes(os.urandom(10)))
    with _lock:
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS
        pid = os.getpid()
        if pid != _pid or fresh > _last:
            _pid = pid
            # The top bit stays free, so that counting up within a millisecond cannot run over.
            _last = max(fresh, _last >> _RANDOM_BITS << _RANDOM_BITS) | int.from_bytes(os.urandom(10)) >> 1
        else:
            _last += 1
        return _encode(_last)


def _encode(value: int) -> str:
    pairs = _PAIRS
    return "".join([pairs[value >> shift & 1023] for shift in range(120, -1, -10)])


def is_ulid(text: str) -> bool:
    """Whether `text` is a ULID as `new_ulid` writes it (26 upper-case Crockford characters)."""
    return _ULID.fullmatch(text) is not None


def handle_hash(id: str) -> int:
    """The stable 64-bit hash whose leading letters are the handle of `id`."""
    return int.from_bytes(blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def handle_letters(hash: int, length: int = MIN_LETTERS) -> str:
    """The first `length` letters of a hash; a longer one always begins with the shorter one."""
    length = min(max(length, 1), MAX_LETTERS)
    number = hash * len(_LETTERS) ** length >> 64
    letters = []
    for _ in range(length):
        number, value = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[value])
    return "".join(reversed(letters))


def parse_handle(text: str) -> tuple[str, int, int] | None:
    """(prefix letter, lowest hash, highest hash) of a handle as a person may type it; None when it is none.

    Both ends belong to the range, so a sorted column of hashes is searched from `low` to `high`; when several rows
    fall in, the oldest is meant.
    """
    match = _HANDLE.fullmatch(text.strip(_WRAPPING).lower())
    if match is None:
        return None
    number = 0
    for letter in match[2]:
        number = number * len(_LETTERS) + _VALUES[letter]
    whole = len(_LETTERS) ** len(match[2])
    low = -(-(number << 64) // whole)
    high = -(-((number + 1) << 64) // whole) - 1
    return (match[1], low, high) if low <= high else None


def _forget_state() -> None:
    global _lock, _pid
    _lock = threading.Lock()  # another thread may have held it at the moment of the fork
    _pid = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_state)
