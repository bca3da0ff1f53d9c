"""What the read index holds: rows, and the two things that can happen to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_memory_plugin.store.ids import handle_hash

LAYERS = ("L0", "L1", "L2", "L3", "report")
STATES = ("live", "superseded", "expired")
VECTOR_SIZE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing recall may find. Times are epoch microseconds; weights map a token to its term frequency.

    A row that is read back from the index has no weights: the index keeps tokens only as hashes.
    """

    id: str
    layer: str
    text: str
    kind: str = "fact"
    owner: str = "local"
    source: str = ""
    as_of: int | None = None
    created: int = 0
    expires: int | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    session: str = ""
    project: str = ""
    scope: str = ""
    origin: str = ""
    trust: int = 0
    fact_key: str = ""
    value: float | None = None
    """On the scale of its dimension (`layers.keys.quantity`); as it was told in `extra["value"]` where that is another."""
    approximate: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    vector: Any = None
    """int8 array of `VECTOR_SIZE`, or None."""
    vector_scale: float = 0.0


@dataclass(frozen=True, slots=True)
class Add:
    """The row is there from now on; it takes the place of an older one with the same id.

    `restored`: when somebody asked for it back (epoch microseconds); what was forgotten of that id before does not count.
    """

    row: Row
    restored: int = 0


@dataclass(frozen=True, slots=True)
class Remove:
    """The ids are gone. `forever`: no replay, import or rebuild brings them back (what `forget` means), only a restore."""

    ids: tuple[str, ...]
    forever: bool = True


Change = Add | Remove


def digest(text: str) -> int:
    """64 bits that stand for a text; stable across processes and versions. Handles are cut from the id's."""
    return handle_hash(text)


class _Digests(dict[str, int]):
    """Digests of tokens, remembered: most tokens of a row were seen before."""

    def __missing__(self, token: str) -> int:
        if len(self) >= 100_000:
            self.clear()
        value = self[token] = digest(token)
        return value


_DIGESTS = _Digests()


def digests(tokens: Iterable[str]) -> list[int]:
    """`digest` of many tokens, fast."""
    return [_DIGESTS[token] for token in tokens]
