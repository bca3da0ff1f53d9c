"""The recall cases are well formed, and counting them means what fixtures/CASES.md says."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.case_file import Case, Item, Shown, read_bank, read_cases, score
from bench.cases import tell
from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.layers.facts import KINDS, ORIGINS

FIXTURES = Path(__file__).parent.parent / "fixtures"
A_SHARE, DEVELOPERS = "cases", "cases-dev"
FILES = (A_SHARE, DEVELOPERS)
FEWEST = {A_SHARE: 5, DEVELOPERS: 2}
CASE_FIELDS = set(Case.__dataclass_fields__)
ITEM_FIELDS = set(Item.__dataclass_fields__)
TYPED = {"kind", "as_of"} | set(Fact.__dataclass_fields__) - {"id", "statement", "origin", "owner", "source"}


def rows(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def described(name: str) -> set[str]:
    """The kinds CASES.md describes for the file."""
    text = (FIXTURES / "CASES.md").read_text(encoding="utf-8")
    section = text.split(f"## Kinds of `{name}.jsonl`")[1].split("\n## ")[0]
    names = re.findall(r"^\| ([a-z_, ]+) \|", section, re.MULTILINE)
    return {kind for cell in names for kind in cell.split(", ")} - {"kind"}


@pytest.mark.parametrize(
    ("name", "size"),
    [(A_SHARE, 150), (DEVELOPERS, 60), (f"{A_SHARE}-bank", 200), (f"{DEVELOPERS}-bank", 100)],
)
def test_the_files_have_the_size_they_claim(name: str, size: int) -> None:
    assert len(rows(name)) == size


@pytest.mark.parametrize("name", FILES)
def test_every_described_kind_has_enough_cases_and_no_other_kind_exists(name: str) -> None:
    counted = Counter(case["kind"] for case in rows(name))
    assert set(counted) == described(name)
    assert min(counted.values()) >= FEWEST[name], counted


def test_standing_preferences_and_dated_questions_are_well_covered() -> None:
    cases = rows(A_SHARE)
    assert sum(bool(case.get("standing")) for case in cases) >= 20
    assert sum("dated" in case.get("tags", ()) for case in cases) >= 20


def test_no_id_and_no_text_is_used_twice() -> None:
    stored = [item for name in FILES for case in rows(name) for item in case["setup"]]
    stored += [item for name in FILES for item in rows(f"{name}-bank")]
    ids = Counter(item["id"] for item in stored) + Counter(
        case["id"] for name in FILES for case in rows(name)
    )
    texts = Counter("".join(item["text"].split()).casefold() for item in stored)
    assert [one for one, times in ids.items() if times > 1] == []
    assert [one for one, times in texts.items() if times > 1] == []


@pytest.mark.parametrize("name", FILES)
def test_cases_refer_to_their_own_rows_and_do_not_contradict_themselves(name: str) -> None:
    for case in rows(name):
        assert set(case) <= CASE_FIELDS, case["id"]
        ids = {item["id"] for item in case["setup"]}
        must, bad = set(case["must"]), set(case["must_not"])
        pairs = [tuple(pair) for pair in case["before"]]
        named = must | bad | set(case["stale"]) | {id_ for pair in pairs for id_ in pair}
        assert named <= ids, case["id"]
        assert not must & bad, case["id"]
        assert set(case.get("standing", ())) <= must, case["id"]
        assert {first for first, _ in pairs} <= must, case["id"]
        assert not {second for _, second in pairs} & must, case["id"]
        assert set(case["stale"]) <= bad | {second for _, second in pairs}, case["id"]
        assert len(must - set(case.get("standing", ()))) <= 5, case["id"]
        assert case["query"].strip(), case["id"]


@pytest.mark.parametrize("name", FILES)
def test_a_case_wants_something_or_wants_nothing(name: str) -> None:
    for case in rows(name):
        if case["expect_empty"]:
            assert not case["must"] and not case["must_not"] and not case["before"], case["id"]
            assert case["setup"], f"{case['id']} has nothing that could be shown by mistake"
        else:
            assert case["must"], case["id"]
            assert len(case["setup"]) > len(case["must"]), f"{case['id']} has no distractor"


@pytest.mark.parametrize("name", [*FILES, *(f"{name}-bank" for name in FILES)])
def test_rows_can_be_stored_as_they_are(name: str) -> None:
    for item in (item for row in rows(name) for item in row.get("setup", [row])):
        assert set(item) <= ITEM_FIELDS, item["id"]
        assert item["layer"] in {"L0", "L1", "L2", "L3", "report"}, item["id"]
        assert date.fromisoformat(item["date"]), item["id"]
        assert Owner.parse(item.get("owner", "local")).key == item.get("owner", "local")
        assert item.get("origin", "user") in ORIGINS, item["id"]
        typed = item.get("typed", {})
        assert set(typed) <= TYPED, item["id"]
        assert typed.get("kind", "fact") in KINDS, item["id"]
        assert "value" not in typed or isinstance(typed["value"], int | float), item["id"]
        if item["layer"] in {"L2", "report"}:
            assert item["title"], item["id"]


@pytest.mark.parametrize("name", FILES)
def test_no_row_is_younger_than_the_question(name: str) -> None:
    for case in read_cases(FIXTURES / f"{name}.jsonl"):
        assert all(item.date <= case.now[:10] for item in case.setup), case.id


@pytest.mark.parametrize("name", FILES)
def test_the_bank_has_no_preferences_of_anybody_who_asks(name: str) -> None:
    asking = {case.owner for case in read_cases(FIXTURES / f"{name}.jsonl")}
    bank = read_bank(FIXTURES / f"{name}-bank.jsonl")
    assert {item.owner for item in bank if item.layer == "L3"}.isdisjoint(asking)


def test_what_an_owner_must_not_see_is_stored_for_somebody_else() -> None:
    """Isolation cases are about owners or bracketed clients, so the forbidden rows differ in one of the two."""
    client = re.compile(r"\[(客户.)\]")
    for case in (one for one in read_cases(FIXTURES / f"{A_SHARE}.jsonl") if one.kind == "isolation"):
        shown = {(item.owner, *client.findall(item.text)) for item in case.setup if item.id in case.must}
        hidden = {(item.owner, *client.findall(item.text)) for item in case.setup if item.id in case.must_not}
        assert shown.isdisjoint(hidden), case.id


ASKED = Case(
    id="one", kind="update", query="?", setup=(), must=("new", "rule"), must_not=("other",), before=(("new", "old"),),
    stale=("old",), standing=("rule",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("items", "standing", "failed"),
    [
        (("new",), ("rule",), set()),
        (("new", "old"), ("rule",), {"stale"}),  # shown behind the newer one: reported, and it still passes
        (("old", "new"), ("rule",), {"stale", "order", "pass"}),
        (("old",), ("rule",), {"stale", "order", "recall", "all", "pass"}),
        (("new", "rule"), (), {"standing", "pass"}),  # found by relevance is not standing
        (("new", "other"), ("rule",), {"no_bad", "pass"}),
        (("new",), ("rule", "other"), {"no_bad", "pass"}),  # harm in the standing block counts too
        ((), (), {"recall", "all", "order", "standing", "pass"}),
    ],
)
def test_a_case_passes_when_every_check_that_applies_does(
    items: tuple[str, ...], standing: tuple[str, ...], failed: set[str]
) -> None:
    checks = score(ASKED, Shown(items, standing, tokens=9))
    assert {name for name, value in checks.items() if value != 1} == failed
    assert "empty" not in checks


@pytest.mark.parametrize(
    ("shown", "passed"),
    [(Shown(()), 1), (Shown(("a",), tokens=5), 0), (Shown((), ("rule",), 5), 0), (Shown((), tokens=3), 0)],
)
def test_nothing_means_no_item_no_standing_rule_and_no_token(shown: Shown, passed: int) -> None:
    assert score(Case("one", "small_talk", "?", (), expect_empty=True), shown) == {
        "empty": passed,
        "pass": passed,
    }


def test_half_of_what_is_wanted_is_half_a_recall_and_no_pass() -> None:
    checks = score(Case("one", "comparison", "?", (), must=("a", "b")), Shown(("b",)))
    assert checks == {"recall": 0.5, "all": 0, "pass": 0}


@pytest.mark.parametrize(
    ("now", "note", "today"),
    [
        ("2026-08-20", "today is 2025-01-01", datetime(2026, 8, 20, tzinfo=UTC)),
        ("2026-08-20T09:30:00+08:00", "", datetime(2026, 8, 20, 1, 30, tzinfo=UTC)),
        ("", "今天是2026年8月2日", datetime(2026, 8, 2, tzinfo=UTC)),
        ("", "no date in 2026-13-40", datetime(2026, 5, 6, tzinfo=UTC)),  # the day after the newest row
    ],
)
def test_a_case_knows_its_today_without_the_clock(now: str, note: str, today: datetime) -> None:
    setup = (Item("a", "L1", "x", "2026-05-05"), Item("b", "L1", "y", "2026-04-30"))
    assert Case("one", "k", "?", setup, now=now, note=note).today == today


def test_the_plain_format_is_read_too(tmp_path: Path) -> None:
    """A file with nothing but the first fields, as others may have it."""
    plain = {
        "id": "c1", "kind": "synonym", "query": "便宜", "must": ["c1a"], "must_not": [], "before": [["c1a", "c1b"]], "stale": [],
        "expect_empty": False, "note": "", "setup": [{"id": "c1a", "layer": "L1", "date": "2026-01-02", "text": "估值低"}],
    }  # fmt: skip
    (tmp_path / "plain.jsonl").write_text(json.dumps(plain) + "\n\n", encoding="utf-8")
    (case,) = read_cases(tmp_path / "plain.jsonl")
    assert case.setup == (Item("c1a", "L1", "估值低", "2026-01-02"),)
    assert (case.before, case.owner, case.standing) == ((("c1a", "c1b"),), "local", ())


@pytest.mark.parametrize("name", [*FILES])
def test_every_row_goes_into_its_layer(name: str, tmp_path: Path) -> None:
    """One home takes all rows of a file: the memory refuses none of them and gives each an id of its own."""
    stored = [item for case in read_cases(FIXTURES / f"{name}.jsonl") for item in case.setup]
    stored += read_bank(FIXTURES / f"{name}-bank.jsonl")
    with Memory.open(tmp_path) as memory:
        ids = [
            tell(memory, replace(item, title=f"{item.title} {item.id}") if item.layer == "L2" else item)
            for item in stored
        ]
    assert len(set(ids)) == len(stored)
