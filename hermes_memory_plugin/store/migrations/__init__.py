"""How a ledger's tables came to be: one SQL file per schema version, `<ledger>_<version>.sql`, only ever added."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def steps(ledger: str) -> tuple[str, ...]:
    """The SQL that leads from schema n to n + 1, for n = 0, 1, 2 …"""
    files = sorted(Path(__file__).parent.glob(f"{ledger}_[0-9][0-9][0-9][0-9].sql"))
    for version, file in enumerate(files, start=1):
        if file.stem != f"{ledger}_{version:04d}":
            raise FileNotFoundError(f"{file.parent}: migration {version:04d} of {ledger} is missing")
    return tuple(file.read_text(encoding="utf-8") for file in files)
