"""How many tokens the model's window holds. Nobody asks the network for it: it is known, or the smallest is assumed.

Hermes takes no window below 64,000, so that is the answer until somebody knows better: the config says it, or a
background thread reads it from what Hermes itself has learned, on disk and in memory.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes_memory_plugin.hermes import host

SMALLEST = 64_000
PAUSE = 300.0
"""Seconds until Hermes' tables are read again for a model they did not know."""

_log = logging.getLogger(__name__)


class Windows:
    """The windows of the models this process talks to."""

    def __init__(self, look_up: Callable[[Mapping[str, Any], str], int] | None = None) -> None:
        self._look_up = look_up or _from_hermes
        self._known: dict[tuple[Path, str, str], int] = {}
        self._asked: dict[tuple[Path, str, str], float] = {}
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
            due = time.monotonic() - self._asked.get(key, -PAUSE) >= PAUSE
            if due:
                self._asked[key] = time.monotonic()
        if due:
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
    """What Hermes knows without asking anybody: its caches on disk and in memory, then its table of families."""
    from agent import model_metadata as known

    base_url = str(settings.get("base_url") or "")
    learned = known.get_cached_context_length(model, base_url) if base_url else None
    if learned:
        return int(learned)
    listed = getattr(known, "_model_metadata_cache", None) or {}
    if model not in listed and "openrouter" in f"{base_url}{settings.get('provider')}".lower():
        listed = getattr(known, "_load_model_metadata_disk_cache", dict)()
    if isinstance(listed.get(model), Mapping):
        return _positive(listed[model].get("context_length"))
    families = sorted(known.DEFAULT_CONTEXT_LENGTHS.items(), key=lambda one: len(one[0]), reverse=True)
    return next((length for family, length in families if family in model.lower()), 0)
