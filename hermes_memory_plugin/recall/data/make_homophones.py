"""Write homophones.txt: the everyday characters by how they sound, one sound a line. Needs pypinyin.

Sounds that people mix up are one (zh z, ch c, sh s, ing in, eng en, ang an). A typo of a Chinese name is nearly always
another character of its sound.  Run:  python -m hermes_memory_plugin.recall.data.make_homophones
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def lines() -> list[str]:
    """One line of characters for each sound, in the order of the first level of GB 2312."""
    from pypinyin import Style, pinyin

    groups: dict[str, dict[str, None]] = {}
    for row in range(0xB0, 0xD8):
        for cell in range(0xA1, 0xFF):
            try:
                character = bytes((row, cell)).decode("gb2312")
            except UnicodeDecodeError:
                continue
            for sound in pinyin(character, style=Style.NORMAL, heteronym=True)[0]:
                groups.setdefault(_mixed(sound), {})[character] = None
    return ["".join(group) for _, group in sorted(groups.items()) if len(group) > 1]


def _mixed(sound: str) -> str:
    sound = sound[0] + sound[2:] if sound[:2] in ("zh", "ch", "sh") else sound
    return sound[:-1] if sound.endswith("ng") and sound[-3:] != "ong" else sound


if __name__ == "__main__":
    (HERE / "homophones.txt").write_text("\n".join(lines()) + "\n", encoding="utf-8")
