"""What sets rows apart where all of them are alike, and what a name, a date and an age count for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall.index_view import View

NOW = "2026-08-20"
BOB = Owner(platform="telegram", user_id="102")
DESK = (
    "门禁卡消磁了去哪里重新写", "门禁卡丢了要赔多少钱", "门禁卡可以借给同事用吗", "访客的门禁卡怎么申请", "周末刷门禁卡进不去大楼",
    "门禁卡能不能绑到手机上", "门禁卡照片拍得不好能换吗", "离职时门禁卡交给谁", "门禁卡刷了没反应是不是坏了", "新员工门禁卡几天能拿到",
    "门禁卡的押金什么时候退", "门禁卡在哪个部门领", "门禁卡有效期到了怎么续", "门禁卡押金可以开发票吗", "同事的门禁卡我能代领吗", "门禁卡申请被退回是什么原因",
)  # fmt: skip


def view_of(memory: Memory) -> View:
    memory.reader.refresh()
    return memory.reader.index.view(memory.keys(None), now_us=1)


def explicit(memory: Memory, question: str) -> list[str]:
    return [item.text for item in memory.recall(question, mode="explicit", now=NOW).items]


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("门禁卡过期了如何延长", "门禁卡有效期到了怎么续"), ("休息日门禁卡打不开楼门", "周末刷门禁卡进不去大楼"), ("刚入职多久发门禁卡", "新员工门禁卡几天能拿到"),
        ("来客人了门禁卡怎么办理", "访客的门禁卡怎么申请"), ("门禁卡没磁了到哪儿弄", "门禁卡消磁了去哪里重新写"), ("门禁卡借别人用可不可以", "门禁卡可以借给同事用吗"),
    ],
)  # fmt: skip
def test_among_rows_of_one_thing_the_one_that_says_the_same_is_best(
    memory: Memory, question: str, row: str
) -> None:
    for statement in DESK:
        memory.remember(statement)
    assert explicit(memory, question)[0] == row


def test_what_others_store_does_not_move_the_mean(memory: Memory) -> None:
    memory.remember("门禁卡能不能绑到手机上")
    memory.remember("茶水间的咖啡机坏了")
    before = view_of(memory).mean
    assert before.any()
    for number in range(300):
        memory.remember(f"第{number}号车位的月租涨了", owner=BOB)
    assert np.array_equal(view_of(memory).mean, before)


def test_two_rows_are_not_opposites(memory: Memory) -> None:
    memory.remember("门禁卡能不能绑到手机上")
    memory.remember("门禁卡丢了要赔多少钱")
    view = view_of(memory)
    rows = view.vectors(view.numbers()) - view.mean
    assert float(rows[0] @ rows[1]) > 0


@pytest.mark.parametrize(
    ("question", "at_least", "at_most"),
    [("what is Oskar allergic to", 0.0, 0.77), ("where did the run end when breathing exercises on the stairs and a stretch at home were what Oskar did", 0.8, 0.99)],
)  # fmt: skip
def test_a_name_a_row_does_not_hold_counts_for_its_share_of_the_question(
    memory: Memory, question: str, at_least: float, at_most: float
) -> None:
    memory.remember(
        "Dana is allergic to peanuts; the run ended at home with breathing exercises and a stretch on the stairs"
    )
    memory.remember("Oskar has the keys")

    def score(text: str) -> float:
        items = memory.recall(text, mode="explicit", now=NOW).items
        return next(item.score for item in items if "Dana" in item.text)

    unnamed = question.replace("Oskar", "somebody")
    assert at_least <= score(question) / score(unnamed) <= at_most


def test_a_short_question_about_somebody_is_not_answered_with_another(memory: Memory) -> None:
    memory.remember("Dana is allergic to peanuts")
    memory.remember("Oskar is allergic to shellfish")
    assert explicit(memory, "what is Oskar allergic to")[0] == "Oskar is allergic to shellfish"


def test_an_event_is_of_the_day_it_was_told_whatever_month_it_names(memory: Memory) -> None:
    memory.remember("和林静约好2026年9月一起去爬黄山", as_of="2026-04-11", created_at="2026-04-11")
    memory.remember("和林静约了一起吃饭", as_of="2026-02-03", created_at="2026-02-03")
    assert explicit(memory, "2026年4月我和林静约了什么")[0] == "和林静约好2026年9月一起去爬黄山"


def test_a_figure_of_the_period_asked_for_does_not_expire(memory: Memory) -> None:
    old: dict[str, Any] = {"as_of": "2024-04-03", "created_at": "2024-04-03", "expires_at": "2024-08-01"}
    memory.remember("贵州茅台2023年归母净利润747.34亿元", **old)
    memory.remember("贵州茅台股价1700元", **old)

    def shown(question: str) -> list[str]:
        return [item.text for item in memory.recall(question, now=NOW).items]

    assert shown("贵州茅台2023年净利润是多少") == ["贵州茅台2023年归母净利润747.34亿元"]
    assert shown("贵州茅台净利润") == []
    assert shown("贵州茅台2025年净利润") == []
