"""The gateway that serves a home: is one running, and does it still run the code of before an update?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DISTRIBUTION = "hermes_memory_plugin"


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway process."""

    pid: int
    started: float
    """Epoch seconds."""
    python: str = ""
    """Its interpreter, as far as it can be seen."""


def running(home: Path) -> Gateway | None:
    """The live gateway of this home, or of the root whose gateway serves all its profiles."""
    homes = [home, home.parent.parent] if home.parent.name == "profiles" else [home]
    for place in homes:
        for name in ("gateway.pid", "gateway.lock"):
            pid, ticks = _record(place / name)
            started = _started(pid, ticks) if pid > 0 else 0.0
            if started:
                return Gateway(pid, started, _python(pid))
    return None


def installed_at(python: str = "") -> float:
    """When this package was installed for that interpreter (default: the running one); 0.0 when it is not there."""
    for folder in _site_packages(python):
        for found in sorted(folder.glob(f"{DISTRIBUTION}-*.dist-info")):
            times = [path.stat().st_mtime for path in found.iterdir() if path.is_file()]
            return max(times, default=0.0)
    return 0.0


def _site_packages(python: str) -> Iterator[Path]:
    if python:
        for lib in ("lib", "lib64"):
            yield from sorted((Path(python).parent.parent / lib).glob("python3*/site-packages"))
    else:
        import importlib.metadata

        try:
            file = importlib.metadata.distribution(DISTRIBUTION).locate_file("")
        except importlib.metadata.PackageNotFoundError:
            return
        yield Path(str(file))


def _record(path: Path) -> tuple[int, int]:
    """(pid, start in clock ticks) of the file Hermes writes: JSON, or the bare number of older versions."""
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return 0, 0
    if isinstance(raw, dict):
        pid, ticks = raw.get("pid"), raw.get("start_time")
    else:
        pid, ticks = raw, None
    return (
        int(pid) if isinstance(pid, int) and not isinstance(pid, bool) else 0,
        int(ticks) if isinstance(ticks, int | float) else 0,
    )


def _started(pid: int, ticks: int) -> float:
    """When that process began, in epoch seconds; 0.0 when it is gone or its number was given to another."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
        began = int(fields[19])
        boot = int(re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)[1])  # type: ignore[index]
    except (OSError, ValueError, IndexError, TypeError):
        return 0.0 if Path("/proc/stat").exists() else _started_by_ps(pid)
    if fields[0] == "Z" or (ticks and ticks != began):
        return 0.0
    return boot + began / os.sysconf("SC_CLK_TCK")


def _started_by_ps(pid: int) -> float:
    """The same where there is no /proc; `ps` counts the elapsed time as [[days-]hours:]minutes:seconds."""
    try:
        shown = subprocess.run(
            ["ps", "-o", "etime=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=True
        ).stdout.strip()
        days, _, clock = shown.rpartition("-")
        seconds = 0
        for part in clock.split(":"):
            seconds = seconds * 60 + int(part)
        return time.time() - seconds - int(days or 0) * 86_400
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0.0


def _python(pid: int) -> str:
    try:
        first = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode("utf-8", "replace")
    except OSError:
        return ""
    return first if os.path.isabs(first) and "python" in Path(first).name else ""  # noqa: PTH117
