"""The small readers behind the search: amounts, identifiers, denial, the question of a long message."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.recall import focus, marks, polarity, values
from hermes_memory_plugin.recall.normalise import normalise


@pytest.mark.parametrize(
    "texts",
    [
        ("1741亿", "174,144百万元", "1,741亿元", "174.1 billion"), ("30%", "百分之三十", "三成", "百分之三十点零"), ("一千二百", "1,200", "1200股"), ("五十万", "50万", "500,000"),
        ("两亿", "2亿", "200 million"), ("三成半", "35%"), ("1.5bn", "1,500 million", "15亿"), ("0.93%", "百分之零点九三"),
    ],
)  # fmt: skip
def test_one_amount_is_one_token(texts: tuple[str, ...]) -> None:
    tokens = {tuple(one.token for one in values.find(normalise(text))) for text in texts}
    assert len(tokens) == 1
    assert len(tokens.pop()) == 1


@pytest.mark.parametrize(
    "text", ["2026年", "600519", "13800138000", "q3", "v1.2.3", "三", "千万别买", "百亿", "PE 24", "2026", "成立", "一成立就"]
)  # fmt: skip
def test_codes_years_and_words_are_no_amounts(text: str) -> None:
    assert not list(values.find(normalise(text)))


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("ERR_5021", "see ERR_5021 in the log", "same"), ("ERR_5021", "ERR_5012 means declined", "other"), ("v1.2.3", "release 1.2.3", "same"), ("v1.2.3", "release 1.2.13", "other"),
        ("4.10", "4.10.2 fixes it", "same"), ("4.1", "4.10 fixes it", "other"), ("session_store.ts", "src/lib/session_store.ts signs", "same"), ("src/lib", "src/lib/a.py", "same"),
        ("工单48213", "工单48213：白屏", "same"), ("工单48213", "工单48231：乱码", "other"), ("137", "exit code 127", "other"), ("ERR_5021", "the weather", ""), ("2026", "2025", ""), ("2026Q1", "2025Q4", ""),
        ("持仓1200股", "持仓1300股", ""),
    ],
)  # fmt: skip
def test_identifiers_are_the_same_or_others(one: str, other: str, said: str) -> None:
    assert marks.compare(marks.find(normalise(one)), marks.find(normalise(other))) == said


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("除了海康，安防还有谁", ["海康"]), ("除海康威视之外的安防公司", ["海康威视"]), ("不算茅台的白酒", ["茅台"]), ("who else, other than acme, pays", ["acme"]), ("besides oskar who is coming", ["oskar"]),
        ("茅台的毛利率", []), ("除权除息日是哪天", []),
    ],
)  # fmt: skip
def test_what_is_left_out(text: str, out: list[str]) -> None:
    assert [text[start:end] for start, end in polarity.left_out(text)] == out


@pytest.mark.parametrize("text", ["万科不碰", "没中选", "moment.js is not allowed", "Oskar can't eat nuts", "从未分红", "we dropped Prisma", "避免追高"])  # fmt: skip
def test_some_texts_say_no(text: str) -> None:
    assert polarity.says_no(normalise(text))


@pytest.mark.parametrize("text", ["跌到11元可以分批买", "Oskar loves pistachio", "不仅分红还回购", "非农就业数据", "估值不错"])  # fmt: skip
def test_others_do_not(text: str) -> None:
    assert not polarity.says_no(normalise(text))


PASTED = "公司二季度毛利率环比提升。研发投入同比增长一成。海外客户订单饱满。费用率基本稳定。管理层重申全年节奏不变。在手订单充足，产能利用率维持高位。"
CALL = "Revenue grew in the mid-teens. Margins were stable. Capex will not fall. The CFO said that returns stay where they are. Demand is healthy across regions. "


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (PASTED * 2 + "\n这跟我们记的时间表一致吗？", "这跟我们记的时间表一致吗？"), ("这家的库存怎么样？\n" + PASTED * 2, "这家的库存怎么样？"),
        (CALL * 2 + "This is Tencent. What buyback did we pencil in?", "This is Tencent. What buyback did we pencil in?"), ("茅台PE多少？", "茅台PE多少？"), (PASTED * 2, PASTED * 2),
    ],
)  # fmt: skip
def test_the_question_of_a_long_message(text: str, asked: str) -> None:
    assert focus.split(text)[0].strip() == asked.strip()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400) | st.text(alphabet="除了不含一二三百千万亿%.,0159_-/av\n。？ ", max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    normal = normalise(text)
    assert all(0 <= one.start < one.end <= len(normal) for one in values.find(normal))
    assert all(mark in normal for mark in marks.find(normal))
    assert all(start <= end for start, end in polarity.left_out(normal))
    asked, rest = focus.split(text)
    assert len(asked) + len(rest) <= len(text)
