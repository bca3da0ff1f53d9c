"""Turning the plugin on and off edits one list in config.yaml and nothing else."""

from __future__ import annotations

import difflib
import json
import stat
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.hermes.enable import NAME, ConfigNotEdited, disable, enable, is_enabled

LIVED_IN = """\
# My Hermes. Do not touch the order!
model:
  default: "gpt-x"   # the expensive one
  provider: custom
  base_url: 'http://localhost:8000/v1'
  context_length: 200_000

terminal:
    cwd: ~/work      # four spaces, on purpose
    env: [A, B]
version: 0o17
on_call: yes
note: >
  folded text
  goes on
long: "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十 and words and words"
base: &base {x: 1}
derived:
  <<: *base
  y: 2
plugins:
  # plugins I tried
  enabled:
    - disk-cleanup  # keep
    - "lab-probe"
  disabled:
    - hermes-memory   # for now
  entries:
    hermes-memory:
      settings:
        recall.share: 0.1   # mine
"""


def _config(home: Path, text: str) -> Path:
    path = home / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _changed_lines(before: str, after: str) -> list[str]:
    diff = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in diff if line[:1] in "+-"]


def test_everything_else_in_a_lived_in_file_stays_as_it_was(tmp_path: Path) -> None:
    path = _config(tmp_path, LIVED_IN)
    change = enable(tmp_path)
    after = path.read_text(encoding="utf-8")
    assert change.changed
    assert change.backup is not None
    assert change.backup.read_text(encoding="utf-8") == LIVED_IN
    lines = _changed_lines(LIVED_IN, after)
    assert all("hermes-memory" in line or "disabled" in line or "# for now" in line for line in lines), lines
    assert "    - hermes-memory" in after.splitlines()
    assert is_enabled(tmp_path)
    for comment in (
        "# keep",
        "# plugins I tried",
        "# the expensive one",
        "# four spaces, on purpose",
        "# mine",
        "# for now",
    ):
        assert comment in after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "model: x\n",
        "model: x",
        "plugins:\n",
        "plugins: {}\n",
        "plugins:\n  enabled:\n",
        "plugins:\n  enabled: []\n",
        "plugins:\n  enabled: [a, 'b']  # mine\n",
        "plugins:\n  enabled:\n  - a\n",
        "plugins:\n  enabled:\n  - a\n  disabled: [hermes-memory]\nz: 1\n",
        "plugins: {enabled: [a], disabled: [hermes-memory, hermes-memory]}\n",
        "---\nplugins:\n  entries: {}\n",
        "\ufeffmodel: x\n",
        "model: x\r\nplugins:\r\n  enabled:\r\n  - a\r\n",
        "{}",
        '{"model": {"default": "m"}, "plugins": {"enabled": ["a"]}}',
        '{\n  "model": "茅台",\n  "plugins": {\n    "enabled": []\n  }\n}\n',
        "{model: x, plugins: {enabled: [a]}}\n",
        "plugins: ~\n",
        "plugins:\n  enabled: null # none yet\n",
        "plugins:\n  enabled:\n  - hermes-memory\n  disabled:\n  - hermes-memory\n",
        "plugins: {disabled: [x, hermes-memory, y]}\n",
        "a: 1\na: 2\nplugins:\n  enabled: [\n    a,  # one\n    b\n  ]\n",
        "plugins:\n    # mine\n    entries: {}\n\nz: |\n  text\n",
        "plugins:\n  enabled:\n  - a\n  - b",
    ],
)
def test_on_and_off_again_changes_nothing_but_the_list(tmp_path: Path, text: str) -> None:
    path = _config(tmp_path, text)
    before = yaml.safe_load(text) or {}
    assert enable(tmp_path).changed
    on = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert on["plugins"]["enabled"][-1] == NAME
    assert NAME not in (on["plugins"].get("disabled") or [])
    assert {key: value for key, value in on.items() if key != "plugins"} == {
        key: value for key, value in before.items() if key != "plugins"
    }
    assert not enable(tmp_path).changed
    assert disable(tmp_path).changed
    off = yaml.safe_load(path.read_text(encoding="utf-8"))
    plugins = before.get("plugins") or {}
    assert off["plugins"]["enabled"] == [name for name in plugins.get("enabled") or [] if name != NAME]
    assert not disable(tmp_path).changed
    if "\r\n" in text:
        assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n")
    if text.startswith("{") and '"' in text:
        json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[\n a, # first\n hermes-memory, # mine\n b # second\n]", "[\n a, # first\n # mine\n b # second\n]"),
        ("[\n a, # first\n b, # second\n hermes-memory # mine\n]", "[\n a, # first\n b # second\n # mine\n]"),
        ("[\n a, # first\n b, hermes-memory # second\n]", "[\n a, # first\n b # second\n]"),
        ("[\n a,\n hermes-memory,\n b,\n]", "[\n a,\n b,\n]"),
        ("[\n a,\n hermes-memory\n]", "[\n a\n]"),
        ("[\n hermes-memory # mine\n]", "[\n # mine\n]"),
        ("[hermes-memory, # mine\n a]", "[ # mine\n a]"),
        ("[a # one\n , hermes-memory # two\n , b]", "[a # one\n ,  # two\n  b]"),
        ("\n  - a # one\n  - hermes-memory # mine\n  - b", "\n  - a # one\n  # mine\n  - b"),
        ("\n  - hermes-memory # mine", " []\n  # mine"),
    ],
)
def test_comments_inside_a_list_stay(tmp_path: Path, before: str, after: str) -> None:
    path = _config(tmp_path, f"plugins:\n enabled: {before}\nz: 1\n".replace(": \n", ":\n"))
    assert disable(tmp_path).changed
    assert path.read_text() == f"plugins:\n enabled: {after}\nz: 1\n".replace(": \n", ":\n").replace(
        ":  [", ": ["
    )


