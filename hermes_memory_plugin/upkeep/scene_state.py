"""What the writer of scenes remembers between runs: how far it got, what failed, and which files are still its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hermes_memory_plugin.store.files import atomic_write, private_folder
from hermes_memory_plugin.store.locks import LockFile

TRIES = 5
"""After so many failures a session waits for `scenes retry`."""
_SESSIONS = 5_000


@dataclass(slots=True)
class Failure:
    """A session whose draft failed. Its rows are as they were; only the draft is missing."""

    owner: str
    session: str
    tries: int
    error: str
    at: int

    @property
    def dead(self) -> bool:
        """Whether it is no longer retried by itself."""
        return self.tries >= TRIES


@dataclass(slots=True)
class Written:
    """A file we wrote: its hash then, and the sessions in it."""

    hash: str
    sessions: list[str] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """The whole of it."""

    done: dict[str, int] = field(default_factory=dict)
    """Session key → when the newest row was made that is in a scene (epoch microseconds). Only success moves it."""
    failed: dict[str, Failure] = field(default_factory=dict)
    files: dict[str, Written] = field(default_factory=dict)
    """File name → what we wrote there."""

    def fail(self, owner: str, session: str, error: str, at: int) -> Failure:
        """Note a failure; the cursor stays where it is."""
        key = key_of(owner, session)
        earlier = self.failed.pop(key, None)
        one = Failure(owner, session, (earlier.tries if earlier else 0) + 1, error[:300], at)
        self.failed[key] = one
        return one

    def succeed(self, owner: str, session: str, newest: int) -> None:
        """Everything of the session up to `newest` is in a scene, or worth none."""
        key = key_of(owner, session)
        self.failed.pop(key, None)
        self.done.pop(key, None)
        self.done[key] = newest


class StateFile:
    """`memory/scenes.json`, changed under a lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "scenes.json"
        self._lock = folder / "scenes.lock"

    def read(self) -> State:
        """The state as it is; an unreadable file counts as none (files people own are then left alone)."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return State(
                {str(key): int(at) for key, at in found["done"].items()},
                {str(key): Failure(**one) for key, one in found["failed"].items()},
                {str(name): Written(**one) for name, one in found["files"].items()},
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return State()

    @contextlib.contextmanager
    def changing(self, *, wait: float) -> Iterator[State]:
        """The state, to be changed and kept also when the work fails. Raises LockBusy after `wait` seconds."""
        private_folder(self.folder)
        with LockFile(self._lock).acquire(timeout=wait):
            state = self.read()
            try:
                yield state
            finally:
                self._write(state)

    def _write(self, state: State) -> None:
        data: dict[str, Any] = {
            "v": 1,
            "done": dict(list(state.done.items())[-_SESSIONS:]),
            "failed": {key: asdict(one) for key, one in state.failed.items()},
            "files": {name: asdict(one) for name, one in sorted(state.files.items())},
        }
        atomic_write(self.folder, self._path.name, json.dumps(data, ensure_ascii=False, indent=1))


def key_of(owner: str, session: str) -> str:
    """What names a session of an owner."""
    return f"{owner} {session}"


def hash_of(path: Path) -> str:
    """The hash of a file's bytes; "" when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
