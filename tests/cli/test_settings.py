"""Settings: a bad key costs that key its value, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hermes_memory_plugin import settings
from hermes_memory_plugin.errors import SettingsError


def write(home: Path, raw: object, *, under: str = "settings") -> Path:
    path = home / "config.yaml"
    path.write_text(
        yaml.safe_dump({"plugins": {"entries": {"hermes-memory": {under: raw}}}}), encoding="utf-8"
    )
    return path


BAD = [
    ({"recall": {"share": 1.5}}, "recall.share", "from 0 to 1"),
    ({"recall": {"share": -0.1}}, "recall.share", "from 0 to 1"),
    ({"recall": {"share": float("nan")}}, "recall.share", "from 0 to 1"),
    ({"recall": {"share": "0.15"}}, "recall.share", "a number from 0 to 1"),
    ({"recall": {"share": None}}, "recall.share", "a number from 0 to 1"),
    ({"recall": {"enabled": "yes"}}, "recall.enabled", "true or false"),
    ({"recall": {"enabled": 1}}, "recall.enabled", "true or false"),
    ({"recall": {"deadline_ms": 0.4}}, "recall.deadline_ms", "a whole number from 20 to 10,000"),
    ({"recall": {"deadline_ms": True}}, "recall.deadline_ms", "a whole number"),
    ({"recall": {"max_facts": [8]}}, "recall.max_facts", "a whole number"),
    ({"recall": 5}, "recall", "share"),
    ({"recall": None}, "recall", "share"),
    ({"recall.share": 2}, "recall.share", "from 0 to 1"),
    ({"recall": {"shrae": 0.2}}, "recall.shrae", "recall.share"),
    ({"recal": {"share": 0.2}}, "recal", "recall"),
    ({"share": 0.2}, "share", "recall.share"),
    ({"standing": {"max_tokens": 10**9}}, "standing.max_tokens", "4,000"),
    ({"journal": {"rotate_mb": 0}}, "journal.rotate_mb", "from 1 to"),
    ({1: 2}, "1", "recall.share"),
    ({"recall": {None: 2}}, "recall.None", "recall."),
    ([1, 2], "settings", "a mapping"),
    ("0.15", "settings", "a mapping"),
]


@pytest.mark.parametrize(("raw", "key", "says"), BAD, ids=[str(raw) for raw, _, _ in BAD])
def test_a_bad_key_is_named_with_what_is_allowed_and_its_default_stands(
    tmp_path: Path, raw: object, key: str, says: str
) -> None:
    write(tmp_path, raw)
    found, errors = settings.load(tmp_path)
    assert found == settings.Settings()
    assert [error.key for error in errors] == [key]
    assert says in str(errors[0])
    assert key in str(errors[0])
    assert says in f"{errors[0].allowed} {errors[0]}"


def test_good_keys_beside_bad_ones_are_used(tmp_path: Path) -> None:
    write(tmp_path, {"recall": {"share": 3, "later_share": 0.02, "nonsense": 1}, "journal": {"rotate_mb": 8}})
    found, errors = settings.load(tmp_path)
    assert (found.recall.share, found.recall.later_share, found.journal.rotate_mb) == (0.15, 0.02, 8)
    assert sorted(error.key for error in errors) == ["recall.nonsense", "recall.share"]


def test_the_bounds_themselves_are_allowed(tmp_path: Path) -> None:
    write(tmp_path, {"recall": {"share": 1, "later_share": 0}})
    found, errors = settings.load(tmp_path)
    assert (found.recall.share, found.recall.later_share, errors) == (1, 0, [])


def test_a_value_is_shown_and_a_long_one_cut(tmp_path: Path) -> None:
    write(tmp_path, {"recall": {"share": "x" * 5_000}})
    _, errors = settings.load(tmp_path)
    assert "xxx" in str(errors[0])
    assert len(str(errors[0])) < 400


def test_the_legacy_place_is_read_and_the_new_one_wins(tmp_path: Path) -> None:
    entry = {"config": {"recall": {"share": 0.1, "max_facts": 3}}, "settings": {"recall": {"share": 0.2}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"plugins": {"entries": {"hermes-memory": entry}}}))
    found, errors = settings.load(tmp_path)
    assert (found.recall.share, found.recall.max_facts, errors) == (0.2, 3, [])
    write(tmp_path, {"recall": {"max_facts": 4}}, under="config")
    assert settings.load(tmp_path)[0].recall.max_facts == 4


@pytest.mark.parametrize(
    "config",
    [
        {},
        None,
        [],
        {"plugins": None},
        {"plugins": {"entries": []}},
        {"plugins": {"entries": {"hermes-memory": None}}},
    ],
)
def test_a_config_that_does_not_speak_of_us_means_defaults(tmp_path: Path, config: object) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert settings.load(tmp_path) == (settings.Settings(), [])


def test_no_config_means_defaults(tmp_path: Path) -> None:
    assert settings.load(tmp_path / "nowhere") == (settings.Settings(), [])


@pytest.mark.parametrize(
    "content",
    [
        b"plugins: {entries: [",
        b"a: b: c",
        b"\x00\x01\x02",
        b"\xff\xfe\xfa",
        "plugins: '\ud800'".encode("utf-8", "surrogatepass"),
        b"- " * 20_000 + b"[" * 20_000,
    ],
    ids=["open", "colons", "nul", "half-utf16", "surrogate", "deep"],
)
def test_a_config_that_cannot_be_read_means_defaults_and_one_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    found, errors = settings.load(tmp_path)
    assert found == settings.Settings()
    assert len(errors) == 1
    assert str(tmp_path / "config.yaml") in str(errors[0])


def test_a_folder_for_a_config_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    found, errors = settings.load(tmp_path)
    assert found == settings.Settings()
    assert isinstance(errors[0], settings.ConfigUnreadable)


def test_an_alias_bomb_is_reported_short(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    lines += ["plugins: {entries: {hermes-memory: {settings: {recall: {share: *a9}}}}}"]
    (tmp_path / "config.yaml").write_text("\n".join(lines), encoding="utf-8")
    _, errors = settings.load(tmp_path)
    assert errors[0].key == "recall.share"
    assert len(str(errors[0])) < 300


def test_a_config_that_contains_itself_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "plugins: {entries: {hermes-memory: {settings: &s {recall: *s}}}}", encoding="utf-8"
    )
    found, errors = settings.load(tmp_path)
    assert found == settings.Settings()
    assert errors


def test_an_unchanged_file_is_read_once_and_a_changed_one_again(tmp_path: Path) -> None:
    path = write(tmp_path, {"recall": {"share": 0.11}})
    first = settings.load(tmp_path)
    assert settings.load(tmp_path)[0] is first[0]
    write(tmp_path, {"recall": {"share": 0.12}})  # the same size
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))
    assert settings.load(tmp_path)[0].recall.share == 0.12
    path.unlink()
    assert settings.load(tmp_path)[0].recall.share == 0.15


def test_two_homes_do_not_share_settings(tmp_path: Path) -> None:
    for name, share in (("a", 0.1), ("b", 0.2)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, {"recall": {"share": share}})
    assert [settings.load(tmp_path / name)[0].recall.share for name in ("a", "b", "a")] == [0.1, 0.2, 0.1]


def test_settings_cannot_be_changed_by_who_reads_them(tmp_path: Path) -> None:
    found, _ = settings.load(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        found.recall.share = 1.0


def test_the_table_names_every_setting_with_default_and_bounds() -> None:
    lines = settings.table().splitlines()
    assert len(lines) == 2 + len(list(settings.declared()))
    assert any(line.startswith("| `recall.share` | `0.15` | a number from 0 to 1 |") for line in lines)
    assert all(line.count("|") == 5 and not line.rstrip(" |").endswith("None") for line in lines)


def test_every_setting_is_used() -> None:
    package = Path(settings.__file__).parent
    sources = [
        path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.name != "settings.py"
    ]
    unused = [
        key
        for key, _ in settings.declared()
        if not any(f".{key.rpartition('.')[2]}" in source for source in sources)
    ]
    assert unused == []


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
sections = st.dictionaries(
    st.sampled_from([*settings.Settings.model_fields, "recall.share", "recall.", ".", ""])
    | st.text(max_size=6),
    st.dictionaries(
        st.sampled_from(["share", "enabled", "max_items", "rotate_mb"]) | st.integers(), json_like
    )
    | json_like,
    max_size=4,
)


@given(sections)
@hypothesis_settings(max_examples=150, deadline=None)
def test_any_mapping_gives_settings_and_named_errors(raw: dict[str, Any]) -> None:
    found, errors = settings.parse(raw)
    assert isinstance(found, settings.Settings)
    assert all(isinstance(error, SettingsError) and len(str(error)) < 1_000 for error in errors)
    assert len({error.key for error in errors}) == len(errors)


def test_loading_settings_imports_neither_hermes_nor_a_database(tmp_path: Path) -> None:
    code = (
        "import sys; from hermes_memory_plugin import settings; settings.load(sys.argv[1]);"
        "assert not {'duckdb', 'numpy', 'hermes_cli', 'rich', 'click'} & set(sys.modules)"
    )
    write(tmp_path, {"recall": {"share": 0.1}})
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
