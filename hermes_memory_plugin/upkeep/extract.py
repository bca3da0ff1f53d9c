"""Tool results to facts: what the `extract_facts` hooks find in a trace becomes facts with the call as their proof.

Runs in the drain, never inside a hook. Its offsets lie beside the journal; a fact's id follows from the call and the
fact itself, so that a trace that is looked at twice gives the same rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Fact, ToolTrace
from hermes_memory_plugin.layers import facts, log
from hermes_memory_plugin.store.files import atomic_write

if TYPE_CHECKING:
    from hermes_memory_plugin.extensions import Hooks
    from hermes_memory_plugin.store.journal import Journal
    from hermes_memory_plugin.store.tails import Chunk, Record

_OFFSETS = "extract.json"
MOST = 200
"""Facts one call may give; the rest is counted and said."""


class Extraction:
    """The drain consumer that asks the extractors."""

    name = "extract"

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        hooks: Hooks | None,
        count: Callable[[str, str], None],
        *,
        dated: Callable[[Fact], Fact] = lambda fact: fact,
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._hooks = hooks
        self._count = count
        self._dated = dated

    @contextmanager
    def intake(self) -> Iterator[_Intake]:
        """Open for one run of the drain."""
        yield _Intake(self)

    def offsets(self) -> dict[str, int]:
        """How far each journal was looked at."""
        try:
            found = json.loads((self._folder / _OFFSETS).read_text(encoding="utf-8"))
            return {str(name): int(offset) for name, offset in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def save(self, offsets: Mapping[str, int]) -> None:
        """Remember the offsets."""
        atomic_write(self._folder, _OFFSETS, json.dumps(dict(offsets)))

    def take(self, records: Sequence[Record]) -> None:
        """Journal the facts these records state."""
        if self._hooks is None or not self._hooks.has("extract_facts"):
            return
        found: list[tuple[str, dict[str, Any], str, str | None, int | None]] = []
        for record in records:
            if record.kind != "trace" or (record.data.get("status") or "ok") != "ok":
                continue
            trace = log.trace_of({**record.data, "owner": record.owner, "at": record.at})
            for fact in self._facts(trace):
                found.append(("fact", facts.as_json(fact), record.owner, None, None))
        if found:
            self._journal.append_many(found)

    def _facts(self, trace: ToolTrace) -> Iterator[Fact]:
        assert self._hooks is not None
        many = [fact for result in self._hooks.call("extract_facts", trace=trace) for fact in result]
        if len(many) > MOST:
            self._count(
                "facts_cut", f"{trace.tool_name} {trace.tool_call_id}: {len(many)} facts, {MOST} kept"
            )
        for fact in many[:MOST]:
            try:
                # Whoever extracts, the origin is the tool: such rows never become rules or preferences.
                checked = facts.checked(
                    replace(
                        fact,
                        id=fact.id or _fact_id(trace, fact),
                        kind="fact" if fact.kind in ("preference", "competence") else fact.kind,
                        origin="tool",
                        owner=trace.owner,
                        tool_call_id=trace.tool_call_id,
                        source=fact.source or trace.tool_name,
                        as_of=fact.as_of or trace.at,
                        created_at=trace.at,
                    )
                )
                yield self._dated(checked)
            except facts.BadFact as error:
                self._count("fact_refused", f"{trace.tool_name} {trace.tool_call_id}: {error}")


class _Intake:
    def __init__(self, extraction: Extraction) -> None:
        self._extraction = extraction
        self.offsets: dict[str, int] = extraction.offsets()

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Look at the chunks' traces, then remember how far."""
        self._extraction.take([record for chunk in chunks for record in chunk.records])
        self.offsets.update({chunk.journal: chunk.end for chunk in chunks})
        self._extraction.save(self.offsets)

    def drop(self, journals: Collection[str]) -> None:
        """Forget journals that are gone."""
        for name in journals:
            self.offsets.pop(name, None)


def _fact_id(trace: ToolTrace, fact: Fact) -> str:
    what = "\x1f".join(
        (
            trace.owner.key,
            trace.session_id,
            trace.tool_call_id,
            fact.subject,
            fact.metric,
            fact.period,
            fact.statement,
        )
    )
    return "x-" + hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:24]
