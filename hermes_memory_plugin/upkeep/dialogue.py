"""Dialogue to facts: what the user says of his wishes, holdings and decisions becomes rows of their own.

Runs in the drain, once for every completed turn of a session people hold themselves. The ids follow from the turn, so a
turn looked at twice gives the same rows, and forgetting it forgets them, those not yet made included.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers import facts, keys
from hermes_memory_plugin.layers.log import turn_row_id
from hermes_memory_plugin.store.files import atomic_write

if TYPE_CHECKING:
    from hermes_memory_hookspecs import Fact
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.reader import Reader
    from hermes_memory_plugin.store.journal import Journal
    from hermes_memory_plugin.store.tails import Chunk, Record
    from hermes_memory_plugin.upkeep.dialogue_facts import FactReader
    from hermes_memory_plugin.upkeep.dialogue_reading import Talk

MOST = 8
"""Facts one turn may give."""
_BEFORE = 2
_ABOUT = 300
"""The newest facts about a security that a correction may mean."""
_LONGEST = 4_000
"""Characters of a message that are read: who writes more pastes."""
_CONCLUDES = re.compile(r"结论|结论|conclusion|verdict|bottom line", re.IGNORECASE)


def ids_of(turn: str) -> list[str]:
    """The ids of every fact a turn (the id of its row) can have given."""
    head = hashlib.sha256(turn.encode("utf-8", "replace")).hexdigest()[:20]
    return [f"u-{head}-{number}" for number in range(MOST)]


class Dialogue:
    """The drain consumer that reads what people say; its offsets lie beside the journal."""

    name = "dialogue"

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        reader: Callable[[], Reader],
        count: Callable[[str, str], None],
        *,
        dated: Callable[[Fact], Fact] = lambda fact: fact,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._reader = reader
        self._count = count
        self._dated = dated
        self._wanted = wanted

    @contextmanager
    def intake(self) -> Iterator[_Intake]:
        """Open for one run of the drain."""
        yield _Intake(self)

    def offsets(self) -> dict[str, int]:
        """How far each journal was looked at."""
        try:
            found = json.loads((self._folder / f"{self.name}.json").read_text(encoding="utf-8"))
            return {str(name): int(offset) for name, offset in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def save(self, offsets: Mapping[str, int]) -> None:
        """Remember the offsets."""
        atomic_write(self._folder, f"{self.name}.json", json.dumps(dict(offsets)))

    def take(self, records: Sequence[Record]) -> None:
        """Journal the facts that the turns among these records state."""
        turns = [record for record in records if _counts(record)]
        if not turns or not self._wanted():
            return
        for record in turns:
            try:
                found = self.read(record)
            except Exception as error:  # one turn that cannot be read costs no other one
                self._count("dialogue_failed", f"{record.id}: {type(error).__name__}: {error}")
                continue
            if found:
                self._journal.append_many(("fact", one, record.owner, None, None) for one in found)

    def read(self, record: Record) -> list[dict[str, Any]]:
        """The facts of one turn as they are journalled."""
        from hermes_memory_plugin.upkeep import dialogue_rules, own_words

        data = record.data
        user, answer = str(data.get("user") or "")[:_LONGEST], str(data.get("assistant") or "")
        user = user.removeprefix(f"[{data.get('speaker')}]").strip()  # in a group the host names who speaks
        said = list(dialogue_rules.read(own_words.sentences(user))) if dialogue_rules.may_state(user) else []
        concluded = []
        if _CONCLUDES.search(answer):
            concluded = list(dialogue_rules.assistants(own_words.sentences(answer[-_LONGEST:])))
        if not said and not concluded:
            return []
        turn = _row_id(record)
        reader = self._reader()
        reader.index.refresh()
        talk = self._talk(record, turn, reader)
        facts_of = fact_reader(reader)
        found = [*facts_of.facts(said, talk), *facts_of.concluded(concluded, talk, user)]
        return self._named(found, turn, data)

    def _named(self, found: Sequence[Fact], turn: str, data: Any) -> list[dict[str, Any]]:
        once: dict[tuple[str, str], Fact] = {}
        for one in found:
            once.setdefault((one.kind, one.statement + one.metric), one)
        if len(once) > MOST:
            self._count("dialogue_cut", f"{turn}: {len(once)} facts, {MOST} kept")
        rows = []
        for id, one in zip(ids_of(turn), once.values(), strict=False):
            try:
                fact = self._dated(facts.checked(replace(one, id=id)))
            except facts.BadFact as error:
                self._count("fact_refused", f"{turn}: {error}")
                continue
            rows.append(facts.as_json(fact, project=str(data.get("project") or "")) | {"turn": turn})
        return rows

    def _talk(self, record: Record, turn: str, reader: Reader) -> Talk:
        from hermes_memory_plugin.upkeep.dialogue_reading import Talk

        session = str(record.data.get("session") or "")
        before: list[str] = []
        if session:
            rows = reader.index.by_session(session, {record.owner}, layers={"L0"})
            earlier = [
                row for row in rows if row.kind == "turn" and row.id != turn and row.created <= record.at
            ]
            for row in reversed(earlier[-_BEFORE:]):
                parts = (str(row.extra.get("user") or ""), str(row.extra.get("assistant") or ""))
                before.append("\n".join(part for part in parts if part)[:_LONGEST])
        at = facts.moment(record.at)
        assert at is not None
        return Talk(record.owner, at, str(record.data.get("speaker") or ""), tuple(before))


class _Intake:
    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self.offsets: dict[str, int] = dialogue.offsets()

    def apply(self, chunks: Sequence[Chunk]) -> None:
        """Look at the chunks' records, then remember how far."""
        self._dialogue.take([record for chunk in chunks for record in chunk.records])
        self.offsets.update({chunk.journal: chunk.end for chunk in chunks})
        self._dialogue.save(self.offsets)

    def drop(self, journals: Collection[str]) -> None:
        """Forget journals that are gone."""
        for name in journals:
            self.offsets.pop(name, None)


def _counts(record: Record) -> bool:
    """Whether it is a whole turn of a session people hold themselves: an interrupted one states nothing."""
    data = record.data
    return (
        record.kind == "turn"
        and data.get("half", "full") == "full"
        and data.get("completed") is not False
        and (data.get("kind") or "user") == "user"
        and bool(data.get("user"))
        and record.owner not in ("any", "shared")
        and ":~" not in record.owner
        and facts.moment(record.at) is not None
    )


def _row_id(record: Record) -> str:
    """The id of the turn's row, as the index has it."""
    data = record.data
    session, turn = str(data.get("session") or ""), str(data.get("turn") or "")
    return str(data.get("id") or turn_row_id(session, turn, record.id.lower()))


def fact_reader(reader: Reader) -> FactReader:
    """What makes facts of statements, with one memory's names and rows."""
    from hermes_memory_plugin.upkeep.dialogue_facts import FactReader

    index = reader.index

    def rows_about(owner: str, entity: str) -> list[Row]:
        view = index.view({owner}, now_us=time.time_ns() // 1000, layers=("L1",), states=("live", "expired"))
        wanted = keys.subject_of(entity)
        numbers = view.postings(f"@{entity}")[0]
        if len(numbers) > _ABOUT:
            numbers = numbers[view.column("created", numbers).argsort()[-_ABOUT:]]
        return [
            row
            for row in view.rows(numbers)
            if keys.subject_of(str(row.extra.get("subject") or "")) == wanted
        ]

    def has(fact: Fact) -> bool:
        return bool(index.same_key(facts.fact_key(fact.owner.key, facts.as_json(fact)), fact.owner.key))

    return FactReader(reader.analyst.link, rows_about, has)
