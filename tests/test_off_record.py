"""Which messages ask that their turn be not remembered, and which only use the words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_plugin import off_record


@pytest.mark.parametrize(
    "message",
    [
        "别记", "别记，我的成本是 1432", "茅台我建仓在 1432，别记", "这句别记：客户想清仓", "這句話別記", "这条不要记录，随便聊聊",
        "先别记下来。", "别记这个", "以下别记\n客户名单", "请不要记住这些", "就当闲聊，别记哈", "别记了吧", "不用记，问一句",
        "off the record: we may sell", "Off the record, what do you think?", "This is off-the-record.",
        "Please don't remember this", "don't record this message: the client leaves", "do not remember any of this.",
    ],
)  # fmt: skip
def test_these_ask_for_it(message: str) -> None:
    assert off_record.asked(message)


@pytest.mark.parametrize(
    "message",
    [
        "", "茅台PE多少", "别记错了，是 28 倍", "别记混两家公司", "我没别记的", "不要存货数据", "这个文件不要保存到桌面", "会议不用记录员",
        "记住：不碰银行股", "记一下成本 1432", "别忘记止损", "千万别记仇", "帮我特别记一下", "把笔记区别记清楚",
        "record the call", "don't record these trades in the ledger", "remember this", "offshore record", "what is the record date?",
        'what does "off the record" mean?',
    ],
)  # fmt: skip
def test_these_do_not(message: str) -> None:
    assert not off_record.asked(message)


@given(st.text(max_size=200), st.sampled_from(["别记。", "off the record"]))
def test_said_at_the_end_of_any_message_it_counts(message: str, ask: str) -> None:
    assert off_record.asked(f"{message}\n{ask}")


def test_a_long_paste_costs_little_and_its_end_is_read() -> None:
    assert off_record.asked("记录 record " * 200_000 + "\n别记")
    assert not off_record.asked("记录 record " * 200_000)
