"""The line under an answer that says where its numbers came from: how it reads, and how it is known again.

It is no part of what was said: it is taken off before an answer is stored or read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_LINE = re.compile(r"\s*\n+— (?:\d+ numbers?: |\d+ 个数字：)[^\n]*\s*$")
_SAID = {
    "call": ("来自工具调用", "call", "calls"),
    "report": ("来自研报", "report", "reports"),
    "fact": ("来自记忆", "memory", "memories"),
    "user": ("是你说的", "from you", "from you"),
    "computed": ("由有来源的数算出", "computed", "computed"),
    "none": ("没有来源", "without source", "without source"),
}


def line(counts: Mapping[str, int], pages: Sequence[int], language: str) -> str:
    """``— 5 numbers: 3 calls, 1 report p.7, 1 without source``; "" when there are none.

    counts: how many numbers of each kind; pages: of the reports
    """
    total = sum(counts.values())
    if not total:
        return ""
    parts = []
    for kind, (chinese, one, many) in _SAID.items():
        n = counts.get(kind, 0)
        if not n:
            continue
        where = ", ".join(map(str, pages)) if kind == "report" else ""
        if language == "zh":
            parts.append(f"{n} 个{chinese}" + (f"（第 {where} 页）" if where else ""))
        else:
            parts.append(f"{n} {one if n == 1 else many}" + (f" p.{where}" if where else ""))
    if language == "zh":
        return f"— {total} 个数字：{'，'.join(parts)}"
    return f"— {total} number{'' if total == 1 else 's'}: {', '.join(parts)}"


def without(answer: str) -> str:
    """The answer without such a line, ours or one a model wrote in its likeness."""
    return _LINE.sub("", answer) if "— " in answer else answer
