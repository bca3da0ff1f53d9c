"""What a chat user says to the memory itself, as a message: `hermes-memory owners link [CODE]`, `hermes-memory pause`.

A slash command cannot do it: Hermes tells a command typed in a chat nothing about who typed it.
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_memory_hookspecs import Owner

_MESSAGE = re.compile(
    r"\s*hermes-memory\s+(owners\s+(?:link(?:\s+[0-9A-Za-z-]{4,12})?|unlink|list)|pause|resume)\s*",
    re.IGNORECASE,
)


def answer(home: Path, owner: Owner, message: str) -> str:
    """What became of the request; "" for any other message."""
    found = _MESSAGE.fullmatch(message) if len(message) <= 80 else None
    if found is None:
        return ""
    from hermes_memory_plugin.cli.chat import answer as said

    return said(" ".join(found[1].split()), home=home, owner=owner)
