"""What `doctor` looks at: each check says what it saw, and when something is wrong, what to do."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.cli.views import PROBE
from hermes_memory_plugin.errors import HermesMemoryError, LedgerBusy
from hermes_memory_plugin.home import shared_place, unwritable

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory

Verdict = Literal["ok", "warn", "fail"]
_MOST_FILES = 20_000
PATIENCE = 5.0
"""Seconds `doctor` waits for whoever holds the ledgers."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Verdict
    said: str
    todo: str = ""


def of_home(home: Path) -> Iterator[Check]:
    """What can be said before the memory is opened."""
    from hermes_memory_plugin import settings

    reason = unwritable(home)
    if reason:
        yield Check(
            "home",
            "fail",
            f"{home / 'memory'} cannot be written: {reason}",
            "make it writable, or free space",
        )
    else:
        yield Check("home", "ok", f"{home} can be written")
    place = shared_place(home)
    if place:
        yield Check("place", "warn", place, "move the Hermes home to a local folder")
    _, problems = settings.load(home)
    for problem in problems:
        yield Check("settings", "fail", str(problem), f"edit {home / 'config.yaml'}")
    if not problems:
        yield Check("settings", "ok", "every setting can be used")
    yield _plugin(home)
    yield from _gateway(home)
    if not reason:
        yield from _modes(home / "memory")


def _plugin(home: Path) -> Check:
    """Whether Hermes is told to load us, and whether it can."""
    from hermes_memory_plugin.hermes import enable, interpreter

    try:
        enabled = enable.is_enabled(home)
    except HermesMemoryError as error:
        return Check("plugin", "fail", str(error), f"mend {home / 'config.yaml'}")
    host = interpreter.find()
    if host is None:
        said = "enabled, but" if enabled else "not enabled, and"
        return Check(
            "plugin", "warn", f"{said} no `hermes` command is on the PATH to look at", "put it on the PATH"
        )
    if not host.ours:
        listed = "config.yaml enables hermes-memory, but " if enabled else ""
        said = f"{listed}the Python that runs Hermes ({host.python}) cannot import this package"
        return Check("plugin", "fail" if enabled else "warn", said, host.install)
    if not enabled:
        return Check(
            "plugin", "warn", f"installed for {host.python}, not enabled here", "hermes-memory enable"
        )
    return Check("plugin", "ok", f"enabled, and importable by {host.python}")


def _gateway(home: Path) -> Iterator[Check]:
    from hermes_memory_plugin.cli import gateway

    found = gateway.running(home)
    if found is None:
        return
    installed = gateway.installed_at(found.python) or gateway.installed_at()
    began = f"{datetime.fromtimestamp(found.started, UTC):%Y-%m-%d %H:%M} UTC"
    if installed > found.started:
        yield Check(
            "gateway", "warn", f"process {found.pid} runs since {began} and is older than this installation",
            "restart it: hermes gateway restart",
        )  # fmt: skip
    else:
        yield Check("gateway", "ok", f"process {found.pid} runs since {began}")


def _modes(folder: Path) -> Iterator[Check]:
    """Files other people of this machine could read."""
    if os.name != "posix":
        return
    seen, open_ = 0, []
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root, name)
            seen += 1
            try:
                mode = path.lstat().st_mode
            except OSError:
                continue
            if not stat.S_ISLNK(mode) and mode & 0o077:
                open_.append(path)
        if seen > _MOST_FILES:
            break
    if open_:
        names = ", ".join(str(path.relative_to(folder)) for path in open_[:3])
        more = f" and {len(open_) - 3} more" if len(open_) > 3 else ""
        yield Check("modes", "warn", f"other users may read {names}{more}", f"chmod -R go-rwx '{folder}'")
    else:
        yield Check("modes", "ok", "only you can read what is stored")


def flushed(memory: Memory) -> Check | None:
    """What keeps the journals from reaching the ledgers; None when nothing does."""
    try:
        memory.archive.flush(PATIENCE)
        memory.flush()
    except HermesMemoryError as error:
        return Check(
            "stores", "fail", str(error), "end that process" if isinstance(error, LedgerBusy) else ""
        )
    return None


