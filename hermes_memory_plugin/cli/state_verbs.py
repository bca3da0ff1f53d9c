"""demo, status, doctor: what this is, how it is, whether it is alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import DAMAGED, NOTHING, OK, State, common, verb_state
from hermes_memory_plugin.errors import HermesMemoryError

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_plugin.cli.checks import Check

_GLANCE = 0.3
"""Seconds `status` waits for a ledger that somebody holds."""
_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


@click.command(short_help="Four questions to a memory in a temporary home.")
@common
@click.option(
    "--lang", type=click.Choice(["zh", "en"]), help="Language of the labels (default: the locale's)."
)
@verb_state
def demo(state: State, lang: str | None) -> None:
    """Four questions to a memory in a temporary home: no Hermes, no network, no key."""
    from hermes_memory_plugin.cli import demo as demo_

    shown = demo_.run(lang or demo_.language())
    state.show(shown.data, shown.page, code=OK if shown.data["as_promised"] else NOTHING)


@click.command(short_help="How much is remembered, and what is degraded.")
@common
@verb_state
def status(state: State) -> None:
    """How much is remembered, where, and what is degraded: one screen."""
    with state.memory() as memory:
        for ledger in (memory.archive.facts, memory.archive.logs):
            ledger.wait = _GLANCE
        found = memory.status()

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.views import status_page

        status_page(out, found)

    state.show({"home": state.home, **found}, page)


@click.command(short_help="Prove that the memory is alive, end to end.")
@common
@click.option("--no-probe", is_flag=True, help="Leave the probe out.")
@verb_state
def doctor(state: State, no_probe: bool) -> None:
    """Prove that the memory is alive: a probe through the real path and back, settings, files, hooks, gateway."""
    from hermes_memory_plugin.cli import checks, probe

    home = state.home
    found: list[Check] = list(checks.of_home(home))
    try:
        with state.memory() as memory:
            stuck = checks.flushed(memory)
            found += [stuck] if stuck else checks.of_memory(memory)
            if not no_probe:
                found += probe.run(memory, ledger=stuck is None)
    except HermesMemoryError as error:
        found.append(checks.Check("memory", "fail", str(error)))
    failed = [check for check in found if check.status == "fail"]

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line

        for check in found:
            mark, style = _MARKS[check.status]
            out.print(Text.assemble((f"{mark} {check.name:<14}", style), one_line(check.said)))
            if check.todo and check.status != "ok":
                out.print(Text(f"{'':17}→ {one_line(check.todo)}", style="dim"))
        warned = sum(check.status == "warn" for check in found)
        out.print(Text(f"\n{len(found)} checks, {len(failed)} failed, {warned} to look at.", style="bold"))

    data: dict[str, Any] = {"home": home, "checks": found, "failed": len(failed)}
    unwritable = any(check.name in ("home", "memory") for check in failed)
    state.show(data, page, code=DAMAGED if unwritable else NOTHING if failed else OK)


COMMANDS = (demo, status, doctor)
