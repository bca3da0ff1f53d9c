"""Turn the plugin on or off in one profile's config.yaml, without disturbing anything else in it.

Comments, order and quoting stay; the file as it was is kept beside it. A file that cannot be edited safely is left
untouched and the error says why.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
from collections.abc import MutableMapping, MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_memory_plugin.errors import HermesMemoryError

NAME = "hermes-memory"


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
    if not _toggle(path, wanted, name, on=on):
        return Change(path, on, changed=False)
    after = _as_json(before, wanted) if before.lstrip().startswith("{") else None
    if after is None:
        after = _as_yaml(path, before, name, on=on)
    if _plain(path, after) != wanted:
        raise ConfigNotEdited(path, "it uses YAML that cannot be edited without changing something else")
    backup = _backup(path, before) if path.exists() else None
    _replace(path, after)
    return Change(path, on, changed=True, backup=backup)


def _toggle(path: Path, config: MutableMapping[str, Any], name: str, *, on: bool) -> bool:
    """Set the plugin in parsed config; False when nothing had to change."""
    plugins = config.get("plugins")
    if plugins is None:
        if not on:
            return False
        plugins = config["plugins"] = {}
    if not isinstance(plugins, MutableMapping):
        raise ConfigNotEdited(path, "`plugins` is not a mapping")
    lists: dict[str, MutableSequence[Any]] = {}
    for key in ("enabled", "disabled"):
        value = plugins.get(key)
        if value is not None and not isinstance(value, MutableSequence):
            raise ConfigNotEdited(path, f"`plugins.{key}` is not a list")
        if value is not None:
            lists[key] = value
    changed = False
    for key in ("disabled",) if on else ("enabled",):
        while name in lists.get(key, ()):
            lists[key].remove(name)
            changed = True
    if on and name not in lists.get("enabled", ()):
        if "enabled" in lists:
            lists["enabled"].append(name)
        else:
            plugins["enabled"] = [name]
        changed = True
    return changed


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


def _as_json(text: str, wanted: dict[str, Any]) -> str | None:
    """JSON is YAML too, and stays JSON; None when the text is not JSON after all."""
    try:
        if json.loads(text.removeprefix("\ufeff")) is None:
            return None
    except ValueError:
        return None
    second = text.splitlines()[1] if "\n" in text.strip() else ""
    indent = len(second) - len(second.lstrip()) or None
    return json.dumps(wanted, ensure_ascii=False, indent=indent) + ("\n" if text.endswith("\n") else "")


def _as_yaml(path: Path, text: str, name: str, *, on: bool) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    try:
        _, indent, offset = load_yaml_guess_indent(text)
        if indent:
            yaml.indent(mapping=_mapping_indent(text), sequence=indent, offset=offset or 0)
        config = yaml.load(text)
        if config is None:
            return (
                text
                + ("" if not text or text.endswith("\n") else "\n")
                + f"plugins:\n  enabled:\n  - {name}\n"
            )
        _toggle(path, config, name, on=on)
        out = io.StringIO()
        yaml.dump(config, out)
    except (YAMLError, ValueError, RecursionError, NotImplementedError, AttributeError) as error:
        raise ConfigNotEdited(path, f"it cannot be edited ({' '.join(str(error).split())[:300]})") from None
    edited = out.getvalue()
    return edited.replace("\n", "\r\n") if "\r\n" in text and "\r\n" not in edited else edited


def _mapping_indent(text: str) -> int:
    """How far the first nested key stands in."""
    for line in text.splitlines():
        bare = line.lstrip(" ")
        if bare and not bare.startswith(("#", "-")) and ":" in bare and len(line) > len(bare):
            return len(line) - len(bare)
    return 2


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
