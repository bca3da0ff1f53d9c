"""The verb that makes derived data anew: the read index from ledgers and Markdown, the vectors from the index."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import State, common, verb_state
from hermes_memory_plugin.errors import LedgerBusy

if TYPE_CHECKING:
    from rich.console import Console

WAIT = 30.0
"""Seconds to wait for another process that drains or embeds."""


@click.command(short_help="Make the index and the encoder's vectors anew.")
@common
@click.option(
    "--only", type=click.Choice(["index", "vectors"]), help="Make only the index, or only the vectors, anew."
)
@verb_state
def reindex(state: State, only: str | None) -> None:
    """Make the read index anew from the ledgers and the Markdown files, and embed every row where an encoder is configured.

    Nothing is lost by it, and nothing but time is gained while `status` has no problem to tell.
    """
    began = time.monotonic()
    with state.memory() as memory:
        memory.archive.flush(WAIT)
        if only != "vectors" and not memory.reader.rebuild(wait=WAIT):
            raise LedgerBusy(memory.folder / "drain.lock", WAIT)
        embedding = memory.embedding.status()
        if only != "index" and embedding["backend"]:
            with _progress(state, "embedding") as progress:
                memory.embedding.restart(wait=WAIT)
                memory.embedding.flush(stalled=300.0, progress=progress)
        data: dict[str, Any] = {
            "rows": len(memory.reader.index),
            "embedded": memory.embedding.done,
            "encoder": memory.embedding.status()["model"] if embedding["backend"] else "",
            "seconds": round(time.monotonic() - began, 1),
        }

    def rows(count: int) -> str:
        return f"{count:,} row{'' if count == 1 else 's'}"

    def page(out: Console) -> None:
        if only != "vectors":
            out.print(f"{rows(data['rows'])} in a new index")
        if data["encoder"]:
            out.print(f"{rows(data['embedded'])} embedded by {data['encoder']}")
        elif only != "index":
            out.print("no encoder is configured: the index has its own vectors")

    state.show(data, page)


@contextmanager
def _progress(state: State, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing for a pipe or with --json."""
    if state.json or not sys.stderr.isatty():
        yield lambda done, left: None
        return
    from rich.progress import Progress

    from hermes_memory_plugin.cli.output import console

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, left: bar.update(task, completed=done, total=done + left or None)


COMMANDS = (reindex,)
"""The verbs of this module."""
