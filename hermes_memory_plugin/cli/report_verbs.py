"""reports: the library of research reports, what is in it, and what can be found there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_memory_plugin.cli.app import NOTHING, OK, State, Verbs, common, verb_state
from hermes_memory_plugin.cli.layer_verbs import alone
from hermes_memory_plugin.cli.memory_verbs import date_given

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_plugin.reports.library import Added
    from hermes_memory_plugin.reports.pool import Progress

_MARKS = {"refused": ("✗", "red"), "unchanged": ("=", "dim"), "duplicate": ("=", "dim")}


@click.group(
    cls=Verbs, invoke_without_command=True, short_help="Research reports: add, list, show, edit, search."
)
@common
@click.pass_context
def reports(ctx: click.Context) -> None:
    """Brokers' research reports on this machine, searched and cited by page."""
    alone(ctx, list_reports)


@reports.command("add")
@common
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--workers", type=click.IntRange(1, 32), default=2, show_default=True, help="Files read at once."
)
@click.option("--password", help="Of encrypted files; it is not stored.")
@click.option("--licence", metavar="TEXT", default="", help="What these reports may be used for.")
@verb_state
def add(state: State, paths: tuple[Path, ...], workers: int, password: str | None, licence: str) -> None:
    """Read files, and folders with all below them: PDF, Markdown, text, HTML. What is unchanged is not read again.

    Everybody on this home may read them unless --owner says whose they are. It may be interrupted and repeated at any time.
    """
    from hermes_memory_plugin.reports.files import report_files
    from hermes_memory_plugin.reports.library import Added

    listed = list(report_files(path.expanduser() for path in paths))
    done = [Added(str(path), "refused", status="broken", reason=why) for path, why in listed if why]
    with state.memory() as memory, _progress(state) as progress:
        say = _teller(state)
        for one in done:
            say(one)
        for one in memory.library.add_files(
            [path for path, why in listed if not why],
            owner=state.writer,
            workers=workers,
            password=password,
            licence=licence,
            progress=progress,
        ):
            done.append(one)
            say(one)
    counts = Counter(one.outcome for one in done)

    def page(out: Console) -> None:
        if not done:
            out.print("There is no report here: PDF, Markdown, text and HTML files are read.")
            return
        pages = sum(one.pages for one in done if one.outcome in ("added", "replaced"))
        out.print(
            ", ".join(f"{count:,} {name}" for name, count in counts.items()) + f"; {pages:,} pages read"
        )

    state.show(
        {"files": done, "counts": dict(counts)},
        page,
        code=OK if done and not counts["refused"] else NOTHING,
    )


@contextmanager
def _progress(state: State) -> Iterator[Callable[[Progress], None] | None]:
    """A bar on a terminal: files, pages a second, the time that is left."""
    from hermes_memory_plugin.cli.output import console

    out = console(stderr=True)
    if state.json or not out.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"),
        console=out, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("reading", total=None, said="")

        def told(progress: Progress) -> None:
            bar.update(task, total=progress.of, completed=progress.files, said=pace(progress))

        yield told


def pace(progress: Progress) -> str:
    """Pages, pages a second and the time that is left."""
    left = progress.remaining
    rest = "" if left is None else f", {int(left) // 60}:{int(left) % 60:02d} left"
    return f"{progress.pages:,} pages, {progress.pages_per_second:.0f}/s{rest}"


def _teller(state: State) -> Callable[[Added], None]:
    """Says what became of a file as soon as it is known."""
    if state.json:
        return lambda one: None
    from rich.text import Text

    from hermes_memory_plugin.cli.output import console, one_line

    out = console()

    def say(one: Added) -> None:
        mark, style = _MARKS.get(one.outcome, ("✓", "green"))
        said = one.reason if one.outcome == "refused" else f"{one.outcome}: {one.title}"
        out.print(Text(one_line(f"{mark} {one.path}  {said}"), style=style))
        for problem in problems_of(one.status, one.reason, one.problems):
            out.print(Text(f"  ! {one_line(problem)}", style="yellow"))

    return say


def problems_of(status: str, reason: str, problems: tuple[tuple[int, str], ...]) -> list[str]:
    """What of a report cannot be searched: all of it, or which pages."""
    if status == "no_text":
        return [reason]
    pages: dict[str, list[int]] = {}
    for page, what in problems:
        pages.setdefault(what, []).append(page)
    return [
        f"page{'s' if len(some) > 1 else ''} {', '.join(map(str, some))}: {what}"
        for what, some in pages.items()
    ]


@reports.command("list")
@common
@verb_state
def list_reports(state: State) -> None:
    """Every report: broker, date, companies, pages, and what of it cannot be read."""
    with state.memory() as memory:
        rows = memory.library.reports(state.owner)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print("No report yet: `hermes-memory reports add FOLDER` reads one.")
            return
        heads = ("report", "date", "broker", "on", "rating", "pages", "title")
        table(out, heads, ((row["id"], row["date"], row["broker"], " ".join(row["names"] or row["tickers"]),
                            row["rating"], row["pages"], _told(row)) for row in rows))  # fmt: skip

    state.show({"reports": rows}, page, code=OK if rows else NOTHING)


def _told(row: dict[str, Any]) -> str:
    problems = tuple((int(page), str(what)) for page, what in row["problems"])
    bad = problems_of(row["status"], row["reason"], problems)
    return str(row["title"]) + (f"  ! {'; '.join(bad)}" if bad else "")


