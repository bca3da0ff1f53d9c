"""How rows, calls and audits are shown, shared by the pages, the JSON and the chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs.types import Owner, Recalled, ToolTrace
from hermes_memory_plugin.cli.output import one_line, pairs
from hermes_memory_plugin.layers.facts import moment

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_memory_plugin.memory import Memory
    from hermes_memory_plugin.upkeep.answers import Link
    from hermes_memory_plugin.upkeep.uses import Use

_UNREAD = 5
RESULT_SHOWN = 500
LAYERS = {"L0": "L0 log", "L1": "L1 facts", "L2": "L2 notes", "L3": "L3 persona", "report": "reports"}


def handle_of(memory: Memory, row: str) -> str:
    """The short name people use for a row."""
    memory.reader.refresh()
    return memory.reader.index.handle(row)


def item_view(memory: Memory, item: Recalled, used: Mapping[str, Use] | None = None) -> dict[str, Any]:
    """A recalled row as plain data, with the handle people use for it; `used`: how often rows were recalled."""
    row = memory.reader.index.find(item.id, None)
    created = moment(row.created) if row is not None else None
    use = (used or {}).get(item.id)
    return {
        "id": item.id,
        "handle": handle_of(memory, item.id),
        "layer": item.layer,
        "state": item.state,
        "text": item.text,
        "source": item.source,
        "as_of": item.as_of.isoformat() if item.as_of else None,
        "created": created.isoformat() if created else None,
        "uses": use.count if use else 0,
        "last_used": use.last.isoformat() if use and use.last else None,
        "score": item.score,
        "reasons": list(item.reasons),
    }


def trace_view(call: ToolTrace, *, full: bool) -> dict[str, Any]:
    """A tool call as plain data; unless `full`, the result only begins."""
    cut = not full and len(call.result) > RESULT_SHOWN
    return {
        "tool_call_id": call.tool_call_id,
        "tool": call.tool_name,
        "at": call.at.isoformat(),
        "status": call.status,
        "error": call.error,
        "ms": call.duration_ms,
        "session": call.session_id,
        "turn": call.turn_id,
        "owner": call.owner.key,
        "args": call.args,
        "result": call.result[:RESULT_SHOWN] if cut else call.result,
        "result_characters": len(call.result),
    }


def elsewhere(memory: Memory, owner: Owner | None) -> dict[str, int]:
    """Owners this one cannot see who do have rows: an empty answer names them."""
    seen = memory.keys(owner)
    if seen is None:
        return {}
    return {key: count for key, count in owner_rows(memory).items() if key not in seen and count}


def owner_rows(memory: Memory) -> dict[str, int]:
    """How many rows each owner has; the owner of our own probes is no owner."""
    memory.reader.refresh()
    return {key: count for key, count in memory.reader.index.owners().items() if key != PROBE.key}


PROBE = Owner(platform="doctor", user_id="~probe")
"""Whose rows `doctor` writes and takes away again."""


def status_page(out: Console, status: Mapping[str, Any]) -> None:
    """The state of a memory on one screen."""
    from rich.text import Text

    rows, owners = status.get("rows") or {}, _without_probe(status.get("owners") or {})
    ledgers = status.get("ledgers") or {}
    index, journals = status.get("index") or {}, status.get("journals") or []
    waiting = sum(int(file["bytes"]) for file in journals)
    offload = status.get("offload") or {}
    kept = f"{offload.get('results', 0):,} long results, {offload.get('tokens_saved', 0):,} tokens saved this week"
    pairs(
        out,
        (
            (
                "home",
                f"{status.get('home', '')} ({_size(status.get('bytes', 0))}, version {status.get('version', '')})",
            ),
            (
                "rows",
                ", ".join(f"{LAYERS.get(layer, layer)} {n:,}" for layer, n in rows.items()) or "none yet",
            ),
            (
                "owners",
                ", ".join(f"{key} {count:,}" for key, count in list(owners.items())[:8]) or "none yet",
            ),
            ("index", f"{index.get('rows', 0):,} rows, generation {index.get('generation', 0)}"),
            *(
                (("encoder", _encoder(status["embedding"])),)
                if status.get("embedding", {}).get("backend")
                else ()
            ),
            ("journals", f"{len(journals)} ({_size(waiting)})"),
            *_tables(status.get("tables") or {}),
            ("upkeep", _upkeep(status.get("upkeep") or {})),
            ("scenes", _scenes(status.get("scenes") or {})),
            ("ledgers", ", ".join(f"{name} {_size(one.get('bytes', 0))}" for name, one in ledgers.items())),
            *((("offload", kept),) if offload.get("results") else ()),
        ),
    )
    for notice in status.get("notices") or ():
        out.print(Text(f"! {one_line(notice)}", style="yellow"))
    for name, count in (status.get("degraded") or {}).items():
        why = (status.get("reasons") or {}).get(name)
        said = f"; the last time: {one_line(why)}" if why else ""
        out.print(Text(f"! {name}: {count} in the last week{said}", style="yellow"))
    for problem in status.get("problems") or ():
        out.print(Text(f"✗ {one_line(problem)}", style="red"))
    if not status.get("problems") and not status.get("degraded"):
        out.print(Text("✓ no problems, nothing degraded", style="green"))


def _encoder(found: Mapping[str, Any]) -> str:
    left = f", {found['left']:,} rows to embed" if found.get("left") else ""
    why = f" ({found['store_reason']})" if found.get("store_reason") else ""
    return f"{found.get('model') or found['backend']} in {found.get('store') or 'no table yet'}{why}{left}"


def _tables(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if found.get("tools"):
        summed = f", {found['bounded']:,} long ones summed up this week" if found.get("bounded") else ""
        yield "tables", f"{found['facts']:,} facts of {found['tools']:,} tools{summed}"
    for one in (found.get("unread") or ())[:_UNREAD]:
        yield (
            "",
            f"{one['tool']}: {one['calls']:,} calls, 0 facts (`mappers suggest CALL_ID` drafts how to read them)",
        )


def _upkeep(found: Mapping[str, Any]) -> str:
    last = moment(found.get("last") or None)
    when = f"last {last:%Y-%m-%d %H:%M} UTC" if last else "not yet"
    policy = ", retention: keep" if found.get("policy") == "keep" else ""
    share = found.get("bytes", 0) / (found.get("limit") or 1)
    return f"{when}{' (unfinished)' if found.get('unfinished') else ''}, {share:.1%} of {_size(found.get('limit', 0))}{policy}"


def _scenes(found: Mapping[str, Any]) -> str:
    asked = found.get("model_calls", 0)
    model = f", {asked} asked of the model ({found.get('model_tokens', 0):,} tokens)" if asked else ""
    waiting = f", {found['waiting']} waiting to be tried again" if found.get("waiting") else ""
    return f"{found.get('written', 0)} written this week{model}{waiting}"


def _without_probe(owners: Mapping[str, Any]) -> dict[str, Any]:
    return {key: count for key, count in owners.items() if key != PROBE.key}


def _size(count: Any) -> str:
    size = float(count or 0)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def source_of(link: Link, handles: Mapping[str, str]) -> str:
    """Where a number of an answer came from, in a few words."""
    if link.kind == "none":
        return "no source"
    place = f"report {one_line(link.report, 40)}" if link.report else ""
    if link.page:
        place += f" p.{link.page}"
    fact = handles.get(link.fact, link.fact)
    parts = (f"call {link.call}" if link.call else "", f"fact {fact}" if fact else "", place)
    named = ", ".join(part for part in parts if part)
    if link.kind == "user":
        return "the user's own words"
    return f"computed from {named}" if link.kind == "computed" else named or link.kind


def audit_lines(audit: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """An audit record as (line, style)."""
    at = audit.get("at")
    when = (
        datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if isinstance(at, int) else ""
    )
    yield f"{when}  {one_line(audit.get('question', ''), 160)}".strip(), "bold"
    items, cut = audit.get("items") or [], audit.get("cut") or []
    measured = f"{audit.get('tokens', 0)} tokens, {audit.get('ms', 0)} ms"
    yield f"  {len(items)} given, {len(cut)} left out, {measured}", "dim"
    for item in items:
        name = item.get("handle") or item.get("id")
        reasons = ", ".join(item.get("reasons") or ())
        score = f" {item['score']:.3g}" if isinstance(item.get("score"), int | float) else ""
        yield "  + " + one_line(f"{name}{score} {item.get('text', '')} ({reasons})", 200), ""
    for item in cut:
        name = item.get("handle") or item.get("id")
        yield "  - " + one_line(f"{name} {item.get('text', '')} ({item.get('why', '')})", 200), "dim"
    if audit.get("degraded"):
        yield "  " + one_line(f"degraded: {audit['degraded']}", 200), "yellow"
