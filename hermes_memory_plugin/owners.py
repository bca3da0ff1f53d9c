"""Who may see whose rows: links between the owner keys of one person, in `memory/owners.json`.

Two private owners become one by a code that one of them asks for and the other types. Whatever goes wrong
here ends with fewer rows to be seen, never with more.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.home import HomeUnwritable
from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.store.locks import LockFile

CODE_LENGTH = 6
CODE_SECONDS = 600
ATTEMPTS = 5
"""Wrong codes one owner may type in ten minutes."""
ATTEMPTS_OF_ALL = 20
"""Wrong codes of all owners together; then every open code is void."""

_VERSION = 1
_ALPHABET = (
    "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # no 0/O, 1/I/L: it is read from one screen and typed into another
)


class PairingRefused(HermesMemoryError):
    """The two owners were not joined."""

    def __init__(self, owner: str, reason: str) -> None:
        super().__init__(f"{owner} was not linked: {reason}.")
        self.owner = owner
        self.reason = reason


class RegistryUnusable(HermesMemoryError):
    """owners.json is damaged, unreadable or newer than this version: no owner is linked to another."""

    def __init__(self, path: Path, reason: str, todo: str) -> None:
        super().__init__(f"{path}: {reason}. Until then no owner is linked to another; {todo}.")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Pairing:
    """A code that was handed out, in clear for the only time."""

    code: str
    owner: str
    expires_at: float


@dataclass(slots=True)
class _State:
    links: list[frozenset[str]] = field(default_factory=list)
    codes: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[tuple[str, float]] = field(default_factory=list)

    def partners(self, key: str) -> frozenset[str]:
        return next((group for group in self.links if key in group), frozenset({key}))


class Owners:
    """The registry of one memory folder; safe between processes, read anew when the file changed."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = folder / "owners.json"
        self._clock = clock
        self._seen: tuple[tuple[int, int, int] | None, _State] = (None, _State())

    def visible_keys(self, owner: Owner | str) -> frozenset[str]:
        """The keys whose rows `owner` may see: its own, those of the same person, and the shared ones.

        A group chat sees itself and what is shared, whoever writes in it. Never raises.
        """
        key = owner if isinstance(owner, str) else owner.key
        return (self.linked(key) if is_private(key) else frozenset({key})) | {"shared"}

    def linked(self, key: str) -> frozenset[str]:
        """`key` and the other keys of the same person."""
        try:
            return self._peek().partners(key)
        except RegistryUnusable:
            return frozenset({key})

    def links(self) -> tuple[frozenset[str], ...]:
        """Each person who has more than one key."""
        try:
            return tuple(self._peek().links)
        except RegistryUnusable:
            return ()

    def problems(self) -> list[str]:
        """What is wrong with the registry, for `doctor`: damaged files that were moved aside, and worse."""
        found = []
        try:
            self._peek()
        except RegistryUnusable as error:
            found.append(str(error))
        aside = sorted(self.path.parent.glob("owners.json.damaged-*"))
        found += [
            f"{path} was damaged and moved aside: owners linked before it must be linked again "
            "(`hermes-memory owners link`); delete it when that is done."
            for path in aside
            if not found or str(path) not in found[0]
        ]
        return found

    def offer(self, owner: str) -> Pairing:
        """A code to be typed by the other owner within ten minutes; an older one of this owner is void."""
        _must_be_private(owner)
        now = self._clock()
        code = "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))
        with self._changing() as state:
            state.codes = [one for one in state.codes if one["owner"] != owner]
            state.codes.append({"owner": owner, "hash": _digest(code), "until": now + CODE_SECONDS})
        return Pairing(code, owner, now + CODE_SECONDS)

    def accept(self, owner: str, code: str) -> frozenset[str]:
        """Join `owner` with the owner who asked for `code`; returns every key of that person.

        A code serves once. Raises PairingRefused.
        """
        _must_be_private(owner)
        refused = ""
        joined: frozenset[str] = frozenset()
        with self._changing() as state:
            if sum(1 for who, _ in state.wrong if who == owner) >= ATTEMPTS:
                refused = "too many wrong codes; wait ten minutes"
            elif (offer := _matching(state.codes, code)) is None:
                state.wrong.append((owner, self._clock()))
                refused = (
                    "this code is wrong, used or older than ten minutes; ask for a new one on the other side"
                )
                if len(state.wrong) >= ATTEMPTS_OF_ALL:
                    state.codes = []
            elif offer["owner"] == owner:
                refused = "the code must be typed by the other owner, not by the one who asked for it"
            elif offer["owner"] in state.partners(owner):
                state.codes.remove(offer)
                refused = f"it is already linked with {offer['owner']}"
            else:
                state.codes.remove(offer)
                joined = state.partners(owner) | state.partners(offer["owner"])
                state.links = [group for group in state.links if not group & joined] + [joined]
        # Raised outside, so that the wrong attempt is on record.
        if refused:
            raise PairingRefused(owner, refused)
        return joined

    def unlink(self, owner: str) -> frozenset[str]:
        """Take `owner` out of its person; returns the keys it was linked with, empty when there were none."""
        with self._changing() as state:
            left = state.partners(owner) - {owner}
            state.links = [group for group in state.links if owner not in group]
            if len(left) > 1:
                state.links.append(left)
            state.codes = [one for one in state.codes if one["owner"] != owner]
        return left

    def _peek(self) -> _State:
        """The state as of now; looks at the file's stamp only, when nothing changed."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return _State()
        except OSError as error:
            raise RegistryUnusable(self.path, error.strerror or "unreadable", "make it readable") from None
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if self._seen[0] != stamp:
            try:
                self._seen = (stamp, _load(self.path))
            except _Damaged as damage:
                raise self._move_aside(damage) from None
        return self._seen[1]

    def _move_aside(self, damage: _Damaged) -> RegistryUnusable:
        aside = self.path.with_name(f"owners.json.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}")
        try:
            with self._lock():
                try:
                    _load(self.path)  # somebody else may have mended it meanwhile
                except _Damaged:
                    self.path.replace(aside)
        except (OSError, HermesMemoryError) as error:
            return RegistryUnusable(
                self.path, f"{damage}, and it could not be moved aside ({error})", "move it away"
            )
        return RegistryUnusable(self.path, str(damage), f"it was moved to {aside}")

    @contextmanager
    def _changing(self) -> Iterator[_State]:
        try:
            with self._changed() as state:
                yield state
        except OSError as error:
            raise HomeUnwritable(self.path, error.strerror or str(error)) from None

    @contextmanager
    def _changed(self) -> Iterator[_State]:
        with self._lock():
            try:
                state = _load(self.path)
            except _Damaged as damage:
                self.path.replace(
                    self.path.with_name(f"owners.json.damaged-{time.strftime('%Y%m%dT%H%M%S')}")
                )
                raise RegistryUnusable(self.path, str(damage), "it was moved aside; link again") from None
            now = self._clock()
            state.codes = [one for one in state.codes if one["until"] > now]
            state.wrong = [one for one in state.wrong if one[1] > now - CODE_SECONDS]
            yield state
            _save(self.path, state)

    def _lock(self) -> LockFile:
        return LockFile(self.path.with_name("owners.json.lock")).acquire(timeout=5.0)


class _Damaged(Exception):
    """The file does not say what this version writes."""


def is_private(key: str) -> bool:
    """Whether `key` stands for a person and not for a chat, for everybody or for what is shared."""
    return key not in ("shared", "any", "") and ":group:" not in key


def _must_be_private(key: str) -> None:
    if not is_private(key):
        raise PairingRefused(key, "only a person can be linked; a group chat, `shared` and `any` stay apart")
    if ":~" in key:  # an owner made up for one conversation: its platform does not say who is talking
        raise PairingRefused(key, "this chat does not say who you are")


def _digest(code: str) -> str:
    plain = "".join(code.split()).replace("-", "").upper()
    return hashlib.sha256(f"hermes-memory pairing {plain}".encode("utf-8", "replace")).hexdigest()


def _matching(codes: list[dict[str, Any]], code: str) -> dict[str, Any] | None:
    typed = _digest(code)
    return next((one for one in codes if secrets.compare_digest(one["hash"], typed)), None)


def _load(path: Path) -> _State:
    try:
        raw = json.loads(path.read_bytes())
    except FileNotFoundError:
        return _State()
    except OSError as error:
        raise RegistryUnusable(path, error.strerror or "unreadable", "make it readable") from None
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"it is not JSON ({error})") from None
    try:
        if raw["v"] > _VERSION:
            raise RegistryUnusable(
                path, f"a newer version wrote it (format {raw['v']})", "update this package"
            )
        links = [frozenset(group) for group in raw["links"]]
        flat = [key for group in links for key in group]
        if len(flat) != len(set(flat)) or not all(isinstance(key, str) and is_private(key) for key in flat):
            raise _Damaged("its links contradict each other")
        codes = [
            {"owner": str(one["owner"]), "hash": str(one["hash"]), "until": float(one["until"])}
            for one in raw["codes"]
        ]
        return _State(links, codes, [(str(who), float(at)) for who, at in raw["wrong"]])
    except (KeyError, TypeError, ValueError) as error:
        raise _Damaged(f"it lacks what it should have ({error!r})") from None


def _save(path: Path, state: _State) -> None:
    raw = {
        "v": _VERSION,
        "links": sorted(sorted(group) for group in state.links),
        "codes": state.codes,
        "wrong": [list(one) for one in state.wrong],
    }
    atomic_write(path.parent, path.name, json.dumps(raw, ensure_ascii=False, indent=1) + "\n", fsync=True)
