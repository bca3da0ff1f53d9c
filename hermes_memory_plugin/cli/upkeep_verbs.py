"""upkeep, pause, resume: what is let go of, and what is not taken in."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.cli.app import NOTHING, OK, State, common, verb_state

if TYPE_CHECKING:
    from rich.console import Console


@click.command(short_help="Compress, purge and tidy up now.")
@common
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option(
    "--purge", "for_good", is_flag=True,
    help="Also take the bytes of everything forgotten out of every file, the trash included: no restore after it.",
)  # fmt: skip
@verb_state
def upkeep(state: State, dry_run: bool, for_good: bool) -> None:
    """What runs once a day in the background: compress old results, purge what is outlived, make the files small.

    Rows that a living fact, conclusion, scene or answer cites stay. It may be interrupted at any time.
    """
    if dry_run and for_good:
        raise click.UsageError("--dry-run and --purge exclude each other.")
    with state.memory() as memory:
        report = memory.upkeep.run(dry_run=dry_run, for_good=for_good)
        kept = memory.settings.retention.policy == "keep"
    data: dict[str, Any] = {**asdict(report), "policy": "keep" if kept else "purge"}

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line

        would = "would be " if dry_run else ""
        for count, what in (
            (report.compressed, f"long results {would}compressed"),
            (report.calls, f"logged calls {would}purged"),
            (report.turns, f"turns {would}purged"),
            (report.facts, f"facts {would}purged"),
            (report.outlived, f"figures {would}outlived by their next report"),
        ):
            out.print(f"{count:>10,} {what}")
        out.print(f"{report.pinned:>10,} rows and calls are cited by something living and stay")
        if kept:
            out.print("retention: keep is set: nothing is purged by age or size.")
        before, after = report.bytes_before / 1e6, report.bytes_after / 1e6
        share = report.bytes_after / report.limit if report.limit else 0
        out.print(f"memory/ {before:,.1f} MB → {after:,.1f} MB, {share:.1%} of retention.max_gb")
        if not dry_run:
            out.print(f"The longest anybody had to wait for a lock: {report.longest_hold_ms:.0f} ms.")
        for sentence in report.left:
            out.print(f"! {one_line(sentence, 300)}", markup=False)

    state.show(data, page, code=OK if report.finished else NOTHING)


@click.command(short_help="Store nothing more until resume.")
@common
@verb_state
def pause(state: State) -> None:
    """Store nothing more of the owner, in no conversation and no process, until `resume`. Recall goes on.

    For one turn alone, say 别记 or "off the record" in the message itself. `--owner any` pauses everybody.
    """
    key = (state.owner or Owner()).key
    with state.memory() as memory:
        memory.pauses.pause(key)
    state.show(
        {"paused": key},
        lambda out: out.print(
            f"Paused for {key}: nothing is stored until `hermes-memory resume`. Hermes' own session history goes on."
        ),
    )


@click.command(short_help="Store again after a pause.")
@common
@verb_state
def resume(state: State) -> None:
    """End a pause: from the next message on everything is stored again."""
    key = (state.owner or Owner()).key
    with state.memory() as memory:
        ended = memory.pauses.resume(
            memory.owners.linked(key) | {key} if key != Owner.ANY.key else memory.pauses.all()
        )
        left = sorted(memory.pauses.all())

    def page(out: Console) -> None:
        out.print("Resumed." if ended else "Nothing was paused.")
        if left:
            out.print(f"Still paused: {', '.join(left)}; `hermes-memory resume --owner KEY` ends it.")

    state.show({"resumed": ended, "paused": left}, page, code=OK if ended else NOTHING)


COMMANDS = (upkeep, pause, resume)
