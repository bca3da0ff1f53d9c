"""Errors a caller may catch; each says what happened, to what, and what to do."""

from __future__ import annotations

from pathlib import Path


class HermesMemoryError(Exception):
    """Base of everything this package raises on purpose."""


class SettingsError(HermesMemoryError):
    """A setting cannot be used; the default stands in for it."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(
            f"setting {key} = {value!r} cannot be used; allowed: {allowed}. The default is used instead."
        )
        self.key = key
        self.value = value
        self.allowed = allowed


class JournalWriteFailed(HermesMemoryError):
    """The record was not stored (disk full, read-only folder …)."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"could not append to {path}: {reason}. Nothing was stored; free space or fix the folder."
        )
        self.path = path
        self.reason = reason


class LedgerBusy(HermesMemoryError):
    """Somebody else holds the ledger; what was acknowledged is safe in the journal."""

    def __init__(self, path: Path, waited: float, holder: str = "") -> None:
        by = f" by {holder}" if holder else ""
        super().__init__(
            f"{path} is in use{by} (waited {waited:.1f} s). Nothing is lost: try again in a moment."
        )
        self.path = path
        self.waited = waited
        self.holder = holder


class LedgerCorrupt(HermesMemoryError):
    """The file cannot be read; it was left or moved aside, never overwritten."""

    def __init__(self, path: Path, reason: str, moved_to: Path | None = None) -> None:
        where = (
            f"It was moved to {moved_to} and a new one was begun." if moved_to else "It was left untouched."
        )
        super().__init__(f"{path} cannot be read: {reason}. {where}")
        self.path = path
        self.reason = reason
        self.moved_to = moved_to


class LedgerNewer(HermesMemoryError):
    """The file was written by a newer version of this package; nothing was written to it."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}, this version knows {known}. Nothing was written: "
            "update hermes-memory-plugin (pip install -U hermes-memory-plugin)."
        )
        self.path = path
        self.found = found
        self.known = known


class NotFound(HermesMemoryError):
    """No row has that id, handle or title."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"nothing is stored under {what!r}." + (f" {hint}" if hint else ""))
        self.what = what


class ReportUnreadable(HermesMemoryError):
    """The report could not be read; nothing of it was stored."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}. Nothing of it was stored.")
        self.path = path
        self.reason = reason
