"""verify and sources: whether a figure still stands, and where the numbers of an answer came from."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import NOTHING, OK, State, common, verb_state
from hermes_memory_plugin.cli.memory_verbs import date_given

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_hookspecs.types import Verdict

_STYLES = {
    "supported": "green",
    "changed": "yellow",
    "expired": "yellow",
    "contradicted": "red",
    "unknown": "dim",
}


@click.command(short_help="Whether a figure still stands, and the call it came from.")
@common
@click.argument("text")
@click.option("--now", metavar="DATE", callback=date_given, help='What "today" means.')
@verb_state
def verify(state: State, text: str, now: datetime | None) -> None:
    """Hold the figures of TEXT ("茅台 PE 28 倍") against the record: supported, changed since, expired, contradicted, unknown.

    The exit code is 0 only when everything in it is supported.
    """
    from hermes_memory_plugin.cli.views import trace_view

    with state.memory() as memory:
        verdict = memory.verify(text, now=now, owner=state.owner)
        calls = [
            trace_view(call, full=False)
            for call_id in verdict.tool_call_ids
            if (call := memory.trace(call_id, owner=state.owner)) is not None
        ]

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import shown

        out.print(Text(verdict.status, style=f"bold {_STYLES[verdict.status]}"))
        out.print(Text(shown(verdict.said)))

    state.show(
        {**_plain(verdict), "calls": calls},
        page,
        code=OK if verdict.status == "supported" else NOTHING,
    )


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status,
        "claim": verdict.claim,
        "said": verdict.said,
        "fact_ids": verdict.fact_ids,
        "tool_call_ids": verdict.tool_call_ids,
        "old": verdict.old,
        "new": verdict.new,
        "parts": [_plain(one) for one in verdict.parts],
    }


@click.command(short_help="Where the numbers of an answer came from.")
@common
@click.argument("turn", required=False, default="")
@verb_state
def sources(state: State, turn: str) -> None:
    """Where the numbers of an answer came from: of TURN (id or handle), else the newest answer with a number."""
    from hermes_memory_plugin.cli.views import handle_of
    from hermes_memory_plugin.errors import NotFound

    with state.memory() as memory:
        try:
            answer = memory.sources(turn, owner=state.owner)
        except NotFound as missing:
            said = str(missing)
            state.show(
                {"answer": None, "links": [], "message": said}, lambda out: out.print(said), code=NOTHING
            )
            return
        handle = handle_of(memory, answer.id)
        handles = {one.fact: handle_of(memory, one.fact) for one in answer.links if one.fact}

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line, table
        from hermes_memory_plugin.cli.views import source_of

        at = f"{answer.at:%Y-%m-%d %H:%M} UTC" if answer.at else ""
        out.print(Text.assemble((handle, "bold cyan"), f"  {at}  ", one_line(answer.question, 80)))
        if not answer.links:
            out.print("The answer states no number.")
            return
        table(
            out,
            ("number", "of", "source", "it says"),
            (
                (
                    one.number,
                    " ".join(part for part in (one.subject, one.metric, one.period) if part),
                    source_of(one, handles),
                    one_line(one.words, 80),
                )
                for one in answer.links
            ),
        )

    state.show(
        {"answer": {"id": answer.id, "handle": handle, "at": answer.at, "session": answer.session, "turn": answer.turn,
                    "question": answer.question}, "links": answer.links},
        page,
    )  # fmt: skip


COMMANDS = (verify, sources)
