"""Made-up A-share research notes in any number: real names and codes, drawn figures. The same seed gives the same text."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

_COMPANY = re.compile(r"^(\d{6}\.(?:SH|SZ|BJ)) ([^\s=<~@?]+)", re.MULTILINE)
_METRICS = (
    ("营业收入", "亿元", 3, 3_000), ("归母净利润", "亿元", 0, 800), ("毛利率", "%", 5, 95), ("净利率", "%", 1, 55),
    ("ROE", "%", 1, 38), ("市盈率", "倍", 5, 120), ("市净率", "倍", 0, 15), ("股息率", "%", 0, 8),
    ("资产负债率", "%", 10, 90), ("经营现金流", "亿元", 0, 600), ("研发费用", "亿元", 0, 200), ("存货", "亿元", 1, 500),
)  # fmt: skip
_FLOWS = ("年", "年一季度", "年上半年", "年三季度")
_PERIODS = ("", "Q1", "H1", "Q3")
_BROKERS = ("中信证券", "国泰海通", "华泰证券", "招商证券", "申万宏源", "中金公司", "广发证券", "兴业证券")
_WHY = (
    "高端产品占比提升", "原材料价格回落", "海外订单放量", "新产能爬坡", "渠道库存去化", "费用率下降", "汇兑损失扩大",
    "行业价格战加剧", "补贴退坡", "大客户认证通过", "集采降价影响", "存货减值计提", "锂价下跌", "地产链需求走弱",
)  # fmt: skip
_WHERE = ("电话会纪要", "年报附注", "调研记录", "路演问答", "产业链访谈", "公告", "晨会纪要")
_VIEWS = (
    "维持买入",
    "上调至增持",
    "下调至中性",
    "首次覆盖给予买入",
    "目标价上调",
    "建议观望等回调",
    "列入观察名单",
)
_ASKED = (
    "{name}{year}年的{metric}是多少", "{code} {metric}", "{name}最近为什么{why}", "{broker}怎么看{name}",
    "对比{name}和{other}的{metric}", "{name} {year}Q1 {metric} 同比", "调研{name}时管理层怎么说库存",
    "What was the {metric} of {code} in {year}?", "{name}便宜吗", "去年三季报{name}{metric}怎么样",
)  # fmt: skip


def companies() -> list[tuple[str, str]]:
    """(code, name) of every company in the plugin's own list."""
    text = (files("hermes_memory_plugin.recall") / "data" / "entities.txt").read_text(encoding="utf-8")
    return _COMPANY.findall(text)


def facts(count: int, *, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Facts as `Memory.remember_many` takes them: half are typed figures, the other half are prose."""
    draw = random.Random(seed)
    known = companies()
    for number in range(count):
        code, name = draw.choice(known)
        metric, unit, low, high = draw.choice(_METRICS)
        year, part = draw.randint(2012, 2026), draw.randrange(4)
        value = round(draw.uniform(low, high), 1)
        change = round(draw.uniform(-40, 60), 1)
        day = datetime(year, 1 + 3 * part, 1, tzinfo=UTC) + timedelta(days=draw.randint(20, 110))
        broker, why, where = draw.choice(_BROKERS), draw.choice(_WHY), draw.choice(_WHERE)
        moved = "提升" if change > 0 else "下滑"
        base: dict[str, Any] = {"as_of": day, "created_at": day}
        if number % 2:
            yield base | {
                "statement": f"{name}（{code}）{year}{_FLOWS[part]}{metric}{value}{unit}，同比{moved}{abs(change)}%，主因{why}",
                "subject": code,
                "metric": metric,
                "period": f"{year}{_PERIODS[part]}",
                "value": value,
                "unit": unit,
                "source": "财报数据接口",
                "origin": "tool",
                "tool_call_id": f"call_{number // 8:07d}",
            }
        else:
            yield base | {
                "statement": f"{broker}{day:%m月%d日}{where}：{name}{why}，预计{year + 1}年{metric}{moved}到{value}{unit}左右，"
                f"{draw.choice(_VIEWS)}；风险在于{draw.choice(_WHY)}",
                "source": broker,
                "origin": "report",
            }


def questions(count: int, *, seed: int = 2) -> list[str]:
    """Questions to such facts, as people type them."""
    draw = random.Random(seed)
    known = companies()
    asked = []
    for number in range(count):
        (code, name), (_, other) = draw.choice(known), draw.choice(known)
        asked.append(
            _ASKED[number % len(_ASKED)].format(
                name=name, other=other, code=draw.choice((code, code[:6])), metric=draw.choice(_METRICS)[0],
                year=draw.randint(2018, 2026), why=draw.choice(_WHY), broker=draw.choice(_BROKERS),
            )
        )  # fmt: skip
    return asked


def result(size: int, *, seed: int = 3) -> str:
    """What a tool gives back: a table as JSON lines, about so many bytes."""
    draw = random.Random(seed)
    known = companies()
    lines: list[str] = []
    length = 0
    while length < size:
        code, name = draw.choice(known)
        close, pe = round(draw.uniform(5, 1_800), 2), round(draw.uniform(5, 90), 1)
        lines.append(
            f'{{"code":"{code}","name":"{name}","close":{close},"pe_ttm":{pe},"note":"成交{draw.randint(1, 90)}亿元"}}\n'
        )
        length += len(lines[-1].encode())
    return "".join(lines).encode()[:size].decode("utf-8", "ignore")
