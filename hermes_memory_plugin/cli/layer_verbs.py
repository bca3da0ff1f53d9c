"""scenes, notes, trash: the layers people can open in an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hermes_memory_hookspecs.types import Owner
from hermes_memory_plugin.cli.app import NOTHING, OK, State, Verbs, common, verb_state
from hermes_memory_plugin.errors import NotFound

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_plugin.memory import Memory
    from hermes_memory_plugin.recall.index_row import Row


def alone(ctx: click.Context, verb: click.Command) -> None:
    """The name of a group alone means its first verb."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(verb)


@click.group(
    cls=Verbs, invoke_without_command=True, short_help="Topic background: list, show, confirm, forget."
)
@common
@click.pass_context
def scenes(ctx: click.Context) -> None:
    """Topic background, one Markdown file each; drafts are proposed until they are confirmed."""
    alone(ctx, list_scenes)


@scenes.command("list")
@common
@verb_state
def list_scenes(state: State) -> None:
    """Every scene with its status, topic and day, and what failed."""
    with state.memory() as memory:
        memory.reader.scan_files()
        rows = [_scene_view(memory, row) for row in _rows(memory, state.owner, "scene")]
        failed = [
            {
                "session": one.session,
                "owner": one.owner,
                "tries": one.tries,
                "error": one.error,
                "given_up": one.dead,
            }
            for one in memory.drafts.failures()
        ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import one_line, table

        if not rows:
            out.print("No scene yet: one is drafted when a conversation about a company or sector ends.")
        else:
            table(
                out,
                ("scene", "status", "about", "as of", "title"),
                (
                    (
                        r["handle"],
                        r["status"],
                        ", ".join(r["tickers"] or r["sectors"]),
                        r["as_of"],
                        r["title"],
                    )
                    for r in rows
                ),
            )
        for one in failed:
            again = "given up; `scenes draft --again`" if one["given_up"] else "tried again later"
            out.print(
                f"! session {one['session']}: {one_line(one['error'], 120)} ({one['tries']}x, {again})",
                style="yellow",
            )

    state.show({"scenes": rows, "failed": failed}, page, code=OK if rows else NOTHING)


@scenes.command()
@common
@click.argument("name")
@verb_state
def show(state: State, name: str) -> None:
    """The whole file of one scene, by handle, id or title."""
    with state.memory() as memory:
        row = _one(memory, state, name, "scene")
        path = memory.folder / str(row.extra["path"])
        text = path.read_text(encoding="utf-8", errors="replace")
        view = _scene_view(memory, row)

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import shown

        out.print(shown(f"{path}\n\n{text}"), markup=False)

    state.show({**view, "file": str(path), "text": text}, page)


@scenes.command()
@common
@click.argument("name")
@verb_state
def confirm(state: State, name: str) -> None:
    """Make a proposed scene an active one: from now on it comes up by itself."""
    with state.memory() as memory:
        row = _one(memory, state, name, "scene")
        scene = memory.scenes.read(memory.folder / str(row.extra["path"]))
        if scene is None:
            raise NotFound(name, "Its file is gone.")
        was = scene.status
        scene = memory.drafts.confirm(scene)
        view = _scene_view(memory, row) | {"status": "active"}
    state.show({**view, "was": was}, lambda out: out.print(f"{scene.note.title} is active (it was {was})."))


@scenes.command()
@common
@click.argument("name")
@verb_state
def forget(state: State, name: str) -> None:
    """Move one scene to the trash; `trash restore` brings it back for 30 days."""
    with state.memory() as memory:
        row = _one(memory, state, name, "scene")
        gone = memory.forget(row.id, owner=state.owner, why="scenes forget")
    state.show({"forgotten": gone}, lambda out: out.print(f"Forgotten: {row.extra.get('title', name)}."))


@scenes.command()
@common
@click.option(
    "--idle",
    type=click.IntRange(0),
    default=60,
    show_default=True,
    help="Minutes of silence that end a session.",
)
@click.option("--again", is_flag=True, help="Try sessions again that were given up.")
@verb_state
def draft(state: State, idle: int, again: bool) -> None:
    """Draft scenes of finished sessions now, by rules; inside Hermes this happens by itself."""
    with state.memory() as memory:
        done = memory.drafts.catch_up(idle=idle * 60.0, again=again)
    data = {
        "scenes": [
            {"id": s.note.id, "title": s.note.title, "status": s.status, "file": str(s.note.path)}
            for s in done.scenes
        ],
        "failed": [{"session": one.session, "error": one.error} for one in done.failed],
    }

    def page(out: Console) -> None:
        for scene in done.scenes:
            out.print(f"{scene.status:<9} {scene.note.title}  {scene.note.path}")
        for one in done.failed:
            out.print(f"! session {one.session}: {one.error}", style="yellow")
        if not done.scenes and not done.failed:
            out.print("Nothing to draft.")

    state.show(data, page, code=NOTHING if done.failed else OK)


@click.group(cls=Verbs, invoke_without_command=True, short_help="Notes with their dates and uses.")
@common
@click.pass_context
def notes(ctx: click.Context) -> None:
    """What was asked to be remembered: `remember --title` writes a note, `forget` takes it away."""
    alone(ctx, list_notes)


@notes.command("list")
@common
@verb_state
def list_notes(state: State) -> None:
    """Every note: created, updated, how often and when last recalled."""
    from hermes_memory_plugin.upkeep.uses import uses

    with state.memory() as memory:
        memory.reader.scan_files()
        used = uses(memory, owner=state.owner)
        rows = [
            {
                "handle": memory.reader.index.handle(row),
                "id": row.id,
                "type": str(row.extra.get("type") or ""),
                "title": str(row.extra.get("title") or ""),
                "owner": row.owner,
                "created": _day(row.created),
                "updated": _day(row.as_of),
                "uses": used[row.id].count if row.id in used else 0,
                "last_used": used[row.id].last if row.id in used else None,
                "file": str(row.extra.get("path") or ""),
                "broken": str(row.extra.get("broken") or ""),
            }
            for row in _rows(memory, state.owner, "")
        ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print("No note yet: `hermes-memory remember TEXT --title TITLE` writes one.")
            return
        table(
            out,
            ("note", "type", "created", "updated", "uses", "title"),
            ((r["handle"], r["type"], r["created"], r["updated"], r["uses"], r["title"]) for r in rows),
        )

    state.show({"notes": rows}, page, code=OK if rows else NOTHING)


@click.group(
    cls=Verbs, invoke_without_command=True, short_help="Forgotten notes and scenes: list, restore, empty."
)
@common
@click.pass_context
def trash(ctx: click.Context) -> None:
    """Forgotten notes and scenes, kept for 30 days."""
    alone(ctx, list_trash)


@trash.command("list")
@common
@verb_state
def list_trash(state: State) -> None:
    """What can be restored, and until when."""
    with state.memory() as memory:
        keys = memory.keys(state.owner)
        found = [one for one in memory.notes.trash if keys is None or one.owner in keys]
    rows = [
        {
            "name": one.name,
            "title": one.title,
            "layer": one.folder,
            "owner": one.owner,
            "forgotten": one.at,
            "until": one.until,
        }
        for one in found
    ]

    def page(out: Console) -> None:
        from hermes_memory_plugin.cli.output import table

        if not rows:
            out.print("The trash is empty.")
            return
        table(
            out,
            ("forgotten", "until", "layer", "title"),
            ((f"{one.at:%Y-%m-%d %H:%M}", f"{one.until:%Y-%m-%d}", one.folder, one.title) for one in found),
        )

    state.show({"trash": rows}, page, code=OK if rows else NOTHING)


@trash.command()
@common
@click.argument("name")
@verb_state
def restore(state: State, name: str) -> None:
    """Bring a forgotten note or scene back, by title or file name."""
    from hermes_memory_plugin.cli.views import handle_of

    with state.memory() as memory:
        row = memory.restore(name, owner=state.owner)
        handle = handle_of(memory, row)
    state.show({"id": row, "handle": handle}, lambda out: out.print(f"Restored as {handle}."))


@trash.command()
@common
@verb_state
def empty(state: State) -> None:
    """Delete what is in the trash for good."""
    with state.memory() as memory:
        keys = memory.keys(state.owner)
        gone = [one for one in memory.notes.trash if keys is None or one.owner in keys]
        for one in gone:
            one.path.unlink(missing_ok=True)
    state.show({"deleted": len(gone)}, lambda out: out.print(f"{len(gone)} files deleted for good."))


def _rows(memory: Memory, owner: Owner | None, kind: str) -> list[Row]:
    import time

    rows = memory.reader.index.scan(
        memory.keys(owner),
        now_us=time.time_ns() // 1000,
        layers=("L2",),
        states=("live", "superseded", "expired"),
    )
    return [row for row in rows if (row.kind == "scene") == (kind == "scene")]


def _one(memory: Memory, state: State, name: str, kind: str) -> Row:
    memory.reader.scan_files()
    rows = [row for row in memory.reader.named(name, memory.keys(state.owner)) if row.kind == kind]
    if not rows:
        raise NotFound(name, f"`hermes-memory {kind}s` lists them.")
    if len(rows) > 1:
        files = ", ".join(str(row.extra.get("path")) for row in rows)
        raise click.UsageError(f"{len(rows)} {kind}s have that title ({files}): name one by its handle.")
    return rows[0]


def _scene_view(memory: Memory, row: Row) -> dict[str, Any]:
    about = row.extra.get("scene") or {}
    return {
        "handle": memory.reader.index.handle(row),
        "id": row.id,
        "title": str(row.extra.get("title") or ""),
        "status": str(about.get("status") or "active"),
        "tickers": list(about.get("tickers") or ()),
        "sectors": list(about.get("sectors") or ()),
        "period": str(about.get("period") or ""),
        "sources": list(about.get("sources") or ()),
        "as_of": _day(row.as_of),
        "owner": row.owner,
        "summary": row.text,
        "path": str(row.extra.get("path") or ""),
        "broken": str(row.extra.get("broken") or ""),
    }


def _day(at: int | None) -> str:
    from hermes_memory_plugin.layers.facts import moment

    found = moment(at)
    return found.date().isoformat() if found else ""


COMMANDS = (scenes, notes, trash)
