"""Whose conversation it is; in doubt nobody else's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.hermes.identity import Chat, chat_of, cron_owner, nobody, owner_of, parse_key


@pytest.mark.parametrize(
    ("chat", "gateway", "key"),
    [
        (Chat("cli"), False, "local"),
        (Chat("tui"), False, "local"),
        (Chat("acp"), True, "local"),
        (Chat("desktop"), True, "local"),
        (Chat(""), False, "local"),
        (Chat(""), True, "unknown:~session-s1"),
        (Chat("cli", user_id="u1"), False, "local"),
        (Chat("telegram", "123", "123", "dm"), True, "telegram:123"),
        (Chat("telegram", "123", "123", ""), True, "telegram:123"),
        (Chat("telegram", "123", "", ""), False, "telegram:123"),
        (Chat("slack", "U1", "D9", "dm"), True, "slack:U1"),
        (Chat("whatsapp", "", "4912", "dm"), True, "whatsapp:4912"),
        (Chat("telegram", "123", "-1001", "group"), True, "telegram:group:-1001"),
        (Chat("discord", "7", "55", "thread"), True, "discord:group:55"),
        (Chat("discord", "7", "55", "channel"), True, "discord:group:55"),
        # The kind of chat was not said: it may be a group, so it is treated as one.
        (Chat("slack", "U1", "C77", ""), True, "slack:group:C77"),
        (Chat("telegram", "123", "-1001", ""), False, "telegram:group:-1001"),
        # A gateway that names no chat proves nothing about who will read the answer.
        (Chat("telegram", "123", "", ""), True, "telegram:~session-s1"),
        (Chat("telegram", "123", "", "group"), False, "telegram:~session-s1"),
        (Chat("telegram", "", "", ""), True, "telegram:~session-s1"),
        (Chat("telegram", "", "", ""), False, "telegram:~session-s1"),
        (Chat("api_server", "", "c1", ""), True, "api_server:~session-s1"),
        (Chat("api_server", "u1", "c1", "dm"), True, "api_server:~session-s1"),
        (Chat("webhook", "u1", "c1", "dm"), True, "webhook:~session-s1"),
    ],
)
def test_owner_is_the_person_in_private_the_chat_in_public_and_nobody_in_doubt(
    chat: Chat, gateway: bool, key: str
) -> None:
    assert owner_of(chat, "s1", serves_chats=gateway).key == key


@pytest.mark.parametrize(
    ("key", "chat"),
    [
        ("agent:main:telegram:dm:123", Chat("telegram", "", "123", "dm")),
        ("agent:coder:telegram:group:-1001:42:7", Chat("telegram", "", "-1001", "group")),
        ("agent:main:telegram:dm", Chat("telegram", "", "", "dm")),
        ("some-acp-session", Chat()),
        ("agent:main", Chat()),
        ("", Chat()),
    ],
)
def test_session_key_names_the_kind_of_chat(key: str, chat: Chat) -> None:
    assert parse_key(key) == chat


def _env(**values: str) -> dict[str, str]:
    return {f"HERMES_SESSION_{name}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("platform", "sender", "env", "chat"),
    [
        (
            "telegram",
            "123",
            _env(PLATFORM="telegram", CHAT_ID="-1", USER_ID="123", KEY="agent:main:telegram:group:-1:123"),
            Chat("telegram", "123", "-1", "group"),
        ),
        (
            "telegram",
            "",
            _env(PLATFORM="telegram", CHAT_ID="9", USER_ID="9", KEY="agent:main:telegram:dm:9"),
            Chat("telegram", "9", "9", "dm"),
        ),
        # Values another conversation left behind are not ours.
        (
            "discord",
            "5",
            _env(PLATFORM="telegram", CHAT_ID="9", USER_ID="9", KEY="agent:main:telegram:dm:9"),
            Chat("discord", "5"),
        ),
        ("", "", _env(PLATFORM="signal", CHAT_ID="+49", USER_ID="+49"), Chat("signal", "+49", "+49")),
        ("Telegram", "1", {}, Chat("telegram", "1")),
    ],
)
def test_chat_comes_from_the_call_and_its_own_session_values(
    platform: str, sender: str, env: dict[str, str], chat: Chat
) -> None:
    assert chat_of(platform, sender, lambda name: env.get(name, "")) == chat


@pytest.mark.parametrize(
    ("job", "recorded", "key"),
    [
        (None, "", "cron:~session-c1"),
        ({"id": "j"}, "", "local"),
        ({"origin": None}, "", "local"),
        ({"origin": "weird"}, "", "cron:~session-c1"),
        ({"origin": {"chat_id": "9"}}, "", "cron:~session-c1"),
        ({"origin": {"platform": "telegram", "chat_id": "9", "user_id": "9"}}, "", "telegram:9"),
        ({"origin": {"platform": "slack", "chat_id": "D1", "user_id": "U1"}}, "dm", "slack:U1"),
        ({"origin": {"platform": "slack", "chat_id": "C1", "user_id": "U1"}}, "", "slack:group:C1"),
        ({"origin": {"platform": "telegram", "chat_id": "-1", "user_id": "9"}}, "group", "telegram:group:-1"),
        ({"origin": {"platform": "api_server", "chat_id": "x"}}, "", "api_server:~session-c1"),
    ],
)
def test_cron_job_reads_what_the_chat_it_was_made_in_may_read(
    job: dict[str, object] | None, recorded: str, key: str
) -> None:
    assert cron_owner(job, "c1", lambda platform, chat: recorded).key == key


_part = st.text(max_size=12)


@settings(max_examples=200, deadline=None)
@given(platform=_part, user=_part, chat=_part, kind=_part, lineage=_part)
def test_no_id_a_stranger_can_choose_makes_him_another_owner(
    platform: str, user: str, chat: str, kind: str, lineage: str
) -> None:
    owner = owner_of(Chat(f"x{platform}", user, chat, kind), lineage, serves_chats=True)
    assert owner.key not in ("local", "shared", "any")
    assert Owner.parse(owner.key).key == owner.key


def test_an_unknown_sender_is_a_different_owner_in_every_session() -> None:
    assert nobody("telegram", "a").key != nobody("telegram", "b").key
    assert nobody("telegram", "123").key != Owner("telegram", "123").key


@pytest.mark.parametrize(
    ("owner", "key"),
    [
        (Owner(), "local"),
        (Owner("local"), "local"),
        (Owner("telegram"), "telegram:~"),
        (Owner("x:y"), "x%3Ay:~"),
    ],
)
def test_every_owner_has_a_key_that_can_be_read_back(owner: Owner, key: str) -> None:
    assert owner.key == key
    assert Owner.parse(key).key == key
