"""A small home for the tests of the read index: a journal, and records that become rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hermes_memory_plugin.recall.index import Add, Change, Index, JournalTail, Remove, Row
from hermes_memory_plugin.store.journal import Journal
from hermes_memory_plugin.store.tails import Record

TOKENIZER = "words-1"
NOW = 1_800_000_000_000_000


def rows_of(record: Record) -> Iterable[Change]:
    """fact: {id, words: {token: weight}, restored, …fields of Row}; forget and drop: {ids}."""
    data = dict(record.data)
    if record.kind == "forget":
        return [Remove(tuple(data["ids"]))]
    if record.kind == "drop":
        return [Remove(tuple(data["ids"]), forever=False)]
    if record.kind == "fact":
        words, restored = data.pop("words"), data.pop("restored", 0)
        fields = {"layer": "L1", "text": " ".join(words), "created": record.at, "owner": record.owner} | data
        return [Add(Row(weights=words, **fields), restored)]
    return []


def open_index(home: Path, tokenizer: str = TOKENIZER) -> Index:
    return Index.open(home / "index", tail=JournalTail(home / "journal", rows_of), tokenizer=tokenizer)


class Home:
    """One process's view of a home: everything said here is journalled first, then applied."""

    def __init__(self, home: Path) -> None:
        self.path = home
        self.journal = Journal(home / "journal")
        self.index = open_index(home)

    def fact(
        self, id: str, words: str | dict[str, float], *, owner: str = "local", **fields: object
    ) -> Record:
        weights = dict.fromkeys(words.split(), 1.0) if isinstance(words, str) else words
        record = self.journal.append("fact", {"id": id, "words": weights, **fields}, owner=owner)
        self.index.apply(record)
        return record

    def forget(self, *ids: str, kind: str = "forget") -> Record:
        record = self.journal.append(kind, {"ids": list(ids)})
        self.index.apply(record)
        return record


def found(
    index: Index, *words: str, owners: frozenset[str] | None = frozenset({"local"})
) -> dict[str, float]:
    """id → score of every visible row the words find, best first."""
    view = index.view(owners, now_us=NOW)
    scores = view.bm25(words)
    return {view.row(number).id: float(scores[number]) for number in view.top(scores, 1_000)}


def ids(index: Index, owners: frozenset[str] | None = None, states: tuple[str, ...] = ("live",)) -> set[str]:
    return {row.id for row in index.scan(owners, now_us=NOW, states=states)}
