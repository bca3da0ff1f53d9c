"""remember, recall, forget, trace, why, status: through the command line, in this process and in others."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner, ToolTrace
from hermes_memory_plugin import Memory

from .conftest import Command

PE = "贵州茅台 PE(TTM) 28.1 倍"


def keep_pe(cli: Command) -> str:
    ran = cli(
        "remember", PE, "--subject", "600519.SH", "--metric", "pe_ttm", "--value", "28.1", "--unit", "倍",
        "--as-of", "2026-04-30", "--source", "daily_basic", "--id", "pe-1", "--json",
    )  # fmt: skip
    assert ran.code == 0
    assert ran.json["id"] == "pe-1"
    return str(ran.json["handle"])


def log_calls(home: Path) -> None:
    with Memory.open(home) as memory:
        for number, tool in enumerate(("daily_basic", "income", "daily_basic")):
            memory.log(
                ToolTrace(
                    tool_call_id=f"call-{number}",
                    tool_name=tool,
                    args={"ts_code": "600519.SH"},
                    result="x" * 2_000 + f"end {number}",
                    at=datetime(2026, 4, 28 + number, tzinfo=UTC),
                    duration_ms=12.5,
                )
            )


def test_a_remembered_fact_is_recalled_with_handle_source_date_reasons_and_block(cli: Command) -> None:
    handle = keep_pe(cli)
    found = cli("recall", "600519 市盈率", "--json")
    assert found.code == 0
    assert set(found.json) == {"ok", "question", "mode", "items", "block", "tokens", "ms", "owners_with_rows"}
    item = found.json["items"][0]
    fields = "id handle layer state text source as_of created uses last_used score reasons"
    assert set(item) == set(fields.split())
    assert item["created"] and item["uses"] == 1 and item["last_used"]
    assert (item["id"], item["handle"], item["layer"], item["state"]) == ("pe-1", handle, "L1", "live")
    assert item["as_of"].startswith("2026-04-30")
    assert item["reasons"]
    assert handle in found.json["block"]
    assert found.json["tokens"] > 0
    page = cli("recall", "600519 市盈率").out
    for part in (handle, PE, "2026-04-30", "daily_basic", "because:", "<recalled-memories>", "tokens"):
        assert part in page


def test_another_process_reads_what_this_one_wrote(cli: Command) -> None:
    keep_pe(cli)
    ran = cli.process("recall", "600519 市盈率", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["items"][0]["id"] == "pe-1"


def test_automatic_mode_gives_nothing_on_small_talk(cli: Command) -> None:
    keep_pe(cli)
    ran = cli("recall", "早上好，今天天气真不错", "--mode", "automatic", "--json")
    assert (ran.code, ran.json["items"], ran.json["block"], ran.json["tokens"]) == (1, [], "", 0)
    assert ran.json["ok"] is False


def test_limit_bounds_the_items(cli: Command) -> None:
    for number in range(4):
        assert cli("remember", f"宁德时代 观点 {number} 号：产能利用率").code == 0
    assert len(cli("recall", "宁德时代 产能利用率", "--limit", "2", "--json").json["items"]) == 2


def test_a_title_makes_a_note_file(cli: Command, home: Path) -> None:
    ran = cli("remember", "选股时不碰银行股。", "--title", "不碰银行股", "--type", "user", "--json")
    assert (ran.code, ran.json["layer"]) == (0, "L2")
    assert ran.json["handle"].startswith("n-")
    (file,) = (home / "memory" / "notes").glob("*.md")
    assert "选股时不碰银行股。" in file.read_text(encoding="utf-8")


def test_text_is_read_from_the_standard_input(cli: Command) -> None:
    assert cli.process("remember", "-", "--id", "from-stdin", stdin="紫金矿业 铜产量 107 万吨\n").code == 0
    assert "107" in cli("recall", "紫金矿业 铜产量").out


def test_text_that_looks_like_markup_or_moves_the_cursor_is_shown_as_text(cli: Command) -> None:
    assert cli("remember", "[red]美的集团[/red] \x1b[31m\u202e净利\x07 <b>385</b>").code == 0
    page = cli("recall", "美的集团 净利").out
    assert "[red]美的集团[/red]" in page
    assert not {"\x1b", "\x07", "\u202e"} & set(page)


def test_forget_by_handle_makes_the_row_unfindable_everywhere(cli: Command) -> None:
    handle = keep_pe(cli)
    trial = cli("forget", handle, "--dry-run", "--json")
    assert (trial.code, trial.json["would_forget"], trial.json["forgotten"]) == (0, ["pe-1"], [])
    assert cli("recall", "600519 市盈率").code == 0
    gone = cli("forget", handle, "--json")
    assert (gone.code, gone.json["forgotten"]) == (0, ["pe-1"])
    assert cli("recall", "600519 市盈率").code == 1
    assert cli.process("recall", "600519 市盈率").code == 1
    assert cli("forget", handle).code == 1


def test_a_query_is_only_previewed(cli: Command) -> None:
    handle = keep_pe(cli)
    ran = cli("forget", "茅台 市盈率", "--json")
    assert (ran.code, ran.json["forgotten"]) == (1, [])
    assert [item["handle"] for item in ran.json["candidates"]] == [handle]
    assert handle in cli("forget", "茅台 市盈率").out
    assert cli("recall", "600519 市盈率").code == 0


def test_a_call_is_found_by_id_and_shown_whole(cli: Command, home: Path) -> None:
    log_calls(home)
    ran = cli("trace", "call-1", "--json")
    assert ran.code == 0
    (call,) = ran.json["calls"]
    assert (call["tool"], call["status"], call["args"], call["owner"]) == (
        "income", "ok", {"ts_code": "600519.SH"}, "local",
    )  # fmt: skip
    assert call["result"].endswith("end 1")
    assert call["at"].startswith("2026-04-29")
    assert "end 1" in cli("trace", "call-1").out.replace("\n", "")
    assert cli("trace", "no-such-call").code == 1


def test_calls_are_listed_newest_first_by_time_and_tool(cli: Command, home: Path) -> None:
    log_calls(home)

    def listed(*words: str) -> list[str]:
        return [call["tool_call_id"] for call in cli("trace", *words, "--json").json["calls"]]

    assert listed() == ["call-2", "call-1", "call-0"]
    assert listed("--tool", "daily_basic") == ["call-2", "call-0"]
    assert listed("--since", "2026-04-29", "--until", "2026-04-30") == ["call-1"]
    assert listed("--limit", "1") == ["call-2"]
    assert listed("--status", "error") == []
    short, whole = (cli("trace", *words, "--json").json["calls"][0] for words in ((), ("--full",)))
    assert len(short["result"]) == 500
    assert len(whole["result"]) == whole["result_characters"] == short["result_characters"] > 2_000
    page = cli("trace").out
    assert page.index("call-2") < page.index("call-0")


def test_why_shows_the_last_recalls_with_reasons(cli: Command) -> None:
    keep_pe(cli)
    assert cli("why").code == 1
    cli("recall", "600519 市盈率")
    cli("recall", "贵州茅台 PE")
    ran = cli("why", "-n", "2", "--json")
    assert ran.code == 0
    assert [one["question"] for one in ran.json["recalls"]] == ["贵州茅台 PE", "600519 市盈率"]
    assert ran.json["recalls"][0]["items"][0]["id"] == "pe-1"
    assert ran.json["recalls"][0]["items"][0]["reasons"]
    page = cli.process("why")
    assert page.code == 0
    assert "贵州茅台 PE" in page.out


def test_status_is_one_screen(cli: Command, home: Path) -> None:
    keep_pe(cli)
    log_calls(home)
    ran = cli("status")
    assert ran.code == 0
    assert len(ran.out.splitlines()) <= 24
    for part in (str(home), "L1 facts 1", "L0 log 3", "local 4"):
        assert part in ran.out
    data = cli("--json", "status").json
    assert data["rows"] == {"L0": 3, "L1": 1}
    assert data["owners"] == {"local": 4}
    assert data["problems"] == []


@pytest.mark.parametrize(
    "words",
    [("recall", "茅台"), ("why",), ("trace",), ("trace", "c"), ("forget", "茅台")],
    ids=lambda words: words[0],
)
def test_an_empty_answer_names_the_owners_who_have_rows(
    cli: Command, home: Path, words: tuple[str, ...]
) -> None:
    with Memory.open(home) as memory:
        memory.remember("比亚迪 销量 41.3 万辆", owner=Owner(platform="telegram", user_id="123"))
    ran = cli(*words, "--json")
    assert ran.code == 1
    assert ran.json["owners_with_rows"] == {"telegram:123": 1}
    assert "telegram:123 (1)" in cli(*words).out
    assert "--owner" in cli(*words).out


def test_an_owner_sees_its_own_rows_only_and_any_sees_all(cli: Command) -> None:
    assert cli("remember", "比亚迪 四月销量 41.3 万辆", "--owner", "telegram:123").code == 0
    assert cli("recall", "比亚迪 销量").code == 1
    assert cli("recall", "比亚迪 销量", "--owner", "telegram:999").code == 1
    assert cli("--owner", "telegram:123", "recall", "比亚迪 销量").code == 0
    handle = cli("recall", "比亚迪 销量", "--owner", "any", "--json").json["items"][0]["handle"]
    assert cli("forget", handle).code == 1
    assert cli("forget", handle, "--owner", "any").code == 0
    assert cli("recall", "比亚迪 销量", "--owner", "telegram:123").code == 1
    assert cli.process("recall", "比亚迪 销量", "--owner", "telegram:123").code == 1


def test_a_broken_setting_is_in_status_and_nothing_else_changes(cli: Command, home: Path) -> None:
    (home / "config.yaml").write_text("plugins: {entries: {hermes-memory: {settings: {recall: {share: 7}}}}}")
    keep_pe(cli)
    ran = cli("status", "--json")
    assert ran.code == 0
    assert any("recall.share" in problem for problem in ran.json["problems"])
