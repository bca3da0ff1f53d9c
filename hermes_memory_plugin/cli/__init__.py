"""The command line: the verbs of `Memory`, as `hermes-memory VERB`, `hermes memory-layers VERB` and (a few) `/memory-layers VERB`."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None, *, prog: str = "hermes-memory") -> int:
    """Run one command and return its exit code; never raises for anything a user can do."""
    from hermes_memory_plugin.cli.app import run

    return run(argv, prog=prog)
