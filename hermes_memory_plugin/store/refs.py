"""Texts too long for a row, one compressed file for each content: refs/<2 hex>/<sha-256 of the UTF-8 text>.zst (or .gz)."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

from hermes_memory_plugin.errors import HermesMemoryError, NotFound
from hermes_memory_plugin.store.files import atomic_write, utf8
from hermes_memory_plugin.store.packed import GZIP, ZSTD, Unpackable, pack, suffix, unpack

LIMIT = 256 << 10
"""Bytes of UTF-8 from which on a text leaves its row."""
HEAD, TAIL = 4_000, 1_000
_REF = re.compile(r"[0-9a-f]{64}")


class RefDamaged(HermesMemoryError):
    """The stored text is not what was put there."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason}. The row still holds the beginning and the end of the text."
        )
        self.path = path
        self.reason = reason


class Refs:
    """The long texts of one memory; `folder` is made by the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, text: str) -> str:
        """Store a text once and return its reference. Raises OSError when there is no room."""
        data = utf8(text)
        ref = sha256(data).hexdigest()
        if self._file(ref) is None:
            atomic_write(self.folder, f"{ref[:2]}/{ref}{suffix()}", pack(data), fsync=True)
        return ref

    def read(self, ref: str) -> str:
        """The whole text. Raises NotFound or RefDamaged."""
        path = self._file(ref) or self._path(ref, ZSTD)
        try:
            data = unpack(path.read_bytes())
        except FileNotFoundError:
            raise NotFound(ref, f"{path} is missing.") from None
        except Unpackable as error:
            raise RefDamaged(path, str(error)) from error
        if sha256(data).hexdigest() != ref:
            raise RefDamaged(path, "its content has another hash")
        return data.decode()

    def remove(self, refs: Collection[str]) -> None:
        """Delete the texts; missing ones do not matter."""
        for ref in refs:
            for ending in (ZSTD, GZIP):
                self._path(ref, ending).unlink(missing_ok=True)

    def stored(self) -> Iterator[str]:
        """Every reference there is a file for."""
        for path in self.folder.glob("??/*.*"):
            with contextlib.suppress(NotFound):
                if path.suffix in (ZSTD, GZIP):
                    yield self._path(path.stem, path.suffix).stem

    def size(self) -> int:
        """Bytes on disk."""
        files = (self._file(ref) for ref in self.stored())
        return sum(file.stat().st_size for file in files if file is not None)

    def age(self, ref: str) -> float:
        """Seconds since the text was written; 0 when it is gone."""
        file = self._file(ref)
        try:
            return time.time() - file.stat().st_mtime if file is not None else 0.0
        except OSError:
            return 0.0

    def _file(self, ref: str) -> Path | None:
        return next((path for end in (ZSTD, GZIP) if (path := self._path(ref, end)).exists()), None)

    def _path(self, ref: str, ending: str) -> Path:
        if not _REF.fullmatch(ref):
            raise NotFound(ref, "A reference is 64 hexadecimal digits.")
        return self.folder / ref[:2] / f"{ref}{ending}"


def excerpt(text: str, head: int = HEAD, tail: int = TAIL) -> str:
    """The head and the tail of a long text, with what is left out between them said."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}"
