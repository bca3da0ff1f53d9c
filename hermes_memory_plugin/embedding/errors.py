"""The one error of this layer."""

from __future__ import annotations

from hermes_memory_plugin.errors import HermesMemoryError


class EmbedderUnavailable(HermesMemoryError):
    """A backend cannot give vectors (not installed, unreachable, wrong answers); recall goes on by keyword."""

    def __init__(self, name: str, reason: str, advice: str) -> None:
        super().__init__(f"embedding backend {name}: {reason}. Recall goes on by keyword. {advice}")
        self.name = name
        self.reason = reason
        self.advice = advice
