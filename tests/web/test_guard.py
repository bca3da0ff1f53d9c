"""Who may talk to the page."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from hermes_memory_plugin import Memory
from tests.web.conftest import ORIGIN, TOKEN


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/", {}, 401),
        ("/facts", {}, 401),
        ("/static/style.css", {}, 401),
        ("/?token=wrong", {}, 401),
        ("/?token=%F0%9F%92%A5", {}, 401),
        ("/", {"Cookie": "hermes_memory_8123=wrong"}, 401),
        (f"/?token={TOKEN}", {"Host": "evil.example"}, 421),
        (f"/?token={TOKEN}", {"Host": "127.0.0.1.evil.example:8123"}, 421),
        (f"/?token={TOKEN}", {"Host": "127.0.0.1:9999"}, 421),
        (f"/?token={TOKEN}", {"Host": ""}, 421),
    ],
)
def test_a_stranger_gets_nothing(stranger: TestClient, path: str, headers: dict[str, str], code: int) -> None:
    answer = stranger.get(path, headers=headers)
    assert answer.status_code == code and "set-cookie" not in answer.headers


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use(stranger: TestClient) -> None:
    answer = stranger.get(f"/facts?q=PE&token={TOKEN}")
    assert answer.status_code == 303 and answer.headers["location"] == "/facts?q=PE"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert stranger.get("/facts").status_code == 200


def test_the_redirect_stays_on_this_site(stranger: TestClient) -> None:
    answer = stranger.get(f"{ORIGIN}//evil.example/x?token={TOKEN}")
    assert answer.headers["location"] == "/evil.example/x"


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:9999"])
def test_only_the_page_itself_changes_anything(
    browser: TestClient, memory: Memory, origin: str | None
) -> None:
    row = memory.remember("茅台 PE 28.1 倍")
    headers = {"Origin": origin} if origin else {}
    assert browser.post("/forget", data={"id": row}, headers=headers).status_code == 403
    assert browser.get("/fact", params={"id": row}).status_code == 200


def test_a_get_changes_nothing(browser: TestClient, memory: Memory) -> None:
    row = memory.remember("茅台 PE 28.1 倍")
    assert browser.get("/forget", params={"id": row}).status_code == 200
    assert browser.get("/restore").status_code == 405
    assert browser.get("/fact", params={"id": row}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2f%2e%2e%2fverbs.py",
        "/scenes?id=../../etc/passwd",
        "/trace?id=..%2f..%2fconfig.yaml",
    ],
)
def test_no_path_leads_out(browser: TestClient, path: str) -> None:
    assert browser.get(path).status_code == 404


def test_every_answer_is_hardened(browser: TestClient, stranger: TestClient) -> None:
    for answer in (
        browser.get("/"),
        browser.get("/static/style.css"),
        stranger.get("/", headers={"Host": "x"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
