"""The demo: bundled A-share facts, tool calls and preferences, four questions, and what a model would get for each."""

from __future__ import annotations

import json
import locale
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs.types import Session, ToolTrace
from hermes_memory_plugin.memory import Memory

if TYPE_CHECKING:
    from rich.console import Console

NOW = datetime(2026, 5, 7, 1, 30, tzinfo=UTC)
"""The demo's today, so that it gives the same answers every day."""

_LABELS = {
    "en": {
        "intro": "A temporary home with {facts} facts, {traces} tool calls and {rules} standing preferences "
        "(invented figures). Each question opens a conversation; below it is what a model would get beside it.",
        "measured": "{tokens} tokens · {ms:.1f} ms",
        "nothing": "(nothing: 0 tokens)",
        "broken": "This is not what the demo promises; run `hermes-memory doctor`.",
        "next": "Beside your Hermes: hermes-memory enable",
    },
    "zh": {
        "intro": "临时目录里有 {facts} 条事实、{traces} 次工具调用、{rules} 条长期偏好（数字为虚构示例）。"
        "每个问题都是一次新对话；下面是模型会随问题一起看到的内容。",
        "measured": "{tokens} tokens · {ms:.1f} 毫秒",
        "nothing": "（什么也不带：0 tokens）",
        "broken": "结果与演示的承诺不符，请运行 hermes-memory doctor。",
        "next": "接入 Hermes：hermes-memory enable",
    },
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The result as data and as a page."""

    data: dict[str, Any]
    language: str

    def page(self, out: Console) -> None:
        """Print it."""
        from rich.text import Text

        from hermes_memory_plugin.cli.output import shown

        labels = _LABELS[self.language]
        out.print(Text(labels["intro"].format(**self.data["stored"]), style="dim"))
        for number, answer in enumerate(self.data["questions"], 1):
            out.print(
                Text.assemble(f"\n{number}. ", (answer["question"], "bold"), (f"   {answer['what']}", "dim"))
            )
            if answer["block"]:
                out.print(Text(shown(answer["block"]), style="cyan"))
                out.print(Text(labels["measured"].format(**answer), style="green"))
            else:
                out.print(Text(f"{labels['nothing']} · {answer['ms']:.1f} ms", style="green"))
        out.print(Text("\n" + labels["next" if self.data["as_promised"] else "broken"], style="bold"))


def language() -> str:
    """`zh` where the user's language is Chinese, else `en`."""
    said = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    name = said or locale.getlocale()[0] or ""
    return "zh" if name.lower().startswith(("zh", "chinese")) else "en"


def run(lang: str) -> Shown:
    """Fill a temporary home, ask the questions, and say whether each got what it should."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-memory-demo-") as folder,
        Memory.open(Path(folder)) as memory,
    ):
        stored = _fill(memory)
        memory.begin(Session(id="demo"))
        answers = [_ask(memory, number, question, lang) for number, question in enumerate(_data("questions"))]
    return Shown(
        {"stored": stored, "questions": answers, "as_promised": all(a["as_promised"] for a in answers)}, lang
    )


def _fill(memory: Memory) -> dict[str, int]:
    traces, facts, rules = _data("traces"), _data("facts"), _data("preferences")
    for trace in traces:
        memory.log(ToolTrace(**{**trace, "at": datetime.fromisoformat(trace["at"])}))
    memory.remember_many(facts)
    for rule in rules:
        memory.remember(rule["content"], title=rule["title"], type=rule["type"])
    memory.flush()
    return {"facts": len(facts), "traces": len(traces), "rules": len(rules)}


def _ask(memory: Memory, number: int, question: Mapping[str, Any], lang: str) -> dict[str, Any]:
    found = memory.recall(question["text"], session=Session(id=f"demo-{number}"), now=NOW)
    wanted = question["carries"]
    return {
        "question": question["text"],
        "what": question[lang],
        "block": found.block,
        "tokens": found.tokens,
        "ms": round(found.milliseconds, 1),
        "items": [item.id for item in found.items],
        "as_promised": all(text in found.block for text in wanted) if wanted else found.block == "",
    }


def _data(name: str) -> list[dict[str, Any]]:
    file = resources.files("hermes_memory_plugin.cli") / "demo_data" / f"{name}.json"
    loaded: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return loaded
