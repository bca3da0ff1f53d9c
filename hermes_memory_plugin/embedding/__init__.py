"""Text as vectors: one `Embedder` (see `hermes_memory_hookspecs`), chosen by the settings.

Importing this package costs nothing; NumPy and the encoders are imported by the backend that needs them.
"""

from hermes_memory_plugin.embedding.base import EmbeddingSettings, Identity, choose, identity
from hermes_memory_plugin.embedding.errors import EmbedderUnavailable

__all__ = ["EmbedderUnavailable", "EmbeddingSettings", "Identity", "choose", "identity"]
