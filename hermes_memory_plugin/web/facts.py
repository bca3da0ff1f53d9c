"""Facts: found, filtered, with their history; forgotten after a preview, and restored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.web.page import NotThis

if TYPE_CHECKING:
    from starlette.responses import Response

    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.web.page import Page

PAGE = 50
_FOUND = 100
_STATES = {
    "live": "f.superseded_by = '' AND (f.expires_at IS NULL OR epoch_us(f.expires_at) > ?)",
    "expired": "f.superseded_by = '' AND epoch_us(f.expires_at) <= ?",
    "superseded": "f.superseded_by <> '' AND ? > 0",
}
_UNDOABLE = ("L1", "L2")
"""What the trash can give back."""


def facts(page: Page) -> Response:
    """One page of facts, newest first; with words, those that recall finds, best first."""
    where, values = ["true"], list[Any]()
    for name in ("subject", "metric", "period"):
        if page.asked(name):
            where.append(f"f.{name} = ?")
            values.append(page.asked(name))
    state = page.asked("state")
    if state in _STATES:
        where.append(_STATES[state])
        values.append(time.time_ns() // 1000)
    order: dict[str, int] = {}
    if page.asked("q"):
        found = page.memory.recall(
            page.asked("q"), mode="explicit", owner=page.owner, limit=_FOUND, recorded=False
        )
        ids = [item.id for item in found.items if item.layer == "L1"]
        order = {id: place for place, id in enumerate(ids)}
        where.append("f.id IN (SELECT unnest(?::VARCHAR[]))")
        values.append(ids)
    start = page.number("from")
    rows = _newest(page, " AND ".join(where), values, start)
    more = len(rows) > PAGE
    rows = rows[:PAGE]
    if order:
        rows.sort(key=lambda row: order[row["id"]])
    handle = page.memory.reader.index.handle
    now = time.time_ns() // 1000
    return page.answer(
        "facts.html",
        rows=[{**row, "handle": handle(row["id"]), "day": _day(row["as_of"]), "now": _state(row, now)} for row in rows],
        states=tuple(_STATES),
        start=start,
        size=PAGE,
        more=more,
    )  # fmt: skip


def fact(page: Page) -> Response:
    """One fact: what is stored of it, and every row that speaks of the same thing."""
    row = _row(page, page.asked("id"))
    stored = page.memory.archive.facts.by_ids([row.id], page.memory.keys(page.owner))
    fields = {name: value for name, value in (stored[0] if stored else {}).items() if _worth(name, value)}
    for name in ("as_of", "created_at", "expires_at", "confirmed_at", "recorded_at"):
        at = moment(fields[name]) if name in fields else None
        if at is not None:
            fields[name] = at.isoformat()
    return page.answer(
        "fact.html",
        row=row,
        handle=page.memory.reader.index.handle(row),
        fields=fields,
        versions=page.memory.history(row.id, owner=page.owner),
    )


def forget(page: Page) -> Response:
    """The preview: what would go. Nothing is changed."""
    row = _undoable(page, page.asked("id"))
    what = page.memory.forgetting(row.id, dry_run=True, owner=page.owner)
    index, keys = page.memory.reader.index, page.memory.keys(page.owner)
    going = [(id, found.text if (found := index.find(id, keys)) else "") for id in what.ids]
    return page.answer("forget.html", row=row, what=what, going=going)


def forget_now(page: Page, given: dict[str, str]) -> Response:
    """What the preview's button does."""
    row = _undoable(page, given.get("id", ""))
    page.memory.forget(row.id, owner=page.owner, by="web", why="forgotten on the web page")
    return page.go("/trash")


def trash(page: Page) -> Response:
    """What can be restored, newest first."""
    keys = page.memory.keys(page.owner)
    rows = [one for one in page.memory.notes.trash if keys is None or one.owner in keys]
    return page.answer("trash.html", rows=rows[:200])


def restore_now(page: Page, given: dict[str, str]) -> Response:
    """Bring one back; the page of a fact, or the list of scenes and notes, follows."""
    row = page.memory.restore(given.get("name", ""), owner=page.owner)
    page.memory.reader.refresh()
    found = page.memory.reader.index.find(row, None)
    if found is not None and found.layer == "L1":
        return page.go("/fact", id=row)
    return page.go("/scenes", id=row)


def _newest(page: Page, condition: str, values: list[Any], start: int) -> list[dict[str, Any]]:
    """A page of rows and one more, where there is one."""
    page.memory.archive.notify()  # what other processes journalled comes in soon
    keys = page.memory.keys(page.owner)
    if keys is not None:
        condition += " AND f.owner IN (SELECT unnest(?::VARCHAR[]))"
        values = [*values, list(keys)]
    rows = page.memory.archive.facts.where(
        f"f.id IN (SELECT f.id FROM facts f WHERE {condition} ORDER BY f.created_at DESC, f.id DESC LIMIT ? OFFSET ?)",
        [*values, PAGE + 1, start],
        keys,
    )
    return sorted(rows, key=lambda row: (row["created_at"] or 0, row["id"]), reverse=True)


def _row(page: Page, name: str) -> Row:
    page.memory.reader.refresh()
    row = page.memory.reader.index.find(name, page.memory.keys(page.owner)) if name else None
    if row is None:
        raise NotFound(name)
    return row


def _undoable(page: Page, name: str) -> Row:
    row = _row(page, name)
    if row.layer not in _UNDOABLE:
        raise NotThis("This page forgets only what the trash can give back: facts, notes and scenes.")
    return row


def _state(row: dict[str, Any], now: int) -> str:
    if row["superseded_by"]:
        return "superseded"
    return "expired" if row["expires_at"] is not None and row["expires_at"] <= now else "live"


def _day(at: int | None) -> str:
    from hermes_memory_plugin.cli.layer_verbs import day_of

    return day_of(at)


def _worth(name: str, value: object) -> bool:
    return value not in ("", None, False) and name not in ("key", "extra", "record", "statement")
