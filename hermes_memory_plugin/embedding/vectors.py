"""What every backend owes its caller: finite float32 vectors of unit length, one for each text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes_memory_plugin.embedding.errors import EmbedderUnavailable
from hermes_memory_plugin.embedding.threads import load_numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]


def sendable(text: str, longest: int) -> str:
    """The beginning of `text` as every encoder takes it: valid UTF-8, no NUL."""
    return text[:longest].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def as_unit(values: Any, *, name: str, count: int, dimension: int = 0) -> Vectors:
    """`values` as float32 [count, dimension] of unit length; `dimension` 0 takes any.

    Raises EmbedderUnavailable when the count or the dimension is another, or a vector is not finite or zero.
    """
    import numpy as np

    try:
        array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(name, "what came back is not a list of equally long vectors") from error
    if array.shape == (0,) and count:
        raise _wrong(name, f"0 vectors came back for {count} texts")
    if array.ndim != 2 or array.shape[1] == 0:
        raise _wrong(name, f"what came back has the shape {array.shape}, not texts by numbers")
    if len(array) != count:
        raise _wrong(name, f"{len(array)} vectors came back for {count} texts")
    if dimension and array.shape[1] != dimension:
        raise EmbedderUnavailable(
            name,
            f"vectors of {array.shape[1]} numbers came back, {dimension} were expected",
            "The model behind it is another one: name it in embedding.model (and embedding.dimension), "
            "then run `hermes-memory reindex`.",
        )
    if not np.isfinite(array).all():
        raise _wrong(name, "a vector with NaN or infinity came back")
    length = np.sqrt(np.einsum("ij,ij->i", array, array, dtype=np.float64))
    if not length.all():
        raise _wrong(name, "a vector of zeros came back")
    return np.ascontiguousarray(array / length[:, None], dtype=np.float32)


def embed(
    texts: Sequence[str], encode: Callable[[list[str]], Vectors], dimension: Callable[[], int]
) -> Vectors:
    """`encode` for the texts that say something; a blank one has the zero vector, near to nothing."""
    load_numpy()
    import numpy as np

    said = [at for at, text in enumerate(texts) if text.strip()]
    if len(said) == len(texts) and said:
        return encode(list(texts))
    found = encode([texts[at] for at in said]) if said else None
    out = np.zeros((len(texts), dimension() if found is None else found.shape[1]), dtype=np.float32)
    if found is not None:
        out[said] = found
    return out


def embed_one(text: str, encode: Callable[[list[str]], Vectors], dimension: Callable[[], int]) -> Vectors:
    """`embed` for a single text: float32 [dimension]."""
    vector: Vectors = embed([text], encode, dimension)[0]
    return vector


def _wrong(name: str, reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        name, reason, "Check that embedding.model names an embedding model, or set another embedding.backend."
    )
