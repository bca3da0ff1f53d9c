"""A table of vectors in LanceDB. Importing lancedb takes seconds: only a background thread imports this module's user.

What was learned the hard way by others is kept to here: a handle follows other processes' writes
(`read_consistency_interval` 0), rows come in batches and are merged by key, small files are folded after some fifty
writes, and old versions live for an hour, because a reader may still be on one.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_memory_plugin.embedding.base import Identity
from hermes_memory_plugin.embedding.threads import load_numpy, one_thread
from hermes_memory_plugin.store.files import private_folder
from hermes_memory_plugin.store.vectors import (
    Entry,
    Held,
    Hits,
    Ref,
    VectorsBusy,
    VectorsDamaged,
    Wanted,
    signed,
    unsigned,
)

if TYPE_CHECKING:
    from hermes_memory_plugin.store.vectors import Array

KEEP = timedelta(hours=1)
"""How long old versions stay readable: longer than any handle of another process is on one. Never less."""
FOLD_AFTER = 50
"""Writes after which small files are folded into one."""
INDEX_FROM = 20_000
"""Rows from which on vectors and keys are indexed: a plain scan of 100,000 takes longer than a question may."""
_PROBES = 32
_ATTEMPTS = 6
_LONGEST_LIST = 500  # keys in one condition
_CONFLICT = ("conflict", "concurrent", "retry", "too many")
_PASSING = ("no space left", "permission denied", "too many open files", "read-only", "cannot allocate")

T = TypeVar("T")


def load() -> Any:
    """The module lancedb; raises ImportError, whatever the reason was."""
    load_numpy()
    os.environ.setdefault(
        "LANCEDB_LOG", "error"
    )  # else it warns on stderr of tables it has just been asked to make
    try:
        with one_thread():
            import lancedb

            return lancedb
    except ImportError:
        raise
    except Exception as error:  # a broken binary raises in its own ways
        raise ImportError(f"{type(error).__name__}: {error}") from error


class LanceTable:
    """One encoder's vectors. See `Table` for what each method promises."""

    def __init__(self, table: Any, path: Path, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self._table = table
        self._writes = 0

    @classmethod
    def open(cls, root: Path, ref: Ref, *, create: bool = False) -> LanceTable | None:
        """The table below `root`; None when there is none. Raises VectorsDamaged, or ImportError without LanceDB."""
        path = root / f"{ref.name}.lance"
        if not create and not path.is_dir():
            return None
        lancedb = load()
        private_folder(root)
        try:
            connection = lancedb.connect(str(root), read_consistency_interval=timedelta(0))
            if create and not path.is_dir():
                table = connection.create_table(ref.name, schema=_schema(ref.identity), exist_ok=True)
            else:
                table = connection.open_table(ref.name)
            found = _identity(table.schema)
            if found == ref.identity:
                table.count_rows()
        except Exception as error:
            raise _told(path, error) from error
        if found != ref.identity:
            raise VectorsDamaged(
                path,
                f"they are those of {found.key if found else 'an unknown encoder'}, not of {ref.identity.key}",
            )
        opened = cls(table, path, ref.identity)
        opened._private()
        return opened

    @property
    def version(self) -> object:
        return self._try(lambda: self._table.version)

    def held(self) -> Held:
        import numpy as np

        def read() -> Any:
            columns = self._table.search().select(["key", "said", "stamp", "live"])
            return columns.limit(max(1, self._table.count_rows())).to_arrow()

        found = self._try(read)
        key = unsigned(found["key"].to_numpy())
        order = np.argsort(key, kind="stable")
        columns = (found[name].to_numpy()[order] for name in ("said", "stamp", "live"))
        return Held(key[order], *columns)

    def upsert(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        rows = _rows(entries, self.identity)

        def merge() -> None:
            change = self._table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
            change.execute(rows)

        self._try(merge, writes=True)
        self._private()

    def mark(self, keys: Sequence[int], *, live: bool) -> None:
        for condition in _among(keys):
            self._try(partial(self._table.update, where=condition, values={"live": live}), writes=True)

    def remove(self, keys: Sequence[int]) -> None:
        for condition in _among(keys):
            self._try(partial(self._table.delete, condition), writes=True)

    def search(self, vector: Array, k: int, wanted: Wanted) -> Hits:
        condition = _condition(wanted)

        def look() -> Any:
            found = self._table.search(vector).distance_type("dot").nprobes(_PROBES)
            found = found.select(["key", "_distance"]).limit(k)
            return (found.where(condition, prefilter=True) if condition else found).to_arrow()

        return _hits(self._try(look))

    def cosines(self, vector: Array, keys: Sequence[int]) -> dict[int, float]:
        found: dict[int, float] = {}
        for condition in _among(keys):

            def look(condition: str = condition) -> Any:
                query = self._table.search(vector).distance_type("dot").where(condition, prefilter=True)
                return query.select(["key", "_distance"]).limit(_LONGEST_LIST).to_arrow()

            hits = _hits(self._try(look))
            found.update(zip(hits.key.tolist(), hits.cosine.tolist(), strict=True))
        return found

    def sample(self, n: int) -> Array:
        import numpy as np

        found = self._try(lambda: self._table.search().select(["vector"]).limit(n).to_arrow())
        flat = found["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, np.float32).reshape(-1, self.identity.dimension)

    def tidy(self, *, now: bool = False, for_good: bool = False) -> None:
        if not now and self._writes < FOLD_AFTER:
            return
        self._writes = 0
        self._try(self._indexed)
        keep = timedelta(0) if for_good else KEEP
        self._try(lambda: self._table.optimize(cleanup_older_than=keep, delete_unverified=for_good))
        self._private()

    def _indexed(self) -> None:
        rows = self._table.count_rows()
        if rows < INDEX_FROM or len(self._table.list_indices()) >= 2:
            return
        from lancedb.index import BTree, IvfFlat

        partitions = int(rows**0.5)
        self._table.create_index("vector", config=IvfFlat(distance_type="dot", num_partitions=partitions))
        self._table.create_index("key", config=BTree())

    def close(self) -> None:
        """Nothing is held open."""

    def _try(self, action: Callable[[], T], *, writes: bool = False) -> T:
        """Do it, again when another process was faster; says in our terms what is wrong with the table."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                done = action()
            except Exception as error:
                told = _told(self.path, error)
                if not isinstance(told, VectorsBusy) or attempt == _ATTEMPTS:
                    raise told from error
                time.sleep(0.02 * 2**attempt * (0.5 + random.random()))
                continue
            self._writes += writes
            return done
        raise AssertionError("unreachable")

    def _private(self) -> None:
        """LanceDB makes files as the umask says; ours are for their owner only."""
        if os.name != "posix":
            return
        for parent, folders, files in os.walk(self.path):
            for names, mode in ((folders, 0o700), (files, 0o600)):
                for name in names:
                    with suppress(OSError):
                        Path(parent, name).chmod(mode)
        with suppress(OSError):
            self.path.chmod(0o700)


def _schema(identity: Identity) -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("key", pa.int64(), nullable=False),
            pa.field("id", pa.string()),
            pa.field("owner", pa.string()),
            pa.field("layer", pa.string()),
            pa.field("live", pa.bool_()),
            pa.field("expires", pa.int64()),
            pa.field("said", pa.int64()),
            pa.field("stamp", pa.int64()),
            pa.field("vector", pa.list_(pa.float32(), identity.dimension)),
        ],
        metadata={
            "model": identity.model,
            "dimension": str(identity.dimension),
            "normalised": str(identity.normalised).lower(),
        },
    )


def _identity(schema: Any) -> Identity | None:
    found = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    try:
        return Identity(found["model"], int(found["dimension"]), found["normalised"] == "true")
    except (KeyError, ValueError):
        return None


def _rows(entries: Sequence[Entry], identity: Identity) -> Any:
    import numpy as np
    import pyarrow as pa

    schema = _schema(identity)
    latest = list({entry.key: entry for entry in entries}.values())
    vectors = np.ascontiguousarray([entry.vector for entry in latest], np.float32)
    columns: dict[str, Any] = {
        "key": pa.array([signed(entry.key) for entry in latest], pa.int64()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), identity.dimension),
    }
    for name in ("id", "owner", "layer", "live", "expires", "said", "stamp"):
        values = [getattr(entry, name) for entry in latest]
        columns[name] = pa.array(values, schema.field(name).type)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _hits(found: Any) -> Hits:
    import numpy as np

    distance = np.asarray(found["_distance"].to_numpy(), np.float32)
    order = np.argsort(distance, kind="stable")
    return Hits(unsigned(found["key"].to_numpy())[order], np.float32(1) - distance[order])


def _condition(wanted: Wanted) -> str:
    parts = []
    for column, names in (("owner", wanted.owners), ("layer", wanted.layers)):
        if names is not None:
            parts.append(f"{column} IN ({', '.join(map(_quoted, sorted(names)))})" if names else "false")
    if wanted.live:
        parts.append(f"live AND expires > {int(wanted.now)}")
    return " AND ".join(parts)


def _among(keys: Collection[int]) -> Iterator[str]:
    numbers = [str(signed(int(key))) for key in keys]
    for start in range(0, len(numbers), _LONGEST_LIST):
        yield f"key IN ({', '.join(numbers[start : start + _LONGEST_LIST])})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _told(path: Path, error: Exception) -> Exception:
    """The error in our terms. Only what no later attempt can mend is damage."""
    text = " ".join(str(error).split())
    low = text.lower()
    if any(word in low for word in _PASSING):
        return VectorsBusy(path, text[:300])
    if any(word in low for word in _CONFLICT) and "corrupt" not in low:
        return VectorsBusy(path, text[:300])
    return VectorsDamaged(path, f"{type(error).__name__}: {text[:300]}")
