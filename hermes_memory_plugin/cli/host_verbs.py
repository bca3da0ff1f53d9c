"""enable, disable: the plugin in one profile's config.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes_memory_plugin.cli.app import State, common, verb_state

if TYPE_CHECKING:
    from rich.console import Console


@click.command(short_help="Turn the memory on in this Hermes home.")
@common
@verb_state
def enable(state: State) -> None:
    """Turn the memory on in this home: config.yaml keeps its comments, a backup is written."""
    _toggle(state, on=True)


@click.command(short_help="Turn it off in this Hermes home.")
@common
@verb_state
def disable(state: State) -> None:
    """Turn it off in this home. Nothing stored is touched."""
    _toggle(state, on=False)


def _toggle(state: State, *, on: bool) -> None:
    from hermes_memory_plugin.hermes import enable as toggle
    from hermes_memory_plugin.hermes import interpreter

    home = state.home
    change = toggle.enable(home) if on else toggle.disable(home)
    host = interpreter.find() if on else None
    install = host.install if host else ""

    def page(out: Console) -> None:
        word = "Enabled" if on else "Disabled"
        already = "" if change.changed else " (it was already)"
        out.print(f"{word} in {change.path}{already}.")
        if change.backup:
            out.print(f"The file as it was: {change.backup}")
        if install and host:
            out.print(
                f"Hermes runs on {host.python}, which cannot import this package yet. Install it there:\n  {install}"
            )
        elif on and host is None:
            out.print(
                "No `hermes` command is on the PATH; install this package into the Python that runs Hermes."
            )
        if change.changed:
            out.print("A running gateway takes it up after `hermes gateway restart`.")

    state.show(
        {
            "enabled": on,
            "changed": change.changed,
            "config": change.path,
            "backup": change.backup,
            "hermes_python": host.python if host else None,
            "importable": host.ours if host else None,
            "install": install,
        },
        page,
    )


COMMANDS = (enable, disable)
