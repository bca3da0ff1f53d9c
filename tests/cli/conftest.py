"""A Hermes home, and the command line as a function and as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_plugin.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout; nothing else may be there."""
        loaded = json.loads(self.out)
        assert isinstance(loaded, dict)
        return loaded


class Command:
    """`hermes-memory` for one home."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *words: str) -> Ran:
        """In this process."""
        self._capsys.readouterr()
        code = main(["--home", str(self.home), *words])
        said = self._capsys.readouterr()
        return Ran(code, said.out, said.err)

    def process(self, *words: str, stdin: str | None = None, **env: str) -> Ran:
        """In a process of its own, found through HERMES_HOME."""
        run = subprocess.run(
            [sys.executable, "-m", "hermes_memory_plugin.cli", *words],
            check=False,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            env={**os.environ, "HERMES_HOME": str(self.home), "PYTHONUTF8": "1", **env},
        )
        return Ran(run.returncode, run.stdout, run.stderr)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty Hermes home."""
    home = tmp_path / "hermes"
    home.mkdir()
    return home


@pytest.fixture
def cli(home: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line of that home."""
    return Command(home, capsys)
