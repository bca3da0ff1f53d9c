"""Names that are one slip away from what was written: 贵洲茅台, 宁得时代, 比迪亚, Moutia, gui zhou mao tai."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import compress, count, pairwise
from typing import NamedTuple

from hermes_memory_plugin.recall.context import own_word

_HAN = re.compile("[\u3400-\u9fff]+")
_LATIN_WORD = re.compile(r"(?<![a-z0-9_])[a-z]{2,24}(?![a-z0-9_])")

# Characters that stand where a typo would, in sentences that mean something else (我的集团, 在中国…).
_PLAIN = frozenset(
    "的了是在有和与或及之就都也不没很更最大小新老好这那哪我你他她它们其该各每某一二三四五六七八九十两几多少上下前后里外内中个家只买卖看问查说"
)
# Parts so many companies share that a name is told by the rest alone.
_SHARED = re.compile(
    r"^中国|(?:股份|集团|控股|发展|国际|科技|技术|实业|投资|能源|电力|动力|电子|电气|信息|通信|通讯|软件|材料|化学|化工|石化|机械|重工|装备|智能|精密"
    r"|医药|药业|生物|医疗|制药|银行|证券|保险|地产|汽车|航空|机场|高速|铁路|港|黄金|铝业|铜业|矿业|煤业|钢铁|有色|水泥|建材|建筑|环保|食品|饮料|乳业|酒业|啤酒|农业|传媒|文化|电影|旅游|酒店|超市|家居|电器|微电|光电|锂业|锂能|速递|快递|材质)$"
)


class Near(NamedTuple):
    """A stretch of text that is one character away from a name."""

    start: int
    end: int
    name: str


class Typos:
    """Looks for stretches that are one slip away from a name: Chinese of three characters or more, or Latin."""

    def __init__(self, names: Iterable[tuple[str, bool]]) -> None:
        """`names`: each with whether it is the pinyin of another."""
        # By two characters: the names that begin, that end, and that begin with two swapped there.
        self._pairs: dict[tuple[str, str], tuple[list[str], list[str], dict[str, str]]] = {}
        self._frames: dict[tuple[str, str], list[str]] = {}
        self._latin: dict[tuple[str, int], tuple[list[str], list[str]]] = {}
        self._pinyin: set[str] = set()
        for name, pinyin in names:
            self.add(name, pinyin=pinyin)

    def add(self, name: str, *, pinyin: bool) -> None:
        """Look for slips of this name too; another thread that searches meanwhile sees it or does not."""
        if name.isascii():
            if name.isalpha():
                self._latin.setdefault((name[0], len(name)), ([], []))[pinyin].append(name)
            if pinyin:
                self._pinyin.add(name)
        elif len(name) >= 3 and _HAN.fullmatch(name) and "的" not in name:
            self._pair(name[0], name[1])[0].append(name)
            self._pair(name[-2], name[-1])[1].append(name)
            if len(name) == 3:
                self._frames.setdefault((name[0], name[2]), []).append(name)
            for i in range(len(name) - 1):
                swapped = name[:i] + name[i + 1] + name[i] + name[i + 2 :]
                self._pair(swapped[0], swapped[1])[2][swapped] = name

    def find(self, text: str, *, latin: bool) -> Iterator[Near]:
        """Near misses in a normalised text; `latin` says whether a misspelt Latin word may be one here."""
        for run in _HAN.finditer(text):
            if len(run[0]) >= 3:
                yield from (
                    Near(run.start() + start, run.start() + end, name)
                    for start, end, name in self._han(run[0])
                )
        spans = [match.span() for match in _LATIN_WORD.finditer(text)]
        for place, (start, end) in enumerate(spans):
            for last in range(place + 1, min(place + 6, len(spans))):  # gui zhou mao tai
                if spans[last][0] != spans[last - 1][1] + 1 or spans[last][1] - start > 30:
                    break
                spelled = text[start : spans[last][1]].replace(" ", "")
                if spelled in self._pinyin:
                    yield Near(start, spans[last][1], spelled)
            if latin and end - start >= 6 and (name := self._nearest(text[start:end])):
                yield Near(start, end, name)

    def _pair(self, first: str, second: str) -> tuple[list[str], list[str], dict[str, str]]:
        return self._pairs.setdefault((first, second), ([], [], {}))

    def _nearest(self, word: str) -> str:
        """The one name a word of six letters or more misses by a letter or a swap; empty when none or several.

        Shorter names allow a swap alone: one letter on, they are English words.
        """
        found = {
            name
            for length in (len(word) - 1, len(word), len(word) + 1)
            for names, free_from in zip(self._latin.get((word[0], length), ((), ())), (7, 9), strict=True)
            for name in names
            if _near(word, name, free_from)
        }
        return found.pop() if len(found) == 1 else ""

    def _han(self, run: str) -> list[Near]:
        """Two names that are equally near mean none is."""
        out: dict[tuple[int, int], set[str]] = {}
        for near, wrong in self._candidates(run):
            if wrong >= 0 and (
                not _likely(near.name, near.name[wrong - near.start], run[wrong])
                or (own_word(run, wrong) and not _sounds_like_a_long_name(near, run[wrong], wrong))
            ):
                continue
            out.setdefault((near.start, near.end), set()).add(near.name)
        return [Near(*span, names.pop()) for span, names in out.items() if len(names) == 1]

    def _candidates(self, run: str) -> Iterator[tuple[Near, int]]:
        size = len(run)
        pairs = map(self._pairs.__contains__, pairwise(run))
        for at in compress(count(), pairs):
            heads, tails, swaps = self._pairs[run[at], run[at + 1]]
            for name in heads:
                end = at + len(name)
                if end <= size and (wrong := _wrong(run, at, name)) >= 0:
                    yield Near(at, end, name), wrong
            for name in tails:
                start = at + 2 - len(name)
                if start >= 0 and (wrong := _wrong(run, start, name)) >= 0:
                    yield Near(start, at + 2, name), wrong
            if swaps:
                for length in range(3, min(5, size - at) + 1):
                    if name := swaps.get(run[at : at + length], ""):
                        yield Near(at, at + length, name), -1
        frames = map(self._frames.__contains__, zip(run, run[2:], strict=False))
        for at in compress(count(), frames):
            for name in self._frames[run[at], run[at + 2]]:
                if (wrong := _wrong(run, at, name)) >= 0:
                    yield Near(at, at + 3, name), wrong


def _near(word: str, name: str, free_from: int) -> bool:
    return _swapped(word, name) or (len(name) >= free_from and _one_edit(word, name))


def _swapped(a: str, b: str) -> bool:
    if len(a) != len(b) or a == b:
        return False
    i = next(i for i in range(len(a)) if a[i] != b[i])
    return a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]


def _likely(name: str, right: str, wrong: str) -> bool:
    """Whether people write this for that: it sounds alike, or the name is told by three more characters."""
    if wrong in _PLAIN:
        return False
    told_by = len(_SHARED.sub("", name))
    if told_by < 2:
        return False
    sounds = _sounds()
    return told_by >= 4 or not sounds.get(right, frozenset()).isdisjoint(sounds.get(wrong, frozenset()))


def _sounds_like_a_long_name(near: Near, written: str, wrong: int) -> bool:
    """药名康德: a character that sounds right among three that are right outweighs the word it makes with one of them."""
    sounds = _sounds()
    right = near.name[wrong - near.start]
    return (
        len(near.name) >= 4
        and len(_SHARED.sub("", near.name)) >= 4
        and not sounds.get(right, frozenset()).isdisjoint(sounds.get(written, frozenset()))
    )


@cache
def _sounds() -> dict[str, frozenset[int]]:
    text = files("hermes_memory_plugin.recall.data").joinpath("homophones.txt").read_text(encoding="utf-8")
    out: dict[str, set[int]] = {}
    for number, line in enumerate(text.splitlines()):
        for character in line:
            out.setdefault(character, set()).add(number)
    return {character: frozenset(numbers) for character, numbers in out.items()}


def _wrong(run: str, start: int, name: str) -> int:
    """Where the stretch differs from the name, when in exactly one place; else -1."""
    wrong = -1
    for offset, character in enumerate(name):
        if run[start + offset] != character:
            if wrong >= 0:
                return -1
            wrong = start + offset
    return wrong


def _one_edit(a: str, b: str) -> bool:
    if len(a) > len(b):
        a, b = b, a
    i = 0
    while i < len(a) and a[i] == b[i]:
        i += 1
    return a[i:] == b[i + 1 :] if len(a) < len(b) else a[i + 1 :] == b[i + 1 :]
