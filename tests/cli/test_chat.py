"""`/memory-layers VERB`: short plain answers, and no way to another owner's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli.chat import LONGEST, answer
from hermes_memory_plugin.hermes import pairing

ME = Owner(platform="telegram", user_id="123")
OTHER = Owner(platform="telegram", user_id="999")
GROUP = Owner(platform="telegram", user_id="123", chat_id="-100", chat_type="group")

Say = Callable[..., str]


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    with Memory.open(home) as memory:
        yield memory


@pytest.fixture
def say(home: Path, memory: Memory) -> Say:
    def say(text: str, owner: Owner = ME) -> str:
        return answer(text, home=home, owner=owner, session="s", memory=memory)

    return say


def test_what_is_remembered_is_recalled_and_forgotten_by_its_handle(say: Say) -> None:
    kept = say("remember 长江电力 股息率 3.6%，分红比例不低于 70%")
    handle = kept.split()[2].rstrip(".")
    found = say("recall 长江电力 股息率")
    assert found.startswith(handle)
    assert "3.6%" in found
    assert say(f"forget {handle}").startswith("Forgotten")
    assert "3.6%" not in say("recall 长江电力 股息率")


def test_other_owners_rows_cannot_be_reached(say: Say, memory: Memory) -> None:
    row = memory.remember("比亚迪 四月销量 41.3 万辆", owner=OTHER)
    handle = memory.reader.index.handle(row)
    for text in (
        "recall 比亚迪 销量",
        f"recall {handle}",
        f"forget {handle}",
        f"forget {row}",
        "forget 比亚迪",
        "why",
    ):
        assert "41.3" not in say(text)
    assert "41.3" in say("recall 比亚迪 销量", OTHER)
    assert "0 rows" in say("status")
    assert OTHER.key not in say("status") + say("owners") + say("recall 比亚迪")


def test_problems_are_told_in_full_to_the_person_at_the_machine_only(say: Say, home: Path) -> None:
    assert "No problems." in say("status")
    (home / "config.yaml").write_text("plugins: {entries: {hermes-memory: {settings: {recall: {share: 7}}}}}")
    assert "recall.share" in say("status", Owner())
    assert "1 problems" in say("status")
    assert "recall.share" not in say("status")


def test_a_group_sees_no_private_row_of_its_members(say: Say) -> None:
    say("remember 宁德时代 毛利率 24.9%")
    assert "24.9" not in say("recall 宁德时代 毛利率", GROUP)
    assert "only a person" in say("owners link", GROUP)


def test_a_rule_stated_in_a_chat_is_a_standing_preference(say: Say, memory: Memory) -> None:
    say("remember 偏好：不碰银行股")
    found = memory.recall("帮我挑几只高股息的股票", owner=ME, session="fresh")
    assert "不碰银行股" in found.block


def test_a_query_is_only_previewed(say: Say) -> None:
    say("remember 长江电力 股息率 3.6%")
    said = say("forget 长江电力")
    assert said.startswith("Nothing was forgotten")
    assert "3.6%" in said


def test_why_tells_what_the_last_recall_gave(say: Say) -> None:
    assert "No recall" in say("why")
    say("remember 长江电力 股息率 3.6%")
    say("recall 长江电力 股息率")
    assert "长江电力 股息率" in say("why")


@pytest.mark.parametrize("text", ["", "help", "  HELP  "])
def test_help_names_the_verbs(say: Say, text: str) -> None:
    said = say(text)
    assert all(
        f"/memory-layers {verb}" in said
        for verb in ("status", "recall", "remember", "forget", "why", "owners")
    )


def test_an_unknown_verb_is_guessed(say: Say) -> None:
    assert "Did you mean recall?" in say("recal 茅台")


@pytest.mark.parametrize("text", ["recall", "remember", "forget", "owners frobnicate", "owners link a b c"])
def test_an_incomplete_command_says_how_it_goes(say: Say, text: str) -> None:
    said = say(text)
    assert "/memory-layers " in said or "hermes-memory owners" in said


@pytest.mark.parametrize(
    "text", ["", "frobnicate", "recall", "remember", "forget", "remember 茅台 28 倍", "owners x"]
)
def test_no_answer_names_the_command_that_is_hermes_own(say: Say, text: str) -> None:
    assert "/memory " not in say(text)


def test_the_pairing_instruction_is_a_message_that_pairs(say: Say, home: Path, memory: Memory) -> None:
    line = next(line for line in say("owners link").splitlines() if "hermes-memory owners link" in line)
    message = line[line.index("hermes-memory") :]
    assert "Linked" in pairing.answer(home, OTHER, message)
    assert OTHER.key in memory.owners.linked(ME.key)


def test_a_chat_is_never_every_owner(say: Say) -> None:
    say("remember 长江电力 股息率 3.6%")
    assert "3.6" not in say("recall 长江电力", Owner.ANY)


def test_answers_fit_a_messenger(say: Say) -> None:
    for number in range(8):
        say(f"remember 长江电力 研究记录 {number}：" + "股息稳定，现金流充足。" * 300)
    assert len(say("recall 长江电力 研究记录")) <= LONGEST


@given(st.text(max_size=60) | st.sampled_from(["recall ", "forget ", "owners link ", "why "]).flatmap(
    lambda verb: st.text(max_size=40).map(lambda rest: verb + rest)))  # fmt: skip
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gets_a_short_plain_answer(say: Say, text: str) -> None:
    said = say(text)
    assert 0 < len(said) <= LONGEST
    assert "\x1b" not in said
    assert "did not work" not in said
