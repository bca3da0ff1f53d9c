"""scenes: the topic background people can open in an editor."""

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
        rows = [_scene_view(memory, row) for row in rows_of(memory, state.owner, "scene")]
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
        scene = memory.drafts.files.confirm(scene)
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


def rows_of(memory: Memory, owner: Owner | None, kind: str) -> list[Row]:
    """The owner's scenes (`kind` "scene"), or everything of L2 that is none."""
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
        "as_of": day_of(row.as_of),
        "owner": row.owner,
        "summary": row.text,
        "path": str(row.extra.get("path") or ""),
        "broken": str(row.extra.get("broken") or ""),
    }


def day_of(at: int | None) -> str:
    """The day of a time as every recall shows it, in Shanghai; "" without one."""
    from hermes_memory_plugin.upkeep import scene_files

    return scene_files.day_of(at) if at is not None else ""


COMMANDS = (scenes,)
