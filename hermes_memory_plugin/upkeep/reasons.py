"""Why something was degraded: what was said when it last happened."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.tails import read_tails

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts


def last_said(memory: Parts, names: Collection[str], since: int) -> dict[str, str]:
    """By name of the event: the last detail since then (epoch microseconds) that is not empty. Never raises."""
    logs = memory.archive.logs
    said: dict[str, tuple[int, str]] = {}
    try:
        offsets = logs.offsets()
        for row in logs.rows(
            "SELECT name, max_by(detail, timestamp) AS detail FROM events"
            " WHERE detail <> '' AND timestamp >= make_timestamp(?::BIGINT) AND name IN (SELECT unnest(?::VARCHAR[]))"
            " GROUP BY name",
            [since, list(names)],
        ):
            said[row["name"]] = (0, row["detail"])
    except HermesMemoryError:
        offsets = {}
    for chunk in read_tails(memory.folder / "journal", offsets):
        for record in chunk.records:
            name, detail = str(record.data.get("name")), str(record.data.get("detail") or "")
            if (
                record.kind == "event"
                and detail
                and name in names
                and record.at >= max(since, said.get(name, (0,))[0])
            ):
                said[name] = (record.at, detail)
    return {name: detail for name, (_, detail) in said.items()}
