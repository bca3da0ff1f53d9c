"""What Hermes itself shares between the people who write to one home: our walls end where its own memory begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes_memory_plugin.owners import Owners


def senders(keys: Iterable[str], owners: Owners) -> list[str]:
    """One key for each person or chat that has rows; conversations of nobody known, probes and what is shared are none."""
    found = {min(owners.linked(key)) for key in keys if key not in ("shared", "any", "") and ":~" not in key}
    return sorted(found)


def notices(home: Path, keys: Iterable[str], owners: Owners) -> list[str]:
    """A sentence that names each thing the host shares, where more than one sender has rows; nothing otherwise.

    A config.yaml that cannot be read counts as Hermes' defaults, which share everything.
    """
    who = senders(keys, owners)
    if len(who) < 2:
        return []
    config = _config(home)
    memory, agent = _part(config, "memory"), _part(config, "agent")
    off = agent.get("disabled_toolsets")
    shared = [
        told
        for told, closed in (
            ("MEMORY.md (memory.memory_enabled: false)", memory.get("memory_enabled") is False),
            ("USER.md (memory.user_profile_enabled: false)", memory.get("user_profile_enabled") is False),
            (
                "the session search (agent.disabled_toolsets: [session_search])",
                isinstance(off, list) and "session_search" in off,
            ),
        )
        if not closed
    ]
    if not shared:
        return []
    return [
        f"{len(who)} senders write to this home, and Hermes itself shows each what the others said through {', '.join(shared)}. "
        "The setting in brackets, in config.yaml, closes each; or give every client a profile of its own."
    ]


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = config.get(name)
    return part if isinstance(part, Mapping) else {}


def _config(home: Path) -> Mapping[str, Any]:
    import yaml

    try:
        loaded = yaml.safe_load((home / "config.yaml").read_bytes())
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return loaded if isinstance(loaded, Mapping) else {}
