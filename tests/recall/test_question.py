"""What a message asks: about whom, which figure, when, and whether it asks anything at all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.recall.lexicon import Lexicon
from hermes_memory_plugin.recall.question import Question

NOW = datetime(2026, 10, 15, 3, tzinfo=UTC)
LEXICON = Lexicon()


def ask(text: str, *history: str) -> Question:
    return Question.parse(text, now=NOW, lexicon=LEXICON, history=history)


@pytest.mark.parametrize(
    "text",
    [
        "你好", "您好！", "在吗", "早上好", "晚安", "谢谢", "谢谢你", "好的，谢谢", "好的，继续", "继续", "收到", "嗯嗯", "哈哈哈", "没问题", "太好了！", "辛苦了", "再见", "明天见", "👍", "🎉🎉", "？", "...", "",
        "好的收到，辛苦啦", "你是谁", "你会做什么", "今天天气怎么样", "讲个笑话", "写一首诗", "怎么做红烧肉", "推荐一部电影", "晚饭吃什么好", "翻译成法语", "今天星期几", "1", "今天股市真热闹呀", "大盘太刺激了！", "A股最近挺疯狂的",
        "hi", "hello there", "Thanks a lot!", "ok great", "sounds good", "go on", "good night", "bye", "how are you?", "who are you", "tell me a joke", "what's the weather today",
        "write a poem about the sea", "recommend a movie", "how do I cook rice", "yes please", "never mind", "lol",
    ],
)  # fmt: skip
def test_small_talk_asks_nothing(text: str) -> None:
    assert ask(text).small_talk


@pytest.mark.parametrize(
    "text",
    [
        "茅台谢谢", "你好，茅台PE多少", "好的谢谢，那五粮液呢", "谢谢，600519呢", "继续上次的估值分析", "好的，毛利率呢", "我喜欢的电影是什么", "我的口味你记得吗", "上次说的红烧肉做法", "还记得我的规则吗",
        "大盘太贵了吗", "市场真的好转了吗", "行情好的板块有哪些", "银行股怎么看", "推荐几只股票", "不碰什么", "部署用什么命令", "what's my favourite movie", "thanks, and Moutai?", "how do I deploy the api", "remember my usual order?", "hi, what did we decide about the schema",
    ],
)  # fmt: skip
def test_a_question_with_manners_is_still_a_question(text: str) -> None:
    assert not ask(text).small_talk


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("past_work", "上次怎么算的ROE"), ("past_work", "之前调用了哪个接口"), ("past_work", "这个数是哪来的"), ("past_work", "我们聊过宁德时代吗"), ("past_work", "How did you compute that last time?"),
        ("past_work", "what did we decide about pricing"), ("latest", "茅台最新股价"), ("latest", "current PE of Moutai"), ("compare", "茅台和五粮液哪个估值更低"), ("compare", "NVDA vs AMD gross margin"),
        ("compare", "对比一下招行和平安银行"), ("pick", "推荐几只高股息股票"), ("pick", "现在买什么好"), ("pick", "有哪些值得关注的标的"), ("pick", "what should I buy"), ("pick", "any stock ideas"),
        ("negated", "不要银行股"), ("negated", "除了茅台还有什么"), ("negated", "banks excluded, never leverage"), ("names_time", "茅台去年4月PE多少"), ("names_time", "2024-04-30的收盘价"), ("names_time", "上个月的批价"),
        ("names_time", "去年PE多少"), ("names_time", "Moutai's PE in March"),
    ],
)  # fmt: skip
def test_intent(flag: str, text: str) -> None:
    assert getattr(ask(text), flag)


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("negated", "茅台是不是贵了"), ("negated", "有没有毛利率"), ("negated", "表现不错的公司"), ("pick", "推荐一部电影"), ("pick", "茅台PE多少"), ("past_work", "茅台PE多少"), ("compare", "茅台PE多少"),
        ("names_time", "茅台PE多少"), ("names_time", "2025年报净利润"), ("names_time", "去年的营收"), ("names_time", "今年PE"), ("latest", "茅台2024年营收"),
    ],
)  # fmt: skip
def test_no_such_intent(flag: str, text: str) -> None:
    assert not getattr(ask(text), flag)


def test_a_whole_question() -> None:
    question = ask("貴州茅臺去年三季报的毛利率和PE是多少？")
    assert question.entity_ids == ("600519.SH",)
    assert question.metrics == ("gross_margin", "pe")
    assert question.periods == ("2025Q3",)
    assert {"~2025q3", "~y2025", "茅台"} <= set(question.content)
    assert not {"是", "的", "多少", "和"} & set(question.content)
    assert question.language == "zh"


def test_the_time_of_a_dated_question() -> None:
    question = ask("茅台去年4月PE多少")
    assert question.since == datetime(2025, 3, 31, 16, tzinfo=UTC)
    assert question.until == datetime(2025, 4, 30, 15, 59, 59, tzinfo=UTC)


def test_sectors_bring_their_members() -> None:
    question = ask("白酒股里谁的股息率最高")
    assert question.sectors == ("白酒",)
    assert {"600519.SH", "000858.SZ"} <= question.members
    assert question.entities == ()


@pytest.mark.parametrize(
    ("history", "text", "entities", "metrics", "periods"),
    [
        (["茅台去年净利润多少"], "它的PE呢？", ("600519.SH",), ("pe",), ()),
        (["茅台去年净利润多少"], "那五粮液呢", ("000858.SZ",), ("net_profit",), ("2025",)),
        (["茅台PE多少", "那五粮液呢"], "股息率呢", ("000858.SZ",), ("dividend_yield",), ()),
        (["茅台PE多少", "谢谢"], "去年呢", ("600519.SH",), ("pe",), ("2025",)),
        (["比较茅台和五粮液"], "后者的毛利率", ("000858.SZ",), ("gross_margin",), ()),
        (["比较茅台和五粮液"], "它们的ROE", ("600519.SH", "000858.SZ"), ("roe",), ()),
        (["招行怎么样"], "毛利率多少", ("600036.SH",), ("gross_margin",), ()),
        (["What is Moutai's PE?"], "what about Wuliangye?", ("000858.SZ",), ("pe",), ()),
        (["How is Tesla doing?"], "and its revenue?", ("TSLA",), ("revenue",), ()),
    ],
)
def test_a_follow_up_takes_what_it_leaves_out(
    history: list[str],
    text: str,
    entities: tuple[str, ...],
    metrics: tuple[str, ...],
    periods: tuple[str, ...],
) -> None:
    question = ask(text, *history)
    assert question.follow_up
    assert (question.entity_ids, question.metrics, question.periods) == (entities, metrics, periods)


@pytest.mark.parametrize(
    "text", ["谢谢", "五粮液的PE多少", "推荐几只白酒股", "讲个笑话", "数据库的连接池怎么配置比较合适"]
)
def test_a_new_question_takes_nothing(text: str) -> None:
    assert not ask(text, "茅台去年净利润多少").follow_up


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("客户甲的持仓", ("客户甲",)), ("[客户甲] 能买什么", ("客户甲",)), ("【客户A】止损线", ("客户a",)), ("客户甲和客户乙分别持有什么", ("客户甲", "客户乙")), ("[client acme] holdings", ("clientacme",)),
        ("client B's rules", ("clientb",)), ("客户端报错", ()), ("大客户集中度", ()), ("client side code", ()), ("[重要] 茅台", ()),
    ],
)  # fmt: skip
def test_client_scopes(text: str, scopes: tuple[str, ...]) -> None:
    assert ask(text).scopes == scopes


@pytest.mark.parametrize(
    ("text", "language"),
    [("茅台PE多少", "zh"), ("AAPL的PE", "zh"), ("What is Moutai's PE?", "en"), ("그 회사의 이익은?", "other"), ("Сколько стоит акция?", "other"), ("トヨタの株価は？", "other")],
)  # fmt: skip
def test_language(text: str, language: str) -> None:
    assert ask(text).language == language


@pytest.mark.parametrize("where", ["start", "end"])
def test_the_question_of_a_long_paste_is_at_its_start_or_end(where: str) -> None:
    paste = "这是一段很长的会议纪要，内容与公司无关。" * 10_000
    asked = "请问贵州茅台2025年的毛利率是多少？"
    question = ask(f"{asked}\n{paste}" if where == "start" else f"{paste}\n{asked}")
    assert question.pasted
    assert question.entity_ids == ("600519.SH",)
    assert question.metrics == ("gross_margin",)
    assert len(question.tokens) < 10_000


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=120), st.lists(st.text(max_size=40), max_size=3))
def test_query_fuzz_no_crash(text: str, history: list[str]) -> None:
    question = ask(text, *history)
    assert set(question.content) <= set(question.tokens)
    assert question.names_time == (question.until is not None)
    if question.since and question.until:
        assert question.since <= question.until


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "\ud800茅台",
        "((((((",
        "a" * 200_000,
        "💥" * 5_000,
        "--no-cache -",
        '"unbalanced',
        "茅台*^~:PE",
        "20260230",
        "0" * 4_001,
    ],
)
def test_hostile_text_is_a_question_like_any_other(text: str) -> None:
    assert isinstance(ask(text, text), Question)
