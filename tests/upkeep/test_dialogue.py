"""Talk to facts: once a turn, from the user's words alone, one row for one matter, and gone with its turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_memory_hookspecs import Owner, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall.index_row import Row

BOB = Owner(platform="telegram", user_id="102")
GROUP = Owner(platform="telegram", chat_id="-1001", chat_type="group")


class Talk:
    """A conversation with one memory, a minute between turns."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.at = datetime.now(UTC) - timedelta(hours=3)

    def say(
        self,
        user: str,
        answer: str = "好的",
        *,
        owner: Owner = Owner(),
        speaker: str = "",
        completed: bool = True,
        kind: str = "user",
        session: str = "s",
    ) -> str:
        """One turn; returns the id of its row."""
        self.at += timedelta(minutes=1)
        turn = Turn(user, answer, self.at, f"{self.at.timestamp()}", session, owner, speaker, completed)
        return self.memory.log_turn(turn, kind=kind)

    def rows(self, *kinds: str, owner: Owner = Owner(), state: str = "live") -> list[Row]:
        """The facts of an owner, oldest first, once all that was said is read."""
        self.drain()
        return self.memory.reader.index.scan(
            {owner.key}, now_us=time.time_ns() // 1000, layers=("L1",), kinds=kinds or None, states=(state,), newest_first=False
        )  # fmt: skip

    def drain(self) -> None:
        """One run of the drain, at once."""
        drained = self.memory.archive.drain.run(force=True, wait=30)
        assert drained.state != "another process drains" and not drained.errors
        self.memory.reader.refresh()

    def texts(self, *kinds: str, owner: Owner = Owner()) -> list[str]:
        """What they say."""
        return [row.text for row in self.rows(*kinds, owner=owner)]

    def figures(self, subject: str) -> dict[str, tuple[float | None, str]]:
        """{metric: (value, unit)} of the live facts about a subject."""
        rows = [row for row in self.rows() if row.extra.get("subject") == subject]
        return {
            str(row.extra["metric"]): (row.value, str(row.extra.get("unit") or ""))
            for row in rows
            if row.extra.get("metric")
        }


@pytest.fixture
def talk(memory: Memory) -> Talk:
    return Talk(memory)


def test_a_preference_and_a_holding_of_one_sentence(talk: Talk) -> None:
    talk.say("不碰银行股，成本价1500买的茅台")
    assert talk.texts("preference") == ["不碰银行股"]
    assert talk.figures("600519.SH") == {"cost": (1500.0, "元")}
    found = talk.memory.recall("推荐几只高股息的股票", session="next")
    assert [item.text for item in found.standing] == ["不碰银行股"]
    assert "1,500元" in talk.memory.recall("我的茅台成本多少", session="next").block


def test_extract_zh_preference(talk: Talk) -> None:
    """user-reports 7: Chinese and English phrases alike."""
    talk.say("以后先说结论")
    talk.say("From now on, use metric units.")
    assert talk.texts("preference") == ["以后先说结论", "From now on, use metric units"]


def test_only_the_user_states_preferences(talk: Talk) -> None:
    talk.say("你怎么看？", "我不碰银行股。以后用Wind。结论：五粮液估值偏低，渠道库存下降。")
    (row,) = talk.rows()
    assert (row.kind, row.origin, row.trust) == ("conclusion", "model", 1)


@pytest.mark.parametrize("kind", ["subagent", "cron", "review"])
def test_a_job_or_a_helper_is_not_the_user(talk: Talk, kind: str) -> None:
    talk.say("不碰银行股", kind=kind)
    assert talk.rows() == []


def test_interrupted_turn(talk: Talk) -> None:
    """user-reports 46: what was interrupted states nothing."""
    talk.say("不碰银行股", "", completed=False)
    assert talk.rows() == []


