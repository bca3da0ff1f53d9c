"""owners list | link | unlink | export | erase: who has rows here, which keys are one person, and who leaves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.cli.app import NOTHING, OK, State, Verbs, common, verb_state

if TYPE_CHECKING:
    from rich.console import Console


@click.group(cls=Verbs, short_help="Who has rows here; link two keys of one person.")
@common
def owners() -> None:
    """Who has rows here; link two keys of one person."""


@owners.command("list")
@common
@verb_state
def list_owners(state: State) -> None:
    """Every owner with the number of its rows, and who is linked with whom."""
    from hermes_memory_plugin.cli.views import owner_rows

    with state.memory() as memory:
        counts = owner_rows(memory)
        registry = memory.owners
        keys = sorted({*counts, *(key for group in registry.links() for key in group)})
        rows: list[dict[str, Any]] = [
            {"owner": key, "rows": counts.get(key, 0), "linked": sorted(registry.linked(key) - {key})}
            for key in keys
        ]
        problems = registry.problems()

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import shown, table

        if rows:
            table(
                out,
                ("owner", "rows", "linked with"),
                ((r["owner"], r["rows"], ", ".join(r["linked"])) for r in rows),
            )
        else:
            out.print("No owner has any row yet.")
        for problem in problems:
            out.print(shown(problem), style="yellow")

    state.show({"owners": rows, "problems": problems}, page, code=OK if rows else NOTHING)


@owners.command()
@common
@click.argument("code", required=False)
@verb_state
def link(state: State, code: str | None) -> None:
    """Without CODE: print a code for the other side. With it: become one person with the side that printed it.

    The other side is the same command under another --owner, or in a messenger chat the ordinary message
    `hermes-memory owners link CODE`. A code serves once, for ten minutes.
    """
    from hermes_memory_plugin.home import memory_folder
    from hermes_memory_plugin.owners import Owners

    registry = Owners(memory_folder(state.home))
    me = (state.owner or Owner()).key
    if code is None:
        pairing = registry.offer(me)
        minutes = round((pairing.expires_at - time.time()) / 60)
        state.show(
            {"owner": me, "code": pairing.code, "expires_at": pairing.expires_at},
            lambda out: out.print(
                f"{pairing.code}\nWithin {minutes} minutes, send this as an ordinary message in the chat:\n"
                f"  hermes-memory owners link {pairing.code}\nor run it here with another --owner."
            ),
        )
        return
    joined = sorted(registry.accept(me, code))
    state.show(
        {"owner": me, "linked": joined}, lambda out: out.print(f"Linked: {', '.join(joined)} are one person.")
    )


@owners.command()
@common
@click.argument("key", required=False)
@verb_state
def unlink(state: State, key: str | None) -> None:
    """Take KEY (default: the --owner in force) out of its person. Rows stay where they are."""
    from hermes_memory_plugin.home import memory_folder
    from hermes_memory_plugin.owners import Owners

    who = _parsed(key).key if key else (state.owner or Owner()).key
    left = sorted(Owners(memory_folder(state.home)).unlink(who))
    state.show(
        {"owner": who, "unlinked": left},
        lambda out: out.print(
            f"{who} stands alone; was linked with {', '.join(left)}." if left else f"{who} was not linked."
        ),
        code=OK if left else NOTHING,
    )


@owners.command()
@common
@click.argument("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@verb_state
def export(state: State, key: str, file: Path) -> None:
    """Write everything KEY has here into FILE, one JSON object a line."""
    from hermes_memory_plugin.upkeep import leaving

    owner = _parsed(key)
    with state.memory() as memory:
        counts = leaving.export(memory, owner, file)
    state.show(
        {"owner": owner.key, "file": str(file), "rows": counts},
        lambda out: out.print(f"{file}: {_counted(counts)} of {owner.key}.", markup=False),
        code=OK if counts else NOTHING,
    )


@owners.command()
@common
@click.argument("key")
@click.option("--yes", is_flag=True, help="Do it; without, it is only counted.")
@verb_state
def erase(state: State, key: str, yes: bool) -> None:
    """Take everything KEY has here out of every file, for good. It does not come back; `owners export` first."""
    from hermes_memory_plugin.upkeep import leaving

    owner = _parsed(key)
    with state.memory() as memory:
        left = leaving.erase(memory, owner, dry_run=not yes)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line

        if not left.rows:
            out.print(f"{owner.key} has nothing here.", markup=False)
        elif not yes:
            out.print(f"Would erase {_counted(left.rows)} of {owner.key}; --yes does it.", markup=False)
        else:
            out.print(f"Erased {_counted(left.rows)} of {owner.key}.", markup=False)
        for place in left.unreached:
            out.print(f"  · {one_line(place, 300)}", markup=False, style="dim")

    state.show(
        {"owner": owner.key, "erased": left.done, "rows": left.rows, "unreached": left.unreached},
        page,
        code=OK if left.rows and left.done == yes else NOTHING,
    )


def _parsed(key: str) -> Owner:
    try:
        return Owner.parse(key)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _counted(rows: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(rows.items())) or "no row"


COMMANDS = (owners,)
