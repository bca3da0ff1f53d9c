"""Runs the real Hermes Agent against the scripted model in a throw-away home.

    with Lab(python, script={"replies": ["hello"]}) as lab:
        done = lab.oneshot("hi there")
        assert lab.main_requests()[-1]["messages"][-1]["content"].startswith("hi there")

`python` is the interpreter of an environment that holds hermes-agent and this package; this file itself needs only
the standard library.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.lab.drive_agent import MARK
from tests.lab.mock_llm import MockServer, Script, text_of

DRIVER = Path(__file__).with_name("drive_agent.py")
PLUGIN = "hermes-memory"

# Hermes refuses windows below 64,000 tokens.
SMALLEST_WINDOW = 64_000

# How a compaction's own request to the model begins (0.13 to 0.19).
SUMMARY_REQUEST = "You are a summarization agent"


@dataclass
class Done:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


def merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """`base` with `extra` laid over it, key by key, at every depth."""
    merged = copy.deepcopy(base)
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


class Lab:
    """One mock server and one Hermes home.

    script    what the mock server answers (see mock_llm.py)
    plugins   names for plugins.enabled
    config    laid over the lab's own config.yaml
    memory    {"MEMORY.md": TEXT, "USER.md": TEXT}, placed in memories/
    profiles  more homes, below profiles/, with the same config
    """

    def __init__(
        self,
        python: str | Path,
        *,
        script: dict[str, Any] | Script | None = None,
        plugins: Sequence[str] = (PLUGIN,),
        config: dict[str, Any] | None = None,
        memory: dict[str, str] | None = None,
        profiles: Sequence[str] = (),
        env: dict[str, str] | None = None,
    ):
        self.python = Path(python)
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-lab-"))
        self.home = self.folder / "home" / ".hermes"
        self.work = self.folder / "work"
        self.work.mkdir()
        self.server = MockServer(script)
        self._env = env or {}
        self.config = merge(self._base_config(plugins), config or {})
        for home in (self.home, *(self.profile(name) for name in profiles)):
            home.mkdir(parents=True)
            # JSON is YAML too, so no YAML library is needed here.
            (home / "config.yaml").write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        for name, text in (memory or {}).items():
            path = self.home / "memories" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def profile(self, name: str) -> Path:
        """The home of a profile."""
        return self.home / "profiles" / name

    def _base_config(self, plugins: Sequence[str]) -> dict[str, Any]:
        return {
            "model": {
                "provider": "custom",
                "default": self.server.script.model,
                "base_url": self.server.base_url,
                "api_key": "lab-key",
                "context_length": SMALLEST_WINDOW,
            },
            "security": {"tirith_enabled": False},
            "memory": {"nudge_interval": 0},
            "skills": {"creation_nudge_interval": 0},
            "approvals": {"mode": "off"},
            "updates": {"check": False},
            "plugins": {
                "enabled": list(plugins),
                # A loaded machine is slow, and no test here is about time.
                "entries": {PLUGIN: {"settings": {"recall": {"deadline_ms": 10_000}}}},
            },
            "_config_version": 9999,
        }

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- running Hermes ----------------------------------------------------

    def environment(self) -> dict[str, str]:
        kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        env.update(
            HOME=str(self.folder / "home"),
            HERMES_HOME=str(self.home),
            PYTHONUNBUFFERED="1",
            NO_COLOR="1",
        )
        env.update(self._env)
        return env

    def run(self, command: list[str], timeout: float = 120) -> Done:
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment(),
            text=True,
            timeout=timeout,
            capture_output=True,
            check=False,
            input="",
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """The command in the background, in a process group of its own."""
        return subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment(),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def hermes(self, *args: str) -> list[str]:
        """`hermes ARGS...` as a command."""
        return [str(self.python), "-m", "hermes_cli.main", *args]

    def cli(self, *args: str) -> Done:
        """`hermes ARGS...`"""
        return self.run(self.hermes(*args))

    def chat(self, query: str, *args: str) -> Done:
        """`hermes chat -q QUERY`, which prints the answer and a session id."""
        return self.cli("chat", "-q", query, "--quiet", *args)

    def oneshot(self, query: str, *args: str) -> Done:
        """`hermes -z QUERY`, which prints the answer alone and ends with a hard exit."""
        return self.cli("-z", query, *args)

    def memory(self, *args: str) -> Done:
        """`hermes-memory --home HOME ARGS...`, under the same interpreter."""
        code = "import sys; from hermes_memory_plugin.cli import main; sys.exit(main())"
        return self.run([str(self.python), "-c", code, "--home", str(self.home), *args])

    def agent(self, turns: Sequence[str | dict[str, Any]], **options: Any) -> dict[str, Any]:
        """Run the turns on an in-process AIAgent; see drive_agent.py."""
        spec = self.folder / "turns.json"
        spec.write_text(json.dumps({"turns": list(turns), **options}), encoding="utf-8")
        done = self.run([str(self.python), str(DRIVER), str(spec)], timeout=300)
        if MARK not in done.stdout:
            raise RuntimeError(f"the agent did not finish:\n{done.stdout}\n{done.stderr}")
        result: dict[str, Any] = json.loads(done.stdout.split(MARK, 1)[1])
        result["code"] = done.code
        result["stdout"], result["stderr"] = done.stdout.split(MARK, 1)[0], done.stderr
        return result

    def gateway(self) -> Gateway:
        """`hermes gateway run` with its HTTP API; use it as a context manager."""
        return Gateway(self)

    # -- looking at what was sent --------------------------------------------

    def requests(self) -> list[dict[str, Any]]:
        """Every request body the mock server got, oldest first."""
        return self.server.requests()

    def main_requests(self) -> list[dict[str, Any]]:
        """Those of the agent itself: they carry tools, side jobs do not."""
        return [body for body in self.requests() if body.get("tools")]


class Gateway:
    """A running gateway process, talked to through its OpenAI-like HTTP API.

    The environment needs aiohttp next to hermes-agent for it.
    """

    KEY = "lab-gateway-key-0123456789abcdef"

    def __init__(self, lab: Lab):
        self._lab = lab
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        env = self._lab.environment()
        server = {
            "API_SERVER_ENABLED": "true",
            "API_SERVER_KEY": self.KEY,
            "API_SERVER_PORT": str(self._port),
        }
        env.update(server)
        # A gateway that serves several profiles takes secrets from the home's own file.
        lines = (f"{name}={value}\n" for name, value in server.items())
        (self._lab.home / ".env").write_text("".join(lines), encoding="utf-8")
        with (self._lab.folder / "gateway.log").open("w") as log:
            self._process = subprocess.Popen(
                self._lab.hermes("gateway", "run"),
                cwd=self._lab.work,
                env=env,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_up()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def log(self) -> str:
        """What it printed."""
        return (self._lab.folder / "gateway.log").read_text(encoding="utf-8", errors="replace")

    def _wait_until_up(self, timeout: float = 60) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=2).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        self.__exit__()
        raise RuntimeError(self.log())

    def post(self, text: str, session_id: str = "", *, profile: str = "") -> tuple[str, str]:
        """Send one user message; returns (answer, session id).

        With a session id the gateway takes the history from its own database.
        """
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.KEY}"}
        if session_id:
            headers["X-Hermes-Session-Id"] = session_id
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": text}]}
        prefix = f"/p/{profile}" if profile else ""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{prefix}/v1/chat/completions", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = json.loads(response.read())["choices"][0]["message"]["content"]
            return answer, response.headers.get("X-Hermes-Session-Id", "")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def summary_rule(text: str) -> dict[str, Any]:
    """A script rule that answers every compaction's request for a summary."""
    return {"match": SUMMARY_REQUEST, "where": "last", "reply": {"content": text}}


def last_user(body: dict[str, Any]) -> str:
    """The text of the last user message of a request."""
    return next(
        (text_of(m.get("content")) for m in reversed(body.get("messages") or []) if m.get("role") == "user"),
        "",
    )


def common_prefix(one: dict[str, Any], other: dict[str, Any]) -> int:
    """How many leading messages two requests share, byte for byte: what a provider's prompt cache can reuse."""
    count = 0
    for left, right in zip(one.get("messages") or [], other.get("messages") or [], strict=False):
        if json.dumps(left, sort_keys=True) != json.dumps(right, sort_keys=True):
            break
        count += 1
    return count
