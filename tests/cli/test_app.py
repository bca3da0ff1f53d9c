"""The command as a whole: help, mistakes, exit codes, one way to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_plugin import errors
from hermes_memory_plugin.cli.app import BUSY, DAMAGED, NOTHING, USAGE, exit_code
from hermes_memory_plugin.home import HomeUnwritable
from hermes_memory_plugin.layers.facts import BadFact
from hermes_memory_plugin.owners import PairingRefused, RegistryUnusable
from hermes_memory_plugin.store.locks import LockBusy

from .conftest import Command

VERBS = (
    "demo",
    "status",
    "doctor",
    "remember",
    "recall",
    "forget",
    "trace",
    "why",
    "owners",
    "enable",
    "disable",
)


def test_help_names_every_verb_and_every_exit_code(cli: Command) -> None:
    ran = cli("--help")
    assert ran.code == 0
    assert all(f"\n  {verb} " in ran.out for verb in VERBS)
    for code in ("0 done", "1 nothing found", "2 the command", "3 the memory is", "4 a file", "70 a fault"):
        assert code in " ".join(ran.out.split())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_takes_json(cli: Command, verb: str) -> None:
    ran = cli(verb, "--help")
    assert ran.code == 0
    assert "--json" in ran.out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from hermes_memory_plugin.cli import main; main(['--help']);"
        "heavy = {'duckdb', 'numpy', 'jieba', 'rjieba', 'rich', 'pydantic', 'yaml', 'ruamel'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("recal", "recall"), ("Status", "status"), ("rember", "remember"), ("doctr", "doctor")],
)
def test_a_mistyped_verb_is_guessed(cli: Command, typed: str, meant: str) -> None:
    ran = cli(typed)
    assert (ran.code, ran.out) == (USAGE, "")
    assert f"did you mean {meant}?" in ran.err
    assert ran.err.count("\n") == 1


def test_a_mistyped_verb_of_a_group_is_guessed(cli: Command) -> None:
    assert "did you mean link?" in cli("owners", "lnik").err


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense-verb",),
        ("recall",),
        ("recall", "x", "--mode", "wrong"),
        ("recall", "x", "--limit", "0"),
        ("recall", "x", "--owner", "not an owner"),
        ("remember", "x", "--value", "many"),
        ("remember", "x", "--as-of", "2026-02-30"),
        ("remember", "x", "--owner", "any"),
        ("remember", " "),
        ("trace", "--since", "yesterday-ish"),
        ("status", "--profile", "nobody"),
        ("owners", "unlink", "no owner"),
        ("--owner", "", "status"),
        ("--no-such-option",),
    ],
)
def test_a_command_that_cannot_be_understood_is_one_line_and_exit_two(
    cli: Command, words: tuple[str, ...]
) -> None:
    ran = cli(*words) if "--profile" not in words else cli.process(*words)
    assert (ran.code, ran.out) == (USAGE, "")
    assert ran.err.startswith("hermes-memory: ")
    assert ran.err.count("\n") == 1
    as_json = cli("--json", *words) if "--profile" not in words else cli.process("--json", *words)
    assert (as_json.code, as_json.err) == (USAGE, "")
    assert as_json.json["ok"] is False
    assert as_json.json["error"]["message"]


def test_a_home_that_does_not_exist_is_not_made(cli: Command, tmp_path: Path) -> None:
    cli.home = tmp_path / "typo"
    ran = cli("status")
    assert ran.code == USAGE
    assert str(tmp_path / "typo") in ran.err
    assert not (tmp_path / "typo").exists()


def test_a_home_that_cannot_be_written_is_exit_four(cli: Command, home: Path) -> None:
    (home / "memory").write_text("in the way")
    ran = cli("remember", "x")
    assert (ran.code, ran.out) == (DAMAGED, "")
    assert str(home / "memory") in ran.err
    assert cli("doctor", "--json").code == DAMAGED


def test_a_reader_that_leaves_early_is_no_fault(cli: Command) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_memory_plugin.cli", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(30)


def test_the_console_script_is_the_same_command(home: Path) -> None:
    script = Path(sys.executable).with_name("hermes-memory")
    run = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert "hermes-memory" in run.stdout


CODES = [
    (errors.NotFound("x"), NOTHING),
    (PairingRefused("local", "wrong"), NOTHING),
    (BadFact("as_of", "x", "a date"), USAGE),
    (errors.LedgerBusy(Path("x"), 1.0), BUSY),
    (LockBusy(Path("x"), 1.0, ""), BUSY),
    (errors.LedgerCorrupt(Path("x"), "torn"), DAMAGED),
    (errors.LedgerNewer(Path("x"), 2, 1), DAMAGED),
    (errors.JournalWriteFailed(Path("x"), "full"), DAMAGED),
    (HomeUnwritable(Path("x"), "read-only"), DAMAGED),
    (RegistryUnusable(Path("x"), "torn", "link again"), DAMAGED),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=[type(error).__name__ for error, _ in CODES])
def test_each_kind_of_trouble_has_its_exit_code(error: errors.HermesMemoryError, code: int) -> None:
    assert exit_code(error) == code
