"""Bytes made small: zstd where this Python has it, gzip elsewhere; what is read says itself which it is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

ZSTD, GZIP = ".zst", ".gz"
_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 6


class Unpackable(ValueError):
    """The bytes are not what `pack` made, or not whole, or this Python cannot read them."""


@cache
def _zstd() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]] | None:
    """(compress, decompress), or None where there is no zstd."""
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14

        return lambda data: zstd.compress(data, _LEVEL), zstd.decompress
    except ImportError:
        pass
    try:
        import pyarrow as pa
    except ImportError:
        return None
    if not pa.Codec.is_available("zstd"):
        return None
    codec = pa.Codec("zstd", _LEVEL)

    def compress(data: bytes) -> bytes:
        return bytes(codec.compress(data, asbytes=True))

    def decompress(data: bytes) -> bytes:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            found: Any = stream.read()
        return bytes(found)

    return compress, decompress


def suffix() -> str:
    """How files made by `pack` end here."""
    return ZSTD if _zstd() else GZIP


def pack(data: bytes) -> bytes:
    """The bytes, compressed."""
    tools = _zstd()
    return tools[0](data) if tools else gzip.compress(data, _LEVEL, mtime=0)


def unpack(data: bytes) -> bytes:
    """What `pack` was given, here or elsewhere. Raises Unpackable."""
    if data.startswith(_MAGIC):
        tools = _zstd()
        if tools is None:
            raise Unpackable("it is zstd, which needs pyarrow or Python 3.14 to be read")
        try:
            return tools[1](data)
        except Exception as error:
            raise Unpackable(str(error) or type(error).__name__) from error
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise Unpackable(str(error)) from error
