"""What every reader of statements needs: whose turn it is, which company is meant, what stood before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_hookspecs import Fact, Owner
from hermes_memory_plugin.recall.lexicon import HINT
from hermes_memory_plugin.recall.normalise import normalise

if TYPE_CHECKING:
    from hermes_memory_hookspecs.types import FactKind
    from hermes_memory_plugin.recall.index_row import Row
    from hermes_memory_plugin.recall.lexicon import Mention

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Talk:
    """The turn that is read, and what was said before it."""

    owner: str
    at: datetime
    speaker: str = ""
    before: tuple[str, ...] = ()
    """The turns before it, user and assistant together, the latest first."""

    @property
    def holder(self) -> str:
        """Who it is that holds and wants: in a group the speaker, else the owner himself. Never a name from the text."""
        return self.speaker if ":group:" in self.owner and self.speaker else "user"


class Reading:
    """Finds names and makes facts for one memory."""

    def __init__(
        self,
        link: Callable[[str], Sequence[Mention]],
        rows_about: Callable[[str, str], Sequence[Row]],
        has: Callable[[Fact], bool],
    ) -> None:
        """`link`: the entities of a text. `rows_about`: an owner's live facts about a security. `has`: a row of the fact's key."""
        self._link = link
        self._rows = rows_about
        self._has = has

    def _securities(self, text: str) -> list[Mention]:
        return [
            one for one in self._link(text) if one.kind not in ("sector", "index") and one.confidence > HINT
        ]

    def _one(self, text: str) -> Mention | None:
        """The one company a text names, else the one sector; None where there are several."""
        linked = [one for one in self._link(text) if one.confidence > HINT]
        for some in (
            [one for one in linked if one.kind != "sector"],
            [one for one in linked if one.kind == "sector"],
        ):
            if some:
                return some[0] if len(some) == 1 else None
        return None

    def _context(self, talk: Talk) -> Mention | None:
        """The one company the turns before are about."""
        for text in talk.before:
            named = self._securities(text)
            if named:
                return named[0] if len(named) == 1 else None
        return None

    def _fact(self, talk: Talk, kind: FactKind, statement: str, **typed: Any) -> Fact:
        source = {"model": "assistant"}.get(str(typed.get("origin")), talk.holder)
        if kind == "preference" and talk.holder != "user":
            statement, typed["holder"] = f"{talk.holder}：{statement}", talk.holder
        given = {"as_of": talk.at, "source": source, **typed}
        return Fact(
            statement=statement, kind=kind, owner=Owner.parse(talk.owner), created_at=talk.at, **given
        )


def plain(text: str) -> str:
    """Letters and digits only: one rule written twice is one."""
    return "".join(character for character in normalise(text) if character.isalnum())[:60]


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
