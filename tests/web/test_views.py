"""What each view shows, and what can be done and undone there."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from hermes_memory_hookspecs import Owner, ReportDocument, ToolTrace
from hermes_memory_plugin import Memory
from hermes_memory_plugin.web.words import words
from tests.web.conftest import ORIGIN

CANARY = "<script>alert(1)</script>"
HERE = {"Origin": ORIGIN}
VIEWS = ["/", "/ask?q=茅台贵不贵", "/facts", "/scenes", "/reports", "/trace", "/injections", "/trash"]
NAMES = ["overview", "ask", "facts", "scenes", "reports", "trace", "injections", "trash"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_view_answers_in_both_languages_and_escapes_what_is_stored(
    browser: TestClient, memory: Memory, language: str
) -> None:
    memory.remember(f"茅台 PE 28.1 倍 {CANARY}", subject="600519.SH", metric="pe", value=28.1)
    gone = memory.remember(f"茅台 PB 9 倍 {CANARY}", subject="600519.SH", metric="pb", value=9)
    memory.remember(f"先结论后论据 {CANARY}", title=f"风格 {CANARY}", type="project")
    memory.log(
        ToolTrace(tool_call_id="call-1", tool_name=f"quote{CANARY}", args={"q": CANARY}, result=CANARY)
    )
    memory.forget(gone)
    memory.flush()
    said = words(language)
    for path, name in zip(VIEWS, NAMES, strict=True):
        answer = browser.get(path, params=None, headers={"Accept-Language": f"{language}-XX,fr;q=0.5"})
        assert answer.status_code == 200, path
        assert f"<h1>{said[name]}</h1>" in answer.text
        assert "<script" not in answer.text
    for path in ("/facts", "/scenes", "/trace", "/trash"):
        assert "&lt;script&gt;" in browser.get(path).text, path
    call = browser.get("/trace?id=call-1").text
    assert "<script" not in call and "&lt;script&gt;" in call


def test_what_the_address_says_is_escaped(browser: TestClient) -> None:
    for name in ("q", "subject", "session", "tool", "id", "owner", "lang"):
        for path in ("/facts", "/trace", "/ask", "/fact", "/scenes", "/forget"):
            answer = browser.get(path, params={name: f'">{CANARY}'})
            assert answer.status_code < 500, (path, name)
            assert "<script" not in answer.text or answer.headers["content-type"].startswith("text/plain")


def test_a_fact_is_forgotten_after_a_preview_and_comes_back(browser: TestClient, memory: Memory) -> None:
    row = memory.remember("茅台 PE 28.1 倍", subject="600519.SH", metric="pe", value=28.1)
    memory.flush()
    preview = browser.get("/forget", params={"id": row})
    assert preview.status_code == 200 and row in preview.text
    assert browser.get("/fact", params={"id": row}).status_code == 200
    assert browser.post("/forget", data={"id": row}, headers=HERE).headers["location"] == "/trash"
    assert browser.get("/fact", params={"id": row}).status_code == 404
    (name,) = re.findall(r'name="name" value="([^"]+)"', browser.get("/trash").text)
    back = browser.post("/restore", data={"name": name}, headers=HERE)
    assert back.status_code == 303
    assert "茅台 PE 28.1 倍" in browser.get(back.headers["location"]).text


def test_what_the_trash_cannot_give_back_is_not_forgotten_here(browser: TestClient, memory: Memory) -> None:
    memory.log(ToolTrace(tool_call_id="call-1", tool_name="quote", result="28.1"))
    memory.flush()
    memory.reader.refresh()
    (row,) = memory.reader.index.scan(None, now_us=0, layers=("L0",))
    for answer in (
        browser.get("/forget", params={"id": row.id}),
        browser.post("/forget", data={"id": row.id}, headers=HERE),
    ):
        assert answer.status_code == 400 and "trash" in answer.text
    assert memory.trace("call-1") is not None


def test_facts_are_found_filtered_and_paged(browser: TestClient, memory: Memory) -> None:
    for month in (1, 2):
        memory.remember(
            f"茅台 PE {27 + month} 倍",
            subject="600519.SH",
            metric="pe",
            value=27 + month,
            as_of=datetime(2026, month, 28, tzinfo=UTC),
        )
    memory.remember_many(
        {"statement": f"平安银行第 {n} 条", "subject": "000001.SZ", "metric": f"m{n}"} for n in range(60)
    )
    memory.flush()

    def statements(**query: object) -> list[str]:
        page = browser.get("/facts", params=query).text
        return re.findall(r'<li><p><a href="[^"]+">([^<]+)</a>', page)

    assert statements(subject="600519.SH", state="superseded") == ["茅台 PE 28 倍"]
    assert statements(subject="600519.SH", metric="pe")[0] == "茅台 PE 29 倍"
    assert statements(q="茅台 PE")[0].startswith("茅台")
    assert len(statements()) == 50
    assert len(statements(**{"from": 50})) == 12
    chain = browser.get("/fact", params={"id": memory.recall("茅台 PE", mode="explicit").items[0].id}).text
    assert "茅台 PE 28 倍" in chain and "茅台 PE 29 倍" in chain


def test_another_owners_rows_are_shown_only_when_he_is_chosen(browser: TestClient, memory: Memory) -> None:
    row = memory.remember("成本价 1500", owner=Owner.parse("telegram:7"))
    memory.flush()
    assert "成本价" not in browser.get("/facts").text
    assert browser.get("/fact", params={"id": row}).status_code == 404
    assert browser.post("/forget", data={"id": row}, headers=HERE).status_code == 404
    theirs = browser.get("/facts", params={"owner": "telegram:7"}).text
    assert "成本价" in theirs and "owner=telegram%3A7" in theirs
    assert browser.get("/facts", params={"owner": "a:b:c:d"}).status_code == 400


def test_a_report_is_shown_with_its_pages(browser: TestClient, memory: Memory) -> None:
    row = memory.add_report(
        ReportDocument(
            id="rep-x",
            title=f"茅台深度 {CANARY}",
            date=datetime(2026, 4, 30, tzinfo=UTC),
            broker="中信证券",
            pages=(f"直销占比提升到四成。{CANARY}", "目标价 1800 元。"),
        )
    )
    memory.flush()
    assert "中信证券" in browser.get("/reports").text
    page = browser.get("/reports", params={"id": row}).text
    assert 'id="p2"' in page and "直销占比提升到四成" in page
    assert "<script" not in page and "&lt;script&gt;" in page


def test_what_a_recall_left_out_is_named_with_its_text(browser: TestClient, memory: Memory) -> None:
    memory.remember("贵州茅台 PE 28.1 倍", subject="600519.SH", metric="pe", value=28.1)
    memory.remember("五粮液 PE 15.7 倍", subject="000858.SZ", metric="pe", value=15.7)
    memory.flush()
    asked = browser.get("/ask", params={"q": "茅台 PE 多少？", "lang": "en"}).text
    assert "贵州茅台 PE 28.1 倍" in asked and "recalled-memories" in asked
    injections = browser.get("/injections").text
    assert "茅台 PE 多少？" in injections and "贵州茅台 PE 28.1 倍" in injections


def test_both_languages_have_every_word() -> None:
    assert words("en").keys() == words("zh").keys()
    assert all(words("en").values()) and all(words("zh").values())
