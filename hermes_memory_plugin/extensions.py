"""Calls hook implementations in order, each on its own: a raising or slow one costs nobody else anything.

Ours run on the caller's thread. Those of other packages run on a thread of their own with a time limit; one that
overruns is left alone for a minute, because its thread is still busy and the next turn must not pay for it again.
"""

from __future__ import annotations

import contextvars
import importlib.metadata
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pluggy

from hermes_memory_hookspecs import PROJECT, Extension, Lifecycle

GROUP = "hermes_memory.plugins"
OURS = "hermes-memory"
LIMIT = 0.2
"""Seconds another package's implementation may take inside a turn."""
PATIENT = {"read_report": 60.0}
"""Seconds for what no turn waits for."""
REST = 60.0
"""Seconds an implementation that overran is left out."""

FIRST_RESULT = frozenset({"embedding_backend", "read_report", "fact_lifetime"})

_log = logging.getLogger(__name__)

Report = Callable[[str, str], None]
"""report(name of the event, detail)"""


class Hooks:
    """The registered plugins of one process."""

    def __init__(self, report: Report | None = None, *, limit: float = LIMIT, rest: float = REST) -> None:
        self._report = report or (lambda name, detail: None)
        self._limit = limit
        self._rest = rest
        self._resting: dict[str, float] = {}
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(Lifecycle)
        self._manager.add_hookspecs(Extension)

    def register(self, plugin: object, name: str) -> None:
        """Add a plugin; the same name again replaces it. Raises ValueError when it fits no hookspec."""
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)
        self._manager.register(plugin, name)
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            self._manager.unregister(name=name)
            raise ValueError(f"plugin {name}: {error}") from error

    def discover(self) -> list[str]:
        """Register every plugin of the entry-point group; returns the names. A broken one is reported, not raised."""
        names = []
        for entry in importlib.metadata.entry_points(group=GROUP):
            if self._manager.has_plugin(entry.name):
                continue
            try:
                self.register(entry.load(), entry.name)
            except Exception as error:  # any import can fail in any way
                self._failed(entry.name, "load", error)
            else:
                names.append(entry.name)
        return names

    def names(self) -> list[str]:
        """Registered plugins, in the order they were registered."""
        return [name for name, plugin in self._manager.list_name_plugin() if plugin is not None]

    def has(self, hook: str, *, ours: bool = True) -> bool:
        """Whether anybody (or anybody else) implements the hook: lets a hot path skip the work."""
        return any(
            ours or implementation.plugin_name != OURS
            for implementation in getattr(self._manager.hook, hook).get_hookimpls()
        )

    def call(self, hook: str, **arguments: Any) -> list[Any]:
        """The results that are not None, in order: ours first, then the others as they were registered.

        For a first-result hook at most one result; there the others are asked before ours. Never raises.
        """
        implementations = list(getattr(self._manager.hook, hook).get_hookimpls())
        first = hook in FIRST_RESULT
        # pluggy keeps them as trylast … tryfirst, later registrations nearer to the end.
        last = [one for one in implementations if one.trylast]
        middle = [one for one in implementations if not one.trylast and not one.tryfirst]
        early = [one for one in implementations if one.tryfirst]
        results = []
        for implementation in [*early, *(reversed(middle) if first else middle), *last]:
            result = self._one(hook, implementation, arguments)
            if result is not None:
                results.append(result)
                if first:
                    break
        return results

    def pipe(self, hook: str, text: str, argument: str = "text") -> str:
        """Pass `text` through every implementation, each one getting what the one before returned."""
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            result = self._one(hook, implementation, {argument: text})
            if isinstance(result, str):
                text = result
        return text

    def _one(self, hook: str, implementation: pluggy.HookImpl, arguments: dict[str, Any]) -> Any:
        name = implementation.plugin_name
        wanted = {key: arguments[key] for key in implementation.argnames if key in arguments}
        try:
            if name == OURS:
                return implementation.function(**wanted)
            if time.monotonic() < self._resting.get(f"{name}.{hook}", 0.0):
                return None
            return self._bounded(hook, name, implementation.function, wanted)
        except Exception as error:  # the contract: isolated, named, never breaks a turn
            self._failed(name, hook, error)
            return None

    def _bounded(self, hook: str, name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        outcome: list[Any] = []
        context = contextvars.copy_context()

        def run() -> None:
            try:
                outcome.append((True, context.run(function, **arguments)))
            except BaseException as error:  # handed to the caller below
                outcome.append((False, error))

        thread = threading.Thread(target=run, name=f"hermes-memory-{name}", daemon=True)
        thread.start()
        limit = max(self._limit, PATIENT.get(hook, 0.0))
        thread.join(limit)
        if not outcome:
            self._resting[f"{name}.{hook}"] = time.monotonic() + self._rest
            _log.warning(
                "plugin %s: %s took longer than %.0f ms and rests for a minute",
                name,
                hook,
                limit * 1000,
            )
            self._report("plugin_slow", f"{name}.{hook}")
            return None
        done, result = outcome[0]
        if not done:
            raise result if isinstance(result, Exception) else RuntimeError(repr(result))
        return result

    def _failed(self, name: str, hook: str, error: Exception) -> None:
        _log.warning("plugin %s: %s failed: %s: %s", name, hook, type(error).__name__, error)
        self._report("plugin_failed", f"{name}.{hook}: {type(error).__name__}: {error}"[:300])
