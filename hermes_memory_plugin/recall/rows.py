"""From journal records to index rows: the one place that decides what of a record can be found, and how."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers import calls
from hermes_memory_plugin.layers.facts import fact_key, moment, rank_of
from hermes_memory_plugin.recall import block
from hermes_memory_plugin.recall.index_row import Add, Change, Remove, Row
from hermes_memory_plugin.recall.rows_report import Passages
from hermes_memory_plugin.recall.rows_talk import SHOWN, Find, Labels, Lasts, Talk, for_ever, quantised

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst
    from hermes_memory_plugin.store.tails import Record

_TRACE_HEAD, _TRACE_TAIL = 2_000, 500
_TITLE = 2.0
_SOURCE = 0.5


class Rows:
    """Turns records into changes of the index."""

    def __init__(self, analyst: Analyst, find: Find, lasts: Lasts = for_ever) -> None:
        self._analyst = analyst
        self._read = analyst.read
        self._again = Labels(analyst)
        self._lasts = lasts
        self._talk = Talk(analyst, self._again, find, lasts)
        self._passages_of = Passages(analyst, self._again)

    def __call__(self, record: Record) -> list[Change]:
        """The changes one record stands for; none for kinds the index does not hold."""
        make = getattr(self, f"_{record.kind}", None)
        changes: list[Change] = make(record) if make else []
        return changes

    def _fact(self, record: Record) -> list[Change]:
        data = record.data
        statement = str(data.get("statement") or "")
        gist = self._read(statement, moment(data.get("as_of") or data.get("created_at") or record.at))
        weights = gist.weights()
        named = (str(data.get(name) or "") for name in ("subject", "metric", "period", "title"))
        typed = " ".join((*named, *map(str, data.get("topics") or ())))
        if typed.strip():
            extra = self._again(typed)
            for token, weight in extra.weights().items():
                weights.setdefault(token, weight)
            gist = gist.joined(extra)
        houses: frozenset[str] = frozenset()
        if data.get("source"):
            told = self._again(str(data["source"]))
            houses = told.entities
            gist = replace(gist, periods=gist.periods | told.periods)
            for token in (*told.tokens, *(f"@{entity}" for entity in houses)):
                weights.setdefault(token, _SOURCE)
        value = rank_of(data).value
        return [
            Add(
                Row(
                    id=str(data["id"]),
                    layer="L1",
                    kind=str(data.get("kind") or "fact"),
                    text=statement[:SHOWN],
                    owner=record.owner,
                    source=str(data.get("source") or ""),
                    as_of=data.get("as_of"),
                    created=int(data.get("created_at") or record.at),
                    expires=data.get("expires_at"),
                    weights=weights,
                    project=str(data.get("project") or ""),
                    scope=gist.scope,
                    origin=str(data.get("origin") or "user"),
                    trust=int(data.get("trust") or 0),
                    fact_key=fact_key(record.owner, data),
                    value=value,
                    approximate=bool(data.get("approximate")),
                    **self._vector(statement, typed),
                    extra=_kept(
                        data,
                        (
                            "subject",
                            "metric",
                            "period",
                            "unit",
                            "basis",
                            "holder",
                            "currency",
                            "title",
                            "tool_call_id",
                            "basis_changed",
                            "turn",
                            "topics",
                            "digest",
                            "file",
                        ),
                    )
                    | gist.extra()
                    | ({} if data.get("value") == value else {"value": data["value"]})
                    | ({"houses": sorted(houses - gist.entities)} if houses - gist.entities else {}),
                )
            )
        ]

    def _note(self, record: Record) -> list[Change]:
        data = record.data
        type_ = str(data.get("type") or "reference")
        body = str(data.get("body") or "")
        title = str(data.get("title") or "")
        gist, head = self._read(body), self._read(title)
        weights = dict(gist.weights())
        for token, weight in head.weights().items():
            weights[token] = weights.get(token, 0.0) + weight * _TITLE
        both = gist.joined(head)
        return [
            Add(
                Row(
                    id=str(data["id"]),
                    layer="L2",
                    kind="preference" if type_ == "user" else f"note:{type_}",
                    text=(body if title and title in body else f"{title}: {body}")[:SHOWN],
                    owner=record.owner,
                    source=str(data.get("path") or ""),
                    as_of=data.get("updated_at"),
                    created=int(data.get("created_at") or record.at),
                    weights=weights,
                    project=str(data.get("project") or ""),
                    scope=both.scope,
                    origin=str(data.get("origin") or "user"),
                    trust=5 if data.get("origin", "user") == "user" else 1,
                    **self._vector(title, body),
                    extra=_kept(data, ("path", "mtime_ns", "size", "title", "type", "broken")) | both.extra(),
                ),
                restored=int(data.get("restored_at") or 0),
            )
        ]

    def _scene(self, record: Record) -> list[Change]:
        data = record.data
        title, body = str(data.get("title") or ""), str(data.get("body") or "")
        gist, head = self._read(body), self._read(title)
        weights = dict(gist.weights())
        for token, weight in head.weights().items():
            weights[token] = weights.get(token, 0.0) + weight * _TITLE
        both = gist.joined(head)
        topic = data.get("scene") or {}
        named = " ".join(
            map(str, (*topic.get("tickers", ()), *topic.get("sectors", ()), topic.get("period", "")))
        )
        if named.strip():  # what the front matter says it is about
            about = self._read(named)
            for token, weight in about.weights().items():
                weights.setdefault(token, weight)
            both = both.joined(about)
        summary = str(data.get("summary") or body[:200])
        return [
            Add(
                Row(
                    id=str(data["id"]),
                    layer="L2",
                    kind="scene",
                    text=summary if title in summary else f"{title}: {summary}",
                    owner=record.owner,
                    source=str(data.get("path") or ""),
                    as_of=data.get("as_of") or data.get("updated_at"),
                    created=int(data.get("created_at") or record.at),
                    expires=data.get("expires_at"),
                    weights=weights,
                    project=str(data.get("project") or ""),
                    scope=both.scope,
                    origin=str(data.get("origin") or "user"),
                    trust=5 if data.get("origin", "user") == "user" else 1,
                    **self._vector(title, body),
                    extra=_kept(data, ("path", "mtime_ns", "size", "title", "broken", "scene"))
                    | both.extra(),
                ),
                restored=int(data.get("restored_at") or 0),
            )
        ]

    def _persona(self, record: Record) -> list[Change]:
        """An entry of the host's own memory files: found when asked for, never a rule of its own."""
        data = record.data
        text = str(data.get("text") or "")
        gist = self._read(text)
        return [
            Add(
                Row(
                    id=str(data["id"]),
                    layer="L3",
                    kind="persona",
                    text=text[:SHOWN],
                    owner=record.owner,
                    source=str(data.get("file") or ""),
                    created=record.at,
                    weights=gist.weights(),
                    scope=gist.scope,
                    origin="model",
                    trust=1,
                    **self._vector(text),
                    extra=_kept(data, ("target", "file", "call")) | gist.extra(),
                )
            )
        ]

    def _gone(self, record: Record) -> list[Change]:
        """A file somebody deleted by hand: gone, but it may come back."""
        return [Remove(tuple(str(one) for one in record.data.get("ids") or ()), forever=False)]

    def _passages(self, record: Record) -> list[Change]:
        return self._passages_of(record)

    def _report_gone(self, record: Record) -> list[Change]:
        return self._passages_of.gone(record)

    def _forget(self, record: Record) -> list[Change]:
        return [Remove(tuple(str(one) for one in record.data.get("ids") or ()))]

    def _trace(self, record: Record) -> list[Change]:
        data = record.data
        if data.get("status") == calls.STARTED:
            return [Add(self._started(record))]
        result = str(data.get("result") or "")
        said = block.strip(
            result[: 2 * _TRACE_HEAD]
        )  # the record keeps it whole; what we said is not found again
        head, tail = said[:_TRACE_HEAD], result[_TRACE_HEAD:][-_TRACE_TAIL:]
        arguments = _as_text(data.get("args"))
        tool = str(data.get("tool") or "")
        gist = self._read(f"{tool}\n{arguments[:_TRACE_HEAD]}\n{head}\n{tail}")
        call = str(data.get("call") or record.id)
        shown = f"{tool}({arguments[:300]}) → {data.get('error') or head[:700]}"
        return [
            Add(
                Row(
                    id=str(data.get("id") or record.id),
                    layer="L0",
                    kind="call",
                    text=shown,
                    owner=record.owner,
                    source=f"{tool} {call}",
                    as_of=record.at,
                    created=record.at,
                    expires=self._lasts("call", record.at),
                    weights=gist.weights(),
                    session=str(data.get("session") or ""),
                    scope=gist.scope,
                    origin="tool",
                    **self._vector(tool.replace("_", " "), arguments[:300], head[:500]),
                    extra=_kept(data, ("call", "tool", "status", "turn"))
                    | gist.extra()
                    | _plan(data, result),
                )
            )
        ]

    def _started(self, record: Record) -> Row:
        """A call under way: known by its session, found by no words. The end of the call takes its place."""
        data = record.data
        tool, call = str(data.get("tool") or ""), str(data.get("call") or record.id)
        return Row(
            id=str(data.get("id") or record.id),
            layer="L0",
            kind="call",
            text=f"{tool}({_as_text(data.get('args'))[:300]}) → ",
            owner=record.owner,
            source=f"{tool} {call}",
            as_of=record.at,
            created=record.at,
            expires=self._lasts("call", record.at),
            session=str(data.get("session") or ""),
            origin="tool",
            extra=_kept(data, ("call", "tool", "status", "turn")),
        )

    def _vector(self, *texts: str) -> dict[str, Any]:
        """The vector fields of a row that says these texts."""
        return quantised(self._analyst.pooled("\n".join(text for text in texts if text)))

    def _turn(self, record: Record) -> list[Change]:
        return self._talk(record)


def _kept(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if data.get(name) not in (None, "")}


def _plan(data: Mapping[str, Any], result: str) -> dict[str, Any]:
    plan = calls.plan_of(data.get("args"), result) if data.get("tool") == calls.TODO else None
    return {} if plan is None else {"steps": plan}


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""
