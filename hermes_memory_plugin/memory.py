"""One profile's memory behind one facade; see the README for the verbs.

Writing needs the journal alone and is acknowledged in microseconds. Reading needs the index alone. The ledgers are
fed by a background drain and opened only to trace, to count or to rebuild the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Compaction, Session, UserMessage

if TYPE_CHECKING:
    from hermes_memory_plugin.layers.workspace import WorkspaceMemory
    from hermes_memory_plugin.plugin import TurnContext
    from hermes_memory_plugin.recall.answer import Recall
    from hermes_memory_plugin.upkeep.scene_model import Ask

from hermes_memory_plugin.verbs import Verbs


class Memory(Verbs):
    """The layers of one Hermes home.

    Safe to share between threads. `None` as an owner means the local owner, who also sees shared rows; every owner's
    rows are visible to `Owner.ANY` only.
    """

    # -- a conversation's life -----------------------------------------------------------------------------------

    def recall_for_turn(
        self,
        session: Session,
        message: UserMessage,
        transcript: Sequence[Mapping[str, Any]],
        turn: TurnContext,
    ) -> Recall:
        """The automatic recall of a running turn: budget and repeats are judged by the live transcript."""
        from hermes_memory_plugin.recall import block, budget
        from hermes_memory_plugin.upkeep.snapshots import joined

        limits = self.settings.recall
        characters = (
            limits.max_characters if turn.characters is None else min(turn.characters, limits.max_characters)
        )
        said = self._said.setdefault(session.id, set())
        notice = next(((key, text) for key, text in self.notices() if key not in said), None)
        history = [
            block.strip(str(one.get("content") or ""))
            for one in transcript
            if one.get("role") == "user" and isinstance(one.get("content"), str)
        ]
        spoken = (*history, message.text)
        if history and history[-1].strip() == message.text.strip():
            history.pop()
        self.mirror.soon()
        persona, hidden = self.snapshots.beside(session, turn.hidden, message.text, turn.present)
        result = self.recaller.recall(
            message.text,
            mode="automatic",
            history=history[-6:],
            owner=session.owner,
            session=session.id,
            standing=True,
            turn_id=message.turn_id,
            now=message.at,
            project=turn.project,
            allowance=budget.for_turn(
                turn.window,
                share=limits.share,
                later_share=limits.later_share,
                already=turn.already + budget.tokens(persona),
                first=turn.first,
                characters=max(0, characters - len(persona)),
            ),
            present=turn.present,
            shown=(*turn.shown_by_host, *hidden),
            spoken=spoken,
            hurried=True,
            degraded=f"hermes-memory: {notice[1]}" if notice else "",
            recorded=turn.recorded,
        )
        if result.block and notice:
            said.add(notice[0])
        self.provenance.given(session, message.turn_id, (*result.items, *result.standing))
        if persona:
            whole = joined(persona, result.block)
            result = replace(result, block=whole, tokens=budget.tokens(whole))
        return result

    def notices(self) -> list[tuple[str, str]]:
        """What the user should know of degraded service and full files: (key, one sentence)."""
        from hermes_memory_plugin.upkeep.health import DEGRADED
        from hermes_memory_plugin.upkeep.mirror import pressure

        counted = [
            (name, f"{meaning} ({self.events[name]}x)")
            for name, meaning in DEGRADED.items()
            if self.events[name]
        ]
        errors = ((str(error), str(error)) for error in self.setting_errors())
        return [*counted, *errors, *pressure(self)]

    def begin(self, session: Session, *, ask: Ask | None = None) -> None:
        """A session lineage was seen for the first time: warm what its first recall needs."""
        self.embedding.warm()
        self.reader.warm()
        self.mirror.soon()
        self.drafts.look(ask)
        self.upkeep.soon()

    def _statements(self, session: Session, ask: Ask | None) -> None:
        """Where the user lends the model: what it finds stated beyond the rules, soon."""
        mine = session.kind == "user" and not session.owner.user_id.startswith("~")
        if ask is not None and mine and self.settings.llm.extract and self.settings.dialogue.facts:
            from hermes_memory_plugin.upkeep import dialogue_model

            self.worker.soon(lambda: dialogue_model.extract(self, session, ask))

    def workspace(self, session: Session, *, folder: str = "") -> WorkspaceMemory:
        """What a session is in the middle of, from its record alone; `folder` is where its tools work."""
        from hermes_memory_plugin.upkeep import handover

        return handover.workspace(self, session, folder)

    def compacted(self, session: Session, compaction: Compaction, *, folder: str = "") -> str:
        """The host compressed the conversation: what the model should still know; "" when nothing is on record."""
        from hermes_memory_plugin.upkeep import handover

        return handover.text(self, session, folder)

    def end(self, session: Session, *, ask: Ask | None = None) -> None:
        """A session lineage ended: what it found out becomes a scene, soon. `ask`: the host's model."""
        self._flush_audits()
        self.mirror.soon()
        self.drafts.ended(session, ask)
        self._statements(session, ask)
        self._said.pop(session.id, None)
        self._begun.discard(session.id)
        self.provenance.forget(session)
        self.archive.notify()
