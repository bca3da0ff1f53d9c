"""Turn the plugin on or off in one profile's config.yaml, without disturbing anything else in it.

Comments, order and quoting stay; the file as it was is kept beside it. A file that cannot be edited safely is left
untouched and the error says why.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_plugin.errors import HermesMemoryError

NAME = "hermes-memory"
_ODD = "it is written in a way that cannot be edited without changing something else"


class ConfigNotEdited(HermesMemoryError):
    """config.yaml was left as it is."""

    def __init__(self, path: Path, reason: str, todo: str = "") -> None:
        todo = todo or f"Put {NAME} into the list plugins.enabled by hand, or mend the file and try again"
        super().__init__(f"{path} was left untouched: {reason}. {todo}.")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a config.yaml."""

    path: Path
    enabled: bool
    changed: bool
    """False when it was that way before."""
    backup: Path | None = None
    """The file as it was; None when there was none or nothing was changed."""


def enable(home: Path, name: str = NAME) -> Change:
    """Put the plugin into `plugins.enabled` and take it out of `plugins.disabled`. Raises ConfigNotEdited."""
    return _edit(home, name, on=True)


def disable(home: Path, name: str = NAME) -> Change:
    """Take the plugin out of `plugins.enabled`. Nothing it stored is touched. Raises ConfigNotEdited."""
    return _edit(home, name, on=False)


def is_enabled(home: Path, name: str = NAME) -> bool:
    """Whether Hermes will load the plugin in that home. Raises ConfigNotEdited for a file nobody can read."""
    plugins = _plain(home / "config.yaml", _read(home / "config.yaml")).get("plugins")
    if not isinstance(plugins, dict):
        return False
    return name in (plugins.get("enabled") or ()) and name not in (plugins.get("disabled") or ())


def _edit(home: Path, name: str, *, on: bool) -> Change:
    path = home / "config.yaml"
    if not home.is_dir():
        raise ConfigNotEdited(
            path, f"there is no Hermes home at {home}", "Start Hermes once, or name another profile"
        )
    before = _read(path)
    wanted = _plain(path, before)
    steps = _toggle(path, wanted, name, on=on)
    if not steps:
        return Change(path, on, changed=False)
    after = _edited(path, before, name, steps)
    if _plain(path, after) != wanted:
        raise ConfigNotEdited(path, _ODD)
    backup = _backup(path, before) if path.exists() else None
    _replace(path, after)
    return Change(path, on, changed=True, backup=backup)


def _toggle(path: Path, config: dict[str, Any], name: str, *, on: bool) -> list[tuple[str, str]]:
    """Set the plugin in the parsed config; returns what had to be done, as ("add" | "remove", list)."""
    plugins = config.get("plugins")
    if plugins is not None and not isinstance(plugins, dict):
        raise ConfigNotEdited(path, "`plugins` is not a mapping")
    lists = plugins or {}
    for key in ("enabled", "disabled"):
        if lists.get(key) is not None and not isinstance(lists[key], list):
            raise ConfigNotEdited(path, f"`plugins.{key}` is not a list")
    steps = []
    off_list = "disabled" if on else "enabled"
    if name in (lists.get(off_list) or ()):
        steps.append(("remove", off_list))
        lists[off_list] = [one for one in lists[off_list] if one != name]
    if on and name not in (lists.get("enabled") or ()):
        steps.append(("add", "enabled"))
        config["plugins"] = {**lists, "enabled": [*(lists.get("enabled") or ()), name]}
    return steps


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigNotEdited(path, error.strerror or str(error), "Make it readable") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigNotEdited(path, "it is not UTF-8", "Save it as UTF-8 and try again") from None


def _plain(path: Path, text: str) -> dict[str, Any]:
    """The file as Hermes reads it."""
    import yaml

    try:
        loaded = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigNotEdited(path, f"it is no valid YAML ({' '.join(str(error).split())[:300]})") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigNotEdited(path, "it holds no mapping of settings")
    return loaded


def _edited(path: Path, text: str, name: str, steps: list[tuple[str, str]]) -> str:
    from yaml import YAMLError

    from hermes_memory_plugin.hermes.yaml_edit import Text, TooOdd

    try:
        editor = Text(text)
        for verb, key in steps:
            (editor.add if verb == "add" else editor.remove)("plugins", key, name)
        return editor.result()
    except (TooOdd, YAMLError, IndexError):
        raise ConfigNotEdited(path, _ODD) from None


def _backup(path: Path, text: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for number in range(1_000):
        backup = path.with_name(f"config.yaml.bak-{stamp}{f'-{number}' if number else ''}")
        with suppress(FileExistsError):
            descriptor = os.open(
                backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, stat.S_IMODE(path.stat().st_mode)
            )
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            return backup
    raise ConfigNotEdited(path, "no backup could be written beside it")


def _replace(path: Path, text: str) -> None:
    """Write it whole or not at all; a symlink keeps pointing where it does, and the mode stays."""
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    try:
        descriptor, fresh = tempfile.mkstemp(dir=target.parent, prefix=".config.yaml.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).chmod(mode)
            Path(fresh).replace(target)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigNotEdited(path, error.strerror or str(error), "Make its folder writable") from None
