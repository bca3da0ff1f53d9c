"""One process of the crash suite: works on a home until it is killed, and writes down what was acknowledged.

Run as `python -m tests.fire.worker HOME DIARY NAME SEED`. Each line of the diary is `verb TAB id TAB text`; a forget is written
down before it is begun ("forgetting") and after it ("forgotten").
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from hermes_memory_hookspecs import Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.locks import LockBusy


def work(home: Path, diary: Path, name: str, seed: int) -> None:
    """Remember, talk, recall, forget, drain and tidy up in a random order, without an end."""
    chance = random.Random(seed)
    fd = os.open(diary, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def note(verb: str, id: str, text: str = "") -> None:
        os.write(fd, f"{verb}\t{id}\t{text}\n".encode())

    mine: list[str] = []
    with Memory.open(home) as memory:
        for number in count():
            deed = chance.choices(
                ("remember", "turn", "recall", "forget", "flush", "upkeep"), (30, 30, 10, 12, 4, 1)
            )[0]
            text = f"观察{name}之{number}号机组检修完毕"
            if deed == "remember":
                mine.append(memory.remember(text, source="巡检记录"))
                note("fact", mine[-1], text)
            elif deed == "turn":
                turn_id = f"{name}-{number}"
                first, second = (
                    Turn(text, turn_id=turn_id, session_id=name),
                    Turn(text, "好的", turn_id=turn_id, session_id=name),
                )
                memory.log_turn(first, half="user")
                note("asked", turn_id, text)
                memory.log_turn(second, half="full")
                note("answered", turn_id, text)
            elif deed == "recall":
                memory.recall(f"{name} 机组检修", mode="explicit")
            elif deed == "forget" and mine:
                id = mine.pop(chance.randrange(len(mine)))
                note("forgetting", id)
                memory.forget(id)
                note("forgotten", id)
            elif deed == "flush":
                with suppress(HermesMemoryError):  # busy: others drain
                    memory.flush(5)
            elif deed == "upkeep":
                with suppress(HermesMemoryError, LockBusy):  # others are at it
                    memory.upkeep.run(budget=2.0)


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
