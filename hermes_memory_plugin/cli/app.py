"""The `hermes-memory` command: options every verb takes, and one way to fail."""

from __future__ import annotations

import difflib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin import errors
from hermes_memory_plugin._version import __version__
from hermes_memory_plugin.home import HomeUnwritable, ProfileUnknown, hermes_home

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_plugin.memory import Memory

OK, NOTHING, USAGE, BUSY, DAMAGED, FAULT = 0, 1, 2, 3, 4, 70
_REFUSED = {errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EDQUOT}
"""What the disk or the folder says when it takes no more."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(slots=True)
class State:
    """What the options said; every verb gets it."""

    json: bool = False
    home_given: str = ""
    profile: str | None = None
    owner: Owner | None = None
    code: int = OK

    @property
    def home(self) -> Path:
        """The Hermes home meant. A home that does not exist is a slip, not a wish for a new one."""
        if self.home_given and self.profile is not None:
            raise click.UsageError(
                "--home and --profile each name a home: give one of them. "
                "(`hermes memory-layers` brings its own home; there, `hermes -p NAME memory-layers …` chooses.)"
            )
        home = Path(self.home_given).expanduser() if self.home_given else hermes_home(self.profile)
        if not home.is_dir():
            raise click.UsageError(
                f"there is no Hermes home at {home}; start Hermes once, or name one with --home."
            )
        return home

    @property
    def writer(self) -> Owner | None:
        """The owner a new row gets; `any` can only read."""
        if self.owner is not None and self.owner.key == Owner.ANY.key:
            raise click.UsageError("a row belongs to one owner: name it with --owner, `any` is for reading.")
        return self.owner

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """The memory of that home, closed afterwards."""
        from hermes_memory_plugin.memory import Memory

        with Memory.open(self.home) as memory:
            yield memory

    def show(self, data: Mapping[str, Any], page: Callable[[Console], None], *, code: int = OK) -> None:
        """Print the result as JSON or as a page, and remember the exit code."""
        from hermes_memory_plugin.cli.output import console, print_json

        self.code = code
        if self.json:
            print_json({"ok": code == OK, **data})
        else:
            page(console())

    def fail(self, message: str, code: int, kind: str) -> int:
        """Print one line that says what went wrong; returns the exit code."""
        from hermes_memory_plugin.cli.output import one_line, print_json

        if self.json:
            print_json({"ok": False, "error": {"kind": kind, "message": message}, "exit": code})
        else:
            click.echo(f"hermes-memory: {one_line(message)}", err=True)
        return code


class Verbs(click.Group):
    """Verbs in the order they were written, with a guess at what a mistyped one meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in self.commands and not word.startswith("-"):
            close = difflib.get_close_matches(word.lower(), self.commands, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(self.commands)}."
            raise click.UsageError(f"there is no verb {word!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)


def common(function: Function) -> Function:
    """The options that work before and after every verb."""
    for option in (
        click.option("--json", is_flag=True, expose_value=False, callback=_keep("json"), help="Print JSON."),
        click.option(
            "--owner", metavar="KEY", expose_value=False, callback=_keep("owner"),
            help="Whose memory: local (default), telegram:123, any …",
        ),
        click.option(
            "--profile", "-p", metavar="NAME", expose_value=False, callback=_keep("profile"),
            help="A Hermes profile.",
        ),
        click.option(
            "--home", metavar="DIR", expose_value=False, callback=_keep("home_given"),
            help="A Hermes home (default: HERMES_HOME, else ~/.hermes).",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is None or value is False:
            return
        if name == "owner":
            try:
                value = Owner.parse(value)
            except ValueError as error:
                raise click.BadParameter(str(error), ctx, parameter) from None
        elif value == "":
            raise click.BadParameter("it is empty", ctx, parameter)
        setattr(ctx.find_object(State), name, value)

    return keep


verb_state = click.make_pass_decorator(State)


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 nothing found or a check failed; 2 the command cannot be understood; 3 the memory is "
    "busy, try again; 4 a file is damaged, newer than this version or cannot be written; 70 a fault in this program.",
)
@click.version_option(__version__, prog_name="hermes-memory")
@common
def app() -> None:
    """Layered, local, auditable memory for Hermes Agent."""


def run(argv: Sequence[str] | None = None, *, prog: str = "hermes-memory") -> int:
    """Run one command and return its exit code."""
    from hermes_memory_plugin.cli import (
        fact_verbs,
        host_verbs,
        index_verbs,
        layer_verbs,
        mapper_verbs,
        memory_verbs,
        note_verbs,
        owner_verbs,
        persona_verbs,
        proof_verbs,
        report_verbs,
        state_verbs,
        upkeep_verbs,
        web_verbs,
    )

    for module in (
        state_verbs,
        memory_verbs,
        proof_verbs,
        fact_verbs,
        layer_verbs,
        note_verbs,
        persona_verbs,
        index_verbs,
        mapper_verbs,
        report_verbs,
        owner_verbs,
        upkeep_verbs,
        web_verbs,
        host_verbs,
    ):
        for command in module.COMMANDS:
            app.add_command(command)
    words = list(sys.argv[1:] if argv is None else argv)
    state = State(json="--json" in words)
    for stream in (sys.stdout, sys.stderr):
        # Whatever is stored can be shown, on a terminal of any encoding.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app.main(words, prog_name=prog, standalone_mode=False, obj=state)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return USAGE
    except click.ClickException as error:
        return state.fail(error.format_message(), USAGE, "usage")
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader has what it wanted (`| head`); keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return state.code
    except errors.HermesMemoryError as error:
        return state.fail(str(error), exit_code(error), type(error).__name__)
    except Exception as error:
        if os.environ.get("HERMES_MEMORY_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.errno in _REFUSED:
            where = f"{error.filename}: " if error.filename else ""
            return state.fail(
                f"{where}{error.strerror}. Nothing more was written.", DAMAGED, "HomeUnwritable"
            )
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        return state.fail(
            f"a fault of this program, {what}. Set HERMES_MEMORY_TRACEBACK=1 to see where, and report it.",
            FAULT,
            "fault",
        )
    return state.code


def exit_code(error: errors.HermesMemoryError) -> int:
    """The exit code that says what kind of trouble it was."""
    from hermes_memory_plugin.hermes.enable import ConfigNotEdited
    from hermes_memory_plugin.layers.notes import FolderUnwritable
    from hermes_memory_plugin.owners import RegistryUnusable
    from hermes_memory_plugin.store.files import UnsafePath
    from hermes_memory_plugin.store.ledger_faults import LedgerUnusable
    from hermes_memory_plugin.store.locks import LockBusy

    if isinstance(error, errors.LedgerBusy | LockBusy):
        return BUSY
    if isinstance(
        error,
        errors.LedgerCorrupt
        | errors.LedgerNewer
        | errors.JournalWriteFailed
        | LedgerUnusable
        | HomeUnwritable
        | FolderUnwritable
        | UnsafePath
        | RegistryUnusable
        | ConfigNotEdited,
    ):
        return DAMAGED
    if isinstance(error, errors.SettingsError | ProfileUnknown | ValueError):
        return USAGE
    return NOTHING
