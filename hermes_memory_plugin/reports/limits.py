"""What one report file may cost before it is given up."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """A file over one of them ends as "too_big" or "broken", with the limit in its reason."""

    file_bytes: int = 100 * MB
    pages: int = 2_000
    seconds: float = 30.0
    """For the whole file; each page after the sixtieth adds half a second."""
    memory_bytes: int = 400 * MB
    """Of the worker process that reads it."""
    characters: int = 50_000_000
    """Of text, over all pages."""

    def seconds_for(self, pages: int) -> float:
        """The time a file of so many pages may take."""
        return self.seconds + 0.5 * max(0, min(pages, self.pages) - 60)
