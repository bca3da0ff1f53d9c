"""How much of what is stored from dialogues is useless: every row is judged by the rules below, which the extractor does not share.

Dialogues are told turn by turn to the real memory (the drain extracts), and each stored row is judged against the words it
came from. A row is useless when

  foreign     its words are not the speaker's own in that turn
  asked       its sentence asks
  supposed    its sentence supposes (if, would, 如果, 的话, maybe …)
  others      its sentence has somebody else for its subject ahead of the row's words
  pointing    what it is about is only pointed at (this, that, it, 这个, 那样 …)
  empty       fewer than two words carry a subject
  passing     it is of one occasion (today, this time, 今天, 这次 …)
  told        a preference tells of the past, a feeling or an opinion, and rules nothing
  twice       another row of the same owner says the same
  vague       a holding without a security, a correction without a figure or a name

`python bench/junk.py [--data DIR] [--only locomo,…] [--show 40] [--report bench/results/junk]`
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.sets import DATA
from hermes_memory_hookspecs import Owner, Turn
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall import intent, segment
from hermes_memory_plugin.recall.index_row import Row
from hermes_memory_plugin.recall.normalise import normalise

Talk = list[tuple[str, str]]
"""What one speaker said and what was answered, in order."""

_ASKED = re.compile(
    r"[?？]\s*$|^(?:do|does|did|should|can|could|would|is|are|will|what|why|how|which)\b|吗[。!！]?$|为什么|怎么办"
)
_SUPPOSED = re.compile(
    r"\bif\b|\bwould\b|\bsuppose|\bmaybe\b|\bperhaps\b|\bmight\b|\bunless\b|如果|假如|要是|的话|万一|也许|说不定"
)
_OTHERS = re.compile(
    r"\b(?:he|she|they|his|her|their|my (?:boss|wife|husband|friend|mom|dad|sister|brother|kids?|son|daughter|dog))\b|[他她]|老婆|老公|妈|爸|儿子|女儿|同事|客户|领导|朋友"
)
_POINTING = re.compile(
    r"^(?:it|this|that|them|these|those|so|one|him|her|you)\b|(?:前者|后者|这[个些样种里点家份]|那[个些样种里点家份])(?:了|吧|的)?$|^(?:这|那|它)(?:了|吧|的)?$"
)
_OPINION = re.compile(
    r"认为|觉得|以为|感觉|意味着|代表|导致|引发|(?:避开|排除|拒绝|选择)了|\b(?:think|believe|guess|means)\b"
)
_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this (?:time|week|weekend|morning|afternoon|evening)|last (?:night|week|year|month)|right now|for now)\b|今天|今晚|明天|昨天|这次|本次|这会儿|待会|上次|刚才"
)
_TOLD = re.compile(
    r"\b(?:was|were|had|went|did|felt|thought|knew|used to|got|made me|when i|as a kid|growing up|feel|feeling)\b"
)
_FIGURE = re.compile(r"\d|[一二两三四五六七八九]成")


def judge(row: Row, words: str, others: list[str]) -> str:
    """Why the row is useless, "" when it is not. `words`: what the speaker said in that turn."""
    said = normalise(row.text)
    if quoted := re.search('[“"]([^”"]+)[”"]', said):
        said = quoted[1]
    own = normalise(words)
    pieces = [piece for piece in re.split(r"[,，;；]\s*", said.rstrip("…")) if piece.strip()]
    if row.origin != "model" and not all(_letters(piece) in _letters(own) for piece in pieces):
        return "foreign"
    sentence = next(
        (one for one in re.split(r"(?<=[。！？!?.\n])\s*", own) if _letters(pieces[0]) in _letters(one)), said
    )
    clause = next(
        (one for one in re.split(r"[,，]\s*", sentence) if _letters(pieces[0]) in _letters(one)), sentence
    )
    if _ASKED.search(clause.strip()):
        return "asked"
    if _SUPPOSED.search(sentence):
        return "supposed"
    if _OTHERS.search(clause.partition(pieces[0])[0]):
        return "others"
    about = re.sub(
        r"^(?:i|we|please|my|always|never|only|don't|do not|prefer|avoid|use|like|love|hate|from now on|我们?|以后|不|别|只|都|就|用|看|买|碰)+[\s,]*",
        "",
        said,
    )
    if not about or _POINTING.search(about.strip()):
        return "pointing"
    content = {one for one in intent.content(segment.tokens(row.text)) if len(one) > 1 or one.isdigit()}
    if len(content) < 2 and not (row.extra.get("subject") or "").startswith(("sector:", "6", "0", "3")):
        return "empty"
    if row.kind == "preference" and _PASSING.search(said):
        return "passing"
    if row.kind == "preference" and ((said.isascii() and _TOLD.search(said)) or _OPINION.search(said)):
        return "told"
    if any(_letters(said) == _letters(other) for other in others):
        return "twice"
    if row.kind == "holding" and not row.extra.get("subject"):
        return "vague"
    if re.match("更正|correction", normalise(row.text)) and not (
        _FIGURE.search(said) or row.extra.get("entities")
    ):
        return "vague"
    return ""


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


# -- the dialogues -----------------------------------------------------------------------------------------------------


def locomo(folder: Path) -> Iterator[tuple[str, Talk]]:
    """Two people chat: each is the user of a memory of his own, the other the one who answers."""
    talks: dict[str, dict[str, Talk]] = {}
    last: dict[str, tuple[str, str]] = {}
    for row in _lines(folder / "corpus.jsonl"):
        speaker, group = str(row.get("speaker") or ""), str(row["group"])
        text = re.sub(r"\s*\[shares .*?\]", "", str(row["text"]).removeprefix(f"{speaker}: "))
        before = last.get(group)
        if before and before[0] != speaker:
            mine = talks.setdefault(group, {})[before[0]]
            mine[-1] = (mine[-1][0], text)
        talks.setdefault(group, {}).setdefault(speaker, []).append((text, ""))
        last[group] = (speaker, text)
    for group, speakers in talks.items():
        for speaker, talk in speakers.items():
            yield f"{group}:{speaker}", talk


def assistant_chats(folder: Path) -> Iterator[tuple[str, Talk]]:
    """A year of chats with an assistant, in Chinese."""
    for row in _lines(folder / "corpus.jsonl"):
        if row.get("type") != "agent_chat":
            continue
        parts = re.split(r"\s*(用户|助手)：", str(row["text"]))
        lines = list(zip(parts[1::2], parts[2::2], strict=False))
        talk = []
        for number, (who, text) in enumerate(lines):
            if who == "用户":
                answer = (
                    lines[number + 1][1] if number + 1 < len(lines) and lines[number + 1][0] == "助手" else ""
                )
                talk.append((text, answer))
        yield str(row["group"]), talk


def messages(folder: Path) -> Iterator[tuple[str, Talk]]:
    """Text messages and notes a person wrote to others and to himself: harder than what one tells an assistant."""
    for row in _lines(folder / "corpus.jsonl"):
        text = str(row["text"])
        if row.get("type") == "sms" and re.search(r"（(?:发送|Send)）：", text):
            yield str(row["group"]), [(re.split(r"）：", text, maxsplit=1)[1], "")]
        elif row.get("type") == "note":
            yield str(row["group"]), [(text.partition("] ")[2], "")]


def customers(folder: Path) -> Iterator[tuple[str, Talk]]:
    """Customers of an airline write to an agent with tools."""
    for path in sorted(folder.glob("tau-airline*.jsonl")):
        for row in _lines(path):
            talk: Talk = []
            for one in row.get("messages") or ():
                if one.get("role") == "user":
                    talk.append((str(one.get("content") or ""), ""))
                elif one.get("role") == "assistant" and talk and one.get("content"):
                    talk[-1] = (talk[-1][0], str(one["content"]))
            yield str(row["id"]), talk


SETS: dict[str, tuple[str, Callable[[Path], Iterator[tuple[str, Talk]]]]] = {
    "locomo": ("locomo", locomo),
    "assistant-zh": ("lifebench-zh", assistant_chats),
    "messages-zh": ("lifebench-zh", messages),
    "messages-en": ("lifebench-en", messages),
    "customers-en": ("tool-traces", customers),
}


def _lines(path: Path) -> Iterator[dict[str, object]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def measure(name: str, data: Path, show: int) -> dict[str, object] | None:
    """One set told and judged."""
    folder, read = SETS[name]
    if not (data / folder).is_dir():
        return None
    words: dict[str, str] = {}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        began = time.perf_counter()
        for number, (who, talk) in enumerate(read(data / folder)):
            owner = Owner(platform="bench", user_id=re.sub(r"\W", "-", who))
            for place, (user, answer) in enumerate(talk):
                at += timedelta(seconds=30)
                turn = Turn(user, answer, at, f"{number}-{place}", f"s{number}", owner)
                words[memory.log_turn(turn)] = user
        memory.flush(600)
        seconds = time.perf_counter() - began
        index = memory.reader.index
        index.refresh()
        rows = index.scan(None, now_us=time.time_ns() // 1000, layers=("L1",))
        texts: dict[str, list[str]] = {}
        reasons: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        judged: list[tuple[str, Row]] = []
        for row in sorted(rows, key=lambda one: one.created):
            others = texts.setdefault(row.owner, [])
            key = f"{row.kind}{row.extra.get('metric')}"
            why = judge(
                row,
                words.get(str(row.extra.get("turn")), ""),
                [one[len(key) :] for one in others if one.startswith(key)],
            )
            others.append(key + normalise(row.text))
            kinds[row.kind] += 1
            if why:
                reasons[why] += 1
            judged.append((why, row))
    random.Random(7).shuffle(judged)
    for why, row in sorted(judged[:show], key=lambda one: one[0]):
        print(f"  {name:12} {why or '-':9} {row.kind:10} {row.origin:5} {row.text[:150]}", file=sys.stderr)
    return {
        "set": name,
        "turns": len(words),
        "rows": len(rows),
        "kinds": dict(kinds),
        "useless": sum(reasons.values()),
        "why": dict(reasons),
        "seconds": round(seconds, 1),
    }


def table(found: list[dict[str, object]]) -> str:
    """The figures as Markdown."""
    lines = [
        "| dialogues | turns | rows | preferences | holdings | conclusions | tastes and corrections | useless | share | why |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for one in found:
        kinds: dict[str, int] = one["kinds"]  # type: ignore[assignment]
        why: dict[str, int] = one["why"]  # type: ignore[assignment]
        rows, useless = int(str(one["rows"])), int(str(one["useless"]))
        counts = " | ".join(
            str(kinds.get(kind, 0)) for kind in ("preference", "holding", "conclusion", "fact")
        )
        said = ", ".join(f"{name} {count}" for name, count in why.items())
        lines.append(
            f"| {one['set']} | {one['turns']} | {rows} | {counts} | {useless} | {useless / rows if rows else 0:.1%} | {said} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure the sets that are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", default="", help="sets, with commas")
    parser.add_argument("--show", type=int, default=0, help="rows of each set to print, with their verdict")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--report", type=Path, help="write the table to FILE.md")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name] or list(SETS)
    found = [one for name in names if (one := measure(name, given.data, given.show)) is not None]
    if found:
        total: dict[str, object] = {"set": "all", "kinds": {}, "why": {}}
        for name in ("turns", "rows", "useless"):
            total[name] = sum(int(str(one[name])) for one in found)
        for name in ("kinds", "why"):
            sums: Counter[str] = Counter()
            for one in found:
                sums.update(one[name])  # type: ignore[arg-type]
            total[name] = dict(sums)
        found.append(total)
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")
    if given.report:
        rules = (__doc__ or "").split("\n\n")[1:3]
        text = "\n\n".join(
            [
                "# What is stored from dialogues, and how much of it is useless",
                "`python bench/junk.py --report bench/results/junk`",
                table(found),
                *rules,
            ]
        )
        given.report.with_suffix(".md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
