"""One memory system in its own interpreter, spoken to in JSON lines. Standard library only until a system is chosen.

    PYTHON bench/peer_driver.py SYSTEM HOME [TOOL FIELD [ARGUMENT VALUE]…]

Asked {"add": [TEXT, …], "seconds": S} it answers {"ms": [of each row it took]}; asked {"recall": QUESTION, "words": […],
"wide": BOOL} it answers {"ms": …, "blocks": [TEXT, …]}: what the model would see, best first. `wide` asks for ten rows
where a system has a wider search than its automatic one. SYSTEM is ours, bm25, plain or the name of a memory provider that
the interpreter has an entry point for.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "she",
        "that",
        "the",
        "their",
        "them",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


class System(Protocol):
    def add(self, text: str) -> None: ...

    def recall(self, question: str, words: Sequence[str], wide: bool) -> list[str]: ...

    def close(self) -> None: ...


class Ours:
    """The facade: statements are facts, `SPEAKER: TEXT` of a dialogue is a turn."""

    def __init__(self, home: str) -> None:
        from hermes_memory_plugin import Memory

        self._memory = Memory.open(home)
        self._said = 0

    def add(self, text: str) -> None:
        speaker, _, said = text.partition(": ")
        if said and speaker.isascii() and speaker.isalpha():
            from hermes_memory_hookspecs import Turn

            self._memory.log_turn(Turn(said, speaker=speaker, session_id="dialogue"))
        else:
            self._memory.remember(text)

    def recall(self, question: str, words: Sequence[str], wide: bool) -> list[str]:
        if wide:
            return [item.text for item in self._memory.recall(question, mode="explicit", limit=10).items]
        recall = self._memory.recall(question)
        return recall.block.splitlines()

    def close(self) -> None:
        self._memory.close()


class Plain:
    """Hermes without a provider: MEMORY.md until it is full, and the search of past sessions by the question's words."""

    def __init__(self, home: str) -> None:
        from hermes_state import SessionDB  # type: ignore[import-untyped]
        from tools.memory_tool import MemoryStore

        self._db = SessionDB(Path(home) / "state.db")
        self._notes = MemoryStore()
        self._notes.load_from_disk()
        self._db.create_session("past", "cli")
        self._full = False

    def add(self, text: str) -> None:
        self._db.append_message("past", "user", text)
        if not self._full:
            self._full = not self._notes.add("memory", text).get("success")

    def recall(self, question: str, words: Sequence[str], wide: bool) -> list[str]:
        found = self._db.search_messages(" OR ".join(words), limit=10) if words else []
        whole = "SELECT content FROM messages WHERE id = ?"  # the tool shows the messages around a hit
        texts = [str(self._db._conn.execute(whole, (one["id"],)).fetchone()[0]) for one in found]
        return texts + list(self._notes.memory_entries)

    def close(self) -> None:
        self._db.close()


class Bm25:
    """Words of jieba, English stems, stop words out; k1 1.5, b 0.75; everything with a common word is an answer."""

    def __init__(self, home: str) -> None:
        import jieba
        import snowballstemmer

        jieba.setLogLevel(60)
        self._cut, self._stem = jieba.lcut, snowballstemmer.stemmer("english").stemWord
        self._file = (Path(home) / "rows.txt").open("a+", encoding="utf-8")
        self._texts: list[str] = []
        self._lengths: list[int] = []
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._file.seek(0)
        for line in self._file:
            self._index(json.loads(line))

    def add(self, text: str) -> None:
        self._file.write(json.dumps(text) + "\n")
        self._file.flush()
        self._index(text)

    def _index(self, text: str) -> None:
        counted = Counter(self._tokens(text))
        for token, count in counted.items():
            self._postings[token].append((len(self._texts), count))
        self._texts.append(text)
        self._lengths.append(sum(counted.values()))

    def _tokens(self, text: str) -> list[str]:
        words: list[str] = []
        for run in re.findall(r"[a-z0-9_]+|[\u3400-\u9fff]+", text.lower()):
            words += [self._stem(run)] * (run not in STOP) if run.isascii() else self._cut(run)
        return words

    def recall(self, question: str, words: Sequence[str], wide: bool) -> list[str]:
        n = len(self._texts)
        average = sum(self._lengths) / (n or 1) or 1.0
        scores: defaultdict[int, float] = defaultdict(float)
        for token in self._tokens(question):
            found = self._postings.get(token, ())
            idf = math.log(1 + (n - len(found) + 0.5) / (len(found) + 0.5))
            for row, count in found:
                scores[row] += (
                    idf * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * self._lengths[row] / average))
                )
        best = sorted(scores, key=lambda row: (-scores[row], row))
        return [self._texts[row] for row in best[: 10 if wide else 5]]

    def close(self) -> None:
        self._file.close()


