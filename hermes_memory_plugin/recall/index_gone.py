"""Which ids are gone, and which of them somebody asked back. Ids are digests, times epoch microseconds.

Every map only grows and every time only rises, so that two states are merged in any order with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Gone:
    """What a corpus knows of ids that are not there."""

    forgotten: dict[int, int] = field(default_factory=dict)
    """Id → when it was first seen, so that its handle stays its own."""
    buried: dict[int, int] = field(default_factory=dict)
    """Id → when it was last forgotten."""
    restored: dict[int, int] = field(default_factory=dict)
    """Id → when it was last asked back."""
    removed: dict[int, int] = field(default_factory=dict)
    """Id of what is gone until it is added again → the stamp of the removal."""

    def holds(self, key: int) -> bool:
        """Whether the id was forgotten and not asked back since."""
        return key in self.forgotten and self.restored.get(key, 0) <= self.buried.get(key, 0)

    def held(self) -> set[int]:
        """Every id that is forgotten."""
        return {key for key in self.forgotten if self.holds(key)}

    def bury(self, keys: Iterable[int], stamp: int) -> None:
        """The ids are forgotten from then on."""
        for key in keys:
            self.forgotten.setdefault(key, stamp)
            self.buried[key] = max(stamp, self.buried.get(key, 0))

    def restore(self, key: int, at: int) -> bool:
        """The id was asked back at that time; whether that is news."""
        if at <= self.restored.get(key, 0):
            return False
        self.restored[key] = at
        return True

    def remove(self, keys: Iterable[int], stamp: int) -> None:
        """The ids are gone until a later version comes."""
        for key in keys:
            self.removed[key] = max(stamp, self.removed.get(key, stamp))

    def merge(self, other: Gone) -> None:
        """Know what the other knows as well."""
        for key, born in other.forgotten.items():
            self.forgotten[key] = min(born, self.forgotten.get(key, born))
        for mine, theirs in (
            (self.buried, other.buried),
            (self.restored, other.restored),
            (self.removed, other.removed),
        ):
            for key, at in theirs.items():
                mine[key] = max(at, mine.get(key, at))
