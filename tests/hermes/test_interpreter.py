"""Finding the Python that runs Hermes, through scripts, links and wrappers, and the line that installs us there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_plugin.hermes import interpreter


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A folder that looks like a virtual environment; returns its python."""
    python = tmp_path / "ve nv" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_plain_shebang(tmp_path: Path) -> None:
    script = _script(tmp_path / "bin" / "hermes", f"#!{sys.executable}\nimport sys\n")
    assert interpreter.python_of(script) == Path(sys.executable)


def test_pips_own_form_for_long_or_odd_paths(tmp_path: Path, venv: Path) -> None:
    script = _script(
        tmp_path / "hermes", f"#!/bin/sh\n'''exec' \"{venv}\" \"$0\" \"$@\"\n' '''\nimport sys\n"
    )
    assert interpreter.python_of(script) == venv


def test_link_to_the_script_of_an_environment(tmp_path: Path) -> None:
    real = _script(tmp_path / "venvs" / "hermes-agent" / "bin" / "hermes", f"#!{sys.executable}\n")
    link = tmp_path / "bin" / "hermes"
    link.parent.mkdir()
    link.symlink_to(real)
    assert interpreter.python_of(link) == Path(sys.executable)


def test_wrapper_script_of_an_installer(tmp_path: Path) -> None:
    real = _script(tmp_path / "agent" / "venv" / "bin" / "hermes", f"#!{sys.executable}\n")
    wrapper = _script(
        tmp_path / "bin" / "hermes", f'#!/usr/bin/env bash\nunset PYTHONPATH\nexec "{real}" "$@"\n'
    )
    assert interpreter.python_of(wrapper) == Path(sys.executable)


@pytest.mark.parametrize(
    "text", ["", "not a script", "#!", "#!/bin/sh\necho hi\n", "#!/nowhere/python3\n", "\0\0\0"]
)
def test_what_is_no_hermes_script_answers_none(tmp_path: Path, text: str) -> None:
    assert interpreter.python_of(_script(tmp_path / "hermes", text)) is None


def test_wrapper_that_calls_itself_answers_none(tmp_path: Path) -> None:
    me = tmp_path / "hermes"
    assert interpreter.python_of(_script(me, f'#!/bin/sh\nexec "{me}" "$@"\n')) is None


def test_missing_command_answers_none(tmp_path: Path) -> None:
    assert interpreter.find(tmp_path / "hermes") is None


def test_this_environment_has_us() -> None:
    found = interpreter.find(Path(sys.executable).with_name("hermes"))
    assert found is not None
    assert found.ours
    assert found.install == ""


def test_environment_without_us_gets_its_exact_line(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    script = _script(bare / "bin" / "hermes", f"#!{bare / 'bin' / 'python'}\n")
    found = interpreter.find(script)
    assert found is not None
    assert not found.ours
    assert found.install.startswith(f"uv pip install --python {bare / 'bin' / 'python'} ")


@pytest.mark.parametrize(
    ("python", "pip", "line"),
    [
        ("/opt/h/venv/bin/python", True, "/opt/h/venv/bin/python -m pip install "),
        ("/opt/my h/bin/python", True, "'/opt/my h/bin/python' -m pip install "),
        ("/opt/h/venv/bin/python", False, "uv pip install --python /opt/h/venv/bin/python "),
        ("/root/.local/share/pipx/venvs/hermes-agent/bin/python", True, "pipx inject hermes-agent "),
        (
            "/root/.local/share/uv/tools/hermes-agent/bin/python",
            False,
            "uv tool install hermes-agent --with ",
        ),
    ],
)
def test_line_fits_the_way_hermes_was_installed(python: str, pip: bool, line: str) -> None:
    assert interpreter.install_line(Path(python), has_pip=pip).startswith(line)
