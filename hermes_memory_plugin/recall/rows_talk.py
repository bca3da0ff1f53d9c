"""Rows of talk: a turn is found by its own words and by those of the turns around it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.layers.log import turn_row_id
from hermes_memory_plugin.recall.index_row import Add, Change, Row

if TYPE_CHECKING:
    from hermes_memory_plugin.recall.gist import Analyst, Gist
    from hermes_memory_plugin.store.tails import Record

Read = Callable[..., "Gist"]
Find = Callable[[str], Row | None]
Lasts = Callable[[str, int], int | None]
"""("call" or "turn", when it happened) -> when it stops being current, None for never; epoch microseconds."""

SHOWN = 8_000
"""Characters of a row that are kept to be shown."""
# A turn is found by its own words three times, by those before it twice and once, by the next one's once.
_OWN, _BEFORE, _BEFORE_THAT, _NEXT = 3.0, 2.0, 1.0, 1.0
_SESSIONS = 512
_LABELS = 4_096


def for_ever(kind: str, at: int) -> int | None:
    """The lifetime of rows where nobody says anything else."""
    return None


class Talk:
    """Keeps the last turns of each session, for their neighbours."""

    def __init__(self, analyst: Analyst, label: Labels, find: Find, lasts: Lasts = for_ever) -> None:
        self._analyst = analyst
        self._read = analyst.read
        self._again = label
        self._find = find
        self._lasts = lasts
        self._talk: OrderedDict[tuple[str, str], list[_Said]] = OrderedDict()

    def __call__(self, record: Record) -> list[Change]:
        """The row of the turn, and anew that of the one before it, whose neighbour it is."""
        data = record.data
        session = str(data.get("session") or "")
        row_id = str(data.get("id") or turn_row_id(session, str(data.get("turn") or ""), record.id.lower()))
        talk = self._session(record.owner, session)
        said = next((one for one in talk if one.id == row_id), None)
        if said is None:
            said = self._stored(row_id, record)
            talk.append(said)
            del talk[:-4]
        said.merge(data)
        place = talk.index(said)
        changes: list[Change] = [Add(self._turn_row(talk, place))]
        if place > 0 and said.user:
            changes.append(Add(self._turn_row(talk, place - 1)))
        return changes

    def _session(self, owner: str, session: str) -> list[_Said]:
        key = (owner, session)
        if not session:
            return []
        talk = self._talk.setdefault(key, [])
        self._talk.move_to_end(key)
        while len(self._talk) > _SESSIONS:
            self._talk.popitem(last=False)
        return talk

    def _stored(self, row_id: str, record: Record) -> _Said:
        said = _Said(row_id, record.owner, str(record.data.get("session") or ""), record.at)
        row = self._find(row_id)
        if row is not None and row.owner == record.owner:
            said.at = row.created
            said.merge(row.extra)
        return said

    def _turn_row(self, talk: list[_Said], place: int) -> Row:
        said = talk[place]
        own = said.gist(self._read)
        weights: defaultdict[str, float] = defaultdict(float)
        vector: Any = None
        for offset, weight in ((0, _OWN), (-1, _BEFORE), (-2, _BEFORE_THAT), (1, _NEXT)):
            if 0 <= place + offset < len(talk):
                for token, count in talk[place + offset].gist(self._read).weights().items():
                    weights[token] += count * weight
                pooled = talk[place + offset].pooled(self._analyst)
                if pooled is not None:
                    vector = pooled * weight if vector is None else vector + pooled * weight
        if said.speaker:
            for token in self._again(said.speaker).tokens:
                weights[token] += _OWN
        for token in self._again(said.day).tokens:
            weights[token] += 1.0
        return Row(
            id=said.id,
            layer="L0",
            kind="turn",
            text=said.text[:SHOWN],
            owner=said.owner,
            source=" ".join(part for part in (said.speaker, said.session) if part),
            as_of=said.at,
            created=said.at,
            expires=self._lasts("turn", said.at),
            weights=weights,
            session=said.session,
            scope=own.scope,
            origin="user",
            **quantised(vector),
            extra={
                "user": said.user[:SHOWN],
                "assistant": said.assistant[:SHOWN],
                "speaker": said.speaker,
                "completed": said.completed,
                "turn": said.turn,
                "kind": said.kind or "user",
            }
            | own.extra(),
        )


class Labels:
    """What a label says: sources, subjects and speakers come again and again."""

    def __init__(self, analyst: Analyst) -> None:
        self._read = analyst.read
        self._known: dict[str, Gist] = {}

    def __call__(self, text: str) -> Gist:
        gist = self._known.get(text)
        if gist is None:
            gist = self._read(text)
            if len(self._known) >= _LABELS:
                self._known.clear()
            if len(text) <= 200:
                self._known[text] = gist
        return gist


class _Said:
    """One turn as far as it is known."""

    def __init__(self, row_id: str, owner: str, session: str, at: int) -> None:
        self.id = row_id
        self.owner = owner
        self.session = session
        self.at = at
        self.turn = self.user = self.assistant = self.speaker = self.kind = ""
        self.completed: bool | None = None
        self._gist: Gist | None = None
        self._pooled: Any = None

    def merge(self, data: Mapping[str, Any]) -> None:
        """Take over what `data` knows; nothing it leaves open is lost."""
        for name in ("turn", "user", "assistant", "speaker", "kind"):
            value = data.get(name)
            if value and value != getattr(self, name):
                setattr(self, name, str(value))
                self._gist = self._pooled = None
        if data.get("completed") is not None:
            self.completed = bool(data["completed"])

    @property
    def text(self) -> str:
        """What is shown."""
        user = f"{self.speaker}: {self.user}" if self.speaker else self.user
        return f"{user}\n→ {self.assistant}" if self.assistant else user

    @property
    def day(self) -> str:
        """The date, as text to be found by."""
        from hermes_memory_plugin.layers.facts import moment

        at = moment(self.at)
        return at.strftime("%Y-%m-%d %B") if at else ""

    def gist(self, read: Read) -> Gist:
        """What the turn speaks of."""
        if self._gist is None:
            self._gist = read(f"{self.user}\n{self.assistant}"[:SHOWN])
        return self._gist

    def pooled(self, analyst: Analyst) -> Any:
        """The vector of the words, before it gets unit length."""
        if self._pooled is None:
            self._pooled = analyst.pooled(f"{self.user}\n{self.assistant}"[:SHOWN])
        return self._pooled


def quantised(pooled: Any) -> dict[str, Any]:
    """The vector fields of a row, from a sum of vectors that need not be of unit length."""
    if pooled is None or not (length := float(pooled @ pooled) ** 0.5):
        return {}
    from hermes_memory_plugin.embedding.static import quantised as one

    vector, scale = one(pooled / length)
    return {"vector": vector, "vector_scale": scale}