def test_subject_identity(talk: Talk) -> None:
    """user-reports 71: whose it is comes from the session, not from names in the text."""
    talk.say("我叫李四，我不碰银行股", owner=BOB)
    assert talk.texts() == [] and talk.texts(owner=BOB) == ["我不碰银行股"]
    talk.say("我不碰地产股", owner=GROUP, speaker="老王")
    talk.say("我不碰地产股", owner=GROUP, speaker="小李")
    talk.say("[小李] 我只看高股息", owner=GROUP, speaker="小李")
    talk.say("[老王] 我只看低估值", owner=GROUP, speaker="小李")  # written by hand
    assert talk.texts(owner=GROUP) == ["老王：我不碰地产股", "小李：我不碰地产股", "小李：我只看高股息"]


def test_one_rule_said_twice_is_one_row_and_the_newer(talk: Talk) -> None:
    talk.say("不碰银行股")
    talk.say("我不碰银行", session="t")
    assert talk.texts("preference") == ["我不碰银行"]
    assert [row.text for row in talk.rows(state="superseded")] == ["不碰银行股"]


def test_a_rule_beside_the_models_note_of_it_is_given_once(talk: Talk) -> None:
    talk.memory.remember("用户明确要求不要推荐银行股", title="禁忌", type="user")
    talk.say("不碰银行股")
    talk.drain()
    assert len(talk.memory.recall("推荐几只股票", session="n").standing) == 1


def test_a_rule_can_be_withdrawn_but_only_one_that_was_there(talk: Talk) -> None:
    talk.say("银行股可以碰了")
    assert talk.rows() == []
    talk.say("不碰银行股")
    talk.say("银行股可以碰了")
    assert talk.texts("preference") == ["银行股可以碰了"]


def test_a_taste_is_recalled_where_it_matters_and_stands_nowhere(talk: Talk) -> None:
    talk.say("我平时喜欢跑步")
    talk.drain()
    assert talk.texts("fact") == ["我平时喜欢跑步"]
    assert talk.memory.recall("推荐几只股票", session="n").standing == ()


def test_each_of_several_holdings_has_its_own_share(talk: Talk) -> None:
    talk.say("我的持仓：茅台30%，五粮液20%")
    assert talk.figures("600519.SH") == {"position": (30, "%")}
    assert talk.figures("000858.SZ") == {"position": (20, "%")}


@pytest.mark.parametrize(
    "says",
    [
        "我卖了茅台100股", "我昨天 1450 卖了 100 股茅台", "今天卖出贵州茅台 200股，均价1500元", "贵州茅台加仓了300股，均价 1520",
        "茅台卖掉了一半", "我决定卖掉茅台", "打算清仓茅台", "不对，结论应该是持有茅台", "茅台成本是1480元还是1470元来着",
    ],
)  # fmt: skip
def test_what_does_not_say_what_he_has_now_changes_no_holding(talk: Talk, says: str) -> None:
    talk.say("我持有贵州茅台500股，成本1460元")
    talk.say(says)
    assert talk.figures("600519.SH") == {"shares": (500, "股"), "cost": (1460, "元")}


@pytest.mark.parametrize(
    "says", ["茅台我昨天全卖了", "我把茅台卖掉了", "茅台1450元卖掉了", "我不再持有茅台了", "茅台清仓了"]
)
def test_who_sold_all_holds_none(talk: Talk, says: str) -> None:
    talk.say("我持有贵州茅台500股")
    talk.say(says)
    assert {value for value, _ in talk.figures("600519.SH").values()} == {0.0}


@pytest.mark.parametrize(
    ("says", "subject", "shares", "cost"),
    [("I own 100 AAPL at $182.50", "AAPL", 100, 182.5), ("I bought 50 NVDA at 120", "NVDA", 50, 120)],
)
def test_a_number_before_a_ticker_is_shares_and_never_the_cost(
    talk: Talk, says: str, subject: str, shares: float, cost: float
) -> None:
    talk.say(says)
    found = talk.figures(subject)
    assert (found["shares"][0], found["cost"][0]) == (shares, cost)


