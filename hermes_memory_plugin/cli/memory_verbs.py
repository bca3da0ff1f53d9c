"""remember, recall, forget, trace, why: what is in the memory, in and out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import NOTHING, OK, State, common, verb_state
from hermes_memory_plugin.cli.views import elsewhere, handle_of, item_view, trace_view
from hermes_memory_plugin.layers.facts import BadFact, as_moment

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_hookspecs.types import ToolTrace

_KINDS = ("fact", "conclusion", "preference", "holding", "competence")
_TYPES = ("user", "feedback", "project", "reference")


def date_given(ctx: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    try:
        return as_moment(value)
    except BadFact:
        raise click.BadParameter(
            f"{value!r} is no date such as 2026-04-30 and no ISO time.", ctx, parameter
        ) from None


@click.command(short_help="Store a fact or a note.")
@common
@click.argument("text")
@click.option("--title", help="Makes it a note: a Markdown file you can edit.")
@click.option(
    "--type", "type_", type=click.Choice(_TYPES), help="Kind of note; user = a standing preference."
)
@click.option("--kind", type=click.Choice(_KINDS), default="fact", show_default=True, help="Kind of fact.")
@click.option("--subject", default="", help="What it is about, such as 600519.SH.")
@click.option("--metric", default="", help="Which figure, such as pe_ttm.")
@click.option("--period", default="", help="2025, 2026Q1, 2025H1 …")
@click.option("--value", type=float, help="The figure itself.")
@click.option("--unit", default="")
@click.option("--as-of", metavar="DATE", help="When it was true.")
@click.option("--source", default="", help="Where it comes from.")
@click.option("--id", "id_", help="A stable name: the same again replaces the row.")
@verb_state
def remember(
    state: State, /, text: str, title: str | None, type_: str | None, id_: str | None, **given: Any
) -> None:
    """Store TEXT ("-" reads it from the standard input)."""
    if text == "-":
        text = sys.stdin.read()
    typed = {name: value for name, value in given.items() if value not in ("", None)}
    if type_:
        typed["type"] = type_
    with state.memory() as memory:
        row = memory.remember(text, id=id_, title=title, owner=state.writer, **typed)
        handle = handle_of(memory, row)
    layer = "L2" if title is not None or type_ else "L1"
    state.show(
        {"id": row, "handle": handle, "layer": layer},
        lambda out: out.print(f"Remembered as {handle}."),
    )


@click.command(short_help="Find what is known, and the block a model would get.")
@common
@click.argument("question")
@click.option("--mode", type=click.Choice(["automatic", "explicit"]), default="explicit", show_default=True,
              help="automatic: exactly what a turn would get, or nothing; explicit: the best rows of every layer.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 100), help="Most items (explicit: 5 by default).")
@click.option("--now", metavar="DATE", callback=date_given, help='What "today" means.')
@verb_state
def recall(state: State, question: str, mode: str, limit: int | None, now: datetime | None) -> None:
    """Find what is known about QUESTION, and show the block a model would get."""
    from hermes_memory_plugin.upkeep.uses import uses

    with state.memory() as memory:
        found = memory.recall(question, mode=mode, owner=state.owner, limit=limit, now=now)
        spent = round(found.milliseconds, 1)
        used = uses(memory, owner=state.owner) if state.json else {}
        items = [item_view(memory, item, used) for item in found.items]
        others = {} if items else elsewhere(memory, state.owner)

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line, shown
        from hermes_memory_plugin.recall.answer import day_of

        if not items:
            out.print(f"Nothing found{_others(others)}")
            return
        for item, row in zip(items, found.items, strict=True):
            head = " · ".join(
                str(part)
                for part in (
                    item["layer"],
                    item["state"] if item["state"] != "live" else "",
                    f"as of {day_of(row)}" if row.as_of else "",
                    one_line(item["source"], 60),
                    f"score {item['score']:.3g}",
                )
                if part
            )
            out.print(Text.assemble((item["handle"], "bold cyan"), "  ", one_line(item["text"], 300)))
            out.print(Text(f"        {head}", style="dim"))
            if item["reasons"]:
                out.print(Text(f"        because: {one_line(', '.join(item['reasons']), 200)}", style="dim"))
        out.print(Text(f"\n{shown(found.block)}"))
        out.print(Text(f"\n{found.tokens} tokens, {spent} ms", style="dim"))

    state.show(
        {
            "question": question,
            "mode": mode,
            "items": items,
            "block": found.block,
            "tokens": found.tokens,
            "ms": spent,
            "owners_with_rows": others,
        },
        page,
        code=OK if items else NOTHING,
    )


@click.command(short_help="Make a row unfindable.")
@common
@click.argument("id_or_title")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option(
    "--everywhere",
    is_flag=True,
    help="Also out of Hermes' MEMORY.md and USER.md (after a backup), and the turns and calls that say the same.",
)
@click.option("--why", default="", help="Kept beside the deletion.")
@verb_state
def forget(state: State, id_or_title: str, dry_run: bool, everywhere: bool, why: str) -> None:
    """Make a row unfindable, by id, handle or exact title. Anything else is a query: its matches are only shown."""
    from hermes_memory_plugin.errors import NotFound

    with state.memory() as memory:
        try:
            done = memory.forgetting(
                id_or_title, dry_run=dry_run, owner=state.owner, why=why, everywhere=everywhere
            )
        except NotFound as missing:
            found = memory.recall(id_or_title, mode="explicit", owner=state.owner, limit=10)
            items = [item_view(memory, item) for item in found.items]
            others = {} if items else elsewhere(memory, state.owner)
            said, done = str(missing), None
        else:
            items, others, said = [], {}, ""

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line, table

        if gone_ids:
            assert done is not None
            out.print(f"{'Would forget' if dry_run else 'Forgotten'}: {', '.join(gone_ids)}.")
            if done.entries:
                out.print(f"Removed from Hermes' files: {len(done.entries)} entries (backup: {done.backup}).")
            if done.shaken:
                out.print(
                    f"Conclusions that rested on it now say that their basis changed: {', '.join(done.shaken)}."
                )
            for place in done.unreached:
                out.print(f"  · {one_line(place, 300)}", markup=False, style="dim")
        elif items:
            out.print("Nothing was forgotten. Did you mean one of these? Forget it by its handle:")
            table(
                out,
                ("handle", "layer", "text"),
                ((i["handle"], i["layer"], one_line(i["text"], 100)) for i in items),
            )
        else:
            out.print(f"{one_line(said).rstrip('.')}{_others(others)}")

    gone_ids = list(done.ids) if done is not None else []
    state.show(
        {"forgotten": [] if dry_run else gone_ids, "would_forget": gone_ids if dry_run else [], "candidates": items,
         "owners_with_rows": others, "basis_changed": done.shaken if done else (), "removed_entries": done.entries if done else (),
         "unreached": done.unreached if done else ()},
        page,
        code=OK if gone_ids else NOTHING,
    )  # fmt: skip


@click.command(short_help="Look up a tool call, or list the last ones.")
@common
@click.argument("call_id", required=False)
@click.option("--since", metavar="DATE", callback=date_given, help="From then on.")
@click.option("--until", metavar="DATE", callback=date_given, help="Before then.")
@click.option("--tool", metavar="NAME")
@click.option("--session", metavar="ID")
@click.option("--status", type=click.Choice(["ok", "error", "blocked", "cancelled", "timeout"]))
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--full", is_flag=True, help="Print whole results.")
@verb_state
def trace(state: State, /, call_id: str | None, full: bool, **which: Any) -> None:
    """The tool call of that id or handle; without one the last calls, newest first."""
    with state.memory() as memory:
        if call_id is not None:
            one = memory.trace(call_id, owner=state.owner)
            calls: Sequence[ToolTrace] = [one] if one else []
        else:
            calls = memory.traces(owner=state.owner, **which)
        others = {} if calls else elsewhere(memory, state.owner)
    whole = full or call_id is not None

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line, pairs, shown, table

        if not calls:
            out.print(f"No such call is on record{_others(others)}")
        elif call_id is None and not full:
            table(
                out,
                ("time (UTC)", "call", "tool", "status", "result"),
                (
                    (
                        f"{c.at:%Y-%m-%d %H:%M:%S}",
                        c.tool_call_id,
                        c.tool_name,
                        c.status,
                        one_line(c.result, 60),
                    )
                    for c in calls
                ),
            )
        else:
            for call in calls:
                view = trace_view(call, full=True)
                result = view.pop("result")
                pairs(out, ((name, value) for name, value in view.items() if value not in ("", None)))
                out.print(shown(result) + "\n", markup=False)

    state.show(
        {"calls": [trace_view(call, full=whole) for call in calls], "owners_with_rows": others},
        page,
        code=OK if calls else NOTHING,
    )


@click.command(short_help="What the last recalls gave the model, and why.")
@common
@click.option(
    "-n", "count", type=click.IntRange(1, 1_000), default=1, show_default=True, help="How many recalls back."
)
@verb_state
def why(state: State, count: int) -> None:
    """What the last recalls gave the model, what they left out, and why."""
    with state.memory() as memory:
        audits = memory.why(count, owner=state.owner)
        others = {} if audits else elsewhere(memory, state.owner)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.views import audit_lines

        if not audits:
            out.print(f"No recall is on record{_others(others)}")
        for audit in audits:
            for line, style in audit_lines(audit):
                out.print(line, style=style)

    state.show({"recalls": audits, "owners_with_rows": others}, page, code=OK if audits else NOTHING)


def _others(others: Mapping[str, int]) -> str:
    if not others:
        return "."
    listed = ", ".join(f"{key} ({count})" for key, count in others.items())
    return f". Other owners have rows here: {listed}; name one with --owner."


COMMANDS = (remember, recall, forget, trace, why)