@reports.command("show")
@common
@click.argument("name", metavar="ID")
@click.option("--page", "number", type=click.IntRange(1), help="Only this page.")
@verb_state
def show(state: State, name: str, number: int | None) -> None:
    """A report: what it says of itself, and its text. ID is an id, its beginning, a path, a file name or a title."""
    from hermes_memory_plugin.errors import NotFound

    with state.memory() as memory:
        row, passages = memory.library.document(name, state.owner)
    passages = [one for one in passages if number in (None, one["page"])]
    if number is not None and number > row["pages"]:
        raise NotFound(f"page {number} of {row['id']}", f"It has {row['pages']} pages.")

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import pairs, shown

        price = "" if row["target_price"] is None else f"{row['target_price']:g} {row['currency']}".strip()
        told = {**row, "target_price": price, "title": _told(row)}
        pairs(out, ((name.replace("_", " "), _joined(told[name])) for name in _SHOWN if told[name]))
        at = 0
        for one in passages:
            if one["page"] != at:
                at = one["page"]
                out.print(f"\n— p.{at} —", style="dim")
            out.print(shown(one["text"]), markup=False)

    state.show({"report": row, "passages": passages}, page)


_SHOWN = ("id", "title", "broker", "analysts", "date", "tickers", "names", "industry", "rating", "target_price", "licence",
          "owner", "pages", "path")  # fmt: skip


def _joined(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


@reports.command("edit")
@common
@click.argument("name", metavar="ID")
@click.argument("fields", metavar="FIELD=VALUE…", nargs=-1, required=True)
@verb_state
def edit(state: State, name: str, fields: tuple[str, ...]) -> None:
    """Set what a report says of itself: title, broker, date, tickers …; an empty value takes it out."""
    given = {}
    for one in fields:
        field, sign, value = one.partition("=")
        if not sign:
            raise click.UsageError(f"{one!r}: write FIELD=VALUE, as in broker=中信证券.")
        given[field.strip()] = value.strip()
    with state.memory() as memory:
        row = memory.library.edit(name, given, owner=state.owner)
    state.show({"report": row}, lambda out: out.print(f"{row['id']}: {', '.join(given)} set."))


@reports.command("remove")
@common
@click.argument("name", metavar="ID")
@verb_state
def remove(state: State, name: str) -> None:
    """Take a report out of the library; its file stays where it is."""
    with state.memory() as memory:
        row = memory.library.remove(name, owner=state.owner)
    state.show(
        {"removed": row["id"]},
        lambda out: out.print(f"Removed {row['id']}; {row['path'] or 'it has no file'}."),
    )


@reports.command("prune")
@common
@click.option("--dry-run", is_flag=True, help="Only say which.")
@verb_state
def prune(state: State, dry_run: bool) -> None:
    """Take out the reports whose file is gone. Files that only moved: `reports relocate` first."""
    with state.memory() as memory:
        gone = memory.library.missing(state.owner)
        for row in gone if not dry_run else ():
            memory.library.remove(row["id"], owner=state.owner)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line

        for row in gone:
            out.print(one_line(f"{'would go' if dry_run else 'removed'}  {row['id']}  {row['path']}"))
        if not gone:
            out.print("Every report has its file.")

    state.show({"removed": [row["id"] for row in gone], "dry_run": dry_run}, page)


@reports.command("relocate")
@common
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path, exists=True, file_okay=False))
@verb_state
def relocate(state: State, old: Path, new: Path) -> None:
    """Say that what lay below the folder OLD lies below NEW now; nothing is read again."""
    with state.memory() as memory:
        moved = memory.library.relocate(old, new, owner=state.owner)
    state.show(
        {"moved": [row["id"] for row in moved]},
        lambda out: out.print(f"{len(moved):,} reports found below {new}."),
        code=OK if moved else NOTHING,
    )


@reports.command("search")
@common
@click.argument("query")
@click.option("--code", metavar="CODE", help="Only on this company: a ticker or a name.")
@click.option("--broker", default="", help="Only of this broker.")
@click.option("--since", metavar="DATE", callback=date_given, help="Of this day or later.")
@click.option("--until", metavar="DATE", callback=date_given, help="Of this day or earlier.")
@click.option("--industry", default="", help="Only of this industry.")
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=5, show_default=True)
@verb_state
def search(state: State, /, query: str, **filters: str | int | datetime | None) -> None:
    """The passages that answer QUERY, each with broker, date and page."""
    with state.memory() as memory:
        found = memory.search_reports(query, owner=state.owner, **filters)  # type: ignore[arg-type]

    def page(out: Console) -> None:
        from rich.text import Text

        from hermes_memory_plugin.cli.output import one_line, shown

        for one in found:
            day = f"{one.date:%Y-%m-%d}" if one.date else ""
            head = f"{one.broker}《{one.title}》 {day} p.{one.page}"
            out.print(Text.assemble((one_line(head), "bold cyan"), f"  {one.score:.2f}  {one.report_id}"))
            out.print(shown(one.text) + "\n", markup=False)
        if not found:
            out.print("No report speaks of this.")

    state.show({"passages": found}, page, code=OK if found else NOTHING)


COMMANDS = (reports,)