@given(
    names=st.lists(st.sampled_from(["a", "b-c", "hermes-memory", "'d'"]), max_size=5),
    gaps=st.lists(st.sampled_from(["", " ", "\n   ", " # note\n   ", "\n   # own line\n   "]), min_size=12, max_size=12),
    trailing=st.booleans(),
    key=st.sampled_from(["enabled", "disabled"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_comment_of_any_flow_list_is_lost(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], gaps: list[str], trailing: bool, key: str
) -> None:
    inner = gaps[0]
    for number, name in enumerate(names):
        comma = "," if trailing or number < len(names) - 1 else ""
        inner += name + gaps[1 + 2 * number] + comma + gaps[2 + 2 * number]
    home = tmp_path_factory.mktemp("home")
    text = f"plugins:\n  {key}: [{inner}]\n"
    path = _config(home, text)
    try:
        yaml.safe_load(text)
        (disable if key == "enabled" else enable)(home)
    except (yaml.YAMLError, ConfigNotEdited):
        assert path.read_text() == text
        return
    assert path.read_text().count("#") == text.count("#")


def test_a_missing_file_is_made_without_a_backup(tmp_path: Path) -> None:
    change = enable(tmp_path)
    assert change.backup is None
    assert yaml.safe_load(change.path.read_text()) == {"plugins": {"enabled": [NAME]}}
    assert stat.S_IMODE(change.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "plugins: [hermes-memory]\n",
        "plugins: yes please\n",
        "plugins:\n  enabled: hermes\n",
        "plugins:\n  disabled: {a: 1}\n  enabled: []\n",
        "- just\n- a list\n",
        "just words\n",
        "model: [unclosed\n",
        "a: 1\n\tb: 2\n",
        "a: 1\n---\nb: 2\n",
        "a: !!python/object:os.system x\n",
        '{"plugins": {"enabled": ["a"}}',
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_untouched(tmp_path: Path, text: str) -> None:
    path = _config(tmp_path, text)
    with pytest.raises(ConfigNotEdited) as error:
        enable(tmp_path)
    assert path.read_bytes() == text.encode()
    assert [one.name for one in tmp_path.iterdir()] == ["config.yaml"]
    assert str(path) in str(error.value)
    assert "left untouched" in str(error.value)


def test_a_file_that_is_not_utf8_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes("model: 贵州茅台酒\n".encode("gb18030"))
    with pytest.raises(ConfigNotEdited, match="UTF-8"):
        enable(tmp_path)


def test_a_profile_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigNotEdited, match="no Hermes home"):
        enable(tmp_path / "profiles" / "typo")
    assert list(tmp_path.iterdir()) == []


def test_links_and_modes_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("model: x\n")
    real.chmod(0o640)
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").symlink_to(real)
    enable(home)
    assert (home / "config.yaml").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert NAME in real.read_text()


def test_two_backups_of_one_second_are_both_kept(tmp_path: Path) -> None:
    _config(tmp_path, "model: x\n")
    backups = {change.backup for change in (enable(tmp_path), disable(tmp_path), enable(tmp_path))}
    assert len(backups) == 3
    assert None not in backups


_words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(
    config=st.dictionaries(_words, _values, max_size=4),
    names=st.lists(_words, max_size=3),
    flow=st.booleans(),
)
def test_any_config_keeps_its_other_values(
    tmp_path_factory: pytest.TempPathFactory, config: dict[str, object], names: list[str], flow: bool
) -> None:
    home = tmp_path_factory.mktemp("home")
    config["plugins"] = {"enabled": names, "other": config.get("plugins")}
    text = yaml.safe_dump(config, allow_unicode=True, default_flow_style=flow)
    path = _config(home, text)
    before = yaml.safe_load(text)
    enable(home)
    after = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert after["plugins"].pop("enabled") == [*names, NAME] if NAME not in names else names
    before["plugins"].pop("enabled")
    assert after == before
