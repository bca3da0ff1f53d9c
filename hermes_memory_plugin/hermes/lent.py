"""The host's own model, lent to us by `ctx.llm`: what the layers below may ask of it, without knowing Hermes.

It costs the user's tokens, so nobody asks unless `llm.extract` is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_memory_plugin.upkeep.scene_model import Answer, Ask

TIMEOUT = 120.0
PURPOSE = "hermes-memory scenes"


def asker() -> Ask | None:
    """How to ask the host's model; None where this Hermes lends none."""
    from hermes_memory_plugin.hermes import entry

    context = entry.context()
    return _ask(context) if context is not None and hasattr(type(context), "llm") else None


def _ask(context: Any) -> Ask:
    def ask(instructions: str, text: str, schema: Mapping[str, Any]) -> Answer:
        from hermes_memory_plugin.upkeep.scene_model import Answer

        result = context.llm.complete_structured(
            instructions=instructions,
            input=[{"type": "text", "text": text}],
            json_schema=dict(schema),
            schema_name="scenes",
            timeout=TIMEOUT,
            purpose=PURPOSE,
        )
        usage = getattr(result, "usage", None)
        return Answer(
            text=str(getattr(result, "text", "") or ""),
            parsed=getattr(result, "parsed", None),
            input_tokens=int(getattr(usage, "input_tokens", 0) or 0),
            output_tokens=int(getattr(usage, "output_tokens", 0) or 0),
        )

    return ask
