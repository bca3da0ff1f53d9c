"""Which Python runs Hermes, whether this package is importable there, and the line that installs it there."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

DISTRIBUTION = "hermes-memory-plugin"
_EXEC = re.compile(r"""exec['"]?\s+["']?((?:/|\$HOME/|~/)[^"'\n$]*?/(?:hermes|python[\d.]*))["'\s]""")
_PROBE = (
    "import importlib.metadata as m, json;"
    "names = [e.name for e in m.entry_points(group='hermes_agent.plugins')];"
    "print(json.dumps({'plugin': 'hermes-memory' in names, 'pip': bool(__import__('importlib.util').util.find_spec('pip')),"
    "'hermes': any(d.name == 'hermes-agent' for d in m.distributions() if d.metadata)}))"
)


@dataclass(frozen=True, slots=True)
class Host:
    """The interpreter that runs Hermes."""

    python: Path
    ours: bool
    """Whether Hermes finds this package there."""
    has_pip: bool = True

    @property
    def install(self) -> str:
        """The command that puts this package there; "" when it is there."""
        return "" if self.ours else install_line(self.python, has_pip=self.has_pip)


def find(hermes: str | Path | None = None) -> Host | None:
    """The Hermes that the command `hermes` starts; None when there is no such command or it cannot be read."""
    script = Path(hermes) if hermes else _which()
    python = python_of(script) if script else None
    if python is None:
        return None
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        # Not isolated: what PYTHONPATH brings to Hermes counts.
        run = subprocess.run(
            [str(python), "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            cwd=python.parent,
        )
        said = json.loads(run.stdout)
        return Host(python, bool(said["plugin"]), bool(said["pip"]))
    return None


def python_of(script: Path, depth: int = 4) -> Path | None:
    """The interpreter a `hermes` script runs on, through links and wrapper scripts."""
    try:
        real = script.resolve(strict=True)
        with real.open("rb") as file:
            head = file.read(4_096).decode("utf-8", "replace")
    except OSError:
        return None
    if not head.startswith("#!"):
        for name in ("python.exe", "python"):  # a launcher of Windows stands beside its interpreter
            if real.suffix.lower() == ".exe" and (real.parent / name).exists():
                return real.parent / name
        return None
    words = _words(head.splitlines()[0][2:])
    if not words:
        return None
    if Path(words[0]).name == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        words = [shutil.which(named[0]) or ""] if named else [""]
    if "python" in Path(words[0]).name:
        return Path(words[0]) if Path(words[0]).exists() else None
    # A shell: either pip's own form for long paths, or an installer's wrapper around the real script.
    for found in _EXEC.findall(head + "\n"):
        target = Path(os.path.expandvars(found)).expanduser()
        if "python" in target.name and target.exists():
            return target
        if target.exists() and depth > 0 and target.resolve() != real:
            return python_of(target, depth - 1)
    return None


def install_line(python: Path, *, has_pip: bool = True) -> str:
    """The exact command that installs this package for that interpreter."""
    what = _requirement()
    parts = python.parts
    if "pipx" in parts and "venvs" in parts[:-1]:
        return f"pipx inject {shlex.quote(parts[parts.index('venvs') + 1])} {what}"
    if "uv" in parts and "tools" in parts[parts.index("uv") :]:
        tool = parts[parts.index("tools", parts.index("uv")) + 1]
        return f"uv tool install {shlex.quote(tool)} --with {what}"
    if has_pip:
        return f"{shlex.quote(str(python))} -m pip install {what}"
    return f"uv pip install --python {shlex.quote(str(python))} {what}"


def _requirement() -> str:
    """This package as pip names it: where it came from, when that was a folder or an address."""
    with suppress(importlib.metadata.PackageNotFoundError, ValueError, KeyError):
        raw = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        if raw:
            url = str(json.loads(raw)["url"])
            place = unquote(urlparse(url).path) if url.startswith("file:") else url
            return shlex.quote(place)
    return DISTRIBUTION


def _which() -> Path | None:
    beside = Path(sys.executable).with_name("hermes")
    found = shutil.which("hermes") or (str(beside) if beside.exists() else None)
    return Path(found) if found else None


def _words(line: str) -> list[str]:
    line = line.strip()
    return [line] if Path(line).exists() else line.split()
