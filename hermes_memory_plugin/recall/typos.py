"""Names with one character wrong: 贵洲茅台, 宁得时代, 比迪亚, Moutia. The caller says which words are words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

# Characters that stand where a typo would, in sentences that mean something else (我的集团, 在中国…).
_PLAIN = frozenset(
    "的了是在有和与或及之就都也不没很更最大小新老好这那哪我你他她它们其该各每某一二三四五六七八九十两几多少上下前后里外内中个家只买卖看问查说"
)


class Near(NamedTuple):
    """A stretch of text that is one character away from a name."""

    start: int
    end: int
    name: str


class Typos:
    """Looks for stretches one replaced or two swapped characters away from a Chinese name of three or more."""

    def __init__(self, names: Iterable[str]) -> None:
        self._heads: dict[str, list[str]] = {}
        self._tails: dict[str, list[str]] = {}
        self._frames: dict[str, list[str]] = {}
        self._swaps: dict[str, str] = {}
        for name in names:
            if (
                len(name) < 3
                or not all("\u3400" <= character <= "\u9fff" for character in name)
                or "的" in name
            ):
                continue
            self._heads.setdefault(name[:2], []).append(name)
            self._tails.setdefault(name[-2:], []).append(name)
            if len(name) == 3:
                self._frames.setdefault(name[0] + name[2], []).append(name)
            for i in range(len(name) - 1):
                self._swaps[name[:i] + name[i + 1] + name[i] + name[i + 2 :]] = name

    def find(self, run: str, is_word: Callable[[int, int, int], bool]) -> list[Near]:
        """Near misses in a run of Chinese characters.

        `is_word(start, end, wrong)` tells whether the character at `wrong` belongs to a word of its own there.
        Two names that are equally near mean none is.
        """
        out: dict[tuple[int, int], set[str]] = {}
        for near, wrong in self._candidates(run):
            if wrong >= 0 and (run[wrong] in _PLAIN or is_word(near.start, near.end, wrong)):
                continue
            out.setdefault((near.start, near.end), set()).add(near.name)
        return [Near(*span, names.pop()) for span, names in out.items() if len(names) == 1]

    def _candidates(self, run: str) -> Iterator[tuple[Near, int]]:
        size = len(run)
        for at in range(size - 1):
            pair = run[at : at + 2]
            for name in self._heads.get(pair, ()):
                end = at + len(name)
                if end <= size and (wrong := _wrong(run, at, name)) >= 0:
                    yield Near(at, end, name), wrong
            for name in self._tails.get(pair, ()):
                start = at + 2 - len(name)
                if start >= 0 and (wrong := _wrong(run, start, name)) >= 0:
                    yield Near(start, at + 2, name), wrong
            if at + 2 < size:
                for name in self._frames.get(run[at] + run[at + 2], ()):
                    if (wrong := _wrong(run, at, name)) >= 0:
                        yield Near(at, at + 3, name), wrong
                for length in (3, 4, 5):
                    if name := self._swaps.get(run[at : at + length], ""):
                        yield Near(at, at + length, name), -1


def latin(word: str, names: Iterable[str], pinyin: Iterable[str] = ()) -> str:
    """The one Latin name a word misses by a letter or a swap; empty when none or several.

    Six letters allow a swap alone and pinyin needs eight for more: shorter ones are English words one letter on.
    """
    if len(word) < 6:
        return ""
    found = {name for name in names if _near(word, name, 7)} | {
        name for name in pinyin if _near(word, name, 9)
    }
    return found.pop() if len(found) == 1 else ""


def _near(word: str, name: str, free_from: int) -> bool:
    if abs(len(name) - len(word)) > 1:
        return False
    return _swapped(word, name) or (len(name) >= free_from and _one_edit(word, name))


def _swapped(a: str, b: str) -> bool:
    if len(a) != len(b) or a == b:
        return False
    i = next(i for i in range(len(a)) if a[i] != b[i])
    return a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]


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
