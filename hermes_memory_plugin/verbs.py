"""What can be done with a memory: the verbs of the facade, the command line and the model's tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import (
    Fact,
    Owner,
    ReportChunk,
    ReportDocument,
    Session,
    ToolTrace,
    Turn,
    Verdict,
)
from hermes_memory_plugin.errors import HermesMemoryError, NotFound
from hermes_memory_plugin.layers import facts, log
from hermes_memory_plugin.layers.log import Half
from hermes_memory_plugin.recall.markdown import note_record, scene_record
from hermes_memory_plugin.store.ids import is_ulid, new_ulid

if TYPE_CHECKING:
    from hermes_memory_plugin.layers.history import Version
    from hermes_memory_plugin.layers.trash import Discarded
    from hermes_memory_plugin.recall.answer import Recall
    from hermes_memory_plugin.upkeep.competences import Competences
    from hermes_memory_plugin.upkeep.forgetting import Forgotten
    from hermes_memory_plugin.upkeep.mirror import Mirror
    from hermes_memory_plugin.upkeep.provenance import Answer, Provenance

from hermes_memory_plugin.parts import Parts

_FACT_FIELDS = {field.name for field in fields(Fact)}
_NOTE_TYPE = {"preference": "user", "fact": "reference", "conclusion": "project", "holding": "project"}
_DEFAULT_WINDOW = 64_000
_IN_FLIGHT = 1_024


class Verbs(Parts):
    """Writing and reading; see `Memory`, which has them all."""

    @cached_property
    def mirror(self) -> Mirror:
        """What keeps the rows of L3 as Hermes' memory files are."""
        from hermes_memory_plugin.upkeep.mirror import Mirror

        return Mirror(self)

    @cached_property
    def provenance(self) -> Provenance:
        """Where the numbers of answers came from."""
        from hermes_memory_plugin.upkeep.provenance import Provenance

        return Provenance(self)

    # -- writing -------------------------------------------------------------------------------------------------

    def remember(
        self,
        statement: str,
        *,
        id: str | None = None,
        kind: str = "fact",
        title: str | None = None,
        source: str = "",
        as_of: datetime | str | None = None,
        origin: str = "user",
        owner: Owner | None = None,
        project: str = "",
        **typed: Any,
    ) -> str:
        """Store a statement and return its id. With a title it becomes a note (Markdown), else a fact.

        The same id again replaces the row. `typed` takes the other fields of `Fact` (subject, metric, period, value,
        unit, basis, holder, currency, tool_call_id, expires_at …) and, for a note, `type`. Raises BadFact or BadNote
        naming the field; nothing is stored then.
        """
        note_type = typed.pop("type", "")
        unknown = set(typed) - _FACT_FIELDS
        if unknown:
            raise facts.BadFact(sorted(unknown)[0], typed[sorted(unknown)[0]], "no such field of a fact")
        owner = _whose(owner, kind)
        if title is not None or note_type:
            return self._save_note(
                title or statement[:60],
                statement,
                note_type or _NOTE_TYPE.get(kind, "reference"),
                owner,
                id,
                origin,
                project,
            )
        fact = self._fact(
            Fact(statement=statement, id=id or "", kind=kind, source=source, origin=origin, owner=owner),  # type: ignore[arg-type]
            as_of=as_of,
            **typed,
        )
        if id:
            self._check_free([fact])
        self._journal.append("fact", facts.as_json(fact, project=project), owner=owner.key)
        self._wrote()
        return fact.id

    def remember_many(self, many: Iterable[Fact | Mapping[str, Any]]) -> list[str]:
        """Store many facts; all or none when one of them cannot be stored. Returns their ids in order."""
        checked = []
        for one in many:
            if isinstance(one, Fact):
                checked.append(self._fact(one))
            else:
                rest = dict(one)
                kind = str(rest.pop("kind", "fact"))
                owner = _whose(rest.pop("owner", None), kind)
                base = Fact(statement=str(rest.pop("statement", "")), kind=kind, owner=owner)  # type: ignore[arg-type]
                unknown = set(rest) - _FACT_FIELDS
                if unknown:
                    raise facts.BadFact(
                        sorted(unknown)[0], rest[sorted(unknown)[0]], "no such field of a fact"
                    )
                checked.append(self._fact(base, **rest))
        self._check_free(checked)
        self._journal.append_many(
            ("fact", facts.as_json(fact), fact.owner.key, None, None) for fact in checked
        )
        self._wrote()
        return [fact.id for fact in checked]

    def forget(
        self,
        id_or_title: str,
        *,
        dry_run: bool = False,
        owner: Owner | None = None,
        by: str = "",
        why: str = "",
        everywhere: bool = False,
    ) -> list[str]:
        """Make the row of that id, handle or exact title unfindable at once; returns the ids. A query is no title.

        Raises NotFound when the owner has no such row. `dry_run` only returns what would go.
        """
        found = self.forgetting(
            id_or_title, dry_run=dry_run, owner=owner, by=by, why=why, everywhere=everywhere
        )
        return list(found.ids)

    def forgetting(
        self,
        id_or_title: str,
        *,
        dry_run: bool = False,
        owner: Owner | None = None,
        by: str = "",
        why: str = "",
        everywhere: bool = False,
    ) -> Forgotten:
        """`forget`, with an account of what followed and of what this memory cannot reach.

        `everywhere` also takes it out of Hermes' MEMORY.md and USER.md, and forgets the turns and calls that say the same.
        """
        from hermes_memory_plugin.upkeep import forgetting

        return forgetting.forget(
            self, id_or_title, owner=owner, dry_run=dry_run, by=by, why=why, everywhere=everywhere
        )

    def restore(self, name: str, *, owner: Owner | None = None) -> str:
        """Bring something forgotten back from the trash, by title, id or file; returns its id, for a note or scene the one it had.

        Raises NotFound when the owner forgot nothing of that name within the last 30 days.
        """
        found = self.notes.trash.find(name, self.keys(owner))
        if found.folder == "facts":
            return self._restore_fact(found)
        kind = "scene" if found.folder == self.scenes.folder.name else "note"
        if kind == "scene":
            scene = self.scenes.restore(found)
            note, record = scene.note, scene_record(self.folder, scene)
        else:
            note = self.notes.restore(found)
            record = note_record(self.folder, note)
        self._journal.append(kind, record, owner=note.owner.key)
        self._wrote()
        return note.id

    def _restore_fact(self, found: Discarded) -> str:
        """A forgotten fact comes back under an id of its own: what was forgotten by the old one stays so."""
        record = self.notes.trash.kept(found) | {"id": new_ulid()}
        self._journal.append("fact", record, owner=found.owner)
        found.path.unlink(missing_ok=True)
        self._wrote()
        return str(record["id"])

    def candidates(self, query: str, *, owner: Owner | None = None, limit: int = 10) -> list[str]:
        """Ids a person could mean with `query`, best first: the preview before a `forget`."""
        return [item.id for item in self.recall(query, mode="explicit", owner=owner, limit=limit).items]

    def add_scene(
        self,
        title: str,
        body: str,
        *,
        id: str | None = None,
        as_of: datetime | str | None = None,
        owner: Owner | None = None,
        origin: str = "user",
        tickers: Sequence[str] = (),
        sectors: Sequence[str] = (),
        period: str = "",
    ) -> str:
        """Write a scene (`memory/scenarios/*.md`) and return its id.

        The scene of that `id` is replaced; without one, that of the same title, unless another day, other tickers or another
        period say that it is about something else.
        """
        owner = owner or Owner()
        scene = self.scenes.save(
            title,
            body,
            id=id or "",
            as_of=facts.as_moment(as_of),
            owner=owner,
            origin=origin,
            tickers=tickers,
            sectors=sectors,
            period=period,
        )
        self._journal.append("scene", scene_record(self.folder, scene), owner=owner.key)
        self._wrote()
        return scene.note.id

    def start(self, trace: ToolTrace, *, kind: str = "user") -> None:
        """Store that a call began: until `log` completes it, it is on record as started."""
        data = log.start_json(trace, kind)
        began = self._journal.append("trace", data, owner=trace.owner.key, at=facts.microseconds(trace.at))
        with self._lock:
            self._started[trace.session_id, trace.tool_call_id] = began.id
            while len(self._started) > _IN_FLIGHT:
                self._started.popitem(last=False)

    def log(self, trace: ToolTrace, *, kind: str = "user") -> str:
        """Store one tool call; returns its id (ours when the host sent none). Acknowledged when it returns."""
        data = log.trace_json(trace, kind)
        began = self._started.pop((trace.session_id, trace.tool_call_id), None)
        if began:
            data["id"] = began  # the row of its start is its row
        self._journal.append("trace", data, owner=trace.owner.key, at=facts.microseconds(trace.at))
        self._wrote()
        return str(data["call"])

    def log_turn(self, turn: Turn, *, kind: str = "user", half: Half = "full") -> str:
        """Store a turn, or the half of it that is known; halves of one turn id become one row. Returns its id."""
        data = log.turn_json(turn, kind, half)
        self._journal.append("turn", data, owner=turn.owner.key, at=facts.microseconds(turn.at))
        if half != "user":
            self._flush_audits()
        self._wrote()
        return str(data["id"])

    def add_report(
        self,
        path_or_document: Path | str | ReportDocument,
        *,
        owner: Owner | None = None,
        password: str | None = None,
    ) -> str:
        """Add a report to the library and return its id: a file (PDF, Markdown, text, HTML), or one that was read already.

        Everybody on this home may read it unless `owner` says whose it is. A scanned file is listed with status `no_text`; one that
        is encrypted, broken or too big raises ReportUnreadable.
        """
        from hermes_memory_plugin.reports.worker import read_report

        if isinstance(path_or_document, ReportDocument):
            return self.library.add(path_or_document, owner=owner).id
        path = Path(path_or_document).expanduser()
        report = read_report(path, password=password, hooks=self.hooks).checked(path)
        return self.library.add(report, path=path, owner=owner).id

    # -- reading -------------------------------------------------------------------------------------------------

    def recall(
        self,
        question: str,
        *,
        mode: str = "automatic",
        history: Sequence[str] = (),
        owner: Owner | None = None,
        session: Session | str | None = None,
        window: int = _DEFAULT_WINDOW,
        limit: int | None = None,
        now: datetime | str | None = None,
        project: str = "",
        recorded: bool = True,
    ) -> Recall:
        """What is worth knowing beside `question`.

        mode     "automatic": floor and budget, live rows; "explicit": ranked, every layer, states labelled
        history  the user's previous messages, oldest first
        session  a session's first message that is no small talk also brings the standing preferences
        window   tokens of the model's context; now sets "today"
        recorded whether the recall leaves an audit
        """
        from hermes_memory_plugin.recall import budget
        from hermes_memory_plugin.recall.recaller import session_id

        if mode == "explicit":
            with suppress(HermesMemoryError):  # a home that cannot be written is read all the same
                self.mirror.follow()
        given = session_id(session)
        first = given not in self._begun
        limits = self.settings.recall
        result = self.recaller.recall(
            question,
            mode=mode,
            history=history,
            owner=owner,
            session=given,
            standing=bool(given) and first,
            now=facts.as_moment(now, "now") or datetime.now(UTC),
            limit=limit,
            project=project,
            allowance=budget.for_turn(
                window,
                share=limits.share,
                later_share=limits.later_share,
                first=first,
                characters=limits.max_characters,
            )
            if mode == "automatic"
            else None,
            recorded=recorded,
        )
        if given and result.standing:
            self._begun.add(given)
        return result

    def search_reports(
        self,
        query: str,
        code: str | None = None,
        *,
        limit: int = 5,
        broker: str = "",
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        industry: str = "",
        owner: Owner | None = None,
        now: datetime | str | None = None,
    ) -> list[ReportChunk]:
        """The passages of research reports that answer `query`, best first, each with its broker, date and page.

        code    only reports on this company: a ticker however it is spelled, or a name
        since   only reports of this day or later; until: of this day or earlier
        now     what "today" means

        At most two passages are of one report, unless only one matches; 最新 and "latest" bring the newest report first.
        A passage's text ends at `reports.quote_characters`.
        """
        from hermes_memory_plugin.reports.search import search

        return search(
            self,
            query,
            code,
            limit=limit,
            broker=broker,
            since=facts.as_moment(since, "since"),
            until=facts.as_moment(until, "until"),
            industry=industry,
            owner=owner,
            now=facts.as_moment(now, "now") or datetime.now(UTC),
        )

    def trace(self, tool_call_id: str, *, owner: Owner | None = None) -> ToolTrace | None:
        """The stored call of that id or handle; None when there is none the owner may see."""
        keys = self.keys(owner)
        return self.archive.trace(tool_call_id, keys, row=self.reader.call(tool_call_id, keys))

    def traces(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        tool: str | None = None,
        owner: Owner | None = None,
        session: str | None = None,
        status: str | None = None,
        limit: int = 100,
    ) -> list[ToolTrace]:
        """Stored calls, newest first. `since` is included, `until` is not."""
        return self.archive.traces(
            since=facts.microseconds(facts.as_moment(since, "since")),
            until=facts.microseconds(facts.as_moment(until, "until")),
            tool=tool,
            keys=self.keys(owner),
            session=session,
            status=status,
            limit=limit,
        )

    def history(self, id_or_handle: str, *, owner: Owner | None = None) -> list[Version]:
        """Every row that speaks of the same thing as that one, oldest first, and how each stands to the others.

        Raises NotFound when the owner sees no such row.
        """
        from hermes_memory_plugin.layers.history import versions

        keys = self.keys(owner)
        named = self.reader.named(id_or_handle, keys)
        if not named:
            raise NotFound(id_or_handle, "`recall` shows handles.")
        index, (row, *_) = self.reader.index, named
        rows = index.same_key(row.fact_key, row.owner) if row.fact_key else [row]
        return versions(rows, index.handle, now_us=facts.microseconds(datetime.now(UTC)) or 0)

    @cached_property
    def competences(self) -> Competences:
        """What the house knows and stands by, from files people write."""
        from hermes_memory_plugin.upkeep.competences import Competences

        return Competences(self)

    def expand(self, node: str, *, owner: Owner | None = None) -> Sequence[ToolTrace]:
        """The calls behind a node of a canvas, a handle or a call id, oldest first, whole. Raises NotFound."""
        from hermes_memory_plugin.upkeep import handover

        return handover.expand(self, node, owner)

    def flush(self, timeout: float = 60.0) -> None:
        """Return when everything acknowledged so far is in the ledgers and the index, and has its vector.

        Waits as long as it goes on, and `timeout` seconds while nothing does.

        Raises what kept it from that: LedgerBusy …, or EmbeddingBehind where an encoder is configured and fails or stalls.
        """
        self._flush_audits()
        self.archive.flush(timeout)
        self.embedding.flush(timeout)

    def status(self) -> dict[str, Any]:
        """Rows, sizes, counters and problems, as plain data."""
        from hermes_memory_plugin.upkeep.health import status

        return status(self)

    def sources(self, turn: str = "", *, owner: Owner | None = None) -> Answer:
        """An answer and where its numbers came from: of that turn (id or handle), else the newest with a number.

        Raises NotFound when the owner has no such answer.
        """
        return self.provenance.sources(turn, owner=owner)

    def verify(self, text: str, *, now: datetime | str | None = None, owner: Owner | None = None) -> Verdict:
        """Whether the figures a text states still stand, with the facts and calls that say so.

        `now` sets "today", for 上个月 and for what has expired.
        """
        from hermes_memory_plugin.upkeep.verify import verify

        return verify(self, text, now=facts.as_moment(now, "now") or datetime.now(UTC), owner=owner)

    def why(self, n: int = 1, *, owner: Owner | None = None) -> list[dict[str, Any]]:
        """The audit records of the last n recalls, newest first."""
        self._flush_audits()
        return self.archive.audits(n, self.keys(owner))

    # -- how -----------------------------------------------------------------------------------------------------

    def _save_note(
        self, title: str, content: str, type_: str, owner: Owner, id: str | None, origin: str, project: str
    ) -> str:
        note = self.notes.save(
            title, content, type_, owner=owner, id=id or "", origin=origin, project=project
        )
        self._journal.append("note", note_record(self.folder, note), owner=owner.key)
        self._wrote()
        return note.id

    def _remove_file(self, relative: str) -> None:
        if not relative:
            return
        path = self.folder / relative
        if path.parent == self.notes.folder:
            note = self.notes.read(path)
            if note:
                self.notes.remove(note)
        elif path.parent == self.scenes.folder:
            scene = self.scenes.read(path)
            if scene:
                self.scenes.remove(scene)

    def _fact(self, fact: Fact, **changes: Any) -> Fact:
        for name in ("as_of", "expires_at", "created_at"):
            if name in changes:
                changes[name] = facts.as_moment(changes[name], name)
        if changes.get("created_at", 0) is None:
            del changes["created_at"]
        if fact.id == "" and not changes.get("id"):
            changes["id"] = new_ulid()
        fact = facts.checked(replace(fact, **changes))
        return self.dated(fact)

    def _check_free(self, given: Sequence[Fact]) -> None:
        """Nobody takes over a row by naming its id."""
        owners: dict[str, str] = {}
        for fact in given:
            if is_ulid(fact.id):
                continue  # one of ours, or a guess nobody can make
            if not owners:
                self.reader.refresh()
            if fact.id not in owners:
                row = self.reader.index.find(fact.id, None)
                owners[fact.id] = fact.owner.key if row is None else row.owner
            if owners[fact.id] != fact.owner.key:
                raise facts.BadFact("id", fact.id, "an id that no other owner's row has")


def _whose(owner: Owner | None, kind: str) -> Owner:
    if owner is not None:
        return owner
    return Owner.SHARED if kind == "competence" else Owner()
