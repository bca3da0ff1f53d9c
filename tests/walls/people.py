"""Two clients on one home, each with a canary in every kind of row a memory keeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_memory_hookspecs import Owner, ReportDocument, Session, ToolTrace, Turn
from hermes_memory_plugin import Memory

DAY = datetime.now(UTC).replace(microsecond=0) - timedelta(days=20)
"""Recent: upkeep lets nothing of it go by age."""
ASKED = "贵州茅台渠道库存怎么样"


@dataclass(frozen=True)
class Client:
    """One who writes to the assistant, and the word that is in each of his rows and in nobody else's."""

    name: str
    owner: Owner
    canary: str
    price: float

    @property
    def key(self) -> str:
        """What `--owner` is given."""
        return self.owner.key

    @property
    def session(self) -> Session:
        """His conversation."""
        return Session(f"session-{self.name}", owner=self.owner, platform=self.owner.platform)


JIA = Client("jia", Owner(platform="telegram", user_id="111"), "kestrel甲七三一", 1511.0)
YI = Client("yi", Owner(platform="telegram", user_id="222"), "osprey乙九五八", 1722.0)
GROUP = Client(
    "group",
    Owner(platform="telegram", user_id="111", chat_id="-500", chat_type="group"),
    "heron群四六零",
    1833.0,
)
PAIRS = [(mine, other) for mine in (JIA, YI, GROUP) for other in (JIA, YI, GROUP) if mine is not other]


@dataclass(frozen=True)
class Names:
    """By what the rows of one client are asked for."""

    fact: str
    note: str
    scene: str
    report: str
    call: str
    turn: str
    gone: str


def plant(memory: Memory, client: Client) -> Names:
    """One row of each kind, all about the same company and each with the client's canary."""
    owner, word, day = client.owner, client.canary, DAY
    call, turn = f"call-{client.name}", f"turn-{client.name}"
    fact = memory.remember(
        f"贵州茅台渠道库存 {client.price} 箱，{word} 说的",
        subject="600519.SH", metric="channel_stock", value=client.price, as_of=day, source=f"{word} 路演", owner=owner,
    )  # fmt: skip
    note = memory.remember(f"贵州茅台渠道库存调研要点，{word}", title=f"渠道调研 {word}", owner=owner)
    memory.remember(f"回答时先说 {word}", title=f"偏好 {word}", type="user", owner=owner)
    scene = memory.add_scene(
        f"贵州茅台渠道库存背景 {word}", f"渠道库存的背景，{word}。", owner=owner, tickers=("600519.SH",)
    )
    memory.log(
        ToolTrace(
            tool_call_id=call,
            tool_name="channel_survey",
            args={"company": "贵州茅台", "for": word},
            result=f"渠道库存 {client.price} 箱 {word}",
            at=day,
            session_id=client.session.id,
            turn_id=turn,
            owner=owner,
        )
    )
    stored_turn = memory.log_turn(
        Turn(
            f"贵州茅台渠道库存怎么样？我是 {word}",
            f"渠道库存 {client.price} 箱（{word}）。",
            at=day,
            turn_id=turn,
            session_id=client.session.id,
            owner=owner,
        )
    )
    report = memory.add_report(
        ReportDocument(
            id=f"report-{client.name}",
            title=f"贵州茅台渠道库存专题 {word}",
            date=day,
            broker="青禾证券",
            tickers=("600519.SH",),
            pages=(f"贵州茅台渠道库存 {client.price} 箱，环比下降，{word} 专用。",),
        ),
        owner=owner,
    )
    gone = memory.remember(f"要忘的渠道库存 {word}", title=f"废稿 {word}", owner=owner)
    memory.forget(gone, owner=owner)
    memory.recall(f"{ASKED} {word}", owner=owner, session=client.session)
    return Names(fact, note, scene, report, call, stored_turn, f"废稿 {word}")


def town(home: Path) -> dict[str, Names]:
    """A home on which the three have been for a while, everything in the ledgers."""
    with Memory.open(home) as memory:
        names = {client.name: plant(memory, client) for client in (JIA, YI, GROUP)}
        memory.flush()
    return names
