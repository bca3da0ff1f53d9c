"""The pinyin of a name: whole (``guizhoumaotai``) and its initials (``GZMT``). Imports pypinyin: 140 ms, so late."""

from __future__ import annotations

import re

_HAN = re.compile("[\u3400-\u9fff]")
# Initials that mean something else to most people who type them.
_TAKEN_WORDS = (
    "glm sql gdp api pdf etf css cpu gpu ssd tdd dns ssh ftp http xml html json yaml ceo cfo cto gmt"
)
_TAKEN = frozenset(_TAKEN_WORDS.split())


def keys(name: str, *, initials_from: int = 4) -> list[str]:
    """Lower-case pinyin of the name, then upper-case initials where they are long enough to mean it."""
    characters = name.removesuffix("A") if name[-1:] == "A" else name
    if len(characters) < 2 or not all(map(_HAN.match, characters)):
        return []
    from pypinyin import lazy_pinyin

    syllables = lazy_pinyin(characters)
    # Within names of companies these have one reading, whatever the phrase tables say.
    readings = {"重": "chong" if characters.startswith("重") else "zhong", "长": "chang", "行": "hang"}
    syllables = [readings.get(han, sound) for han, sound in zip(characters, syllables, strict=True)]
    whole = "".join(syllables)
    initials = "".join(syllable[0] for syllable in syllables)
    out = [whole] if len(whole) >= 5 else []
    if len(initials) >= initials_from and initials not in _TAKEN:
        out.append(initials.upper())
    return out
