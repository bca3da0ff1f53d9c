"""How many tokens the model's window holds. A hook never asks the network; it knows, or assumes the smallest.

Hermes takes no window below 64,000, so that is the answer until somebody knows better: the config says it, or a
background thread learns it from Hermes' own table, which the agent filled when it was built.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes_memory_plugin.hermes import host

SMALLEST = 64_000

_log = logging.getLogger(__name__)


class Windows:
    """The windows of the models this process talks to."""

    def __init__(self, look_up: Callable[[Mapping[str, Any], str], int] | None = None) -> None:
        self._look_up = look_up or _from_hermes
        self._known: dict[tuple[Path, str, str], int] = {}
        self._asked: set[tuple[Path, str, str]] = set()
        self._lock = threading.Lock()

    def of(self, home: Path, model: str, config: Mapping[str, Any] | None = None) -> int:
        """Tokens of the model's window; returns at once."""
        settings = model_settings(host.config() if config is None else config)
        said = _positive(settings.get("context_length"))
        if said and (not model or model == settings.get("default", model)):
            return said
        if not model:
            return SMALLEST
        key = (home, model, str(settings.get("base_url") or ""))
        known = self._known.get(key)
        if known:
            return known
        with self._lock:
            new = key not in self._asked
            self._asked.add(key)
        if new:
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=lambda: context.run(self._learn, key, settings, model),
                name="hermes-memory-window",
                daemon=True,
            )
            thread.start()
        return SMALLEST

    def _learn(self, key: tuple[Path, str, str], settings: Mapping[str, Any], model: str) -> None:
        try:
            found = _positive(self._look_up(settings, model))
        except Exception as error:  # a look-up that fails leaves the assumption standing
            _log.debug("no window known for %s: %s", model, error)
            return
        if found:
            self._known[key] = max(found, SMALLEST)


def model_settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `model` section; a plain name counts as its default."""
    found = config.get("model")
    if isinstance(found, Mapping):
        return found
    return {"default": found} if isinstance(found, str) and found else {}


def _positive(value: object) -> int:
    with suppress(TypeError, ValueError):
        number = int(str(value).replace("_", "").replace(",", ""))
        return max(0, number)
    return 0


def _from_hermes(settings: Mapping[str, Any], model: str) -> int:
    from agent.model_metadata import get_model_context_length

    return int(
        get_model_context_length(
            model,
            base_url=str(settings.get("base_url") or ""),
            api_key=str(settings.get("api_key") or ""),
            provider=str(settings.get("provider") or ""),
        )
    )
