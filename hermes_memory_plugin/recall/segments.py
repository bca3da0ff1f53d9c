"""Segments: rows and their postings as arrays that never change, in memory or on disk alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory_plugin.recall.index_files import Array, IndexDamaged, read_container, write_container
from hermes_memory_plugin.recall.index_row import LAYERS, VECTOR_SIZE, Row, digest, digests

NEVER = np.iinfo(np.int64).max
UNDATED = np.iinfo(np.int64).min
_HEAVIEST = 60_000.0  # the largest term frequency a float16 holds with room to spare

_COLUMNS: dict[str, str] = {
    "owner": "<i4", "kind": "<i4", "project": "<i4", "layer": "|u1", "trust": "<i2", "approximate": "|u1",
    "as_of": "<i8", "expires": "<i8", "created": "<i8", "born": "<i8", "stamp": "<i8", "value": "<f8",
    "ids": "<u8", "group": "<u8", "session": "<u8", "length": "<f4",
}  # fmt: skip
_TABLES = ("owner", "kind", "project")  # columns that are numbers of a text in the header
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Entry = tuple[Row, int, int]
"""A row, its stamp (which version is newer) and when its id was first seen; both epoch microseconds."""


class Segment:
    """`rows` rows. Columns are attributes: `segment.column["owner"]` and so on; postings by `postings`."""

    __slots__ = ("column", "file", "rows", "tables", "vectors")

    def __init__(self, tables: dict[str, list[str]], column: dict[str, Array], file: str = "") -> None:
        self.tables = tables
        self.column = column
        self.file = file
        self.rows = len(column["ids"])
        self.vectors = "vector" in column

    def postings(self, terms: Array) -> list[tuple[int, Array, Array]]:
        """For each term that occurs: its place in `terms`, rows (ascending) and term frequencies."""
        known, starts = self.column["terms"], self.column["starts"]
        if not len(known):
            return []
        at = np.searchsorted(known, terms)
        hits = np.flatnonzero(known[np.minimum(at, len(known) - 1)] == terms)
        docs, tf = self.column["docs"], self.column["tf"]
        found = []
        for place in hits.tolist():
            one = int(at[place])
            start, stop = int(starts[one]), int(starts[one + 1])
            found.append((place, docs[start:stop], tf[start:stop].astype(np.float32)))
        return found

    def find(self, ids: Array) -> tuple[Array, Array]:
        """Places in `ids` (digests) that are here, and their rows. An id is at most once in a segment."""
        known = self.column["ids_sorted"]
        if not len(known) or not len(ids):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        places = np.flatnonzero(known[at] == ids)
        return places, self.column["ids_order"][at[places]].astype(np.int64)

    def between(self, low: int, high: int) -> Array:
        """Rows whose id digest lies in low…high."""
        known = self.column["ids_sorted"]
        start = np.searchsorted(known, np.uint64(low))
        stop = np.searchsorted(known, np.uint64(high), "right")
        return self.column["ids_order"][start:stop]

    def members(self, groups: Array) -> list[tuple[int, Array]]:
        """For each group (digest) that occurs: its place in `groups` and its rows."""
        known, order = self.column["groups_sorted"], self.column["groups_order"]
        if not len(known) or not len(groups):
            return []
        start = np.searchsorted(known, groups)
        stop = np.searchsorted(known, groups, "right")
        return [(place, order[start[place] : stop[place]]) for place in np.flatnonzero(stop > start).tolist()]

    def row(self, number: int) -> Row:
        """The row as it was added, without its weights."""
        column = self.column
        start, stop = int(column["blob_starts"][number]), int(column["blob_starts"][number + 1])
        try:
            text = str(column["blob"][start:stop].data, "utf-8", "surrogatepass")
            id_, body, source, session, scope, origin, fact_key, extra = json.loads(text)
        except ValueError as error:
            raise IndexDamaged(Path(self.file), f"row {number} cannot be read ({error})") from error
        as_of, expires = int(column["as_of"][number]), int(column["expires"][number])
        value = float(column["value"][number])
        scale = float(column["vector_scale"][number]) if self.vectors else 0.0
        return Row(
            id=id_,
            layer=LAYERS[column["layer"][number]],
            text=body,
            kind=self.tables["kind"][column["kind"][number]],
            owner=self.tables["owner"][column["owner"][number]],
            source=source,
            as_of=None if as_of == UNDATED else as_of,
            created=int(column["created"][number]),
            expires=None if expires == NEVER else expires,
            session=session,
            project=self.tables["project"][column["project"][number]],
            scope=scope,
            origin=origin,
            trust=int(column["trust"][number]),
            fact_key=fact_key,
            value=None if value != value else value,
            approximate=bool(column["approximate"][number]),
            extra=extra,
            vector=column["vector"][number] if scale else None,
            vector_scale=scale,
        )

    def write(self, path: Path) -> tuple[int, int]:
        """Write it to `path`; return size and checksum."""
        return write_container(path, {"rows": self.rows, "tables": self.tables}, self.column)

    @classmethod
    def open(cls, path: Path, size: int | None = None, crc: int | None = None) -> Segment:
        """The segment of a file; raises IndexDamaged."""
        meta, arrays = read_container(path, size=size, crc=crc)
        try:
            segment = cls(meta["tables"], arrays, path.name)
            rows, starts = meta["rows"], arrays["starts"]
            sound = (
                all(len(arrays[name]) == rows for name in _COLUMNS)
                and len(starts) == len(arrays["terms"]) + 1
                and int(starts[-1]) == len(arrays["docs"]) == len(arrays["tf"])
                and int(arrays["blob_starts"][-1]) == len(arrays["blob"])
            )
        except (KeyError, IndexError, TypeError) as error:
            raise IndexDamaged(path, f"{error!r} is missing") from error
        if not sound:
            raise IndexDamaged(path, "its arrays do not fit together")
        return segment


def group_digest(row: Row) -> int:
    """Rows that may supersede each other share it: one owner, one key; 0 for a row without key."""
    return digest(f"{row.owner}\x1f{row.fact_key}") if row.fact_key else 0


def build(entries: Sequence[Entry]) -> Segment:
    """A segment in memory. No id may occur twice."""
    tables: dict[str, dict[str, int]] = {name: {} for name in _TABLES}
    plain: dict[str, list[Any]] = {name: [] for name in _COLUMNS if name != "length"}
    tokens: list[str] = []
    tf: list[float] = []
    counts, blobs = [], []
    vectors = (
        np.zeros((len(entries), VECTOR_SIZE), np.int8)
        if any(e[0].vector is not None for e in entries)
        else None
    )
    scales = np.zeros(len(entries), np.float16)
    for number, (row, stamp, born) in enumerate(entries):
        for name in _TABLES:
            table = tables[name]
            plain[name].append(table.setdefault(getattr(row, name), len(table)))
        plain["layer"].append(LAYERS.index(row.layer))
        plain["trust"].append(row.trust)
        plain["approximate"].append(row.approximate)
        plain["as_of"].append(UNDATED if row.as_of is None else row.as_of)
        plain["expires"].append(NEVER if row.expires is None else row.expires)
        plain["created"].append(row.created)
        plain["born"].append(born)
        plain["stamp"].append(stamp)
        plain["value"].append(np.nan if row.value is None else row.value)
        plain["ids"].append(digest(row.id))
        plain["group"].append(group_digest(row))
        plain["session"].append(digest(row.session) if row.session else 0)
        weights = row.weights
        tokens.extend(weights)
        tf.extend(weights.values())
        counts.append(len(weights))
        told = [
            row.id,
            row.text,
            row.source,
            row.session,
            row.scope,
            row.origin,
            row.fact_key,
            dict(row.extra),
        ]
        blobs.append(_encode(told).encode("utf-8", "surrogatepass"))
        if vectors is not None and row.vector is not None:
            vectors[number] = row.vector
            scales[number] = row.vector_scale
    column: dict[str, Array] = {name: np.array(values, _COLUMNS[name]) for name, values in plain.items()}
    if vectors is not None:
        column |= {"vector": vectors, "vector_scale": scales}
    terms = np.array(digests(tokens), np.uint64)
    frequency = np.minimum(np.array(tf, np.float32), _HEAVIEST).astype(np.float16)
    docs = np.repeat(np.arange(len(entries), dtype=np.int32), counts)
    if len(frequency) and not (frequency > 0).all():
        heavy = frequency > 0
        terms, frequency, docs = terms[heavy], frequency[heavy], docs[heavy]
    _post(column, terms, docs, frequency)
    column["blob"] = np.frombuffer(b"".join(blobs), np.uint8)
    column["blob_starts"] = _starts([len(blob) for blob in blobs])
    _sort(column)
    return Segment({name: list(table) for name, table in tables.items()}, column)


def merge(segments: Sequence[Segment], keeps: Sequence[Array]) -> tuple[Segment, list[Array]]:
    """One segment of the kept rows, in order, and for each old segment its rows' new numbers (-1: dropped)."""
    numbers: list[Array] = []
    total = 0
    for keep in keeps:
        count = int(np.count_nonzero(keep))
        new = np.full(len(keep), -1, np.int32)
        new[keep] = np.arange(total, total + count, dtype=np.int32)
        numbers.append(new)
        total += count
    pairs = list(zip(segments, keeps, strict=True))
    column: dict[str, Array] = {
        name: np.concatenate([s.column[name][keep] for s, keep in pairs]).astype(kind, copy=False)
        for name, kind in _COLUMNS.items()
    }
    tables: dict[str, list[str]] = {}
    for name in _TABLES:
        column[name], tables[name] = _joined_table(name, pairs)
    if any(s.vectors for s in segments):
        column["vector"] = np.concatenate(
            [
                s.column["vector"][k] if s.vectors else np.zeros((int(k.sum()), VECTOR_SIZE), np.int8)
                for s, k in pairs
            ]
        )
        column["vector_scale"] = np.concatenate(
            [
                s.column["vector_scale"][k] if s.vectors else np.zeros(int(k.sum()), np.float16)
                for s, k in pairs
            ]
        )
    terms, docs, frequency = [], [], []
    for segment, new in zip(segments, numbers, strict=True):
        where = new[segment.column["docs"]]
        alive = where >= 0
        spread = np.repeat(segment.column["terms"], np.diff(segment.column["starts"]))
        terms.append(spread[alive])
        docs.append(where[alive])
        frequency.append(segment.column["tf"][alive])
    _post(column, np.concatenate(terms), np.concatenate(docs), np.concatenate(frequency))
    blobs = []
    lengths: list[Array] = []
    for segment, keep in pairs:
        starts = segment.column["blob_starts"]
        data = segment.column["blob"].data
        lengths.append(np.diff(starts)[keep])
        if keep.all():
            blobs.append(data)
        else:
            kept = np.flatnonzero(keep)
            ends = zip(starts[kept].tolist(), starts[kept + 1].tolist(), strict=True)
            blobs.extend(data[start:stop] for start, stop in ends)
    column["blob"] = np.frombuffer(b"".join(blobs), np.uint8)
    column["blob_starts"] = _starts(np.concatenate(lengths))
    _sort(column)
    return Segment(tables, column), numbers


