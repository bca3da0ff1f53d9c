"""Hermes' memory files: read as Hermes reads them, written as it writes them, or not at all."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.layers.persona import DELIMITER, Persona, PersonaRefused, entries_of
from hermes_memory_plugin.store.files import UnsafePath
from hermes_memory_plugin.store.locks import LockBusy


@pytest.fixture
def persona(home: Path) -> Persona:
    (home / "memories").mkdir()
    return Persona(home)


def put(persona: Persona, text: str | bytes, name: str = "MEMORY.md") -> Path:
    path = persona.folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_entries_are_separated_stripped_and_told_once(persona: Persona) -> None:
    put(persona, "a\n§\n  b \n§\n\n§\na\n§\n§ in a line § stays")
    assert persona.read("memory").entries == ("a", "b", "§ in a line § stays")


def test_the_snapshot_has_the_users_entries_first_and_200_lines(persona: Persona) -> None:
    put(persona, DELIMITER.join(f"{number}\nx" for number in range(150)))
    put(persona, "用户偏好", "USER.md")
    found = persona.snapshot()
    assert found[0] == "用户偏好" and len(found) == 100
    assert sum(entry.count("\n") + 1 for entry in found) <= 200


def test_limits_and_switches_come_from_the_config_of_the_host(persona: Persona, home: Path) -> None:
    assert (persona.limit("memory"), persona.limit("user"), persona.shown("memory")) == (2_200, 1_375, True)
    config = {"memory": {"memory_char_limit": 500, "user_profile_enabled": False}}
    (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    assert (persona.limit("memory"), persona.limit("user"), persona.shown("user")) == (500, 1_375, False)
    (home / "config.yaml").write_text("memory: {memory_char_limit: [}", encoding="utf-8")
    assert persona.limit("memory") == 2_200


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=30), max_size=6))
def test_whatever_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, entries: list[str]
) -> None:
    persona = Persona(tmp_path_factory.mktemp("home"))
    with persona.changing("memory") as pages:
        try:
            persona.write(pages["memory"], entries)
        except PersonaRefused:
            assert any("§" in entry for entry in entries)
            return
        except UnicodeEncodeError:
            assert any(not entry.isprintable() for entry in entries)
            return
    wanted = tuple(dict.fromkeys(entry.strip().replace("\r\n", "\n") for entry in entries if entry.strip()))
    assert persona.read("memory").entries == wanted
    assert entries_of(DELIMITER.join(wanted)) == list(wanted)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\n§\n\n§\nb", "separated"),
        ("x" * 2_300, "longer than the limit"),
        (b"\xff\xfe\x00 not text", "UTF-8"),
    ],
)
def test_a_file_of_a_foreign_format_is_read_and_never_written(
    persona: Persona, text: str | bytes, why: str
) -> None:
    path = put(persona, text)
    before = path.read_bytes()
    with persona.changing("memory") as pages:
        if why == "separated":  # empty entries are all Hermes itself forgives
            assert pages["memory"].entries == ("a", "b")
            return
        assert why in pages["memory"].foreign
        with pytest.raises(PersonaRefused, match=why):
            persona.write(pages["memory"], ["a"])
    assert path.read_bytes() == before


def test_a_file_over_its_limit_may_only_shrink(persona: Persona) -> None:
    path = put(persona, DELIMITER.join(f"{number:03}" + "字" * 97 for number in range(30)))
    with persona.changing("memory") as pages:
        full = pages["memory"]
        assert full.share > 1 and not full.foreign
        with pytest.raises(PersonaRefused, match="allows 2,200"):
            persona.write(full, [*full.entries, "noch eins"])
        left = persona.write(full, full.entries[:28])
    assert len(left.entries) == 28 and path.read_text(encoding="utf-8").count("§") == 27


def test_the_lock_is_the_one_hermes_takes(persona: Persona) -> None:
    with (persona.folder / "MEMORY.md.lock").open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockBusy), persona.changing("memory", wait=0.05):
            pass
        fcntl.flock(held, fcntl.LOCK_UN)
        with persona.changing("memory"), pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_link_out_of_the_home_is_neither_read_nor_written(persona: Persona, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("secret", encoding="utf-8")
    (persona.folder / "MEMORY.md").symlink_to(outside)
    with persona.changing("memory") as pages:
        assert pages["memory"].entries == ()
        with pytest.raises((UnsafePath, PersonaRefused)):
            persona.write(pages["memory"], ["a"])
    assert outside.read_text(encoding="utf-8") == "secret"


def test_permissions_stay_as_they_are(persona: Persona) -> None:
    path = put(persona, "a")
    path.chmod(0o640)
    with persona.changing("memory") as pages:
        persona.write(pages["memory"], ["a", "b"])
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in persona.folder.iterdir() if one.name.startswith(".mem_")] == []
