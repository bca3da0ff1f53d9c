"""Files of the read index: a container for arrays, written whole and never changed, read through one mmap.

Layout: 8 bytes magic, 4 bytes header length, 4 bytes crc32 of the header, JSON header, arrays aligned to 64 bytes.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory_plugin.errors import HermesMemoryError

MAGIC = b"HMINDEX1"
_ALIGN = 64
_CHECKED_BYTES = 4 << 20
"""Smaller files are checked in full when they are opened; larger ones when they are merged or verified."""

Array = np.ndarray[Any, Any]


class IndexDamaged(HermesMemoryError):
    """A file of the read index cannot be used; the index is derived and is built again."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be used: {reason}. It is derived: rebuild it from the ledgers.")
        self.path = path
        self.reason = reason


def write_container(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> tuple[int, int]:
    """Write the file whole (temporary name, fsync, rename); return its size and the crc32 of all of it."""
    layout: dict[str, list[Any]] = {}
    offset = 0
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, offset, list(array.shape)]
        offset = _aligned(offset + array.nbytes)
    head = json.dumps({"meta": meta, "arrays": layout}, ensure_ascii=True, separators=(",", ":")).encode()
    head += b" " * (_aligned(16 + len(head)) - 16 - len(head))
    crc = 0
    size = 0
    temporary = path.with_name(path.name + ".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb", buffering=1 << 20) as file:

        def put(data: bytes | memoryview) -> None:
            nonlocal crc, size
            file.write(data)
            crc = zlib.crc32(data, crc)
            size += len(data)

        put(MAGIC + len(head).to_bytes(4, "little") + zlib.crc32(head).to_bytes(4, "little") + head)
        for array in arrays.values():
            if array.nbytes:
                put(np.ascontiguousarray(array).data.cast("B"))
            put(b"\0" * (_aligned(size) - size))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return size, crc


def read_container(
    path: Path, *, size: int | None = None, crc: int | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays (read-only views on one mmap). Raises IndexDamaged; FileNotFoundError passes."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found < 16 or (size is not None and found != size):
                raise IndexDamaged(path, f"it has {found} bytes, expected {size}")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise IndexDamaged(path, str(error)) from error
    if crc is not None and found <= _CHECKED_BYTES and zlib.crc32(data) != crc:
        raise IndexDamaged(path, "its checksum does not match")
    length = int.from_bytes(data[8:12], "little")
    head = data[16 : 16 + length]
    if data[:8] != MAGIC:
        raise IndexDamaged(path, "it is no index file of this version")
    if len(head) != length or zlib.crc32(head) != int.from_bytes(data[12:16], "little"):
        raise IndexDamaged(path, "its header is damaged")
    try:
        header = json.loads(head)
        arrays = {
            name: np.frombuffer(data, np.dtype(kind), int(np.prod(shape)), 16 + length + start).reshape(shape)
            for name, (kind, start, shape) in header["arrays"].items()
        }
        return header["meta"], arrays
    except (ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(path, f"its header cannot be read ({error})") from error


def verify(path: Path, size: int, crc: int) -> None:
    """Read the whole file; raises IndexDamaged when it is not what was written."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IndexDamaged(path, str(error)) from error
    if len(data) != size or zlib.crc32(data) != crc:
        raise IndexDamaged(path, "its checksum does not match")


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN
