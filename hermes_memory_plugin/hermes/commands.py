"""The command line's verbs inside Hermes: `/memory-layers …` in a session, `hermes memory-layers …` in a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.hermes import host

if TYPE_CHECKING:
    import argparse

NAME = "memory-layers"
_NOT_HERE = (
    "This command shows one person's memory, and Hermes does not tell it who typed it here. Ask the agent instead: "
    "it has `remember`. To be one person here and at the machine, run `hermes-memory owners link` there and send "
    "`hermes-memory owners link CODE` here as an ordinary message."
)


def slash(raw: str = "") -> str:
    """`/memory-layers VERB …` for the person at the machine."""
    if host.serves_chats():
        return _NOT_HERE
    from hermes_memory_plugin.cli.chat import answer

    return answer(raw or "", home=host.home(), owner=Owner())


def set_up(parser: argparse.ArgumentParser) -> None:
    """Take any words, and the options that may come before them."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--owner", metavar="KEY", help="whose memory: local (default), telegram:123, any …")
    parser.add_argument(
        "words", nargs="...", metavar="VERB …", help="as for hermes-memory; try the verb with --help"
    )


def terminal(arguments: Any) -> None:
    """`hermes memory-layers VERB …`; exits as `hermes-memory` does."""
    from hermes_memory_plugin.cli import main

    words = ["--home", str(host.home())]
    words += ["--json"] if getattr(arguments, "json", False) else []
    words += ["--owner", arguments.owner] if getattr(arguments, "owner", None) else []
    words += getattr(arguments, "words", None) or ["--help"]
    code = main(words, prog=f"hermes {NAME}")
    if code:
        sys.exit(code)
