"""What a model family wants in front of a query and of a passage, by the name of the model."""

from __future__ import annotations

import re

_BGE_ZH = "为这个句子生成表示以用于检索相关文章："
_BGE_EN = "Represent this sentence for searching relevant passages: "
_QWEN = "Instruct: Given a question, retrieve the memories that answer it\nQuery: "

# First match wins; bge-m3 and whatever is not listed want nothing.
_FAMILIES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"bge-m3"), "", ""),
    (re.compile(r"bge-.*zh"), _BGE_ZH, ""),
    (re.compile(r"bge-.*en|mxbai-embed"), _BGE_EN, ""),
    (re.compile(r"(^|[/_-])e5-.*instruct|qwen3-embedding"), _QWEN, ""),
    (re.compile(r"(^|[/_-])e5-"), "query: ", "passage: "),
    (re.compile(r"nomic-embed"), "search_query: ", "search_document: "),
)


def prefixes(model: str) -> tuple[str, str]:
    """(before a query, before a passage); both empty for a family we do not know."""
    name = model.lower()
    for pattern, query, passage in _FAMILIES:
        if pattern.search(name):
            return query, passage
    return "", ""