class Provider:
    """A Hermes memory provider, driven as the host drives it: a session of turns, then a question in a new one.

    With `tool` rows are stored by that tool of its model instead, its text argument first.
    """

    def __init__(self, name: str, home: str, tool: Sequence[str] = ()) -> None:
        from importlib.metadata import entry_points

        self._provider: Any = None
        entry = next(one for one in entry_points(group="hermes_agent.memory_providers") if one.name == name)
        loaded = entry.load()
        made = getattr(loaded, "register", loaded)(self)
        self._provider = self._provider or made
        self._past = f"past-{time.time_ns()}"
        self._provider.initialize(
            self._past,
            hermes_home=home,
            platform="cli",
            agent_context="primary",
            agent_identity="default",
            agent_workspace="hermes",
        )
        self._tool = tuple(tool)
        self._turn = 0
        self._asking = False

    def register_memory_provider(self, provider: Any) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None  # the rest of the host's plugin context

    def add(self, text: str) -> None:
        self._turn += 1
        self._provider.on_turn_start(self._turn, text)
        if self._tool:
            name, field, *rest = self._tool
            arguments = {field: text, **dict(zip(rest[::2], rest[1::2], strict=True))}
            self._provider.handle_tool_call(name, arguments, session_id=self._past)
            return
        self._provider.sync_turn(text, "", session_id=self._past)

    def recall(self, question: str, words: Sequence[str], wide: bool) -> list[str]:
        if not self._asking:
            self._asking = True
            self._new = f"new-{time.time_ns()}"
            self._provider.on_session_switch(self._new, parent_session_id="", reset=True)
        self._turn += 1
        self._provider.on_turn_start(self._turn, question)
        return str(self._provider.prefetch(question, session_id=self._new) or "").splitlines()

    def close(self) -> None:
        self._provider.shutdown()


def start(name: str, home: str, tool: Sequence[str] = ()) -> System:
    os.environ["HERMES_HOME"] = home
    os.environ["NEXSANDBASE_HOME"] = str(Path(home) / "nyx")
    os.environ["MNEMOSYNE_DATA_DIR"] = str(Path(home) / "mnemosyne")
    os.environ["MNEMOSYNE_NO_EMBEDDINGS"] = "1"  # else it waits for a download
    made: dict[str, Any] = {"ours": Ours, "plain": Plain, "bm25": Bm25}
    system: System = made[name](home) if name in made else Provider(name, home, tool)
    return system


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a system prints is no answer
    system = start(sys.argv[1], sys.argv[2], sys.argv[3:])
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any] = {}
        began = time.perf_counter()
        if "add" in asked:
            times = []
            for text in asked["add"]:
                before = time.perf_counter()
                if before - began > asked["seconds"]:
                    break
                system.add(text)
                times.append((time.perf_counter() - before) * 1e3)
            answer["ms"] = times
        elif "recall" in asked:
            answer["blocks"] = system.recall(
                asked["recall"], asked.get("words", ()), asked.get("wide", False)
            )
            answer["ms"] = (time.perf_counter() - began) * 1e3
        else:
            system.close()
            answer["closed"] = True
        out.write(json.dumps(answer) + "\n")
        out.flush()
        if "closed" in answer:
            out.flush()
            os._exit(0)


if __name__ == "__main__":
    main()
