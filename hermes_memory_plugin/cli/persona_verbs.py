"""persona, import: Hermes' own memory files, and another program's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import State, Verbs, common, verb_state
from hermes_memory_plugin.cli.layer_verbs import alone

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_plugin.upkeep.slim import Plan


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    short_help="Hermes' MEMORY.md and USER.md: show, slim, restore, adopt.",
)
@common
@click.pass_context
def persona(ctx: click.Context) -> None:
    """What Hermes keeps about its user in MEMORY.md and USER.md, and the standing preferences beside them."""
    alone(ctx, show_persona)


@persona.command("show")
@common
@verb_state
def show_persona(state: State) -> None:
    """Both files entry by entry, how full they are, and the standing preferences."""
    from hermes_memory_plugin.layers.persona import TARGETS
    from hermes_memory_plugin.recall.standing import preferences

    with state.memory() as memory:
        pages = [memory.persona.read(target) for target in TARGETS]
        visible = [entry for page in pages if memory.persona.shown(page.target) for entry in page.entries]
        memory.reader.scan_files()
        index = memory.reader.index
        rules = [
            {"handle": index.handle(row), "text": row.text}
            for row in preferences(index, memory.keys(state.owner), shown=visible, limit=100)
        ]
    files = [
        {
            "file": page.path.name,
            "shown_by_hermes": memory.persona.shown(page.target),
            "characters": page.characters,
            "limit": page.limit,
            "share": round(page.share, 3),
            "foreign": page.foreign,
            "entries": list(page.entries),
        }
        for page in pages
    ]

    def page_(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line

        for page in pages:
            hidden = "" if memory.persona.shown(page.target) else ", not shown by Hermes"
            out.print(
                f"{page.path.name}: {page.characters:,} of {page.limit:,} characters ({page.share:.0%}){hidden}",
                style="bold",
            )
            if page.foreign:
                out.print(f"  ! {page.foreign}", style="yellow")
            for entry in page.entries:
                out.print(f"  § {one_line(entry, 160)}")
        if rules:
            out.print(
                "Standing preferences beside them (`persona adopt HANDLE` moves one into MEMORY.md):",
                style="bold",
            )
            for rule in rules:
                out.print(f"  {rule['handle']}  {one_line(rule['text'], 150)}")

    state.show({"files": files, "standing": rules}, page_)


@persona.command()
@common
@click.option("--apply", "apply_", is_flag=True, help="Do it: backup first, undone by `persona restore`.")
@verb_state
def slim(state: State, apply_: bool) -> None:
    """Which entries are persona and which belong to another layer; only --apply changes anything."""
    from hermes_memory_plugin.upkeep import slim as slim_

    with state.memory() as memory:
        plan = slim_.apply(memory, owner=state.writer) if apply_ else slim_.plan(memory)
    state.show(_plan_view(plan, applied=apply_), lambda out: _plan_page(out, plan, apply_))


@persona.command("restore")
@common
@click.argument("backup", required=False, default="")
@verb_state
def restore_persona(state: State, backup: str) -> None:
    """Undo a slim (default: the last): its entries go back, what was added since stays."""
    from hermes_memory_plugin.upkeep import slim as slim_

    with state.memory() as memory:
        back = slim_.restore(memory, backup)
    state.show(
        {"restored": back}, lambda out: out.print(f"{len(back)} entries are back in Hermes' memory files.")
    )


@persona.command()
@common
@click.argument("name")
@click.option("--user", "user_file", is_flag=True, help="Into USER.md instead of MEMORY.md.")
@verb_state
def adopt(state: State, name: str, user_file: bool) -> None:
    """Move one standing preference into Hermes' MEMORY.md, where Hermes itself shows it."""
    from hermes_memory_plugin.upkeep import slim as slim_

    with state.memory() as memory:
        entry = slim_.adopt(memory, name, target="user" if user_file else "memory", owner=state.owner)
    file = "USER.md" if user_file else "MEMORY.md"
    state.show({"entry": entry, "file": file}, lambda out: out.print(f"In {file} now: {entry}"))


@click.group("import", cls=Verbs, short_help="Take over another memory.")
@common
def import_() -> None:
    """Take over what another program remembered."""


@import_.command("vibe-trading")
@common
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would become of it.")
@verb_state
def vibe_trading(state: State, folder: Path, dry_run: bool) -> None:
    """A folder written by Vibe-Trading (MEMORY.md and entry files) becomes notes; DIR stays as it is."""
    from hermes_memory_plugin.upkeep import importing

    with state.memory() as memory:
        report = importing.vibe_trading(memory, folder, owner=state.writer, dry_run=dry_run)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        table(
            out,
            ("file", "became", "title", "remarks"),
            ((r.file, r.became, r.title, r.why) for r in report.rows),
        )
        for name in report.missing:
            out.print(f"! MEMORY.md names {name}, which is not there", style="yellow")
        done = report.count("note") + report.count("updated")
        out.print(
            f"{len(report.rows)} entries, {done} {'would be ' if dry_run else ''}imported.", style="bold"
        )

    state.show({"entries": list(report.rows), "missing": list(report.missing), "dry_run": dry_run}, page)


def _plan_view(plan: Plan, *, applied: bool) -> dict[str, Any]:
    return {
        "applied": applied and bool(plan.backup),
        "backup": plan.backup,
        "files": list(plan.files),
        "moves": list(plan.moves),
        "moving": len(plan.moving),
    }


def _plan_page(out: Console, plan: Plan, applied: bool) -> None:
    from hermes_memory_plugin.cli.output import one_line, table
    from hermes_memory_plugin.layers.persona import NEAR

    moving = plan.moving
    for file in plan.files:
        after = f" → {file.after:,}" if file.after != file.before else ""
        out.print(f"{file.name}: {file.before:,}{after} of {file.limit:,} characters", style="bold")
        if file.refused:
            out.print(f"  ! it is left alone: {file.refused}", style="yellow")
    table(out, ("becomes", "why", "entry"), ((m.becomes, m.why, one_line(m.entry, 70)) for m in plan.moves))
    if not moving and any(file.before >= NEAR * file.limit for file in plan.files):
        out.print(
            "Every entry is persona, or may be: make room by shortening or joining some by hand. "
            "What Hermes finds no room for is kept as facts."
        )
    elif not moving:
        out.print("Nothing needs to move.")
    elif applied:
        out.print(f"{len(moving)} entries moved; `hermes-memory persona restore {plan.backup}` undoes it.")
    else:
        out.print(f"{len(moving)} entries would move; --apply does it, after a backup.")


COMMANDS = (persona, import_)
