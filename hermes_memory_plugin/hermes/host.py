"""What the running Hermes can be asked. Every question has an answer for a Hermes that does not know it.

Hermes is imported inside each function: by then it is loaded, and modules it does not have in this version
simply leave the question unanswered.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_memory_plugin.layers.persona import Target

_log = logging.getLogger(__name__)


def home() -> Path:
    """The home of this very call: one process may serve several profiles."""
    with suppress(Exception):
        from hermes_constants import get_hermes_home

        return Path(get_hermes_home())
    from hermes_memory_plugin.home import hermes_home

    return hermes_home()


def profile(home: Path) -> str:
    """The profile whose home it is."""
    return home.name if home.parent.name == "profiles" else "default"


def session_env(name: str) -> str:
    """One of the HERMES_SESSION_* values of this call; "" when unset or unknown."""
    with suppress(Exception):
        from gateway.session_context import get_session_env

        return str(get_session_env(name, "") or "")
    return os.environ.get(name, "")


def serves_chats() -> bool:
    """Whether this process is a gateway: then a call without a chat is nobody's, not the local user's."""
    return "gateway.run" in sys.modules


def in_review() -> bool:
    """Whether a fork that looks back at the conversation is calling, not the conversation itself."""
    with suppress(Exception):
        from tools.skill_provenance import get_current_write_origin

        return bool(get_current_write_origin() == "background_review")
    return False


def has_middleware() -> bool:
    """Whether this Hermes lets a plugin rewrite what goes to the model (0.17)."""
    if "hermes_cli.middleware" in sys.modules:
        return True
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec("hermes_cli.middleware") is not None
    return False


def config() -> Mapping[str, Any]:
    """The config of this call's home; read-only."""
    with suppress(Exception):
        import hermes_cli.config as module

        read = getattr(module, "load_config_readonly", None) or module.load_config
        loaded = read()
        if isinstance(loaded, Mapping):
            return loaded
    return {}


def section(name: str) -> Mapping[str, Any]:
    """One mapping of the config; empty when it is missing or something else."""
    found = config().get(name)
    return found if isinstance(found, Mapping) else {}


def cron_job(session_id: str) -> Mapping[str, Any] | None:
    """The job whose run has this session id; None when it cannot be found."""
    parts = session_id.split("_")  # cron_<job id>_<date>_<time>
    if len(parts) < 4 or parts[0] != "cron":
        return None
    with suppress(Exception):
        from cron.jobs import get_job

        job = get_job("_".join(parts[1:-2]))
        return job if isinstance(job, Mapping) else None
    return None


def project() -> str:
    """The folder the conversation works in."""
    with suppress(Exception):
        from agent.runtime_cwd import resolve_agent_cwd

        return str(resolve_agent_cwd())
    with suppress(OSError):
        return str(Path.cwd())
    return ""


def built_in_command(name: str) -> bool:
    """Whether Hermes itself has a slash command of that name."""
    with suppress(Exception):
        from hermes_cli.commands import resolve_command

        return resolve_command(name) is not None
    return False


_LIMITS = {"MEMORY.md": "memory_enabled", "USER.md": "user_profile_enabled"}


def hidden_files(kind: str) -> frozenset[Target]:
    """Which of MEMORY.md and USER.md Hermes does not show such a session: none to subagents and jobs."""
    if kind != "user":
        return frozenset({"memory", "user"})
    settings = section("memory")
    hidden: set[Target] = set()
    if settings.get("memory_enabled", True) is False:
        hidden.add("memory")
    if settings.get("user_profile_enabled", True) is False:
        hidden.add("user")
    return frozenset(hidden)


def native_entries(home: Path, prompt: str | None) -> tuple[str, ...]:
    """Entries of MEMORY.md and USER.md that the model sees anyway.

    `prompt` is the stored system prompt of the session, where one is known: only what stands in it counts,
    because Hermes shows a session the entries it began with.
    """
    settings = section("memory")
    entries: list[str] = []
    for name, switch in _LIMITS.items():
        if settings.get(switch, True) is False:
            continue
        with suppress(OSError):
            text = (home / "memories" / name).read_text(encoding="utf-8", errors="replace")
            entries += [entry.strip() for entry in text[:100_000].split("\n§\n") if entry.strip()]
    if prompt:
        entries = [entry for entry in entries if entry in prompt]
    return tuple(entries)
