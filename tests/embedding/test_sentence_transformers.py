"""sentence-transformers with a small model this test saves itself. Collected where it is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hermes_memory_plugin.embedding import EmbedderUnavailable
from hermes_memory_plugin.embedding.local import SentenceTransformers

WORDS = ["[UNK]", "cheap", "undervalued", "cat", "query", "passage", ":"]


def save(folder: Path, prompts: dict[str, str] | None = None) -> str:
    tokenizers: Any = import_module("tokenizers")
    package: Any = import_module("sentence_transformers")
    models: Any = import_module("sentence_transformers.models")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    weights = np.eye(len(WORDS), 8, dtype=np.float32)
    weights[2] = weights[1] * 0.9 + weights[3] * 0.1
    module = models.StaticEmbedding(tokenizer, embedding_weights=weights)
    package.SentenceTransformer(modules=[module], prompts=prompts, device="cpu").save(str(folder))
    return str(folder)


def test_a_folder_serves_with_unit_length(tmp_path: Path) -> None:
    encoder = SentenceTransformers(save(tmp_path / "mine"))
    assert encoder.name.startswith("sentence-transformers:mine@")
    passages = encoder.passages(["cheap", "", "cat"])
    assert encoder.dimension == 8
    assert np.allclose(np.linalg.norm(passages, axis=1), [1, 0, 1], atol=1e-5)
    assert int((passages @ encoder.query("undervalued")).argmax()) == 0


def test_the_models_own_prompts_are_used_unless_others_are_given(tmp_path: Path) -> None:
    folder = save(tmp_path / "mine", {"query": "query : ", "document": "passage : "})
    own, given = (
        SentenceTransformers(folder),
        SentenceTransformers(folder, query_prefix="", passage_prefix=""),
    )
    assert own.name != given.name
    assert own.query("cat")[WORDS.index("query")] > 0.1
    assert own.passages(["cat"])[0][WORDS.index("passage")] > 0.1
    assert given.query("cat")[WORDS.index("query")] == 0


def test_other_bytes_in_the_folder_are_another_model(tmp_path: Path) -> None:
    folder = save(tmp_path / "mine")
    before = SentenceTransformers(folder).name
    save(tmp_path / "mine", {"query": "query : "})
    assert SentenceTransformers(folder).name != before


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        SentenceTransformers(str(tmp_path)).query("x")
