"""Arguments that cannot be meant are refused, in words that fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_hookspecs import Fact
from hermes_memory_plugin import Memory
from hermes_memory_plugin.layers.facts import BadFact

from .conftest import Command


def test_a_home_and_a_profile_together_are_refused(cli: Command, home: Path) -> None:
    (home / "profiles" / "work").mkdir(parents=True)
    for name in ("work", "nosuch", "default"):
        ran = cli("status", "--profile", name)
        assert ran.code == 2
        assert "--home and --profile" in ran.err
    assert not (home / "memory").exists()


def test_a_profile_is_below_the_root_and_an_unknown_one_is_refused(cli: Command, home: Path) -> None:
    (home / "profiles" / "work").mkdir(parents=True)
    assert cli.process("remember", "长江电力 股息率 3.6%", "--profile", "work").code == 0
    assert (home / "profiles" / "work" / "memory").is_dir()
    assert not (home / "memory").exists()
    ran = cli.process("status", "--profile", "wrok")
    assert (ran.code, "Did you mean work?" in ran.err) == (2, True)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_a_figure_is_a_finite_number(cli: Command, value: str) -> None:
    ran = cli("remember", "茅台 市盈率", f"--value={value}")
    assert ran.code == 2
    assert "a finite number" in ran.err
    assert cli("recall", "茅台 市盈率").code == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_the_facade_refuses_it_too(home: Path, value: float) -> None:
    with Memory.open(home) as memory:
        with pytest.raises(BadFact, match="a finite number"):
            memory.remember("茅台 市盈率", value=value)
        with pytest.raises(BadFact, match="a finite number"):
            memory.remember_many([Fact(id="", statement="茅台 市盈率", value=value)])


@pytest.mark.parametrize(
    "words",
    [("recall", "茅台", "--now", "foo"), ("trace", "--since", "foo"), ("trace", "--until", "2026-02-30")],
)
def test_a_date_that_is_none_is_a_usage_error(cli: Command, words: tuple[str, ...]) -> None:
    ran = cli(*words)
    assert ran.code == 2
    assert words[-1] in ran.err
    assert "is no date" in ran.err
    assert "remember" not in ran.err.removeprefix("hermes-memory:")


def test_a_date_of_any_form_is_taken(cli: Command) -> None:
    cli("remember", "长江电力 股息率 3.6%")
    assert cli("recall", "长江电力 股息率", "--now", "2026/5/7").code == 0
    assert cli("trace", "--since", "20260507", "--until", "2026-05-08T01:00").code == 1


def test_a_sentence_ends_once(cli: Command) -> None:
    assert cli("forget", "zz").out.rstrip().endswith("a title.")
    cli("remember", "比亚迪 四月销量 41.3 万辆", "--owner", "telegram:1")
    assert ".." not in cli("forget", "zz").out
