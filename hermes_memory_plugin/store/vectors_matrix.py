"""A table of vectors in files of our own: what serves where LanceDB cannot be imported.

Two files and a small one that says which: `rows-N.npz` has all columns but the vectors and is written anew with every
change; `vectors-N.f32` is only appended to, and rewritten when a third of it is dead. A reader keeps what it has
mapped; a writer that dies between the two leaves some bytes that nobody reads.
"""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.embedding.base import Identity
from hermes_memory_plugin.embedding.threads import load_numpy
from hermes_memory_plugin.store.files import atomic_write, open_private, private_folder
from hermes_memory_plugin.store.vectors import (
    Entry,
    Held,
    Hits,
    Ref,
    VectorsBusy,
    VectorsDamaged,
    Wanted,
)

if TYPE_CHECKING:
    from hermes_memory_plugin.store.vectors import Array

_STATE = "state.json"
_COLUMNS = {
    "key": "<u8", "place": "<i8", "owner": "<i4", "layer": "<i4", "live": "|b1", "expires": "<i8",
    "said": "<i8", "stamp": "<i8",
}  # fmt: skip
_CHUNK = 4_096


class MatrixTable:
    """One encoder's vectors. See `Table` for what each method promises. Safe to share between threads."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self._lock = threading.RLock()
        self._seen: tuple[int, int, int] | None = None
        self._number = 0
        self._vectors_file = ""
        self._column: dict[str, Array] = {}
        self._names: dict[str, list[str]] = {"owner": [], "layer": []}
        self._matrix: Any = None

    @classmethod
    def open(cls, path: Path, ref: Ref, *, create: bool = False) -> MatrixTable | None:
        """The table in `path`; None when there is none. Raises VectorsDamaged."""
        load_numpy()
        if not path.is_dir():
            if not create:
                return None
            private_folder(path)
        table = cls(path, ref.identity)
        table._start()
        if (path / _STATE).exists():
            table._follow()
        return table

    @property
    def version(self) -> object:
        return self._signature()

    def held(self) -> Held:
        import numpy as np

        with self._lock:
            self._follow()
            order = np.argsort(self._column["key"], kind="stable")
            return Held(*(self._column[name][order] for name in ("key", "said", "stamp", "live")))

    def upsert(self, entries: Sequence[Entry]) -> None:
        import numpy as np

        if not entries:
            return
        latest = {entry.key: entry for entry in entries}
        new = list(latest.values())
        vectors = np.ascontiguousarray([entry.vector for entry in new], "<f4")
        with self._lock:
            self._follow()
            start = len(self._matrix)
            self._append(vectors, start)
            keep = ~np.isin(self._column["key"], np.array(list(latest), np.uint64))
            added = {
                "key": [entry.key for entry in new],
                "place": range(start, start + len(new)),
                "owner": [self._code("owner", entry.owner) for entry in new],
                "layer": [self._code("layer", entry.layer) for entry in new],
                "live": [entry.live for entry in new],
                "expires": [entry.expires for entry in new],
                "said": [entry.said for entry in new],
                "stamp": [entry.stamp for entry in new],
            }
            self._column = {
                name: np.concatenate([self._column[name][keep], np.array(list(added[name]), kind)])
                for name, kind in _COLUMNS.items()
            }
            self._commit(start + len(new))

    def mark(self, keys: Sequence[int], *, live: bool) -> None:
        import numpy as np

        with self._lock:
            self._follow()
            hit = np.isin(self._column["key"], np.array(keys, np.uint64))
            if hit.any():
                self._column["live"] = np.where(hit, live, self._column["live"])
                self._commit(len(self._matrix))

    def remove(self, keys: Sequence[int]) -> None:
        import numpy as np

        with self._lock:
            self._follow()
            keep = ~np.isin(self._column["key"], np.array(keys, np.uint64))
            if not keep.all():
                self._column = {name: values[keep] for name, values in self._column.items()}
                self._commit(len(self._matrix))

    def search(self, vector: Array, k: int, wanted: Wanted) -> Hits:
        import numpy as np

        with self._lock:
            self._follow()
            column, matrix, names = self._column, self._matrix, self._names
        mask = np.ones(len(column["key"]), bool)
        for name, among in (("owner", wanted.owners), ("layer", wanted.layers)):
            if among is not None and len(mask):
                mask &= np.array([text in among for text in names[name]], bool)[column[name]]
        if wanted.live:
            mask &= column["live"] & (column["expires"] > wanted.now)
        rows = np.flatnonzero(mask)
        cosine = _dots(matrix, column["place"][rows], vector)
        if len(rows) > k:
            best = np.argpartition(-cosine, k - 1)[:k]
            rows, cosine = rows[best], cosine[best]
        order = np.argsort(-cosine, kind="stable")
        return Hits(column["key"][rows][order], cosine[order])

    def cosines(self, vector: Array, keys: Sequence[int]) -> dict[int, float]:
        import numpy as np

        with self._lock:
            self._follow()
            column, matrix = self._column, self._matrix
        rows = np.flatnonzero(np.isin(column["key"], np.array(keys, np.uint64)))
        cosine = _dots(matrix, column["place"][rows], vector)
        return dict(zip(column["key"][rows].tolist(), cosine.tolist(), strict=True))

    def sample(self, n: int) -> Array:
        import numpy as np

        with self._lock:
            self._follow()
            places = self._column["place"]
            chosen = np.unique(np.linspace(0, len(places) - 1, min(n, len(places))).astype(int))
            return np.array(self._matrix[np.sort(places[chosen])], np.float32)

    def tidy(self, *, now: bool = False, for_good: bool = False) -> None:
        import numpy as np

        with self._lock:
            self._follow()
            live, total = len(self._column["key"]), len(self._matrix)
            if total <= live or (not now and 3 * live > 2 * total):
                return
            vectors = np.array(self._matrix[self._column["place"]], "<f4")
            old = self._vectors_file
            self._vectors_file = f"vectors-{self._number + 1}.f32"
            self._append(vectors, 0)
            self._column["place"] = np.arange(live, dtype=np.int64)
            self._commit(live)
            self._unlink(old)

    def close(self) -> None:
        with self._lock:
            self._matrix = None
            self._seen = None

    # -- files -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        import numpy as np

        self._number, self._vectors_file = 0, "vectors-0.f32"
        self._column = {name: np.empty(0, kind) for name, kind in _COLUMNS.items()}
        self._names = {"owner": [], "layer": []}
        self._matrix = np.zeros((0, self.identity.dimension), np.float32)

    def _follow(self) -> None:
        """Hold what the state file says now. Raises VectorsDamaged."""
        seen = self._signature()
        if seen is None or (seen == self._seen and self._matrix is not None):
            if self._matrix is None:
                self._start()
            return
        for attempt in (1, 2, 3):
            try:
                self._load()
                self._seen = seen
                return
            except FileNotFoundError as error:  # another process has just replaced that generation
                seen = self._signature()
                if attempt == 3 or seen is None:
                    raise VectorsDamaged(self.path, f"{error.filename} is missing") from error
            except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError) as error:
                raise VectorsDamaged(self.path, f"{type(error).__name__}: {error}") from error

    def _load(self) -> None:
        import zipfile

        import numpy as np

        state = json.loads((self.path / _STATE).read_text(encoding="utf-8"))
        found = Identity(state["model"], int(state["dimension"]), bool(state["normalised"]))
        if found != self.identity:
            raise ValueError(f"they are those of {found.key}, not of {self.identity.key}")
        try:
            with np.load(self.path / f"rows-{state['number']}.npz", allow_pickle=False) as stored:
                column = {name: stored[name].astype(kind) for name, kind in _COLUMNS.items()}
        except zipfile.BadZipFile as error:
            raise ValueError(str(error)) from error
        total, rows = int(state["vectors"]), len(column["key"])
        if any(len(values) != rows for values in column.values()):
            raise ValueError("its columns do not fit together")
        if rows and not (column["place"].min() >= 0 and column["place"].max() < total):
            raise ValueError("it names vectors it has not")
        shape = (total, self.identity.dimension)
        file = self.path / str(state["file"])
        if total and file.stat().st_size < total * shape[1] * 4:
            raise ValueError(f"{file.name} is too short")
        self._matrix = np.memmap(file, "<f4", "r", shape=shape) if total else np.zeros(shape, np.float32)
        self._column, self._number, self._vectors_file = column, int(state["number"]), str(state["file"])
        self._names = {name: [str(text) for text in state["names"][name]] for name in ("owner", "layer")}

    def _append(self, vectors: Array, start: int) -> None:
        data, at = vectors.tobytes(), start * self.identity.dimension * 4
        try:
            private_folder(self.path)
            with os.fdopen(
                open_private(self.path / self._vectors_file, os.O_RDWR | os.O_CREAT), "r+b"
            ) as file:
                file.seek(at)
                file.write(data)
                file.truncate()  # what a writer that died left behind
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._seen = None
            raise VectorsBusy(self.path, str(error)) from error

    def _commit(self, total: int) -> None:
        import numpy as np

        number = self._number + 1
        buffer = io.BytesIO()
        np.savez(buffer, **self._column)  # type: ignore[arg-type]
        state = {
            "model": self.identity.model,
            "dimension": self.identity.dimension,
            "normalised": self.identity.normalised,
            "number": number,
            "file": self._vectors_file,
            "vectors": total,
            "names": self._names,
        }
        old = self._number
        try:
            atomic_write(self.path, f"rows-{number}.npz", buffer.getvalue(), fsync=True)
            atomic_write(self.path, _STATE, json.dumps(state, ensure_ascii=False), fsync=True)
        except OSError as error:
            self._seen = None  # memory is ahead of the disk: read it again
            raise VectorsBusy(self.path, str(error)) from error
        self._unlink(f"rows-{old}.npz")
        self._load()
        self._seen = self._signature()

    def _unlink(self, name: str) -> None:
        with suppress(OSError):
            (self.path / name).unlink()

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            stat = (self.path / _STATE).stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _code(self, name: str, text: str) -> int:
        names = self._names[name]
        if text not in names:
            names.append(text)
        return names.index(text)


def _dots(matrix: Any, places: Array, vector: Array) -> Array:
    """Rows of the matrix times a vector, by chunks: no copy of the whole, and none at all where many rows are wanted."""
    import numpy as np

    query = np.ascontiguousarray(vector, np.float32)
    if 4 * len(places) < len(matrix):
        parts = [matrix[places[start : start + _CHUNK]] @ query for start in range(0, len(places), _CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)
    dots = np.empty(len(matrix), np.float32)
    for start in range(0, len(matrix), _CHUNK):
        np.matmul(matrix[start : start + _CHUNK], query, out=dots[start : start + _CHUNK])
    return dots[places]
