"""What the tests of embedding share: a home with an encoder of another package, and processes that use it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hermes_memory_hookspecs import hookimpl
from hermes_memory_plugin import Memory
from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.store.vectors import Vectors

ROOT = Path(__file__).parent.parent.parent
CONCEPTS = (
    ("便宜", "估值处在五年低位", "cheap"),
    ("派息", "dividend", "分红"),
    ("坏账", "不良贷款"),
    ("出海", "海外建厂"),
    ("太阳能", "光伏"),
)


class Concepts:
    """A small encoder that knows some words of the same meaning; everything else is noise of its own."""

    def __init__(self, name: str = "concepts-1", dimension: int = 64, pause: float = 0.0) -> None:
        self.name = name
        self.dimension = dimension
        self.pause = pause
        self.refuses = ""
        self.down = False
        self.slow_queries = 0.0
        self.seen: list[str] = []

    def passages(self, texts: Sequence[str]) -> Any:
        return np.array([self._one(text, seen=True) for text in texts], np.float32)

    def query(self, text: str) -> Any:
        time.sleep(self.slow_queries)
        return np.array(self._one(text), np.float32)

    def _one(self, text: str, *, seen: bool = False) -> Any:
        if self.down or (self.refuses and self.refuses in text):
            raise RuntimeError("this encoder is out of order")
        if seen and len(text) > 6:  # not the worker's own probe
            time.sleep(self.pause)
            self.seen.append(text)
        noise = np.random.default_rng(abs(hash(text)) % 2**32).normal(size=self.dimension)
        vector = 0.1 * noise / np.linalg.norm(noise)
        for place, words in enumerate(CONCEPTS):
            if any(word in text for word in words):
                vector[place] += 1
        return vector / np.linalg.norm(vector)


class Plugin:
    """The package that brings it: any backend whose name begins with `concepts`."""

    def __init__(self, *encoders: Concepts) -> None:
        self.encoders = {encoder.name: encoder for encoder in encoders}

    @hookimpl
    def embedding_backend(self, name: str) -> Concepts | None:
        return self.encoders.get(name)


def hooks_with(*encoders: Concepts) -> Hooks:
    hooks = Hooks(limit=5.0)
    hooks.register(Plugin(*encoders), "concepts")
    return hooks


def configure(home: Path, *, recall: dict[str, Any] | None = None, **embedding: Any) -> None:
    settings = {"embedding": embedding, "recall": recall or {}}
    config = {"plugins": {"entries": {"hermes-memory": {"settings": settings}}}}
    (home / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def held(memory: Memory) -> dict[int, bool]:
    """The keys of the serving table and whether each is live."""
    vectors = Vectors(memory.folder)
    serving = vectors.tables().serving
    table = vectors.open(serving) if serving else None
    if table is None:
        return {}
    found = table.held()
    return dict(zip(found.key.tolist(), found.live.tolist(), strict=True))


def texts(memory: Memory, question: str, **options: Any) -> list[str]:
    return [item.text for item in memory.recall(question, mode="explicit", **options).items]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "hermes-memory-vectors"]


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


def answer_of(code: str, *arguments: object) -> Any:
    """What a process printed last, as JSON."""
    one = process(code, *arguments)
    out, error = one.communicate(timeout=120)
    assert one.returncode == 0, error
    return json.loads(out.strip().splitlines()[-1])