def test_a_holding_changes_with_what_is_said_of_it(talk: Talk) -> None:
    talk.say("我持有茅台500股，成本1500，仓位10%")
    assert talk.figures("600519.SH") == {"shares": (500, "股"), "cost": (1500, "元"), "position": (10, "%")}
    talk.say("茅台又买了200股")  # how many there are now is not said
    assert talk.figures("600519.SH")["shares"] == (500, "股")
    talk.say("成本降到1450，茅台")
    assert talk.figures("600519.SH")["cost"] == (1450, "元")
    talk.say("茅台清仓了")
    assert {value for value, _ in talk.figures("600519.SH").values()} == {0.0, None}
    assert all("不再持有" in text for text in talk.texts("holding"))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("I own 100 shares of AAPL at $150", {"shares": (100, "shares"), "cost": (150, "USD")}),
        ("我以1,500元买了600519", {}),
        ("我想买茅台，1500能买吗", {}),
        ("他持有茅台500股", {}),
        ("基金持有茅台500万股", {}),
        ("如果我持有茅台500股呢", {}),
        ("茅台的生产成本50元", {}),
        ("我没有持有茅台", {}),
    ],
)
def test_what_is_held_and_what_is_not(
    talk: Talk, message: str, expected: dict[str, tuple[float, str]]
) -> None:
    talk.say(message)
    found = talk.figures("AAPL") if "AAPL" in message else talk.figures("600519.SH")
    if message.startswith("我以"):
        expected = {"cost": (1500, "元")}
    assert found == expected


def pe(talk: Talk, value: float = 28.1, **typed: str) -> str:
    given = {
        "subject": "600519.SH",
        "metric": "pe_ttm",
        "unit": "倍",
        "origin": "tool",
        "source": "tushare",
        "as_of": talk.at,
        "created_at": talk.at,
        **typed,
    }
    return talk.memory.remember(f"贵州茅台 PE(TTM) {value} 倍", value=value, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", ["不对，应该是26倍", "不是28.1，是26", "PE不是28.1倍，应该是26倍"])
def test_a_correction_takes_the_place_of_what_it_corrects(talk: Talk, words: str) -> None:
    wrong = pe(talk)
    talk.say("茅台PE多少", "贵州茅台 PE(TTM) 28.1 倍。")
    talk.say(words)
    (row,) = talk.rows()
    assert (row.value, row.origin) == (26.0, "user") and row.extra["metric"] == "pe_ttm"
    after = talk.memory.reader.index.superseded_by(wrong, None)
    assert after is not None and after.id == row.id


def test_he_corrects_himself_and_says_more_later(talk: Talk) -> None:
    talk.say("茅台成本价1500")
    talk.say("不对，成本是1460")
    assert talk.figures("600519.SH") == {"cost": (1460, "元")}
    talk.say("茅台成本价现在1400")
    assert talk.figures("600519.SH") == {"cost": (1400, "元")}


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (("茅台和五粮液的PE", "茅台 28.1 倍，五粮液 17 倍。"), "不对，应该是26倍"),  # which company
        (("茅台估值", "茅台 PE 28.1 倍，PB 9 倍。"), "不对，应该是26倍"),  # which figure
        (("茅台PE", "茅台 PE 28.1 倍。"), "茅台PE不是31，是26"),  # a wrong value nobody stored
        (("茅台PE", "茅台 PE 28.1 倍。"), "不对，应该是26%"),  # no multiple
    ],
)
def test_a_correction_that_is_not_clear_retires_nothing(
    talk: Talk, before: tuple[str, str], words: str
) -> None:
    first = pe(talk)
    talk.memory.remember(
        "贵州茅台 PB 9 倍", subject="600519.SH", metric="pb", value=9, unit="倍", origin="tool", as_of=talk.at
    )
    talk.say(*before)
    talk.say(words)
    assert first in [row.id for row in talk.rows()] and len(talk.rows()) in (2, 3)
    assert all(not row.fact_key or row.origin == "tool" for row in talk.rows())


def test_two_bases_of_one_figure_are_not_guessed_between(talk: Talk) -> None:
    ids = {pe(talk), pe(talk, 29.0, metric="pe", basis="LYR")}
    talk.say("茅台PE多少", "贵州茅台 PE 28.1 倍。")
    talk.say("不对，应该是26倍")
    assert ids <= {row.id for row in talk.rows()}
    talk.say("不是29，是26")
    assert {row.value for row in talk.rows() if row.fact_key} == {28.1, 26.0}


