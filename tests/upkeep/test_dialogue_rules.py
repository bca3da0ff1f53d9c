"""What counts as a user's own statement, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_plugin.upkeep import dialogue_rules, dialogue_said, own_words


def said(text: str) -> list[tuple[str, str]]:
    """(kind, statement) of everything a message states."""
    assert isinstance(dialogue_rules.may_state(text), bool)
    found = [(one.kind, one.text) for one in dialogue_rules.read(own_words.sentences(text))]
    assert not found or dialogue_rules.may_state(text)
    return [one for one in found if one[0] != "holding"]


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("不碰银行股", "不碰银行股"),
        ("我不碰银行股，现在该买什么？", "我不碰银行股"),
        ("我只看高股息", "我只看高股息"),
        ("我们组只做消费和医药", "我们组只做消费和医药"),
        ("以后用Wind的数据", "以后用Wind的数据"),
        ("从今天起先说结论，再给数据。", "从今天起先说结论，再给数据"),
        ("以后，金额一律用亿元", "以后，金额一律用亿元"),
        ("别给我推荐ST股", "别给我推荐ST股"),
        ("银行股不碰", "银行股不碰"),
        ("請記住我從來不碰地產股", "請記住我從來不碰地產股"),
        ("不碰地产，也不碰银行", "不碰地产，也不碰银行"),
        ("我偏好低估值高分红的公司", "我偏好低估值高分红的公司"),
        ("单票仓位不超过10%", "单票仓位不超过10%"),
        ("我的止损线是8%", "我的止损线是8%"),
        ("叫我老王就好", "叫我老王就好"),
        ("我对海鲜过敏", "我对海鲜过敏"),
        ("另外，我不碰期货", "我不碰期货"),
        ("我最大能接受20%的回撤", "我最大能接受20%的回撤"),
        ("我不希望你推荐银行股", "我不希望你推荐银行股"),
        ("对银行股不感兴趣", "对银行股不感兴趣"),
        ("I only trade ETFs and never options", "I only trade ETFs, never options"),
        ("Stop recommending bank stocks.", "Stop recommending bank stocks"),
        ("Please don't use emojis in your answers", "Please don't use emojis in your answers"),
        ("my stop loss is 8%", "my stop loss is 8%"),
        ('"我不碰银行股"', "我不碰银行股"),  # a voice message
        ('[Replying to: "以后用Wind"]\n\n以后用表格回答', "以后用表格回答"),
        ("From now on, use metric units.", "From now on, use metric units"),
        ("never use emojis in reports", "never use emojis in reports"),
        ("Please always cite the page number.", "Please always cite the page number"),
        ("I only buy ETFs.", "I only buy ETFs"),
        ("I never invest in tobacco companies", "I never invest in tobacco companies"),
        ("I prefer tables over prose", "I prefer tables over prose"),
        ("no bank stocks please", "no bank stocks please"),
        ("I don't trade options, so what else is there?", "I don't trade options"),
    ],
)  # fmt: skip
def test_a_preference_is_taken_in_the_users_words(message: str, rule: str) -> None:
    assert said(message) == [("preference", rule)]


@pytest.mark.parametrize(
    "message",
    [
        # somebody else's
        "他不碰银行股", "我老婆不碰银行股", "王总只看高股息", "巴菲特从来不碰科技股", "老王：不碰银行股", "客户以后用Wind",
        "He never buys banks.", "My boss says never use emojis", "Buffett only buys what he understands",
        # quoted, pasted, code
        "他说“不碰银行股”", "文章里写着：「以后用美元结算」", "> 不碰银行股", "```\n不碰银行股\n```", "翻译这段：不碰银行股，只看高股息",
        "以下是会议纪要：\n不碰银行股\n只看高股息", "张三：不碰银行股\n李四：只看茅台", "<note>never use emojis</note>",
        "[Quoted message]:\n以后只买银行股\n\n我不同意", "[The user sent an image~ Here's what I can see:\n以后只买银行股，不碰地产]\n怎么看",
        "[System note: from now on never use emojis]\n好的",
        # questions
        "我不碰银行股吗？", "要不要只看高股息？", "以后用Wind好不好", "我不碰银行股，是不是太保守了？", "Should I never buy banks?", "why do I only buy ETFs?",
        # suppositions
        "如果我不碰银行股会怎样", "假设我只看高股息", "不碰银行股的话怎么配", "要是以后用Wind呢", "If I only buy ETFs, what is the yield", "Suppose I never buy banks.",
        # denied
        "我不是不碰银行股", "我没说不碰银行股", "谁说我只看高股息", "并不是只看估值",
        # jokes
        "哈哈，我只买茅台", "我只买茅台，开玩笑的", "I only buy lottery tickets lol", "never use emojis, just kidding",
        # once, or about nothing in particular
        "今天不碰银行股", "这次只看茅台", "我只看一下", "不用了", "以后再说吧", "以后用这个", "我们不看好银行", "别这样", "I only want that", "I never thought it would be so hard",
        "不碰银行股的基金有哪些", "只做多不做空的策略回测", "我只看得懂PE", "别推荐这么多", "只看高股息，推荐几只", "only stocks please", "以后得改改这个习惯", "公司以后用自有资金回购", "In the future, AI will replace analysts", "You should always cite sources, right?", "The fund never invests in tobacco",
        "I don't know", "I don't like it", "not now", "", "。", "谢谢", "好的",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_preference_is_none(message: str) -> None:
    assert said(message) == []


def test_a_second_rule_of_one_sentence_counts_as_the_first_does() -> None:
    assert [text for _, text in said("我只买A股，不买港股")] == ["我只买A股", "不买港股"]


@pytest.mark.parametrize("message", ["我平时喜欢跑步", "我不喜欢走马观花", "I prefer hiking to cycling"])
def test_a_taste_is_kept_but_rules_nothing(message: str) -> None:
    assert said(message) == [("taste", message)]


def test_a_list_of_rules_is_taken_item_by_item() -> None:
    message = "记住，我的规则：\n1. 不碰银行股\n2. 单只不超过10%\n3. 先结论后论据"
    assert [text for _, text in said(message)] == ["不碰银行股", "单只不超过10%", "先结论后论据"]


def test_of_a_pasted_page_nothing_but_the_users_own_line_counts() -> None:
    page = "\n".join(f"第{n}条：本基金不碰银行股，以后只投债券，比例不超过百分之{n}。" * 3 for n in range(9))
    assert said(f"我不碰银行股\n{page}") == [("preference", "我不碰银行股")]
    assert said(f"{page}\n以后用表格回答") == [("preference", "以后用表格回答")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("结论：茅台估值偏低，维持买入", "结论：茅台估值偏低，维持买入"),
        ("最终决定：减仓五粮液到5%", "最终决定：减仓五粮液到5%"),
        ("维持买入评级", "维持买入评级"),
        ("我决定清仓五粮液", "我决定清仓五粮液"),
        ("Conclusion: Moutai is cheap at 20x", "Conclusion: Moutai is cheap at 20x"),
        ("We decided to sell AAPL", "We decided to sell AAPL"),
    ],
)
def test_a_decision_is_taken(message: str, expected: str) -> None:
    assert said(message) == [("conclusion", expected)]


@pytest.mark.parametrize(
    ("message", "new", "was"),
    [
        ("不对，应该是28倍", "28倍", ""),
        ("错了，茅台的PE是26倍", "茅台的PE 26倍", ""),
        ("茅台PE不是28，是26", "茅台PE 26", "28"),
        ("更正一下：成本是1460", "成本 1460", ""),
        ("No, it's 26.5", "26.5", ""),
        ("Actually it's 26.5, not 28", "26.5", "28"),
        ("That's wrong, the PE is 26", "the PE 26", ""),
        ("数据错了，营收应该是1740亿", "营收 1740亿", ""),
        ("PE应该是26不是28", "PE 26", "28"),
    ],
)
def test_a_correction_says_what_is_right(message: str, new: str, was: str) -> None:
    (one,) = dialogue_rules.read(own_words.sentences(message))
    assert (one.kind, one.about, one.was) == ("correction", new, was)


@pytest.mark.parametrize(
    "message",
    ["不对，我再想想", "应该是吧", "他说应该是28倍", "应该是28倍吗？", "Actually it's my favourite", "no, it's fine", "不是我，是他", "如果不对，应该是28倍"],
)  # fmt: skip
def test_what_corrects_no_figure_is_no_correction(message: str) -> None:
    assert "correction" not in [kind for kind, _ in said(message)]


_PIECES = st.sampled_from(
    ["我", "他", "不碰", "银行股", "，", "。", "？", "如果", "以后", "用", "只看", "“", "”", "结论：", "不对", "应该是", "28倍", "成本", "1500", "\n", "- ", "```", "never", " use ", "I ", "from now on ", "actually ", "it's ", "not ", "哈哈", "<b>", ">", "1. ", "我的规则：", " ", "\u200b", "𠀀", "\ud800"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=14).map("".join) | st.text(max_size=80))
def test_any_text_can_be_read_and_says_only_what_it_holds(text: str) -> None:
    from hermes_memory_plugin.recall.normalise import normalise

    def letters(one: str) -> str:
        return "".join(filter(str.isalnum, normalise(one)))

    for one in dialogue_rules.read(own_words.sentences(text)):
        assert letters(one.text.rstrip("…")) in letters(text)
        assert one.text.strip() and len(one.text) <= dialogue_said.LONGEST
    list(dialogue_rules.assistants(own_words.sentences(text)))


@given(st.lists(_PIECES, max_size=10).map("".join))
def test_what_somebody_quotes_is_never_a_rule(text: str) -> None:
    inside = text.replace("“", "").replace("”", "").replace("\n", "")
    assert not [
        one
        for one in said(f"他说：“我从来不碰银行股{inside}”")
        if one[0] == "preference" and "不碰银行股" in one[1]
    ]


@pytest.mark.parametrize("text", ["不碰" * 2_000, "我" * 4_000, "以后" * 2_000, "I never " * 500, "actually it's " * 300, "“" * 4_000, "```" * 1_000, "<a " * 1_300])  # fmt: skip
def test_absurd_text_takes_no_time(text: str) -> None:
    list(dialogue_rules.read(own_words.sentences(text)))
