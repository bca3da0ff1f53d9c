"""Owners: one person behind two keys by a code typed on both sides; every doubt ends with fewer rows."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.owners import (
    ATTEMPTS,
    ATTEMPTS_OF_ALL,
    CODE_SECONDS,
    Owners,
    PairingRefused,
    RegistryUnusable,
)

LOCAL = "local"
PHONE = "telegram:123"
OTHER = "telegram:999"
GROUP = Owner(platform="telegram", user_id="123", chat_id="-100", chat_type="group")


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def owners(tmp_path: Path, clock: Clock) -> Owners:
    return Owners(tmp_path, clock=clock)


def test_without_links_an_owner_sees_its_own_and_the_shared_rows(owners: Owners) -> None:
    assert owners.visible_keys(Owner()) == {LOCAL, "shared"}
    assert owners.visible_keys(Owner(platform="telegram", user_id="123")) == {PHONE, "shared"}
    assert owners.visible_keys(GROUP) == {"telegram:group:-100", "shared"}
    assert owners.visible_keys("shared") == {"shared"}
    assert not owners.path.exists()


def test_a_code_typed_by_the_other_owner_joins_both(owners: Owners) -> None:
    pairing = owners.offer(LOCAL)
    assert len(pairing.code) == 6
    assert owners.accept(PHONE, pairing.code) == {LOCAL, PHONE}
    assert owners.visible_keys(LOCAL) == owners.visible_keys(PHONE) == {LOCAL, PHONE, "shared"}
    assert owners.visible_keys(OTHER) == {OTHER, "shared"}


def test_a_group_of_a_linked_person_never_sees_private_rows_and_the_person_not_the_group_s(
    owners: Owners,
) -> None:
    owners.accept(PHONE, owners.offer(LOCAL).code)
    assert owners.visible_keys(GROUP) == {"telegram:group:-100", "shared"}
    assert not any("group" in key for key in owners.visible_keys(PHONE))


def test_links_are_seen_by_another_process(owners: Owners, tmp_path: Path) -> None:
    other = Owners(tmp_path)
    assert other.visible_keys(LOCAL) == {LOCAL, "shared"}
    owners.accept(PHONE, owners.offer(LOCAL).code)
    assert other.visible_keys(LOCAL) == {LOCAL, PHONE, "shared"}
    code = (
        "import sys; from pathlib import Path; from hermes_memory_plugin.owners import Owners;"
        "print(sorted(Owners(Path(sys.argv[1])).visible_keys('telegram:123')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "['local', 'shared', 'telegram:123']"


def test_a_third_key_joins_the_same_person(owners: Owners) -> None:
    owners.accept(PHONE, owners.offer(LOCAL).code)
    assert owners.accept(LOCAL, owners.offer("discord:7").code) == {LOCAL, PHONE, "discord:7"}
    assert owners.links() == (frozenset({LOCAL, PHONE, "discord:7"}),)


@pytest.mark.parametrize("spelling", ["{}", " {} ", "{}\n"])
def test_a_code_is_read_in_any_case_with_blanks_and_hyphens(owners: Owners, spelling: str) -> None:
    code = owners.offer(LOCAL).code.lower()
    assert owners.accept(PHONE, spelling.format(f"{code[:3]}-{code[3:]}")) == {LOCAL, PHONE}


@pytest.mark.parametrize("code", ["", "      ", "ABCDEF", "\ud800", "x" * 10_000, "贵州茅台", "\x00"])
def test_a_wrong_code_joins_nobody(owners: Owners, code: str) -> None:
    owners.offer(LOCAL)
    with pytest.raises(PairingRefused, match="wrong"):
        owners.accept(PHONE, code)
    assert owners.links() == ()


def test_an_expired_code_joins_nobody(owners: Owners, clock: Clock) -> None:
    code = owners.offer(LOCAL).code
    clock.now += CODE_SECONDS + 1
    with pytest.raises(PairingRefused, match="older than ten minutes"):
        owners.accept(PHONE, code)


def test_a_code_serves_once(owners: Owners) -> None:
    code = owners.offer(LOCAL).code
    owners.accept(PHONE, code)
    with pytest.raises(PairingRefused, match="used"):
        owners.accept(OTHER, code)
    assert owners.visible_keys(OTHER) == {OTHER, "shared"}


def test_the_owner_who_asked_cannot_use_the_code_and_it_stays_good(owners: Owners) -> None:
    code = owners.offer(LOCAL).code
    with pytest.raises(PairingRefused, match="other owner"):
        owners.accept(LOCAL, code)
    assert owners.accept(PHONE, code)


def test_a_new_code_makes_the_older_one_of_that_owner_void(owners: Owners) -> None:
    first, second = owners.offer(LOCAL).code, owners.offer(LOCAL).code
    with pytest.raises(PairingRefused):
        owners.accept(PHONE, first)
    assert owners.accept(PHONE, second)


def test_linking_twice_says_so(owners: Owners) -> None:
    owners.accept(PHONE, owners.offer(LOCAL).code)
    with pytest.raises(PairingRefused, match="already linked"):
        owners.accept(PHONE, owners.offer(LOCAL).code)


def test_guessing_is_bounded_per_owner(owners: Owners, clock: Clock) -> None:
    code = owners.offer(LOCAL).code
    for _ in range(ATTEMPTS):
        with pytest.raises(PairingRefused, match="wrong"):
            owners.accept(PHONE, "222222")
    with pytest.raises(PairingRefused, match="too many"):
        owners.accept(PHONE, code)
    clock.now += CODE_SECONDS + 1
    assert owners.accept(PHONE, owners.offer(LOCAL).code) == {LOCAL, PHONE}


def test_guessing_by_many_owners_voids_the_open_codes(owners: Owners) -> None:
    code = owners.offer(LOCAL).code
    for number in range(ATTEMPTS_OF_ALL):
        with pytest.raises(PairingRefused):
            owners.accept(f"telegram:{number}", "222222")
    with pytest.raises(PairingRefused):
        owners.accept(PHONE, code)


@pytest.mark.parametrize("key", ["telegram:group:-100", "shared", "any", ""])
def test_only_a_person_can_be_linked(owners: Owners, key: str) -> None:
    with pytest.raises(PairingRefused, match="only a person"):
        owners.offer(key)
    with pytest.raises(PairingRefused, match="only a person"):
        owners.accept(key, owners.offer(LOCAL).code)


def test_an_owner_made_up_for_one_conversation_cannot_be_linked(owners: Owners) -> None:
    key = Owner(platform="api_server", user_id="~session-api-1").key
    with pytest.raises(PairingRefused, match="who you are"):
        owners.accept(key, owners.offer(LOCAL).code)
    with pytest.raises(PairingRefused, match="who you are"):
        owners.offer(key)


def test_unlink_takes_one_key_out_and_leaves_the_rest(owners: Owners) -> None:
    owners.accept(PHONE, owners.offer(LOCAL).code)
    owners.accept("discord:7", owners.offer(LOCAL).code)
    assert owners.unlink(PHONE) == {LOCAL, "discord:7"}
    assert owners.visible_keys(PHONE) == {PHONE, "shared"}
    assert owners.visible_keys(LOCAL) == {LOCAL, "discord:7", "shared"}
    assert owners.unlink(LOCAL) == {"discord:7"}
    assert owners.links() == ()
    assert owners.unlink(LOCAL) == frozenset()


def test_the_file_is_private_and_holds_no_code_in_clear(owners: Owners) -> None:
    code = owners.offer(LOCAL).code
    assert stat.S_IMODE(owners.path.stat().st_mode) == 0o600
    assert code not in owners.path.read_text()


DAMAGE = [
    b"{", b"", b"\xff\xfe", b"null", b"[]", b"{}", b'{"v":1}', b'{"v":"x","links":[],"codes":[],"wrong":[]}',
    b'{"v":1,"links":[["local","shared"]],"codes":[],"wrong":[]}',
    b'{"v":1,"links":[["local","telegram:group:-1"]],"codes":[],"wrong":[]}',
    b'{"v":1,"links":[["local","a:1"],["local","a:2"]],"codes":[],"wrong":[]}',
    b'{"v":1,"links":[[1,2]],"codes":[],"wrong":[]}',
    b'{"v":1,"links":[],"codes":[{"owner":"local"}],"wrong":[]}',
    b"[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("content", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_registry_links_nobody_and_is_moved_aside_whole(owners: Owners, content: bytes) -> None:
    owners.accept(PHONE, owners.offer(LOCAL).code)
    owners.path.write_bytes(content)
    assert owners.visible_keys(LOCAL) == {LOCAL, "shared"}
    problems = owners.problems()
    assert len(problems) == 1
    assert "owners.json" in problems[0]
    (aside,) = owners.path.parent.glob("owners.json.damaged-*")
    assert aside.read_bytes() == content
    assert owners.accept(PHONE, owners.offer(LOCAL).code) == {LOCAL, PHONE}


@pytest.mark.parametrize("content", DAMAGE[:3])
def test_a_damaged_registry_found_while_linking_is_named(owners: Owners, content: bytes) -> None:
    owners.path.write_bytes(content)
    with pytest.raises(RegistryUnusable, match="moved aside"):
        owners.offer(LOCAL)
    assert owners.offer(LOCAL).code


def test_a_registry_of_a_newer_version_links_nobody_and_is_left_alone(owners: Owners) -> None:
    content = json.dumps({"v": 2, "people": [[LOCAL, PHONE]]})
    owners.path.write_text(content)
    assert owners.visible_keys(LOCAL) == {LOCAL, "shared"}
    assert "newer" in owners.problems()[0]
    with pytest.raises(RegistryUnusable, match="newer"):
        owners.offer(LOCAL)
    assert owners.path.read_text() == content


def test_a_folder_in_place_of_the_registry_links_nobody(owners: Owners) -> None:
    owners.path.mkdir()
    assert owners.visible_keys(LOCAL) == {LOCAL, "shared"}
    assert owners.problems()


def test_of_many_who_type_one_code_at_once_one_is_joined(
    owners: Owners, tmp_path: Path, clock: Clock
) -> None:
    code = owners.offer(LOCAL).code

    def attempt(number: int) -> bool:
        try:
            return bool(Owners(tmp_path, clock=clock).accept(f"telegram:{number}", code))
        except PairingRefused:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1
    assert len(owners.links()[0]) == 2
