"""Write pinyin.txt beside entities.txt: full pinyin in lower case, initials in upper case. Needs pypinyin.

Run after every change of entities.txt:  python -m hermes_memory_plugin.recall.data.make_pinyin
"""

from __future__ import annotations

from pathlib import Path

from hermes_memory_plugin.recall.catalogue import load
from hermes_memory_plugin.recall.pinyin import keys

HERE = Path(__file__).parent


def lines() -> list[str]:
    """One line for each entity that has a Chinese name: ID key key …"""
    out = []
    for item in load().values():
        if item.second_listing:
            continue
        found: dict[str, None] = {}
        for name in item.names:
            least = 99 if item.kind == "sector" else 3 if name.text == item.name else 4
            found |= dict.fromkeys(keys(name.text, initials_from=least))
        if found:
            out.append(" ".join([item.id, *found]))
    return out


if __name__ == "__main__":
    (HERE / "pinyin.txt").write_text("\n".join(lines()) + "\n", encoding="utf-8")
