"""history, competences: what became of a statement, and what the house knows and stands by."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.cli.app import NOTHING, OK, State, Verbs, common, verb_state
from hermes_memory_plugin.cli.layer_verbs import alone, day_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from hermes_memory_plugin.upkeep.competences import Difference

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="What became of a statement.")
@common
@click.argument("id_or_handle")
@verb_state
def history(state: State, id_or_handle: str) -> None:
    """Every row that speaks of the same thing, oldest first: what was replaced by what, and what contradicts what."""
    with state.memory() as memory:
        found = memory.history(id_or_handle, owner=state.owner)
        handles = {one.id: one.handle for one in found}

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line

        for one in found:
            notes: list[str] = [one.change, one.state]
            if one.superseded_by:
                notes.append(f"replaced by {handles.get(one.superseded_by, one.superseded_by)}")
            if one.contradicts:
                notes.append("contradicts " + ", ".join(handles[other] for other in one.contradicts))
            day = one.as_of.date().isoformat() if one.as_of else "undated"
            out.print(Text.assemble((one.handle, "bold cyan"), f"  {day}  ", one_line(one.statement, 300)))
            said = " · ".join(part for part in (one.origin, one.source, one.tool_call_id) if part)
            out.print(Text(f"        {', '.join(notes)} ({one_line(said, 120)})", style="dim"))

    view = [
        asdict(one)
        | {name: at.isoformat() if (at := getattr(one, name)) else None for name in ("as_of", "stored")}
        for one in found
    ]
    state.show({"id": id_or_handle, "versions": view}, page)


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    short_help="What the house knows: list, import, diff, conflicts, resolve.",
)
@common
@click.pass_context
def competences(ctx: click.Context) -> None:
    """What the house knows and stands by, kept in a YAML or CSV file or a Python registry (read, never run)."""
    alone(ctx, list_competences)


@competences.command("list")
@common
@click.option("--about", default="", metavar="TEXT", help="Only those of a topic, a company or a ticker.")
@verb_state
def list_competences(state: State, about: str = "") -> None:
    """Every competence, with its source; a mark where a file says something else."""
    with state.memory() as memory:
        keys = memory.keys(state.owner)
        open_ = {(one.owner, one.id) for one in memory.competences.conflicts(keys)}
        rows = [
            {
                "id": str(row.extra.get("title") or row.id),
                "handle": memory.reader.index.handle(row),
                "statement": row.text,
                "topics": list(row.extra.get("topics") or ()),
                "source": row.source,
                "as_of": day_of(row.as_of),
                "owner": row.owner,
                "conflict": (row.owner, str(row.extra.get("title") or "")) in open_,
            }
            for row in memory.competences.rows(keys, about)
        ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print(
                "No competence is stored"
                + (f" about {about!r}." if about else ": `competences import FILE` takes them in.")
            )
            return
        cells = (
            (
                r["handle"],
                ("! " if r["conflict"] else "") + str(r["id"]),
                r["as_of"],
                r["source"],
                r["statement"],
            )
            for r in rows
        )
        table(out, ("handle", "id", "as of", "source", "statement"), cells)
        if any(r["conflict"] for r in rows):
            out.print("! a file says something else: `competences conflicts`.", style="yellow")

    state.show({"competences": rows}, page, code=OK if rows else NOTHING)


@competences.command("import")
@common
@click.argument("file", type=_FILE)
@verb_state
def import_(state: State, file: Path) -> None:
    """Take in FILE. What is new is stored; what differs from the memory becomes a conflict, and the memory stays as it is."""
    with state.memory() as memory:
        read, found = memory.competences.take_in(file, owner=state.writer or Owner.SHARED)
    _show(state, found, done=True, ignored=read.ignored)


@competences.command()
@common
@click.argument("file", type=_FILE)
@verb_state
def diff(state: State, file: Path) -> None:
    """What importing FILE would change; nothing is stored. Exit code 1 when the file and the memory differ."""
    with state.memory() as memory:
        found = memory.competences.diff(file, owner=state.writer or Owner.SHARED)
    _show(state, found, done=False, ignored=())


@competences.command()
@common
@verb_state
def conflicts(state: State) -> None:
    """Where a file says something else than the memory has."""
    with state.memory() as memory:
        found = memory.competences.conflicts(memory.keys(state.owner))
    rows = [
        {"id": one.id, "owner": one.owner, "stored": one.stored, "offered": one.offered.statement, "file": one.file, "since": one.at.isoformat()}
        for one in found
    ]  # fmt: skip

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line

        for row in rows:
            out.print(
                Text.assemble((str(row["id"]), "bold"), f"  {row['file']}, since {str(row['since'])[:10]}")
            )
            out.print(Text(f"  - {one_line(row['stored'], 300)}", style="dim"))
            out.print(Text(f"  + {one_line(row['offered'], 300)}"))
        out.print("`competences resolve ID --take` or `--keep`." if rows else "No conflict is open.")

    state.show({"conflicts": rows}, page)


@competences.command()
@common
@click.argument("id_")
@click.option("--take/--keep", default=None, help="Take what the file says, or keep what is stored.")
@verb_state
def resolve(state: State, id_: str, take: bool | None) -> None:
    """Decide the conflict of one id. What was replaced stays as its history; what was refused is not asked again."""
    if take is None:
        raise click.UsageError("say --take (what the file says) or --keep (what is stored).")
    with state.memory() as memory:
        one = memory.competences.resolve(id_, take=take, keys=memory.keys(state.owner))
    said = one.offered.statement if take else one.stored
    state.show(
        {"id": id_, "took": "file" if take else "memory", "statement": said},
        lambda out: out.print(f"{id_}: {said}", markup=False),
    )


def _show(state: State, found: Sequence[Difference], *, done: bool, ignored: Sequence[str]) -> None:
    counts: dict[str, int] = {}
    for one in found:
        counts[one.drift] = counts.get(one.drift, 0) + 1
    differs = any(one.drift not in ("same", "kept yours") for one in found)

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line

        for one in found:
            if one.drift == "same":
                continue
            out.print(
                Text.assemble(
                    (f"{one.drift:<15} ", "yellow" if one.drift == "changed" else ""), (one.id, "bold")
                )
            )
            if one.drift in ("changed", "kept yours", "not in the file"):
                out.print(Text(f"  - {one_line(one.stored, 300)}", style="dim"))
            if one.drift in ("changed", "kept yours", "new"):
                out.print(Text(f"  + {one_line(one.offered, 300)}"))
        out.print(", ".join(f"{count} {drift}" for drift, count in counts.items()) + ".")
        if done and counts.get("changed"):
            out.print(
                "What differs is a conflict now: `competences conflicts`, then `competences resolve ID`."
            )
        if ignored:
            out.print(f"No field of a competence, and not stored: {', '.join(ignored)}.", style="yellow")

    rows: list[dict[str, Any]] = [asdict(one) for one in found]
    code = OK if done or not differs else NOTHING
    state.show({"differences": rows, "counts": counts, "ignored": list(ignored)}, page, code=code)


COMMANDS = (history, competences)
