"""The systems that are measured side by side: how each is installed, started, spoken to, and what its text shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hermes_memory_plugin.recall.segment import tokens as words_of

DRIVER = Path(__file__).with_name("peer_driver.py")
_LETTERS = re.compile(r"\W+")
_ESCAPE = re.compile(r'\\[nrt"]')


@dataclass(frozen=True, slots=True)
class Peer:
    """A system, and what a home of it needs before its first start."""

    name: str
    package: str = ""
    """What pip installs beside the host; empty for those that run in our own interpreter."""
    entry: str = ""
    setup: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    """The tool that stores a row, for a system whose turns are not found in another session."""


PEERS = (
    Peer("ours"),
    Peer("bm25"),
    Peer("plain"),
    Peer("nyx", "nyx-memory==7.16.0", "nyx"),
    Peer(
        "scope-recall",
        "hermes-scope-recall==3.15.1",
        "scope-recall",
        (
            "-m", "scope_recall.maintenance.cli", "apply-install", "--host", "hermes", "--instance-root", "{home}",
            "--target-plugin-dir", "{home}/plugins/scope-recall", "--agent-id", "default", "--python", "{python}",
        ),
    ),
    Peer("mnemosyne", "mnemosyne-hermes==0.7.6", "mnemosyne", tool=("mnemosyne_remember", "content", "scope", "global")),
)  # fmt: skip
HOST = "hermes-agent==0.19.0"


class Running:
    """One process of one system on one home."""

    def __init__(self, peer: Peer, python: Path, home: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [str(python), str(DRIVER), peer.entry or peer.name, str(home), *peer.tool],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            env=environment | {"HERMES_HOME": str(home)},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._ask({"close": True})
            self._process.wait(30)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def add(self, rows: Sequence[str], seconds: float = 1e9) -> list[float]:
        """Milliseconds of each row taken before the time was over."""
        taken: list[float] = self._ask({"add": list(rows), "seconds": seconds})["ms"]
        return taken

    def cpu(self) -> float:
        """Seconds of processor time it has used; 0.0 where nobody tells."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self, most: float = 60.0) -> None:
        """Wait until what it does in the background is done: less than a tenth of a core for a second."""
        stop, before = time.perf_counter() + most, -1.0
        while time.perf_counter() < stop and (now := self.cpu()) - before > 0.1:
            before = now
            time.sleep(1)

    def recall(self, question: str, *, wide: bool = False) -> tuple[list[str], float]:
        """What came back, and the milliseconds it took."""
        words = [word for word in words_of(question) if word.isalnum() and len(word) > 1]
        got = self._ask({"recall": question, "words": words, "wide": wide})
        return got["blocks"], got["ms"]

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the system ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Seen:
    """Which rows a text shows, in the order they stand in it."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._ids: dict[str, list[str]] = {}
        for id_, text in rows.items():
            self._ids.setdefault(_plain(text)[:120], []).append(id_)

    def ids(self, blocks: Sequence[str], wanted: Sequence[str] = ()) -> list[str]:
        """One id for each row seen: of equal rows the one that is wanted."""
        shown = _plain("\n".join(blocks))
        places: dict[str, int] = {}
        for key, ids in self._ids.items():
            place = shown.find(key) if key else -1
            if place < 0 and len(key) > 40:  # cut by the system
                place = shown.find(key[:40]) if self._one(key[:40]) else -1
            if place >= 0:
                places[next((id_ for id_ in ids if id_ in wanted), ids[0])] = place
        return sorted(places, key=lambda id_: places[id_])

    def _one(self, head: str) -> bool:
        return sum(key.startswith(head) for key in self._ids) == 1


def interpreters(venvs: Path | None, only: Sequence[str]) -> Iterator[tuple[Peer, Path]]:
    """The systems that can run here."""
    for peer in PEERS:
        if only and peer.name not in only:
            continue
        python = (
            Path(sys.executable)
            if venvs is None or not peer.package
            else venvs / peer.name / "bin" / "python"
        )
        if peer.package and (venvs is None or not python.exists()):
            print(
                f"{peer.name}: not installed, left out (--make DIR installs {peer.package})", file=sys.stderr
            )
            continue
        yield peer, python


def make(venvs: Path) -> None:
    """A venv for each peer, with the host beside it."""
    for peer in PEERS:
        folder = venvs / peer.name
        if peer.package and not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", HOST, peer.package]
            if subprocess.run(pip, check=False).returncode:
                shutil.rmtree(folder)
                print(f"{peer.package} cannot be installed here", file=sys.stderr)


def _plain(text: str) -> str:
    return _LETTERS.sub("", _ESCAPE.sub(" ", text)).casefold()
