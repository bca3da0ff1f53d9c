"""Texts too long for a row, one compressed file for each content: refs/<2 hex>/<sha-256 of the UTF-8 text>.gz."""

from __future__ import annotations

import contextlib
import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

from hermes_memory_plugin.errors import HermesMemoryError, NotFound
from hermes_memory_plugin.store.files import atomic_write, utf8

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
        if not self._path(ref).exists():
            atomic_write(self.folder, f"{ref[:2]}/{ref}.gz", gzip.compress(data, 6, mtime=0), fsync=True)
        return ref

    def read(self, ref: str) -> str:
        """The whole text. Raises NotFound or RefDamaged."""
        path = self._path(ref)
        try:
            data = gzip.decompress(path.read_bytes())
        except FileNotFoundError:
            raise NotFound(ref, f"{path} is missing.") from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RefDamaged(path, str(error)) from error
        if sha256(data).hexdigest() != ref:
            raise RefDamaged(path, "its content has another hash")
        return data.decode()

    def remove(self, refs: Collection[str]) -> None:
        """Delete the texts; missing ones do not matter."""
        for ref in refs:
            self._path(ref).unlink(missing_ok=True)

    def stored(self) -> Iterator[str]:
        """Every reference there is a file for."""
        for path in self.folder.glob("??/*.gz"):
            with contextlib.suppress(NotFound):
                yield self._path(path.stem).stem

    def size(self) -> int:
        """Bytes on disk."""
        return sum(self._path(ref).stat().st_size for ref in self.stored())

    def _path(self, ref: str) -> Path:
        if not _REF.fullmatch(ref):
            raise NotFound(ref, "A reference is 64 hexadecimal digits.")
        return self.folder / ref[:2] / f"{ref}.gz"


def excerpt(text: str) -> str:
    """The head and the tail of a long text, with what is left out between them said."""
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return text
    return f"{text[:HEAD]}\n[… {left_out:,} characters left out …]\n{text[-TAIL:]}"
