"""Tool results to facts: what the `extract_facts` hooks find in a trace becomes facts with the call as their proof.

Runs in the drain, never inside a hook. Its offsets lie beside the journal; a fact's id follows from the call and the
fact itself, so that a trace that is looked at twice gives the same rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Fact, ToolTrace
from hermes_memory_plugin.layers import facts, log
from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.upkeep.mappers.load import Mappers
from hermes_memory_plugin.upkeep.mappers.running import Running, feeding
from hermes_memory_plugin.upkeep.mappers.tally import Tally, is_data

if TYPE_CHECKING:
    from hermes_memory_plugin.extensions import Hooks
    from hermes_memory_plugin.store.journal import Journal
    from hermes_memory_plugin.store.tails import Chunk, Record

_STATE = "extract.json"
MOST = 200
"""Facts one call may give; the rest is counted and said."""
_PATIENCE = 10.0
"""Seconds another package's extractor may take for one result: nobody waits for the drain."""


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
        self._given = hooks
        self._count = count
        self._dated = dated
        self.mappers = Mappers(folder.parent)

    @cached_property
    def _hooks(self) -> Hooks:
        """The host's hooks; without a host ours and those of installed plugins, so that whoever drains finds the same."""
        from hermes_memory_plugin.extensions import OURS, Hooks
        from hermes_memory_plugin.upkeep.mappers.running import BuiltIn

        if self._given is not None:
            return self._given
        hooks = Hooks(self._count, limit=_PATIENCE)
        hooks.register(BuiltIn(), OURS)
        hooks.discover()
        return hooks

    @contextmanager
    def intake(self) -> Iterator[_Intake]:
        """Open for one run of the drain."""
        yield _Intake(self)

    def state(self) -> tuple[dict[str, int], Tally]:
        """How far each journal was looked at, and what each tool gave."""
        try:
            found = json.loads((self._folder / _STATE).read_text(encoding="utf-8"))
            offsets = {str(name): int(offset) for name, offset in found["offsets"].items()}
            return offsets, Tally(found.get("tools"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}, Tally()

    def save(self, offsets: Mapping[str, int], tally: Tally) -> None:
        """Remember both, or neither."""
        state = {"offsets": dict(offsets), "tools": tally.as_json()}
        atomic_write(self._folder, _STATE, json.dumps(state, ensure_ascii=False))

    def take(self, records: Sequence[Record], tally: Tally) -> None:
        """Journal the facts these records state, and count."""
        found: list[tuple[str, dict[str, Any], str, str | None, int | None]] = []
        forgotten = {
            str(one) for record in records if record.kind == "forget" for one in record.data.get("ids") or ()
        }
        for record in records:
            if record.kind != "trace" or (record.data.get("status") or "ok") != "ok":
                continue
            if str(record.data.get("id") or record.id) in forgotten:
                continue
            trace = log.trace_of({**record.data, "owner": record.owner, "at": record.at})
            stated = [as_json(fact) for fact in self.facts_of(trace)]
            found += [("fact", fact, record.owner, None, None) for fact in stated]
            if stated or is_data(trace.tool_name, trace.result):
                tally.add(trace.tool_name, len(stated), record.at)
        if found:
            self._journal.append_many(found)

    def credit(self, tool: str, count: int) -> None:
        """Count facts that old results of a tool gave after all."""
        from hermes_memory_plugin.store.locks import LockBusy
        from hermes_memory_plugin.store.queued import queued

        lock = self._folder.parent / "drain.lock"
        # The facts are stored whatever happens; at worst `status` names the tool once more.
        with contextlib.suppress(LockBusy), queued(lock, timeout=_PATIENCE):
            offsets, tally = self.state()
            tally.credit(tool, count)
            self.save(offsets, tally)

    def facts_of(self, trace: ToolTrace, *, printed: bool = False) -> Iterator[Fact]:
        """What the extractors find in a result, as it may be stored; `printed`: also where a program printed it."""
        with feeding(Running(self.mappers, self._count, printed)):
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
        self.offsets, self._tally = extraction.state()

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Look at the chunks' traces, then remember how far."""
        self._extraction.take([record for chunk in chunks for record in chunk.records], self._tally)
        self.offsets.update({chunk.journal: chunk.end for chunk in chunks})
        self._extraction.save(self.offsets, self._tally)

    def drop(self, journals: Collection[str]) -> None:
        """Forget journals that are gone."""
        for name in journals:
            self.offsets.pop(name, None)


def as_json(fact: Fact) -> dict[str, Any]:
    """An extracted fact as the journal keeps it, with what a mapper knows beyond the contract."""
    data = facts.as_json(fact)
    if getattr(fact, "public", False):
        data["public"] = True
    if getattr(fact, "original", ""):
        data["original"] = fact.original  # type: ignore[attr-defined]
    return data


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
