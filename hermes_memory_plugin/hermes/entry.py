"""What Hermes loads: `register(ctx)` connects its hooks, its middleware, three tools, a slash command and `hermes memory-layers`.

Loaded while Hermes starts, so it imports next to nothing; everything else comes with the first hook.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_memory_plugin.hermes.bridge import Bridge

HOOKS = (
    "on_session_start",
    "pre_llm_call",
    "pre_tool_call",
    "post_tool_call",
    "transform_tool_result",
    "transform_llm_output",
    "post_llm_call",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "subagent_start",
)
SKILL = "stock-research"
"""Hermes knows it as ``hermes-memory:stock-research``."""
_registered: weakref.WeakSet[Any] = weakref.WeakSet()
_context: Any = None


def register(ctx: Any) -> None:
    """Connect this package to one Hermes plugin context; a second call with the same one does nothing."""
    if ctx in _registered:
        return
    global _context
    _registered.add(ctx)
    _context = ctx
    known = _known_hooks()
    for name in HOOKS:
        if known is None or name in known:
            ctx.register_hook(name, _hook(name))
    if hasattr(ctx, "register_middleware"):
        ctx.register_middleware("llm_request", _hook("llm_request"))
    _register_tools(ctx)
    _register_commands(ctx)
    if hasattr(ctx, "register_skill"):
        ctx.register_skill(
            SKILL,
            Path(__file__).parent.parent / "skills" / SKILL / "SKILL.md",
            "Stock research with proof: when to recall, search reports, cite and verify",
        )


def context() -> Any:
    """The plugin context Hermes gave us last; None before it did."""
    return _context


def _known_hooks() -> frozenset[str] | None:
    """The hooks this Hermes fires; None when it does not say. Unknown ones would only draw a warning."""
    try:
        from hermes_cli.plugins import VALID_HOOKS
    except ImportError:
        return None
    return frozenset(VALID_HOOKS)


def _bridge() -> Bridge:
    from hermes_memory_plugin.hermes.bridge import bridge

    return bridge()


def _hook(name: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        return getattr(_bridge(), name)(**arguments)

    call.__name__ = call.__qualname__ = f"hermes_memory_{name}"
    return call


def _register_tools(ctx: Any) -> None:
    from hermes_memory_plugin.tools import OUR_TOOLS, TOOLSET

    for name, tool in OUR_TOOLS.items():
        ctx.register_tool(
            name=name,
            toolset=TOOLSET,
            schema=tool.schema,
            handler=_handler(name),
            description=tool.schema["description"].partition("\n")[0],
            emoji="🧠",
        )


def _handler(name: str) -> Callable[..., str]:
    def handle(arguments: Any = None, **call: Any) -> str:
        return _bridge().tool(name, arguments, call)

    handle.__name__ = f"hermes_memory_{name}"
    return handle


def _register_commands(ctx: Any) -> None:
    from hermes_memory_plugin.hermes import commands, host

    for name in (commands.NAME, "memory"):
        # Newer versions have a /memory of their own, and refuse a second one with a warning in the user's log.
        if hasattr(ctx, "register_command") and not host.built_in_command(name):
            ctx.register_command(
                name, commands.slash, "The layered memory: status, recall, why …", "<verb> …"
            )
    if hasattr(ctx, "register_cli_command"):
        ctx.register_cli_command(
            commands.NAME, "Look into and manage the layered memory", commands.set_up, commands.terminal
        )
