"""A verdict in words a person can act on: what is on record, of which day, and by which call, in his language."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Verdict
from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.recall import block, metrics, times
from hermes_memory_plugin.recall.figure_names import family
from hermes_memory_plugin.recall.figures import Figure
from hermes_memory_plugin.upkeep.readings import Reading

if TYPE_CHECKING:
    from hermes_memory_plugin.upkeep.evidence import Evidence, Piece
    from hermes_memory_plugin.upkeep.verify import Judged
    from hermes_memory_plugin.verbs import Verbs

FROM_TO = re.compile(r"(?:从|由).*(?:到|至|升至|增至|降至)|\bfrom\b.*\bto\b", re.IGNORECASE)
_ARGUMENTS, _EXCERPT = 200, 160
_STATUS = {
    "supported": ("有据可查", "Supported"),
    "changed": ("当时如此，现已变化", "Changed since"),
    "expired": ("有过记录，但已过期", "Expired"),
    "contradicted": ("与记录不符", "Contradicted"),
    "unknown": ("没有记录可以证明", "Unknown"),
}


def as_reading(figure: Figure) -> Reading:
    """A figure of the text itself as something to compute with."""
    return Reading(
        figure.amount.value,
        figure.amount.unit,
        figure.subject,
        figure.metric,
        figure.exact,
        kind="user",
        words=figure.words,
    )


def moment_of(microseconds: int) -> datetime:
    """A row's time."""
    return moment(microseconds) or datetime.fromtimestamp(0, UTC)


