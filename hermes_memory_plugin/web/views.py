"""Overview, Ask, Injections, Trace, Scenes and notes: what there is to read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.cli.views import item_view, trace_view
from hermes_memory_plugin.errors import NotFound

if TYPE_CHECKING:
    from starlette.responses import Response

    from hermes_memory_plugin.web.page import Page

_RECALLS = 30
_CALLS = 100
_RESULT = 20_000
"""Characters of a result one page shows."""


def overview(page: Page) -> Response:
    """How much is remembered and what is degraded."""
    found = page.memory.status()
    recalls = page.memory.why(_RECALLS, owner=page.owner)
    return page.answer(
        "overview.html", found=found, injected=sum(int(one.get("tokens") or 0) for one in recalls)
    )


def ask(page: Page) -> Response:
    """A question: what a turn would get, what was left out and why, and the ranks over every layer."""
    question = page.asked("q")
    data: dict[str, Any] = {"question": question, "found": None, "cut": [], "ranked": []}
    if question:
        # `why` explains the recalls that are on record, so this one is: it is a recall like any other.
        data["found"] = page.memory.recall(question, owner=page.owner)
        (audit,) = page.memory.why(1, owner=page.owner) or [{}]
        data["cut"] = _named(page, audit.get("cut") or []) if audit.get("question") == question else []
        ranked = page.memory.recall(question, mode="explicit", owner=page.owner, limit=20, recorded=False)
        data["ranked"] = [item_view(page.memory, item) for item in ranked.items]
    return page.answer("ask.html", **data)


def injections(page: Page) -> Response:
    """What the last recalls gave the model and what they left out, newest first."""
    recalls = [
        {
            **one,
            "when": _when(one.get("at")),
            "items": _named(page, one.get("items") or []),
            "cut": _named(page, one.get("cut") or []),
        }
        for one in page.memory.why(page.number("n", 500) or _RECALLS, owner=page.owner)
    ]
    return page.answer("injections.html", recalls=recalls)


def trace(page: Page) -> Response:
    """One call with its arguments and result, or the last ones, of one session or tool where that is asked."""
    name = page.asked("id")
    if not name:
        calls = page.memory.traces(
            owner=page.owner,
            session=page.asked("session") or None,
            tool=page.asked("tool") or None,
            limit=_CALLS,
        )
        return page.answer("trace.html", calls=calls)
    call = page.memory.trace(name, owner=page.owner)
    if call is None:
        raise NotFound(name)
    view = trace_view(call, full=True)
    arguments = json.dumps(call.args, ensure_ascii=False, indent=2, default=str)
    return page.answer("call.html", call=view, arguments=arguments, limit=_RESULT)


def scenes(page: Page) -> Response:
    """Every scene and note, or the whole file of one."""
    from hermes_memory_plugin.cli.layer_verbs import day_of, rows_of

    memory = page.memory
    memory.reader.scan_files()
    rows = [*rows_of(memory, page.owner, "scene"), *rows_of(memory, page.owner, "note")]
    name = page.asked("id")
    views = [
        {
            "id": row.id,
            "handle": memory.reader.index.handle(row),
            "title": str(row.extra.get("title") or ""),
            "kind": row.kind,
            "as_of": day_of(row.as_of),
            "status": str((row.extra.get("scene") or {}).get("status") or ""),
            "text": row.text,
            "path": str(row.extra.get("path") or ""),
        }
        for row in rows
        if not name or row.id == name
    ]
    if not name:
        return page.answer("scenes.html", rows=views)
    if not views:
        raise NotFound(name)
    path = memory.folder / views[0]["path"]
    # The index says where the file is; a path out of the two folders is never followed.
    whole = ""
    if path.parent in (memory.notes.folder, memory.scenes.folder) and not path.is_symlink():
        whole = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return page.answer("scene.html", row=views[0], text=whole or views[0]["text"])


def reports(page: Page) -> Response:
    """Every report with what it says of itself, or one with the passages its pages were cut into."""
    name = page.asked("id")
    if not name:
        return page.answer("reports.html", rows=page.memory.library.reports(page.owner)[::-1])
    row, passages = page.memory.library.document(name, page.owner)
    return page.answer("report.html", row=row, passages=passages)


def _named(page: Page, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of an audit with what they say today, for as far as they are still there and this owner may see them."""
    index, keys = page.memory.reader.index, page.memory.keys(page.owner)
    named = []
    for one in listed:
        row = index.find(str(one.get("id") or ""), keys)
        found = {"handle": index.handle(row), "text": row.text} if row is not None else {}
        named.append({"handle": "", "text": "", "why": "", "reasons": [], **found, **one})
    return named


def _when(at: object) -> str:
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M:%S}" if isinstance(at, int) else ""
