"""What crosses the contract: frozen dataclasses, every time timezone-aware UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Protocol
from urllib.parse import quote, unquote

SessionKind = Literal["user", "subagent", "cron", "review"]
TraceStatus = Literal["ok", "error", "blocked", "cancelled", "timeout", "started"]
FactKind = Literal["fact", "conclusion", "preference", "holding", "competence"]
Origin = Literal["user", "tool", "report", "import", "model", "web"]
Layer = Literal["L0", "L1", "L2", "L3", "report"]
RowState = Literal["live", "superseded", "expired"]
VerdictStatus = Literal["supported", "changed", "expired", "contradicted", "unknown"]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose row it is. The default is the person at the machine (the local owner)."""

    ANY: ClassVar[Owner]
    """Every owner; only for `Memory` calls that say so."""
    SHARED: ClassVar[Owner]
    """The house view: competences, reports and what was published with `share`."""

    platform: str = "cli"
    user_id: str = ""
    chat_id: str = ""
    chat_type: str = "private"

    @property
    def key(self) -> str:
        """The text rows carry: ``local``, ``telegram:123``, ``telegram:group:-1001``, ``shared``, ``any``.

        In a private chat the person is the owner whatever the chat; in any other chat the chat is.
        Parts are percent-encoded, so that no id can imitate another owner.
        """
        if self.platform in _LOCAL_PLATFORMS and not self.user_id:
            return "local"
        if self.platform in ("shared", "any"):
            return self.platform
        platform = quote(self.platform, safe="")
        if self.chat_type != "private" and self.chat_id:
            return f"{platform}:group:{quote(self.chat_id, safe='-')}"
        return f"{platform}:{quote(self.user_id or self.chat_id or '~', safe='-~')}"

    @classmethod
    def parse(cls, text: str) -> Owner:
        """Read a key back; raises ValueError on anything `key` does not write."""
        if text == "local":
            return cls()
        if text == "any":
            return cls.ANY
        if text == "shared":
            return cls.SHARED
        parts = text.split(":")
        if len(parts) == 2 and all(parts):
            return cls(platform=unquote(parts[0]), user_id=unquote(parts[1]))
        if len(parts) == 3 and parts[1] == "group" and parts[0] and parts[2]:
            return cls(platform=unquote(parts[0]), chat_id=unquote(parts[2]), chat_type="group")
        raise ValueError(
            f"not an owner: {text!r}; write local, shared, any, PLATFORM:USER or PLATFORM:group:CHAT"
        )


_LOCAL_PLATFORMS = frozenset({"cli", "local", "tui", "acp", ""})
Owner.ANY = Owner(platform="any")
Owner.SHARED = Owner(platform="shared")


@dataclass(frozen=True, slots=True)
class Session:
    """One lineage of sessions: a compaction that renames the session does not start a new one."""

    id: str
    owner: Owner = Owner()
    profile: str = "default"
    platform: str = "cli"
    model: str = ""
    kind: SessionKind = "user"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user wrote, without anything a plugin added to it."""

    text: str
    at: datetime = field(default_factory=_now)
    turn_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrace:
    """One tool call; `status` is started while no end of it is on record."""

    tool_call_id: str
    tool_name: str
    args: dict[str, Any] = field(default_factory=dict)
    result: str = ""
    status: TraceStatus = "ok"
    error: str = ""
    at: datetime = field(default_factory=_now)
    duration_ms: float | None = None
    session_id: str = ""
    turn_id: str = ""
    owner: Owner = Owner()


@dataclass(frozen=True, slots=True)
class Turn:
    """One user message and the answer to it; `completed` is False when the turn was interrupted."""

    user: str
    assistant: str = ""
    at: datetime = field(default_factory=_now)
    turn_id: str = ""
    session_id: str = ""
    owner: Owner = Owner()
    speaker: str = ""
    completed: bool = True


@dataclass(frozen=True, slots=True)
class Compaction:
    """The host replaced old messages by `summary`."""

    summary: str
    messages_before: int = 0
    messages_after: int | None = None
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement that can be dated, superseded and traced to where it came from."""

    id: str = ""
    """Stable identity; empty lets the memory give one."""
    statement: str
    kind: FactKind = "fact"
    subject: str = ""
    """Usually a ticker such as ``600519.SH``."""
    metric: str = ""
    period: str = ""
    """``2025``, ``2026Q1``, ``2025H1`` …; empty for a figure of one day."""
    value: float | None = None
    unit: str = ""
    as_of: datetime | None = None
    basis: str = ""
    """TTM, LYR, parent, consolidated, estimate …"""
    holder: str = ""
    """Whose view it is: a vendor, a broker, the user."""
    currency: str = ""
    source: str = ""
    tool_call_id: str = ""
    origin: Origin = "user"
    owner: Owner = Owner()
    created_at: datetime = field(default_factory=_now)
    expires_at: datetime | None = None
    superseded_by: str = ""


@dataclass(frozen=True, slots=True)
class Entity:
    """Something facts are about, with the names people call it by."""

    id: str
    name: str
    kind: Literal["stock", "index", "fund", "bond", "sector"] = "stock"
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """One row that recall found."""

    id: str
    layer: Layer
    text: str
    source: str = ""
    as_of: datetime | None = None
    score: float = 0.0
    reasons: tuple[str, ...] = ()
    state: RowState = "live"


@dataclass(frozen=True, slots=True)
class Injection:
    """The block that goes beside the user's message."""

    text: str
    tokens: int
    items: tuple[Recalled, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDocument:
    """A research report as text; page numbers start at 1."""

    id: str
    title: str
    date: datetime | None = None
    broker: str = ""
    analysts: tuple[str, ...] = ()
    tickers: tuple[str, ...] = ()
    rating: str = ""
    target_price: float | None = None
    pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChunk:
    """A passage of a report that can be cited by page."""

    id: str
    report_id: str
    title: str
    broker: str = ""
    date: datetime | None = None
    page: int = 1
    text: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim."""

    status: VerdictStatus
    said: str
    fact_ids: tuple[str, ...] = ()
    tool_call_ids: tuple[str, ...] = ()
    old: Fact | None = None
    new: Fact | None = None
    claim: str = ""
    """The words that were judged."""
    parts: tuple[Verdict, ...] = ()
    """One verdict for each claim where a text makes several; `status` is then the worst."""


class Embedder(Protocol):
    """Turns text into vectors of unit length."""

    name: str
    dimension: int

    def passages(self, texts: Sequence[str]) -> Any:
        """float32 array [len(texts), dimension]."""

    def query(self, text: str) -> Any:
        """float32 array [dimension]."""
