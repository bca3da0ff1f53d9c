"""How many secrets are masked, and how often a text without one is.

    python bench/masking.py --data FOLDER [--samples 40] [--json FILE]

Recall: strings drawn at run time from the rules of `secret-rules/gitleaks.toml` (a hit: no eight characters of the
secret are left, neither in plain text nor within JSON). False masks: lines of the finance sets found in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_memory_plugin.store.mask import RULES_VERSION, mask_json, mask_text

FINANCE = (
    "fineva",
    "finglm-reports",
    "finna",
    "disc-finllm",
    "financebench",
    "report-titles",
    "a-share-names",
    "paraphrase-fin",
    "cases-open.jsonl",
    "cases-open-bank.jsonl",
)
PRINTABLE = [chr(code) for code in range(32, 127)]
CATEGORY = {
    sre.CATEGORY_DIGIT: "0123456789",
    sre.CATEGORY_WORD: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "".join(PRINTABLE[1:]),
}


class Drawer:
    """Strings that a regular expression matches, drawn by lot."""

    def __init__(self, pattern: str, rng: random.Random) -> None:
        self.rng = rng
        self.groups: dict[int, str] = {}
        self.tree = parser.parse(_python(pattern))

    def draw(self) -> tuple[str, str]:
        """(text, the secret in it)."""
        self.groups = {}
        text = self._all(self.tree)
        return text, next(
            (self.groups[key] for key in sorted(self.groups) if len(self.groups[key]) >= 6), text
        )

    def _all(self, items: Any) -> str:
        return "".join(self._one(op, value) for op, value in items)

    def _one(self, op: Any, value: Any) -> str:
        if op is sre.LITERAL:
            return chr(value)
        if op is sre.ANY:
            return "."  # mostly a dot somebody forgot to escape
        if op is sre.NOT_LITERAL:
            return self.rng.choice([c for c in PRINTABLE if ord(c) != value])
        if op is sre.IN:
            return self.rng.choice(_members(value))
        if op is sre.BRANCH:
            return self._all(self.rng.choice(value[1]))
        if op is sre.SUBPATTERN:
            text = self._all(value[3])
            if value[0]:
                self.groups.setdefault(value[0], text)
            return text
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            low, high, item = value
            top = low + 24 if high is sre.MAXREPEAT else high
            if (
                low < 2
                and item[0][0] in (sre.IN, sre.ANY)
                and " " in self._one(*item[0]) + self._one(*item[0])
            ):
                top = min(top, 2)  # nobody writes twenty blanks
            return "".join(self._all(item) for _ in range(self.rng.randint(low, min(top, low + 60))))
        return ""  # positions match the empty string


def _python(pattern: str) -> str:
    pattern = pattern.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
    pattern = re.sub(r"\(\?-?[is]+:", "(?:", pattern)
    return re.sub(r"\(\?-?[is]+\)", "", pattern)


def _members(items: Any) -> list[str]:
    found: list[str] = []
    negated = items[0][0] is sre.NEGATE
    for op, value in items:
        if op is sre.LITERAL:
            found.append(chr(value))
        elif op is sre.RANGE:
            found += [chr(code) for code in range(value[0], value[1] + 1)]
        elif op is sre.CATEGORY:
            found += list(CATEGORY.get(value, PRINTABLE))
    if negated:
        return [c for c in PRINTABLE if c not in found]
    return found


def entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def leaks(secret: str, masked: str) -> bool:
    size = min(8, len(secret))
    return any(secret[i : i + size] in masked for i in range(len(secret) - size + 1))


def recall(rules: list[dict[str, Any]], samples: int) -> dict[str, float]:
    result: dict[str, float] = {}
    for rule in rules:
        if "regex" not in rule:
            continue
        rng = random.Random(rule["id"])
        drawer = Drawer(rule["regex"], rng)
        hits = drawn = 0
        for _ in range(samples * 20):
            text, secret = drawer.draw()
            if entropy(secret) < float(rule.get("entropy", 0)) or len(secret) < 6:
                continue
            around = rng.choice(["{}", "the run printed:\n{}\nand went on", "配置如下：{} 。"]).format(text)
            plain, nested = mask_text(around), mask_json({"result": json.dumps({"output": around})})
            hits += not leaks(secret, plain) and not leaks(secret, nested["result"])
            drawn += 1
            if drawn == samples:
                break
        if drawn:
            result[rule["id"]] = hits / drawn
    return result


def lines(folder: Path) -> Iterator[tuple[str, str]]:
    for name in FINANCE:
        source = folder / name
        files = (
            sorted(source.rglob("*.jsonl")) + sorted(source.rglob("*.csv")) if source.is_dir() else [source]
        )
        for file in files:
            if file.is_file():
                for line in file.read_text("utf-8", "replace").splitlines():
                    yield name, line


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--samples", type=int, default=40)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    report: dict[str, Any] = {"rules_version": RULES_VERSION}

    rules = given.data / "secret-rules" / "gitleaks.toml"
    if rules.is_file():
        found = recall(tomllib.loads(rules.read_text("utf-8"))["rules"], given.samples)
        mean = sum(found.values()) / len(found)
        worst = {
            key: round(value, 2)
            for key, value in sorted(found.items(), key=lambda item: item[1])
            if value < 0.9
        }
        report |= {"rules": len(found), "recall": round(mean, 4), "below_0.9": worst}
        print(f"recall over {len(found)} rules, {given.samples} strings each: {mean:.4f}")
        for key, value in worst.items():
            print(f"    {value:.2f}  {key}")
    else:
        print(f"no rules at {rules}: recall not measured")

    masked: Counter[str] = Counter()
    total: Counter[str] = Counter()
    shown: list[str] = []
    began = time.perf_counter()
    size = 0
    for name, line in lines(given.data):
        total[name] += 1
        size += len(line.encode("utf-8", "replace"))
        after = mask_text(line)
        if after != line:
            masked[name] += 1
            at = after.find("[masked:")
            shown.append(f"{name}: …{after[max(0, at - 60) : at + 60]}…")
    seconds = time.perf_counter() - began
    if total:
        share = sum(masked.values()) / sum(total.values())
        report |= {
            "lines": sum(total.values()),
            "masked": sum(masked.values()),
            "false_share": round(share, 6),
        }
        report["megabytes_per_second"] = round(size / seconds / 1e6, 1)
        print(
            f"false masks: {sum(masked.values())} of {sum(total.values())} lines ({share:.4%}), {size / seconds / 1e6:.0f} MB/s"
        )
        for name in total:
            print(f"    {name}: {masked[name]} of {total[name]}")
        for text in shown[:40]:
            print("   ", text)
    else:
        print(f"no finance sets in {given.data}: false masks not measured")
    if given.json:
        given.json.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
