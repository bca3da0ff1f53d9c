"""notes, trash: what was asked to be remembered, and what was forgotten of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes_memory_plugin.cli.app import NOTHING, OK, State, Verbs, common, verb_state
from hermes_memory_plugin.cli.layer_verbs import alone, day_of, rows_of

if TYPE_CHECKING:
    from rich.console import Console


@click.group(cls=Verbs, invoke_without_command=True, short_help="Notes with their dates and uses.")
@common
@click.pass_context
def notes(ctx: click.Context) -> None:
    """What was asked to be remembered: `remember --title` writes a note, `forget` takes it away."""
    alone(ctx, list_notes)


@notes.command("list")
@common
@verb_state
def list_notes(state: State) -> None:
    """Every note: created, updated, how often and when last recalled."""
    from hermes_memory_plugin.upkeep.uses import uses

    with state.memory() as memory:
        memory.reader.scan_files()
        used = uses(memory, owner=state.owner)
        rows = [
            {
                "handle": memory.reader.index.handle(row),
                "id": row.id,
                "type": str(row.extra.get("type") or ""),
                "title": str(row.extra.get("title") or ""),
                "owner": row.owner,
                "created": day_of(row.created),
                "updated": day_of(row.as_of),
                "uses": used[row.id].count if row.id in used else 0,
                "last_used": used[row.id].last if row.id in used else None,
                "file": str(row.extra.get("path") or ""),
                "broken": str(row.extra.get("broken") or ""),
            }
            for row in rows_of(memory, state.owner, "")
        ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print("No note yet: `hermes-memory remember TEXT --title TITLE` writes one.")
            return
        table(
            out,
            ("note", "type", "created", "updated", "uses", "title"),
            ((r["handle"], r["type"], r["created"], r["updated"], r["uses"], r["title"]) for r in rows),
        )

    state.show({"notes": rows}, page, code=OK if rows else NOTHING)


@click.group(
    cls=Verbs, invoke_without_command=True, short_help="Forgotten notes and scenes: list, restore, empty."
)
@common
@click.pass_context
def trash(ctx: click.Context) -> None:
    """Forgotten notes and scenes, kept for 30 days."""
    alone(ctx, list_trash)


@trash.command("list")
@common
@verb_state
def list_trash(state: State) -> None:
    """What can be restored, and until when."""
    with state.memory() as memory:
        keys = memory.keys(state.owner)
        found = [one for one in memory.notes.trash if keys is None or one.owner in keys]
    rows = [
        {
            "name": one.name,
            "title": one.title,
            "layer": one.folder,
            "owner": one.owner,
            "forgotten": one.at,
            "until": one.until,
        }
        for one in found
    ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print("The trash is empty.")
            return
        table(
            out,
            ("forgotten", "until", "layer", "title"),
            ((f"{one.at:%Y-%m-%d %H:%M}", f"{one.until:%Y-%m-%d}", one.folder, one.title) for one in found),
        )

    state.show({"trash": rows}, page, code=OK if rows else NOTHING)


@trash.command("log")
@common
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many.")
@verb_state
def log(state: State, count: int) -> None:
    """Who forgot what and when, newest first: ids only. It is kept after `empty`, after 30 days and after a purge."""
    with state.memory() as memory:
        memory.flush()
        rows = memory.archive.facts.graves(count, memory.keys(state.owner))

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.layer_verbs import day_of
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print("Nothing was forgotten.")
            return
        table(
            out,
            ("day", "id", "owner", "by", "why"),
            ((day_of(r["forgotten_at"]), r["id"], r["owner"], r["forgotten_by"], r["why"]) for r in rows),
        )

    state.show({"forgotten": rows}, page, code=OK if rows else NOTHING)


@trash.command()
@common
@click.argument("name")
@verb_state
def restore(state: State, name: str) -> None:
    """Bring a forgotten note or scene back, by title or file name."""
    from hermes_memory_plugin.cli.views import handle_of

    with state.memory() as memory:
        row = memory.restore(name, owner=state.owner)
        handle = handle_of(memory, row)
    state.show({"id": row, "handle": handle}, lambda out: out.print(f"Restored as {handle}."))


@trash.command()
@common
@verb_state
def empty(state: State) -> None:
    """Delete what is in the trash for good."""
    with state.memory() as memory:
        keys = memory.keys(state.owner)
        gone = [one for one in memory.notes.trash if keys is None or one.owner in keys]
        for one in gone:
            one.path.unlink(missing_ok=True)
    state.show({"deleted": len(gone)}, lambda out: out.print(f"{len(gone)} files deleted for good."))


COMMANDS = (notes, trash)
