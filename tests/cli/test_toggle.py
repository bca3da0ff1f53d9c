"""enable and disable write one profile's config.yaml and say what is missing."""

from __future__ import annotations

from pathlib import Path

from .conftest import Command

CONFIG = "# mine\nmodel: {default: x}  # keep\nplugins:\n  enabled:\n  - other\n"


def test_enable_keeps_comments_writes_a_backup_and_disable_takes_it_back(cli: Command, home: Path) -> None:
    config = home / "config.yaml"
    config.write_text(CONFIG)
    on = cli("enable", "--json")
    assert on.code == 0
    assert on.json["changed"] is True
    assert Path(on.json["backup"]).read_text() == CONFIG
    assert "# mine" in config.read_text()
    assert "hermes-memory" in config.read_text()
    assert cli("--json", "enable").json["changed"] is False
    off = cli("disable")
    assert off.code == 0
    assert "Disabled" in off.out
    assert "hermes-memory" not in config.read_text()
    assert "- other" in config.read_text()


def test_a_config_that_cannot_be_edited_is_left_alone_and_named(cli: Command, home: Path) -> None:
    (home / "config.yaml").write_text("plugins: [")
    ran = cli("enable")
    assert ran.code == 4
    assert ran.err.count("\n") == 1
    assert "config.yaml" in ran.err
    assert (home / "config.yaml").read_text() == "plugins: ["


def test_enable_of_one_profile_leaves_the_others(cli: Command, home: Path) -> None:
    for name in ("coder", "fund"):
        (home / "profiles" / name).mkdir(parents=True)
    assert cli.process("--profile", "fund", "enable").code == 0
    assert "hermes-memory" in (home / "profiles" / "fund" / "config.yaml").read_text()
    assert not (home / "profiles" / "coder" / "config.yaml").exists()
    assert not (home / "config.yaml").exists()
