"""Which mappers there are: the built-in ones and the user's ``memory/mappers/*.yaml``, whose names override."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hermes_memory_plugin.upkeep.mappers.model import Mapper, canonical_tool, parse

FOLDER = "mappers"
"""Of the memory, with the user's mappers."""
_MOST_FILES, _LONGEST = 200, 1 << 20
_TOOLS = 2_000
_DISPATCH = ("api_name", "api", "function", "func", "func_name", "interface", "endpoint", "method")
"""Arguments by which one tool for a whole vendor says which function it calls."""


@cache
def built_in() -> tuple[Mapper, ...]:
    """The mappers of the package. Raises ValueError when one of them is wrong, which a test would have found."""
    found: list[Mapper] = []
    folder = files("hermes_memory_plugin.upkeep.mappers.data")
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".yaml"):
            mappers, problems = parse(file.read_text(encoding="utf-8"), file.name, own=False)
            if problems:
                raise ValueError("; ".join(problems))
            found += mappers
    return tuple(found)


class Mappers:
    """The mappers of one memory; a changed file counts from the next look on."""

    def __init__(self, memory_folder: Path) -> None:
        self.folder = memory_folder / FOLDER
        self._lock = threading.Lock()
        self._stamp: tuple[tuple[str, int, int], ...] | None = None
        self._own: tuple[Mapper, ...] = ()
        self._problems: tuple[str, ...] = ()
        self._of_tool: dict[str, tuple[Mapper, ...]] = {}

    def all(self) -> tuple[Mapper, ...]:
        """Every mapper in force, the user's first."""
        self._look()
        own = {mapper.name for mapper in self._own}
        return (*self._own, *(mapper for mapper in built_in() if mapper.name not in own))

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the user's files, each with file and line."""
        self._look()
        return self._problems

    def of(self, tool: str, args: Mapping[str, Any]) -> Sequence[Mapper]:
        """The mappers that read this tool's results, the user's first."""
        self._look()
        found: dict[str, Mapper] = {}
        for name in _names(tool, args):
            known = self._of_tool.get(name)
            if known is None:
                known = tuple(mapper for mapper in self.all() if mapper.fits_tool(name))
                if len(self._of_tool) >= _TOOLS:
                    self._of_tool.clear()
                self._of_tool[name] = known
            found.update({mapper.name: mapper for mapper in known})
        return tuple(found.values())

    def _look(self) -> None:
        stamp = tuple(self._stamps())
        with self._lock:
            if stamp == self._stamp:
                return
            own: dict[str, Mapper] = {}
            problems: list[str] = []
            for name, _, size in stamp:
                path = self.folder / name
                if size > _LONGEST:
                    problems.append(f"{path}:1: longer than 1 MB; a mapper is some lines")
                    continue
                try:
                    text = path.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    problems.append(f"{path}:1: cannot be read: {error}")
                    continue
                mappers, wrong = parse(text, str(path), own=True)
                problems += wrong
                for mapper in mappers:
                    if mapper.name in own:
                        problems.append(
                            f"{mapper.place}: the name {mapper.name!r} is taken by {own[mapper.name].place}"
                        )
                    own.setdefault(mapper.name, mapper)
            self._own, self._problems = tuple(own.values()), tuple(problems)
            self._of_tool = {}
            self._stamp = stamp

    def _stamps(self) -> Iterator[tuple[str, int, int]]:
        try:
            paths = sorted(path for path in self.folder.iterdir() if path.suffix in (".yaml", ".yml"))
        except OSError:
            return
        for path in paths[:_MOST_FILES]:
            try:
                found = path.stat()
            except OSError:
                continue
            yield path.name, found.st_mtime_ns, found.st_size


def _names(tool: str, args: Mapping[str, Any]) -> list[str]:
    name = canonical_tool(tool)
    names = [name]
    for vendor in ("tushare", "akshare"):
        if vendor in name:
            names += [
                f"{vendor}_{canonical_tool(args[key])}" for key in _DISPATCH if isinstance(args.get(key), str)
            ]
    return names
