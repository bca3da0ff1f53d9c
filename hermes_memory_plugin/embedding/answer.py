"""The vectors in the JSON of an embeddings answer, in the order of the texts."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from hermes_memory_plugin.embedding.client import Client
from hermes_memory_plugin.embedding.errors import EmbedderUnavailable


def vectors_of(answer: bytes, source: Client) -> list[Any]:
    """One list of numbers (or array) for each item; raises EmbedderUnavailable when it is no such answer."""
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        text = answer[:400].decode("utf-8", "replace")
        kind = "a web page" if text.lstrip().startswith("<") else "something that is no JSON"
        raise _wrong(source, f"{kind} instead of vectors came back: {source.shown(text)}") from None
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) and "embedding" in item for item in data):
        said = body.get("error", body) if isinstance(body, dict) else body
        raise _wrong(
            source, f"no vectors came back: {source.shown(json.dumps(said, ensure_ascii=False)[:400])}"
        )
    places = [item.get("index") for item in data]
    if all(isinstance(place, int) for place in places):
        if sorted(places) != list(range(len(data))):
            raise _wrong(source, "the vectors came back without a clear order")
        data = sorted(data, key=lambda item: int(item["index"]))
    return [_numbers(item["embedding"], source) for item in data]


def _numbers(value: Any, source: Client) -> Any:
    if not isinstance(value, str):
        return value
    import numpy as np

    try:
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    except (ValueError, binascii.Error):
        raise _wrong(source, "a vector came back as text that is no base64") from None


def _wrong(source: Client, reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        "openai",
        f"{source.url}: {reason}",
        "Check that embedding.base_url is an OpenAI-compatible address (it usually ends in /v1) and "
        "embedding.model an embedding model.",
    )