class Words:
    """Says verdicts in one language; everything that was stored is made harmless first."""

    def __init__(self, language: str, evidence: Evidence, memory: Verbs) -> None:
        self._zh = language == "zh"
        self._evidence = evidence
        self._index = memory.reader.index

    def nothing(self) -> str:
        """The text states no figure."""
        return (
            "这段话里没有可以核对的数字：写明谁的、哪个指标、多少，例如“茅台 PE 28 倍”。"
            if self._zh
            else "There is no figure to check in this text: say whose, which metric and how much, as in “Moutai PE 28x”."
        )

    def together(self, status: str, parts: Sequence[Verdict]) -> str:
        """Several claims in one paragraph."""
        head = (
            f"{len(parts)} 处说法，整体：{self._status(status)}。"
            if self._zh
            else f"{len(parts)} claims, overall: {self._status(status)}."
        )
        return "\n".join([head, *(f"{number}. {one.said}" for number, one in enumerate(parts, 1))])

    def said(self, judged: Judged) -> str:
        """One claim."""
        parts = [self._head(judged)]
        for piece in (judged.old, judged.new):
            if piece is not None:
                parts.append(self._proof(piece))
        dated = judged.old or judged.new
        if judged.elsewhen and dated is not None:
            on = self._day(dated)
            parts.append(
                f"说法里的时间没有这条记录，记录是 {on} 的。"
                if self._zh
                else f"Not of the time named: the record is of {on}."
            )
        if judged.computed is not None:
            parts.append(
                f"算式：{judged.computed.formula}。" if self._zh else f"Computed: {judged.computed.formula}."
            )
            parts += [self._call(one.call, one.words) for one in judged.computed.inputs if one.call]
        if judged.status == "unknown":
            parts += self._told(judged)
        return " ".join(dict.fromkeys(part for part in parts if part))

    def _head(self, judged: Judged) -> str:
        claim = f"“{block.harmless(judged.figure.words[:80])}”"
        status = self._status(judged.status)
        old, new = judged.old, judged.new
        if judged.status == "changed" and old and new:
            return (
                f"{claim}：{status}：{self._figure(old)}（{self._day(old)}）→ {self._figure(new)}（{self._day(new)}）。"
                if self._zh
                else f"{claim}: {status}: {self._figure(old)} ({self._day(old)}) → {self._figure(new)} ({self._day(new)})."
            )
        if judged.status == "contradicted" and new:
            both = f"；另有一条 {self._figure(old)}（{self._day(old)}）" if old else ""
            return (
                f"{claim}：{status}：记录是 {self._figure(new)}（{self._day(new)}）{both}。"
                if self._zh
                else f"{claim}: {status}: on record is {self._figure(new)} ({self._day(new)})"
                + (f", beside {self._figure(old)} ({self._day(old)})." if old else ".")
            )
        piece = old or new
        if piece is None:
            return f"{claim}：{status}。" if self._zh else f"{claim}: {status}."
        state = ""
        if judged.status == "unknown":
            state = "最近的记录是 " if self._zh else "last on record: "
        later = ""
        if judged.status == "supported" and old and new:
            later = (
                f"；之后为 {self._figure(new)}（{self._day(new)}）"
                if self._zh
                else f"; later {self._figure(new)} ({self._day(new)})"
            )
        return (
            f"{claim}：{status}：{state}{self._figure(piece)}（{self._day(piece)}）{later}。"
            if self._zh
            else f"{claim}: {status}: {state}{self._figure(piece)} ({self._day(piece)}){later}."
        )

    def _proof(self, piece: Piece) -> str:
        said = self._call(piece.reading.call, self._evidence.excerpt(piece) if piece.reading.call else "")
        if piece.row is None:
            return said
        name = self._index.handle(piece.row)
        source = block.harmless(piece.row.source[:80])
        if self._zh:
            return (
                f"事实 [{name}]"
                + (f"，来源 {source}" if source and not said else "")
                + ("；" + said if said else "。")
            )
        return (
            f"Fact [{name}]"
            + (f", source {source}" if source and not said else "")
            + ("; " + said if said else ".")
        )

    def _call(self, call_id: str, excerpt: str) -> str:
        call = self._evidence.call(call_id)
        if call is None:
            return ""
        arguments = block.harmless(json.dumps(call.args, ensure_ascii=False, default=str)[:_ARGUMENTS])
        words = block.harmless(" ".join(excerpt.split())[:_EXCERPT])
        at = f"{call.at:%Y-%m-%d %H:%M} UTC"
        if self._zh:
            return f"出自调用 {call.tool_name}（{at}，{call.tool_call_id}），参数 {arguments}" + (
                f"，结果 “{words}”。" if words else "。"
            )
        return f"from the call {call.tool_name} ({at}, {call.tool_call_id}), arguments {arguments}" + (
            f", result “{words}”." if words else "."
        )

    def _told(self, judged: Judged) -> list[str]:
        """The number was said before; had that answer a source?"""
        out = []
        for link, at in judged.said[:1]:
            on = f"{at:%Y-%m-%d}" if at else "?"
            if link.kind == "none":
                out.append(
                    f"{on} 的回答说过它，当时也没有来源。"
                    if self._zh
                    else f"An answer of {on} said it, without a source even then."
                )
            elif link.call:
                out.append(self._call(link.call, link.words))
            else:
                out.append(
                    f"{on} 的回答说过它：{block.harmless(link.words)}"
                    if self._zh
                    else f"An answer of {on} said it: {block.harmless(link.words)}"
                )
        return out

    def _figure(self, piece: Piece) -> str:
        one = piece.reading
        period = f"{one.period} " if one.period else ""
        basis = f"({one.basis.upper()})" if one.basis else ""
        return f"{period}{self._name(one.exact or one.metric)}{basis} {amount(piece.value, one.unit, chinese=self._zh)}"

    def _name(self, metric: str) -> str:
        """What people call a figure: PE, 营收, revenue; 归母净利润 where it is that one."""
        own = {"net_profit_parent": "归母净利润", "net_profit_deducted": "扣非净利润"}.get(metric)
        if self._zh and own:
            return own
        known = metrics.metrics().get(family(metric))
        if known is None or (metric != known.id and not own):
            return metric
        if len(known.id) <= 4:
            return known.id.upper()
        return next((name for name in known.names if name.isascii() != self._zh), known.names[0])

    def _day(self, piece: Piece) -> str:
        at = piece.reading.as_of
        if at is None:
            return "无日期" if self._zh else "undated"
        local = at if (at.hour, at.minute, at.second) == (0, 0, 0) else at.astimezone(times.SHANGHAI)
        return local.date().isoformat()

    def _status(self, status: str) -> str:
        return _STATUS[status][0 if self._zh else 1]


def amount(value: float, unit: str, *, chinese: bool) -> str:
    """A value in base units as a person reads it: 1,741.44亿元, 28.06倍, 91.8%."""
    sizes = (
        ((1e12, "万亿"), (1e8, "亿"), (1e4, "万"))
        if chinese
        else ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
    )
    words = {"CNY": "元", "HKD": "港元", "USD": "美元", "x": "倍"} if chinese else {"x": "x", "CNY": " yuan"}
    scale, word = next(((size, name) for size, name in sizes if abs(value) >= size), (1.0, ""))
    number = f"{value / scale:,.4f}".rstrip("0").rstrip(".")
    return f"{number}{word}{words.get(unit, unit if chinese or unit == '%' else f' {unit}' if unit else '')}"
