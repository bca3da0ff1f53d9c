"""The state of a memory as plain data: what `status` shows and `doctor` judges."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin._version import __version__
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.home import shared_place, unwritable
from hermes_memory_plugin.layers.persona import TARGETS
from hermes_memory_plugin.store.journal import live_journals
from hermes_memory_plugin.upkeep import competences, host_walls, retention
from hermes_memory_plugin.upkeep.mirror import pressure
from hermes_memory_plugin.upkeep.reasons import last_said

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts

UNREAD = 20
"""Tools without a mapper that are named."""
WEEK = 7 * 86_400_000_000


def status(memory: Parts) -> dict[str, Any]:
    """Rows by layer and owner, sizes, journals, counters of the last week, and every problem in a sentence."""
    reader = memory.reader
    reader.refresh()
    owners = reader.index.owners()
    journals = live_journals(memory.folder / "journal")
    ledgers: dict[str, Any] = {}
    problems = list(reader.problems())
    for ledger in (memory.archive.facts, memory.archive.logs, memory.archive.reports):
        try:
            ledgers[ledger.name] = ledger.status()
        except HermesMemoryError as error:
            ledgers[ledger.name] = {"error": str(error)}
            problems.append(str(error))
        else:
            problems += [
                f"a damaged file was moved aside: {path}" for path in ledgers[ledger.name]["damaged"]
            ]
    embedding = memory.embedding.status()
    problems += embedding.pop("problems")
    events = _events(memory, problems)
    problems += memory.extraction.mappers.problems()
    problems += [str(error) for error in memory.setting_errors()]
    problems += memory.owners.problems()
    problems += [*memory.notes.strange(), *memory.scenes.strange()]
    problems += [text for text in (unwritable(memory.home), shared_place(memory.home)) if text]
    kept = retention.status(memory)
    last = memory.archive.drainer.last
    if last is not None:
        problems += [f"drain of {name}: {error}" for name, error in last.errors.items()]
    return {
        "version": __version__,
        "home": str(memory.home),
        "rows": reader.rows_by_layer(),
        "owners": owners,
        "index": {
            "rows": len(reader.index),
            "generation": reader.index.manifest.generation,
            "tokenizer": reader.index.manifest.tokenizer,
            "failures": reader.index.failures,
        },
        "embedding": embedding,
        "ledgers": ledgers,
        "journals": [{"name": file.name, "bytes": file.size, "alive": file.alive} for file in journals],
        "bytes": kept["bytes"],
        "upkeep": kept,
        "events": events,
        "offload": {
            "results": events.get("offloaded", 0),
            "tokens_saved": events.get("offload_tokens_saved", 0),
        },
        "tables": _tables(memory, events),
        "scenes": {
            "written": events.get("scene_written", 0),
            "failed": events.get("scene_failed", 0),
            "waiting": len(memory.drafts.failures()),
            "model_calls": events.get("scene_model_calls", 0),
            "model_tokens": events.get("scene_model_tokens", 0),
            "model_failed": events.get("scene_model_failed", 0),
        },
        "persona": {
            pages.path.name: {
                "characters": pages.characters,
                "limit": pages.limit,
                "share": round(pages.share, 3),
                "entries": len(pages.entries),
                "foreign": pages.foreign,
            }
            for pages in map(memory.persona.read, TARGETS)
        },
        "statements": {
            "model_calls": events.get("dialogue_model_calls", 0),
            "model_tokens": events.get("dialogue_model_tokens", 0),
            "model_failed": events.get("dialogue_model_failed", 0),
        },
        "notices": [
            *kept["notices"],
            *(text for _, text in pressure(memory)),
            *competences.notices(memory.folder),
            *host_walls.notices(memory.home, owners, memory.owners),
        ],
        "degraded": (degraded := {name: n for name, n in events.items() if name in DEGRADED}),
        "reasons": last_said(memory, degraded, time.time_ns() // 1000 - WEEK) if degraded else {},
        "problems": list(dict.fromkeys(problems)),
    }


DEGRADED: dict[str, str] = {
    "recall_late": "recall missed its deadline; nothing was injected",
    "recall_busy": "no worker was free for a recall; nothing was injected",
    "recall_failed": "a recall failed; nothing was injected",
    "hook_failed": "a hook failed",
    "journal_failed": "a record could not be stored",
    "scene_failed": "a scene could not be written; its session is tried again",
    "scene_model_failed": "the host's model gave no usable scene; rules wrote it",
    "dialogue_model_failed": "the host's model found no usable statement; what the rules found stands",
    "dialogue_failed": "a turn could not be read for what it states; the turn itself is on record",
    "upkeep_failed": "work in the background failed",
    "plugin_failed": "another plugin failed",
    "plugin_slow": "another plugin was too slow",
    "drain_failed": "the ledgers could not be fed",
    "ledger_corrupt": "a damaged ledger was moved aside",
    "embed_failed": "the encoder gave no vectors; recall goes on by words",
    "vectors_damaged": "the encoder's vectors were damaged and are made anew",
    "index_rebuilt": "the index was damaged and rebuilt",
    "index_damaged": "the index is damaged; rows come from the journal alone",
    "event_lost": "a counter could not be stored",
    "compaction_late": "the agent's state was not ready when a compacted conversation went on",
    "compaction_failed": "the agent's state could not be given after a compaction",
    "audit_lost": "the audit of a recall could not be stored",
}
"""What each counter that speaks of degraded service means."""


def _tables(memory: Parts, events: Mapping[str, int]) -> dict[str, Any]:
    """What the tables of tool results gave; `unread` lists the tools of which no fact came, most called first."""
    tools = memory.extraction.state()[1].tools()
    return {
        "tools": len(tools),
        "facts": sum(one.facts for one in tools),
        "bounded": events.get("facts_bounded", 0),
        "refused": events.get("rows_refused", 0),
        "unread": [{"tool": one.name, "calls": one.calls} for one in tools if not one.facts][:UNREAD],
    }


def _events(memory: Parts, problems: list[str]) -> dict[str, int]:
    """Counters of the last week: those in logs.db, those still in a journal, those that never got there."""
    since = time.time_ns() // 1000 - WEEK
    events: dict[str, int] = {}
    try:
        events = dict(memory.archive.events(since))
    except HermesMemoryError as error:
        problems.append(str(error))
        events = dict(memory.events)
    for name in ("event_lost", "audit_lost"):
        if memory.events[name]:
            events[name] = events.get(name, 0) + memory.events[name]
    return events
