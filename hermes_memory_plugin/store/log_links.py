"""The links of answers to their sources: journal records of kind `answer` and the rows of logs.db they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store.ledger_rows import Table, delete, insert, integer, moment, number, text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hermes_memory_plugin.store.graves import Graves
    from hermes_memory_plugin.store.tails import Record

LINKS: Table = {
    "answer": "text",
    "place": "integer",
    "number": "text",
    "value": "number",
    "unit": "text",
    "subject": "text",
    "metric": "text",
    "period": "text",
    "kind": "text",
    "call": "text",
    "fact": "text",
    "report": "text",
    "page": "integer",
    "words": "text",
    "clause": "text",
    "session_id": "text",
    "turn_id": "text",
    "owner": "text",
    "timestamp": "time",
}
NONE = "none"
"""The kind of a link whose number has no source; an answer without any number has one row of kind `empty`."""
EMPTY = "empty"


def link_rows(record: Record) -> list[dict[str, Any]]:
    """The rows of one answer. An answer that states no number leaves one row, so that it is known to be read."""
    data = record.data
    common = {
        "answer": text(data.get("id")),
        "session_id": text(data.get("session")),
        "turn_id": text(data.get("turn")),
        "owner": text(record.owner),
        "timestamp": moment(record.at),
    }
    given = data.get("links")
    links: list[Mapping[str, Any]] = [one for one in given or () if isinstance(one, Mapping)]
    return [_row(one, place, common) for place, one in enumerate(links or [{"kind": EMPTY}])]


def store_links(connection: DuckDBPyConnection, records: Sequence[Record], graves: Graves) -> None:
    """Put each answer's links in place of those it had; nothing of what was forgotten comes back."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        found = link_rows(record)
        if not graves.hold(found[0]["answer"]):
            rows[found[0]["answer"]] = [
                one
                for one in found
                if not (graves.hold(one["call"], one["owner"]) or graves.hold(one["fact"], one["owner"]))
            ]
    if rows:
        delete(connection, "links", "answer", rows)
        insert(connection, "links", LINKS, [row for found in rows.values() for row in found])


def named_by(record: Record) -> set[str]:
    """The ids an `answer` record speaks of: its turn, and what its numbers came from."""
    return {str(row[name]) for row in link_rows(record) for name in ("answer", "call", "fact") if row[name]}


def bury_links(connection: DuckDBPyConnection, ids: Sequence[str], calls: Sequence[tuple[str, str]]) -> None:
    """Delete the links of forgotten answers and those to forgotten rows: their words are the rows' own.

    calls: (call id, owner), because two owners' calls may have one id
    """
    for column in ("answer", "fact"):
        delete(connection, "links", column, ids)
    if calls:
        connection.execute(
            "DELETE FROM links WHERE call || chr(31) || owner IN (SELECT unnest(?::VARCHAR[]))",
            [["\x1f".join(one) for one in calls]],
        )


def _row(link: Mapping[str, Any], place: int, common: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: text(link.get(name)) for name, kind in LINKS.items() if kind == "text"},
        "place": place,
        "value": number(link.get("value")),
        "page": integer(link.get("page")),
        "kind": text(link.get("kind")) or NONE,
        **common,
    }
