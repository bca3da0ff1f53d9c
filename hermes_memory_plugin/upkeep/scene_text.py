"""The body of a scene: a summary and one line per sentence, so that two sessions merge and `git diff` reads well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from hermes_memory_plugin.layers.scenes import SUMMARY_LENGTH
from hermes_memory_plugin.upkeep.scene_draft import Section, Sentence

_HEADS: dict[Section, tuple[str, str]] = {
    "said": ("结论", "Conclusions"),
    "data": ("数据", "Data"),
    "asked": ("问过", "Asked"),
}
_KEPT: dict[Section, int] = {"said": 16, "data": 20, "asked": 6}
_SECTION = {name: section for section, names in _HEADS.items() for name in names}
_LINE = re.compile(
    r"- (?:(\d{4}-\d{2}-\d{2}) )?(.+) \[([a-z]-[0-9a-z]{4,13}(?:, [a-z]-[0-9a-z]{4,13})*)\]\s*"
)
_SHORT = 70


def parse(body: str) -> list[Sentence]:
    """The sentences of a body that `render` wrote; other lines are not looked at."""
    found = []
    section: Section | None = None
    for line in body.splitlines():
        if line.startswith("## "):
            section = _SECTION.get(line[3:].strip())
            continue
        match = _LINE.fullmatch(line)
        if match and section:
            found.append(Sentence(match[2], tuple(match[3].split(", ")), section, match[1] or ""))
    return found


def merge(
    old: Sequence[Sentence], new: Sequence[Sentence], *, stands: Callable[[str], bool]
) -> list[Sentence]:
    """Both, each once, oldest first; without those that cite nothing that still stands.

    stands   whether the row of a handle is still there and in force
    """
    by_text: dict[tuple[Section, str], Sentence] = {}
    for one in (*old, *new):
        known = by_text.get((one.section, one.text))
        cites = tuple(cite for cite in one.cites if stands(cite))
        if known is not None:
            cites = tuple(dict.fromkeys((*known.cites, *cites)))[-3:]
        if cites:
            by_text[one.section, one.text] = Sentence(
                one.text, cites, one.section, known.day if known and known.day else one.day
            )
    kept: list[Sentence] = []
    for section, most in _KEPT.items():
        mine = [one for one in by_text.values() if one.section == section]
        mine.sort(key=lambda one: one.day)  # stable: of one day in the order they came
        kept += mine[-most:]
    return kept


def render(name: str, sentences: Sequence[Sentence], *, day: str, chinese: bool, summary: str = "") -> str:
    """The body. `summary`: one that was written already; it must cite what it says."""
    place = 0 if chinese else 1
    lines = [summary or summarise(name, sentences, day=day, chinese=chinese)]
    for section, heads in _HEADS.items():
        mine = [one for one in sentences if one.section == section]
        if mine:
            lines += ["", f"## {heads[place]}", ""]
            lines += [
                f"- {one.day + ' ' if one.day else ''}{one.text} [{', '.join(one.cites)}]" for one in mine
            ]
    return "\n".join(lines)


def summarise(name: str, sentences: Sequence[Sentence], *, day: str, chinese: bool) -> str:
    """At most ~200 characters: the newest conclusion, then data, then more of both; whole sentences with their proof."""
    head = f"{name}（{day}）：" if chinese else f"{name} ({day}): "
    joint = "；" if chinese else "; "
    text, first = head, True
    for one in _ranked(sentences):
        short = one.text if len(one.text) <= _SHORT else one.text[: _SHORT - 1].rstrip("，,、;； ") + "…"
        piece = f"{'' if first else joint}{short.rstrip('。.；;')} [{one.cites[0]}]"
        if len(text) + len(piece) <= SUMMARY_LENGTH:
            text, first = text + piece, False
    return text


def _ranked(sentences: Sequence[Sentence]) -> Iterable[Sentence]:
    said = [one for one in reversed(sentences) if one.section == "said"]
    data = [one for one in reversed(sentences) if one.section == "data"]
    asked = [one for one in reversed(sentences) if one.section == "asked"]
    # A fact of L1 is shorter and surer than the line of a call.
    data.sort(key=lambda one: not one.cites[0].startswith("f-"))
    return [*said[:1], *data[:1], *said[1:2], *data[1:], *said[2:]] or asked
