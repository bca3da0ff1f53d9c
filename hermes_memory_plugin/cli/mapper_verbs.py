"""mappers: which tables become facts, a draft for one that does not yet, and facts from old calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import NOTHING, OK, State, Verbs, common, verb_state
from hermes_memory_plugin.cli.layer_verbs import alone
from hermes_memory_plugin.errors import HermesMemoryError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from hermes_memory_hookspecs import Fact
    from hermes_memory_plugin.upkeep.mappers.backfill import Filled

_SHOWN = 12


class MapperExists(HermesMemoryError, ValueError):
    """A file of that name is there already; it was left as it is."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already and was left as it is: edit it, or move it away.")


@click.group(
    cls=Verbs, invoke_without_command=True, short_help="Tables to facts: list, suggest, check, backfill."
)
@common
@click.pass_context
def mappers(ctx: click.Context) -> None:
    """Which columns of which tool are which figures; yours are YAML files in memory/mappers."""
    alone(ctx, list_mappers)


@mappers.command("list")
@common
@click.option("--all", "whole", is_flag=True, help="The built-in ones too.")
@verb_state
def list_mappers(state: State, whole: bool) -> None:
    """Your mappers, and what each data tool's results have given so far."""
    with state.memory() as memory:
        found = memory.extraction.mappers.all()
        tools = [
            {
                "tool": one.name,
                "calls": one.calls,
                "facts": one.facts,
                "read_by": ", ".join(mapper.name for mapper in memory.extraction.mappers.of(one.name, {})),
            }
            for one in memory.extraction.state()[1].tools()
        ]
        problems = memory.extraction.mappers.problems()
    views = [
        {
            "name": m.name,
            "own": m.own,
            "place": m.place,
            "api": m.api,
            "figures": len(m.fields),
            "public": m.public,
        }
        for m in found
    ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        shown = [view for view in views if whole or view["own"]]
        if shown:
            table(
                out,
                ("mapper", "figures", "public", "where"),
                ((v["name"], v["figures"], "yes" if v["public"] else "", v["place"]) for v in shown),
            )
        built_in = sum(not view["own"] for view in views)
        if not whole:
            out.print(f"{'and ' if shown else ''}{built_in} built-in mappers (--all lists them)")
        if tools:
            table(
                out,
                ("tool", "calls", "facts", "read by"),
                ((t["tool"], t["calls"], t["facts"], t["read_by"] or "none yet: `mappers suggest CALL_ID`") for t in tools),
            )  # fmt: skip
        for problem in problems:
            out.print(f"✗ {problem}", style="red")

    state.show({"mappers": views, "tools": tools, "problems": problems}, page)


@mappers.command("check")
@common
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@verb_state
def check(state: State, file: Path | None) -> None:
    """Whether FILE, or every file in memory/mappers, can be used; each problem with file and line."""
    from hermes_memory_plugin.upkeep.mappers.model import parse

    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"{file} is not text in UTF-8: {error}.") from None
        found, problems = parse(text, str(file), own=True)
        names = [mapper.name for mapper in found]
    else:
        with state.memory() as memory:
            names = [mapper.name for mapper in memory.extraction.mappers.all() if mapper.own]
            problems = list(memory.extraction.mappers.problems())

    def page(out: Console) -> None:
        for problem in problems:
            out.print(f"✗ {problem}", style="red")
        out.print(f"{len(names)} usable: {', '.join(names)}" if names else "No mapper of yours can be used.")

    state.show({"usable": names, "problems": problems}, page, code=NOTHING if problems else OK)


@mappers.command("suggest")
@common
@click.argument("call_id")
@click.option("--yes", is_flag=True, help="Save it, and read the tool's old calls.")
@verb_state
def suggest(state: State, call_id: str, yes: bool) -> None:
    """Draft a mapper from a stored call, show the facts it would give, and save it when you agree."""
    from hermes_memory_plugin.store.files import atomic_write
    from hermes_memory_plugin.upkeep.mappers.backfill import backfill
    from hermes_memory_plugin.upkeep.mappers.draft import draft
    from hermes_memory_plugin.upkeep.mappers.model import parse
    from hermes_memory_plugin.upkeep.mappers.reader import read

    with state.memory() as memory:
        trace = memory.trace(call_id, owner=state.owner)
        if trace is None:
            raise NotFound(call_id, "`hermes-memory trace` lists the calls on record.")
        folder = memory.extraction.mappers.folder
        drafted = draft(trace)
        path = folder / f"{drafted.name}.yaml"
        facts = read(trace, parse(drafted.yaml, str(path), own=True)[0]).facts
        if not state.json:
            _show_draft(drafted.yaml, facts)
        saved = yes or (not state.json and sys.stdin.isatty() and click.confirm(f"Save it as {path}?"))
        filled: Filled | None = None
        if saved:
            if path.exists():
                raise MapperExists(path)
            atomic_write(folder.parent, f"{folder.name}/{path.name}", drafted.yaml)
            filled = backfill(memory, tool=trace.tool_name)

    def page(out: Console) -> None:
        if filled is None:
            out.print("Nothing was saved. `--yes` saves it and reads the tool's old calls.")
        else:
            out.print(
                f"Saved as {path}. Edit it there; `hermes-memory mappers check` tells whether it can be used."
            )
            out.print(_filled(filled))

    state.show(
        {
            "yaml": drafted.yaml,
            "facts": [fact.statement for fact in facts],
            "saved": str(path) if saved else "",
        }
        | (_counts(filled) if filled else {}),
        page,
    )


@mappers.command("backfill")
@common
@click.option("--tool", metavar="NAME", default="", help="Only this tool's calls.")
@click.option("--dry-run", is_flag=True, help="Only say what it would give.")
@verb_state
def fill(state: State, tool: str, dry_run: bool) -> None:
    """Facts from calls that were stored before their mapper was there, printed tables included. Again changes nothing."""
    from hermes_memory_plugin.upkeep.mappers.backfill import backfill

    with state.memory() as memory:
        filled = backfill(memory, tool=tool, dry_run=dry_run)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line

        for fact in filled.examples:
            out.print(f"  {one_line(fact.statement, 160)}")
        out.print(f"{'Would give: ' if dry_run else ''}{_filled(filled)}")

    state.show(_counts(filled) | {"stored": not dry_run}, page, code=OK if filled.facts else NOTHING)


def _show_draft(yaml: str, facts: Sequence[Fact]) -> None:
    from hermes_memory_plugin.cli.output import console, one_line, shown

    out = console()
    out.print(shown(yaml))
    out.print(f"{len(facts)} facts from this call:")
    for fact in facts[:_SHOWN]:
        out.print(f"  {one_line(fact.statement, 160)}")


def _counts(filled: Filled) -> dict[str, Any]:
    return {"calls": dict(filled.calls), "facts_by_tool": dict(filled.facts)}


def _filled(filled: Filled) -> str:
    if not filled.calls:
        return "No stored call of such a tool."
    told = ", ".join(
        f"{tool}: {filled.facts[tool]:,} facts of {calls:,} calls" for tool, calls in filled.calls.items()
    )
    return f"{told}."


COMMANDS = (mappers,)
"""The verbs of this module."""