def _joined_table(name: str, pairs: Sequence[tuple[Segment, Array]]) -> tuple[Array, list[str]]:
    table: dict[str, int] = {}
    codes = []
    for segment, keep in pairs:
        used = segment.column[name][keep]
        renumber = np.zeros(len(segment.tables[name]), np.int32)
        for old in np.unique(used).tolist():
            text = segment.tables[name][old]
            renumber[old] = table.setdefault(text, len(table))
        codes.append(renumber[used] if len(used) else used.astype(np.int32))
    return np.concatenate(codes), list(table)


def _post(column: dict[str, Array], terms: Array, docs: Array, frequency: Array) -> None:
    """Sort postings by term (rows stay ascending) and add up the length of each row."""
    order = np.argsort(terms, kind="stable")
    terms = terms[order]
    first = (
        np.flatnonzero(np.concatenate(([True], terms[1:] != terms[:-1])))
        if len(terms)
        else np.empty(0, np.int64)
    )
    column["terms"] = terms[first]
    column["starts"] = np.append(first, len(terms)).astype(np.int64)
    column["docs"] = docs[order].astype(np.int32, copy=False)
    column["tf"] = frequency[order]
    rows = len(column["ids"])
    column["length"] = np.bincount(docs, frequency.astype(np.float64), rows).astype(np.float32)


def _sort(column: dict[str, Array]) -> None:
    """The orders in which ids and groups are looked up."""
    order = np.argsort(column["ids"], kind="stable").astype(np.int32)
    column["ids_order"], column["ids_sorted"] = order, column["ids"][order]
    grouped = np.flatnonzero(column["group"]).astype(np.int32)
    order = grouped[np.argsort(column["group"][grouped], kind="stable")]
    column["groups_order"], column["groups_sorted"] = order, column["group"][order]


def _starts(lengths: Any) -> Array:
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, np.int64)))).astype(np.int64)
