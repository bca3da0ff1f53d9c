"""Whether a message asks that its turn be not remembered: 别记, off the record."""

from __future__ import annotations

import re

_HINT = re.compile(r"[记記]|record|remember|memori[sz]e", re.IGNORECASE)
_EDGE = r"\s，,。.!！?？；;：:、~…—（）()「」“”\"'’-"
_THIS = r"(?:[这這那]|以下|下面|上面|刚才|剛才|接下来|接下來)(?:[句条條段个個轮輪些次])?(?:话|話|信息|消息|内容|內容|里|都|先)?"
_ZH = re.compile(
    rf"(?:^|[{_EDGE}]|{_THIS}|请|請|先|麻烦|麻煩|都|就)"
    r"(?:别|別|不要|不用|不必|无需|勿|甭)再?(?:记录|記錄|记住|記住|记|記)"
    r"(?:下来|下來|下|进记忆|進記憶|到记忆里?|到記憶裡?|入记忆|入記憶)?[了哦啊哈吧呀喔噢哟]{0,2}"
    rf"(?=$|[{_EDGE}]|[这這那我它]|以下|下面|本轮|本輪|今天)"
)
_EN = re.compile(
    r"(?<![\"'“‘])\boff[- ]the[- ]record\b(?![\"'”’])"
    r"|\b(?:do\s?n[o']?t|do not|never) (?:remember|record|memori[sz]e) (?:any of )?(?:this|that|it)"
    r"(?=\s*(?:$|[.,;:!?—–-]|turn\b|message\b|one\b))",
    re.IGNORECASE,
)
_READ = 4_000


def asked(message: str) -> bool:
    """Whether the message says so. Only its beginning and end are read when it is long."""
    text = message if len(message) <= 2 * _READ else f"{message[:_READ]}\n{message[-_READ:]}"
    return _HINT.search(text) is not None and (_ZH.search(text) or _EN.search(text)) is not None
