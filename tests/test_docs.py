"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_memory_plugin.cli import main
from hermes_memory_plugin.settings import table

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- settings:begin -->", "<!-- settings:end -->"


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_settings_table_is_the_generated_one(name: str) -> None:
    """After a change of settings: python -m tests.test_docs"""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == table().strip()


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_verb_is_in_the_command_reference(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)", text, re.MULTILINE)) | {"disable"}
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.split("Commands:")[1]
    verbs = set(re.findall(r"^  (\w+) {2,}", listed, re.MULTILINE))
    assert "recall" in verbs and verbs <= documented


def update() -> None:
    """Put the generated table into both documents."""
    for name in ("README.md", "README.zh-CN.md"):
        path = ROOT / name
        head, rest = path.read_text(encoding="utf-8").split(BEGIN)
        path.write_text(f"{head}{BEGIN}\n{table().strip()}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    update()