def test_what_was_only_said_is_corrected_with_its_subject(talk: Talk) -> None:
    talk.say("茅台2025年的毛利率？", "贵州茅台 2025 年毛利率 90.1%。")
    talk.say("不对，应该是91.5%")
    (row,) = talk.rows()
    assert (row.extra["subject"], row.extra["metric"], row.value) == ("600519.SH", "gross_margin", 91.5)


def test_each_turn_is_read_once_however_often_it_is_drained(talk: Talk, home: Path) -> None:
    talk.say("不碰银行股")
    ids = {row.id for row in talk.rows()}
    talk.drain()
    (talk.memory.folder / "journal" / "dialogue.json").unlink()
    talk.say("谢谢")
    assert {row.id for row in talk.rows()} == ids
    talk.memory.flush()
    assert len(talk.memory.archive.facts.by_ids(ids)) == 1


def test_forgetting_a_turn_forgets_what_it_stated(talk: Talk) -> None:
    row = talk.say("不碰银行股，成本价1500买的茅台")
    assert len(talk.rows()) == 2
    assert len(talk.memory.forget(row)) == 3
    assert talk.rows() == []
    (talk.memory.folder / "journal" / "dialogue.json").unlink()
    talk.say("谢谢")
    assert talk.rows() == []


def test_what_a_forgotten_turn_has_not_yet_stated_is_never_made(memory: Memory) -> None:
    talk = Talk(memory)
    row = memory.log_turn(Turn("不碰银行股", "好", talk.at, "t1", "s"))
    memory.forget(row)
    memory.flush()
    assert talk.rows() == []


def test_an_older_rule_stands_again_when_the_newer_is_forgotten(talk: Talk) -> None:
    talk.say("不碰银行股")
    withdrawn = talk.say("银行股可以碰了")
    assert talk.texts("preference") == ["银行股可以碰了"]
    talk.memory.forget(withdrawn)
    assert talk.texts("preference") == ["不碰银行股"]


def test_a_rebuilt_index_knows_which_turn_said_it(talk: Talk) -> None:
    turn = talk.say("不碰银行股")
    assert [row.extra["turn"] for row in talk.rows()] == [turn]


@pytest.fixture
def silent(home: Path) -> Iterator[Memory]:
    config = "plugins: {entries: {hermes-memory: {settings: {dialogue: {facts: false}}}}}"
    (home / "config.yaml").write_text(config, encoding="utf-8")
    with Memory.open(home) as memory:
        yield memory


def test_whoever_does_not_want_it_keeps_his_turns_only(silent: Memory) -> None:
    talk = Talk(silent)
    talk.say("不碰银行股")
    assert talk.rows() == []


def test_secret_is_never_part_of_a_fact(talk: Talk) -> None:
    talk.say("以后用这把钥匙查数据：sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    assert not any("abcdefghijklmnop" in text for text in talk.texts())


def test_what_was_just_said_in_this_conversation_is_not_said_back(talk: Talk) -> None:
    talk.say("不碰银行股，成本价1500买的茅台")
    talk.drain()
    from hermes_memory_hookspecs import Session, UserMessage
    from hermes_memory_plugin.plugin import TurnContext

    def given(session: str, transcript: list[dict[str, str]]) -> str:
        turn = TurnContext(talk.memory.home, first=not transcript)
        message = UserMessage("推荐几只高股息股票，茅台成本是多少？")
        return talk.memory.recall_for_turn(Session(session), message, transcript, turn).block

    earlier = [
        {"role": "user", "content": "不碰银行股，成本价1500买的茅台"},
        {"role": "assistant", "content": "好的"},
    ]
    assert "不碰银行股" not in given("s", earlier) and "1,500" not in given("s", earlier)
    assert "不碰银行股" in given("s", [])  # compressed away
    assert "不碰银行股" in given("t", earlier[:0])
