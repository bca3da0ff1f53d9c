"""The vectors of real encoders: which table serves, which one is being built, and what every table can do.

Derived data: the read index decides which rows there are and who may see them; a hit of a table is only a hint.
Tables live in LanceDB (`memory/vectors.lance`), or where that cannot be imported in a memory-mapped matrix of our own
(`memory/vectors/`). Every table belongs to one encoder; vectors of two encoders never meet.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hermes_memory_plugin.embedding.base import Identity
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.files import atomic_write, private_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

NEVER = (1 << 63) - 1
"""The expiry of a row that has none."""
LANCE, MATRIX = "lancedb", "matrix"
_FOLDER, _LANCE_FOLDER, _MANIFEST = "vectors", "vectors.lance", "tables.json"


class VectorsDamaged(HermesMemoryError):
    """A table cannot be read; it is derived data and will be made anew."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the vectors in {path} cannot be used: {reason}. They are set aside and made anew in the background; "
            "recall goes on by keyword until then."
        )
        self.path = path
        self.reason = reason


class VectorsBusy(HermesMemoryError):
    """Another process kept changing the table; the rows are tried again later."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the vectors in {path} could not be changed: {reason}. Nothing is lost: they are tried again."
        )
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a table."""

    key: int
    """The 64-bit digest of the row's id."""
    id: str
    owner: str
    layer: str
    live: bool
    expires: int
    """Epoch microseconds; NEVER when it does not expire."""
    said: int
    """What was embedded, as a 64-bit number: another one means that the row must be embedded again."""
    stamp: int
    """The version of the index row it was read from."""
    vector: Any
    """float32 [dimension], of unit length."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a table holds, as columns in the order of `key` (ascending)."""

    key: Array
    said: Array
    stamp: Array
    live: Array

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows a search may return. None stands for every owner, every layer."""

    owners: Collection[str] | None = None
    layers: Collection[str] | None = None
    live: bool = True
    """Only rows that are neither superseded nor expired."""
    now: int = 0


@dataclass(frozen=True, slots=True)
class Hits:
    """Keys (uint64) and cosines (float32), best first."""

    key: Array
    cosine: Array


class Table(Protocol):
    """The vectors of one encoder. One process at a time writes (`embed.lock`); any number read meanwhile."""

    path: Path
    identity: Identity

    @property
    def version(self) -> object:
        """Another value: somebody has written since."""

    def held(self) -> Held:
        """Everything the table knows of its rows but the vectors."""

    def upsert(self, entries: Sequence[Entry]) -> None:
        """Put rows in, each in place of the one with its key; all or none, and the same again changes nothing."""

    def mark(self, keys: Sequence[int], *, live: bool) -> None:
        """Say of rows whether they are live."""

    def remove(self, keys: Sequence[int]) -> None:
        """Take rows out; keys that are not there are no error."""

    def search(self, vector: Array, k: int, wanted: Wanted) -> Hits:
        """The `k` rows nearest to `vector` of those that are wanted: what is not wanted takes nobody's place."""

    def cosines(self, vector: Array, keys: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these rows that is here."""

    def sample(self, n: int) -> Array:
        """The vectors of about `n` rows, spread over the table: float32 [rows, dimension]."""

    def tidy(self, *, now: bool = False, for_good: bool = False) -> None:
        """Clear up what many small writes leave behind, when it is time to (or `now`).

        `for_good`: also what a reader in another process may be at; it reads again then.
        """

    def close(self) -> None:
        """Let go of the files."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Which table: that of an encoder, in a store. `settings` are those that choose the encoder again."""

    store: str
    model: str
    dimension: int
    normalised: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def identity(self) -> Identity:
        """The encoder's."""
        return Identity(self.model, self.dimension, self.normalised)

    @property
    def name(self) -> str:
        """The table's name: one for each encoder."""
        return f"v{zlib.crc32(self.identity.key.encode()):08x}"


@dataclass(frozen=True, slots=True)
class Tables:
    """What the manifest says: `serving` answers questions, `building` will take its place when it is complete."""

    serving: Ref | None = None
    building: Ref | None = None

    @property
    def refs(self) -> list[Ref]:
        """Those that are there."""
        return [ref for ref in (self.serving, self.building) if ref is not None]


class Vectors:
    """The tables of one home. Only the holder of `embed.lock` changes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = folder / _FOLDER
        self._manifest = self._root / _MANIFEST

    @property
    def exists(self) -> bool:
        """Whether there is anything on disk."""
        return self._root.exists() or (self.folder / _LANCE_FOLDER).exists()

    def signature(self) -> tuple[int, int, int] | None:
        """Another value: the manifest was written since. Costs one stat."""
        try:
            stat = self._manifest.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def tables(self) -> Tables:
        """What the manifest says; nothing when there is none or it cannot be read."""
        try:
            found = json.loads(self._manifest.read_text(encoding="utf-8"))
            return Tables(_ref(found.get("serving")), _ref(found.get("building")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return Tables()

    def say(self, tables: Tables) -> None:
        """Write the manifest: from now on every process follows it."""
        content = {
            name: asdict(ref) if ref else None
            for name, ref in (("serving", tables.serving), ("building", tables.building))
        }
        private_folder(self._root)
        atomic_write(self._root, _MANIFEST, json.dumps(content, ensure_ascii=False))

    def open(self, ref: Ref, *, create: bool = False) -> Table | None:
        """The table of `ref`; None when there is none and none is to be made.

        Raises VectorsDamaged when it is there and cannot be used.
        """
        if ref.store == LANCE:
            from hermes_memory_plugin.store.vectors_lance import LanceTable

            return LanceTable.open(self.folder / _LANCE_FOLDER, ref, create=create)
        from hermes_memory_plugin.store.vectors_matrix import MatrixTable

        return MatrixTable.open(self._root / ref.name, ref, create=create)

    def set_aside(self, damage: VectorsDamaged) -> Path | None:
        """Move a damaged table out of the way; of its store only the latest such wreck is kept."""
        path = damage.path
        wreck = path.with_name(f"{path.name}.damaged")
        shutil.rmtree(wreck, ignore_errors=True)
        try:
            path.rename(wreck)
        except OSError:
            return None
        return wreck

    def keep_only(self, tables: Tables) -> None:
        """Delete every table the manifest does not name."""
        named = {(one.store, one.name) for one in tables.refs}
        for table, path in self._paths():
            if table not in named:
                shutil.rmtree(path, ignore_errors=True)

    def clear(self) -> None:
        """Delete everything."""
        for path in (self._root, self.folder / _LANCE_FOLDER):
            shutil.rmtree(path, ignore_errors=True)

    def _paths(self) -> list[tuple[tuple[str, str], Path]]:
        found = []
        for store, root in ((LANCE, self.folder / _LANCE_FOLDER), (MATRIX, self._root)):
            for path in root.iterdir() if root.is_dir() else ():
                if path.is_dir():
                    found.append(((store, path.name.removesuffix(".lance")), path))
        return found


def _ref(found: Any) -> Ref | None:
    return replace(Ref(**found), settings=dict(found.get("settings") or {})) if found else None


def signed(key: int) -> int:
    """An unsigned 64-bit number as stores without such a type hold it."""
    return key - (1 << 64) if key >> 63 else key


def unsigned(keys: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The inverse of `signed`, for arrays."""
    import numpy as np

    return np.ascontiguousarray(keys, np.int64).view(np.uint64)