def of_memory(memory: Memory) -> Iterator[Check]:
    """The state of the stores, what was counted as late or failed, and which seams of Hermes have been heard of."""
    from hermes_memory_plugin.upkeep import host_walls
    from hermes_memory_plugin.upkeep.health import DEGRADED

    owners = memory.owners.problems()
    for problem in owners:
        yield Check("owners", "warn", problem)
    try:
        status = memory.status()
    except HermesMemoryError as error:
        yield Check("stores", "fail", str(error))
        return
    # `of_home` has said what is wrong with the place and the settings.
    said = {*owners, *map(str, memory.setting_errors()), shared_place(memory.home), unwritable(memory.home)}
    problems = [problem for problem in status["problems"] if problem not in said]
    for problem in problems:
        todo = (
            "what could be rebuilt was; delete that file when you need it no more"
            if ".damaged-" in problem
            else ""
        )
        yield Check("stores", "fail", problem, todo)
    if not problems:
        yield Check(
            "stores", "ok", f"journals, ledgers and index can be read ({status['index']['rows']} rows)"
        )
    for name, count in status["degraded"].items():
        why = status["reasons"].get(name)
        last = f" (the last time: {why})" if why else ""
        yield Check("degraded", "warn", f"{DEGRADED.get(name, name)}: {count} in the last week{last}")
    if not status["degraded"]:
        yield Check("degraded", "ok", "nothing was late, failed or degraded in the last week")
    yield from _reports(memory)
    for notice in status["upkeep"]["notices"]:
        yield Check("upkeep", "warn", notice)
    for notice in host_walls.notices(memory.home, status["owners"], memory.owners):
        yield Check("walls", "warn", notice)
    yield from _seams(_heard(memory))


def _reports(memory: Memory) -> Iterator[Check]:
    """Reports whose file is gone: they are still searched, but their pages cannot be opened."""
    if not memory.archive.reports.path.exists():
        return
    gone = memory.library.missing(Owner.ANY)
    if gone:
        names = ", ".join(row["path"] for row in gone[:3])
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        yield Check(
            "reports", "warn", f"the file is gone: {names}{more}",
            "reports relocate OLD NEW where the folder moved, else reports prune",
        )  # fmt: skip
    else:
        yield Check("reports", "ok", "every report has its file")


def _heard(memory: Memory) -> dict[str, str]:
    """When each hook last left a trace; our own probes do not count."""
    stored = "SELECT ? AS hook, max(timestamp) AS at FROM"
    rows = memory.archive.logs.rows(
        f"{stored} logs WHERE owner <> ? UNION ALL {stored} turns WHERE user_text <> '' "
        f"UNION ALL {stored} turns WHERE assistant_text <> '' UNION ALL {stored} turns WHERE completed IS NOT NULL",
        ["post_tool_call", PROBE.key, "pre_llm_call", "post_llm_call", "on_session_end"],
    )
    return {row["hook"]: f"{row['at']:%Y-%m-%d %H:%M} UTC" for row in rows if row["at"]}


SEAMS = {
    "pre_llm_call": "a user's message arrived",
    "post_tool_call": "a tool call was stored",
    "post_llm_call": "an answer was stored",
    "on_session_end": "a turn was closed",
}
"""The hooks of Hermes that leave a trace, and which trace."""


def _seams(last: Mapping[str, str]) -> Iterator[Check]:
    heard = {name: last[name] for name in SEAMS if last.get(name)}
    if not heard:
        yield Check("hooks", "warn", "no hook of Hermes has been heard of yet", "send Hermes one message")
        return
    for name, meaning in SEAMS.items():
        if name in heard:
            yield Check("hooks", "ok", f"{name}: {meaning}, last {heard[name]}")
        elif name != "post_tool_call":  # not every conversation uses a tool
            yield Check(
                "hooks",
                "warn",
                f"{name} has never fired, others have",
                "update Hermes, or report its version",
            )
