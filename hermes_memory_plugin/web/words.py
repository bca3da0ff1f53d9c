"""What the page says, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES = {"en": "English", "zh": "中文"}

_WORDS: Mapping[str, tuple[str, str]] = {
    "title": ("Memory", "记忆"),
    "skip": ("Skip to the content", "跳到正文"),
    "views": ("Views", "页面"),
    "language": ("Language", "语言"),
    "overview": ("Overview", "概览"),
    "ask": ("Ask", "提问"),
    "facts": ("Facts", "事实"),
    "scenes": ("Scenes and notes", "场景与笔记"),
    "reports": ("Reports", "研报"),
    "page_number": ("Page", "页"),
    "passages": ("Passages", "段落"),
    "trace": ("Trace", "调用记录"),
    "injections": ("Injections", "注入记录"),
    "trash": ("Trash", "回收站"),
    "owner": ("Owner", "所属人"),
    "show": ("Show", "查看"),
    "rows": ("Rows", "记录数"),
    "layer": ("Layer", "层"),
    "L0": ("L0 log", "L0 日志"),
    "L1": ("L1 facts", "L1 事实"),
    "L2": ("L2 notes and scenes", "L2 笔记与场景"),
    "L3": ("L3 persona", "L3 画像"),
    "report": ("Reports", "研报"),
    "home": ("Home", "目录"),
    "size": ("Size", "占用空间"),
    "degraded": ("Degraded in the last week", "最近一周的降级"),
    "problems": ("Problems", "问题"),
    "healthy": ("No problems, nothing degraded.", "没有问题，没有降级。"),
    "saved": ("Tokens kept out of the context this week", "本周省下的 token"),
    "injected": ("Tokens injected by the last recalls", "最近召回注入的 token"),
    "question": ("Question", "问题"),
    "recall": ("Recall", "召回"),
    "given": ("What a turn would get", "这一轮会得到什么"),
    "left_out": ("Left out, and why", "没有给出的，及原因"),
    "ranked": ("Ranked over every layer", "各层排名"),
    "nothing_given": ("Nothing: no row is about this question.", "什么都不会注入：没有与问题有关的记录。"),
    "reasons": ("Reasons", "理由"),
    "score": ("Score", "得分"),
    "tokens": ("tokens", "token"),
    "search": ("Search", "搜索"),
    "subject": ("Ticker", "代码"),
    "metric": ("Metric", "指标"),
    "period": ("Period", "期间"),
    "state": ("State", "状态"),
    "any_state": ("any", "全部"),
    "live": ("live", "有效"),
    "superseded": ("superseded", "已被取代"),
    "expired": ("expired", "已过期"),
    "find": ("Find", "查找"),
    "statement": ("Statement", "内容"),
    "as_of": ("As of", "截至"),
    "source": ("Source", "来源"),
    "value": ("Value", "数值"),
    "handle": ("Handle", "编号"),
    "none": ("Nothing here.", "这里没有记录。"),
    "newer": ("Newer", "较新"),
    "older": ("Older", "较早"),
    "history": ("History", "历史"),
    "change": ("Change", "变化"),
    "fields": ("Fields", "字段"),
    "forget": ("Forget", "遗忘"),
    "forget_ask": ("Forget this?", "要遗忘吗？"),
    "forget_takes": ("These rows would go:", "将会遗忘这些记录："),
    "forget_shaken": ("Conclusions whose basis would change:", "依据会变化的结论："),
    "forget_unreached": ("What it cannot reach:", "无法触及的地方："),
    "forget_undo": ("It can be restored from the trash for 30 days.", "30 天内可以从回收站恢复。"),
    "cancel": ("Cancel", "取消"),
    "restore": ("Restore", "恢复"),
    "until": ("Until", "保留到"),
    "time": ("Time (UTC)", "时间（UTC）"),
    "tool": ("Tool", "工具"),
    "call": ("Call", "调用"),
    "session": ("Session", "会话"),
    "status": ("Status", "结果"),
    "arguments": ("Arguments", "参数"),
    "result": ("Result", "返回"),
    "wrong": ("This did not work", "操作没有成功"),
    "back": ("Back", "返回"),
    "cut_short": ("The result is longer; `hermes-memory trace ID --full` shows all.", "返回内容较长；用 `hermes-memory trace ID --full` 查看全部。"),
}  # fmt: skip


def words(language: str) -> dict[str, str]:
    """Every word of the page in one language."""
    place = list(LANGUAGES).index(language)
    return {name: both[place] for name, both in _WORDS.items()}


def chosen(wanted: str, accepted: str) -> str:
    """The language asked for, else the one the browser prefers (its Accept-Language), else English."""
    if wanted in LANGUAGES:
        return wanted
    for part in accepted.lower().split(","):
        first = part.split(";")[0].strip().split("-")[0]
        if first in LANGUAGES:
            return first
    return "en"
