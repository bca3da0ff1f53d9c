"""A figure of a quarter, half or month counts until the next report's: then it is outlived, whatever days it had left."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers.facts import moment
from hermes_memory_plugin.store.ledger_facts import record_of
from hermes_memory_plugin.upkeep.lifetime import class_of, period_end

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts

_LIVING = (
    "f.superseded_by = '' AND f.period <> '' AND f.metric <> '' AND f.subject <> '' "
    "AND (f.expires_at IS NULL OR f.expires_at > make_timestamp(?::BIGINT))"
)


def followed(memory: Parts, *, dry_run: bool = False) -> list[str]:
    """Let the figures expire whose next report is on record; returns their ids."""
    now = time.time_ns() // 1000
    groups: defaultdict[tuple[str, ...], list[tuple[date, dict[str, Any]]]] = defaultdict(list)
    for row in memory.archive.facts.where(_LIVING, [now]):
        end = period_end(row["period"])
        at = moment(row["as_of"])
        # A forecast of the next period is no report of it.
        if end is None or at is None or at.date() < end - timedelta(days=1):
            continue
        names = ("owner", "subject", "metric", "basis", "holder", "currency")
        groups[tuple(str(row[name]).casefold() for name in names)].append((end, row))
    outlived = []
    for rows in groups.values():
        newest = max(end for end, _ in rows)
        for end, row in rows:
            if end < newest and class_of(row["kind"], row["metric"], row["period"]) == "quarterly":
                outlived.append(row)
    if outlived and not dry_run:
        for row in outlived:
            memory.journal.append("fact", record_of(row) | {"expires_at": now}, owner=row["owner"])
        memory.archive.flush()
    return [row["id"] for row in outlived]
