"""`hermes-memory web` as a process of its own, while another one writes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from hermes_memory_plugin import Memory

pytestmark = pytest.mark.slow


def test_the_first_line_is_an_address_that_shows_what_others_write(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hermes_memory_plugin.cli", "--home", str(tmp_path), "web"]
    with (
        Memory.open(tmp_path) as writer,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            address = httpx.URL(server.stdout.readline().strip())
            assert address.host == "127.0.0.1" and len(address.params["token"]) >= 32
            assert httpx.get(address.copy_with(query=None), timeout=60).status_code == 401
            with httpx.Client(follow_redirects=True, timeout=60) as browser:
                assert browser.get(address).status_code == 200
                writer.remember("茅台 PE 28.1 倍", subject="600519.SH", metric="pe", value=28.1)
                deadline = time.monotonic() + 60
                while "茅台 PE 28.1 倍" not in browser.get(address.join("/facts")).text:
                    assert time.monotonic() < deadline
                    writer.flush()
        finally:
            server.terminate()
        _, errors = server.communicate(timeout=60)
    assert "Traceback" not in errors and address.params["token"] not in errors


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "hermes_memory_plugin.cli",
                "--home",
                str(tmp_path),
                "web",
                "--port",
                port,
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 2 and port in done.stderr and done.stderr.count("\n") == 1
