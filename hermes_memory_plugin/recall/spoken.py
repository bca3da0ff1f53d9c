"""What the words of a question stand for: what it leaves out, whose names it spells, which concepts a word is one of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from hermes_memory_plugin.recall import marks, metrics, polarity, segment
from hermes_memory_plugin.recall.gist import code_tokens, group_hits

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.lexicon import Mention

_HAN = re.compile("[\u3400-\u9fff]+")
_NAME = re.compile(r"(?<=[a-z,;:] )([A-Z][a-z]{2,})(?:'s)?\b")
_NO_NAMES = "english chinese spanish french german january february march april june july august september october november december monday tuesday wednesday thursday friday saturday sunday internet google"
_COMMON = frozenset(_NO_NAMES.split(" "))


def left_out(normal: str, mentions: Sequence[Mention]) -> tuple[set[str], set[str]]:
    """(entities the question leaves out, tokens of what it leaves out)."""
    spans = polarity.left_out(normal)
    entities: set[str] = set()
    tokens: set[str] = set()
    for start, end in spans:
        tokens.update(segment.tokens(normal[start:end]))
        for one in mentions:
            if start <= one.start and one.end <= end and normal[one.start : one.end] == one.text:
                entities.add(one.entity_id)
    if spans and {one.entity_id for one in mentions if one.kind != "sector"} == entities and not tokens:
        return set(), set()
    return entities, tokens


def spelled(mentions: Sequence[Mention]) -> tuple[set[str], set[str]]:
    """(tokens that are codes, tokens that only spell a name) of what was understood as an entity."""
    codes: set[str] = set()
    names: set[str] = set()
    for mention in mentions:
        if mention.kind == "sector":
            continue
        (codes if mention.via == "code" else names).update(segment.tokens(mention.text))
        names.update(segment.tokens(mention.name))
    return codes, names


def key(one: Mention) -> str:
    return f"%{one.name}" if one.kind == "sector" else f"@{one.entity_id}"


def words(normal: str) -> set[str]:
    """The Chinese words of a text, those of one character included; empty without a segmenter."""
    return {word for run in _HAN.findall(normal) for word in segment.words(run)}


def is_pair(token: str, words: set[str]) -> bool:
    return len(token) == 2 and token not in words and "\u3400" <= token[0] <= "\u9fff"


def is_single(token: str) -> bool:
    return len(token) == 1 and token >= "\u3400"


def same(
    normal: str, content: Collection[str], families: Sequence[metrics.Named], hints: Sequence[Mention]
) -> dict[str, tuple[str, ...]]:
    """For each content token the concepts that its stretch of the text stands for."""
    stretches: list[tuple[int, int, tuple[str, ...]]] = [
        (hit.start, hit.end, hit.value) for hit in group_hits(normal)
    ]
    for one in (*metrics.named(normal), *families):
        stretches.append((one.start, one.end, tuple(f"#{id_}" for id_ in one.ids)))
    stretches += [(one.start, one.end, (key(one),)) for one in hints]
    found: dict[str, dict[str, None]] = {}
    for start, end, concepts in stretches:
        for token in segment.tokens(normal[start:end]):
            if token in content:
                found.setdefault(token, {}).update(dict.fromkeys(concepts))
    return {token: tuple(concepts) for token, concepts in found.items()}


def people(text: str) -> frozenset[str]:
    """Capitalised words inside a sentence of small letters: names, of people mostly."""
    return frozenset(
        segment.stem(match[1].lower()) for match in _NAME.finditer(text) if match[1].lower() not in _COMMON
    )


def identifiers(normal: str, named: Sequence[Mention]) -> dict[str, str]:
    """The identifiers of a question, without the tickers and amounts that were understood as such."""
    found = marks.find(normal)
    codes = code_tokens(one.entity_id for one in named)
    written = {one.text for one in named}
    return {mark: kind for mark, kind in found.items() if mark not in codes and mark not in written}
