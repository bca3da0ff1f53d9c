"""The question of a long message: pasted text surrounds it, and must not be searched for as if it were asked."""

from __future__ import annotations

import re

LONG = 120
"""Messages up to this many characters are read as they are."""
_MOST = 3
_LEAD = 40
_SENTENCE = re.compile(r"(?:[^。！？!?\n.]|\.(?![\s\"”]))*(?:[。！？!?.]+[”\"」』)）]*|\n|$)")
_ASKS = re.compile(
    r"[?？]|吗|呢(?=[。\n]|$)|什么|怎么|哪|多少|几[个只家]|帮我|请|总结|分析一下|对不对|是否|有没有"
    r"|\b(?:what|how|why|which|who|when|where|can you|could you|please|does|do we|did we|summari[sz]e|compare)\b",
    re.IGNORECASE,
)


def split(text: str) -> tuple[str, str]:
    """(what is asked, the text around it); the whole message and "" for a short one, or one without such a part.

    The question stands at the end or at the beginning of what was pasted.
    """
    if len(text) <= LONG:
        return text, ""
    sentences = [part for part in _SENTENCE.findall(text) if part.strip()]
    last, first = sentences[-_MOST:], sentences[:_MOST]
    asking = [place for place, sentence in enumerate(last) if _ASKS.search(sentence)]
    if asking:
        cut = len(sentences) - len(last) + asking[0]
        before = text[: text.rfind(sentences[cut])].rstrip(" \t\u3000")
        if cut and len(sentences[cut - 1].strip()) <= _LEAD and not before.endswith("\n"):
            cut -= 1  # This is Tencent.
        asked, rest = "".join(sentences[cut:]), "".join(sentences[:cut])
    elif asking := [place for place, sentence in enumerate(first) if _ASKS.search(sentence)]:
        cut = asking[-1] + 1
        asked, rest = "".join(sentences[:cut]), "".join(sentences[cut:])
    else:
        return text, ""
    return (asked.strip(), rest.strip()) if len(asked) <= 0.5 * len(text) else (text, "")
