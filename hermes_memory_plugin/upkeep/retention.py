"""The daily upkeep: what is outlived is compressed, then purged after a grace; files are made small; sizes are reported.

One process at a time does it (`upkeep.lock`), in steps that each may be repeated: killed or out of time, the next run goes on
with the step that was under way. No lock anybody else needs is held longer than one slice.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_plugin.store import compact, purge
from hermes_memory_plugin.store.compact import Pace, Stopped
from hermes_memory_plugin.store.files import atomic_write
from hermes_memory_plugin.store.locks import LockBusy, LockFile
from hermes_memory_plugin.upkeep import bytes_gone, calendar
from hermes_memory_plugin.upkeep.next_report import followed
from hermes_memory_plugin.upkeep.pins import pinned

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts
    from hermes_memory_plugin.store.ledger import Ledger

DAY = 86_400_000_000
NEAR = 0.8
"""Share of the size limit from which on people are told."""
BUDGET = 60.0
"""Seconds one run in the background may take; the rest waits for the next day's, or for the next session's."""
FRESH = 0.15
"""A ledger is written anew once this share of it is dead …"""
WORTH = 0.05
"""… or so many of its rows are to go or to be compressed; for fewer it waits up to a week."""
WEEK = 7 * DAY
EVENT_DAYS = 400
_STATE = "upkeep.json"
_WARN_DAYS = 14
_SMALL = 4 << 20


@dataclass(slots=True)
class Report:
    """What one run did, or would do."""

    dry_run: bool = False
    finished: bool = False
    compressed: int = 0
    calls: int = 0
    turns: int = 0
    facts: int = 0
    outlived: int = 0
    """Figures whose next report is on record."""
    pinned: int = 0
    """Ids that something living cites."""
    longest_hold_ms: float = 0.0
    bytes_before: int = 0
    bytes_after: int = 0
    limit: int = 0
    left: list[str] = field(default_factory=list)
    """What could not be done or reached, in sentences."""


class Upkeep:
    """The upkeep of one memory. Safe to share between threads; `stop` ends a run after its present slice."""

    STEPS = ("followed", "small", "logs", "facts", "files")

    def __init__(self, memory: Parts) -> None:
        self._memory = memory
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._deadline = float("inf")
        self._pinned: set[str] | None = None
        """What the present run must leave alone."""

    # -- in the background -------------------------------------------------------------------------------------------

    def soon(self, delay: float = 30.0) -> None:
        """Run once `delay` seconds from now when it is due, on a thread of its own."""
        if not self._memory.settings.retention.upkeep or not self.due() or self._thread is not None:
            return
        self._thread = threading.Thread(
            target=self._later, args=(delay,), name="hermes-memory-upkeep", daemon=True
        )
        with contextlib.suppress(RuntimeError):
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """No more slices from now on."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and thread.ident is not None:
            thread.join(timeout)

    def due(self) -> bool:
        """Whether the last whole run is a day old, or one is unfinished."""
        state = self.state()
        return bool(state.get("step")) or time.time_ns() // 1000 - int(state.get("done") or 0) >= DAY

    def state(self) -> dict[str, Any]:
        """The last run, as it was written down."""
        try:
            found = json.loads((self._memory.folder / _STATE).read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def _later(self, delay: float) -> None:
        try:
            if not self._stop.wait(delay):
                self.run(budget=BUDGET)
        except LockBusy:
            pass  # another process is at it
        except Exception as error:
            self._memory.count("upkeep_failed", f"{type(error).__name__}: {error}")
        finally:
            self._thread = None

    # -- the work ----------------------------------------------------------------------------------------------------

    def run(self, *, dry_run: bool = False, for_good: bool = False, budget: float | None = None) -> Report:
        """One run. `for_good`: the bytes of what is forgotten go from every file, the trash included.

        Raises LockBusy while another process is at it, and what kept a step from being done.
        """
        self._deadline = time.monotonic() + budget if budget else float("inf")
        report = Report(dry_run=dry_run, limit=int(self._memory.settings.retention.max_gb * (1 << 30)))
        if dry_run:
            return self._look(report)
        pace = Pace(halted=lambda: self._stop.is_set() or time.monotonic() > self._deadline)
        with LockFile(self._memory.folder / "upkeep.lock").acquire(timeout=0.5):
            report.bytes_before = size_of(self._memory.folder)
            self._pinned = None
            begun = str(self.state().get("step") or "")
            steps = (
                self.STEPS if for_good or begun not in self.STEPS else self.STEPS[self.STEPS.index(begun) :]
            )
            try:
                bytes_gone.seal(self._memory)
                self._memory.archive.flush()
                for step in steps:
                    self._write(step, report)
                    getattr(self, f"_{step}")(report, pace)
                if for_good:
                    bytes_gone.purge(self._memory, report, pace)
                report.finished = True
            except Stopped:
                report.left.append("It was stopped before its end; the next run goes on there.")
            finally:
                report.longest_hold_ms = round(pace.longest * 1e3, 1)
                report.bytes_after = size_of(self._memory.folder)
            if report.finished:
                self._write("", report)
        return report

    def _look(self, report: Report) -> Report:
        """What a run would do."""
        memory, cut = self._memory, self._cuts()
        memory.archive.flush()
        pins = pinned(memory, _now())
        report.pinned = len(pins)
        report.bytes_before = report.bytes_after = size_of(memory.folder)
        found = purge.count(memory.archive.logs, memory.archive.facts, cut, pins)
        report.compressed, report.calls = found["payloads"][0], found["calls"][0]
        report.turns, report.facts = found["turns"][0], found["facts"][0]
        report.outlived = len(followed(memory, dry_run=True))
        report.finished = True
        return report

    def _cuts(self) -> dict[str, int]:
        """Up to which time what is purged, or compressed; 0 for nothing."""
        settings = self._memory.settings
        kept, limits, now = settings.retention, settings.lifetime, _now()
        ageless = kept.policy == "keep"

        def cut(days: int, grace: int) -> int:
            return 0 if ageless or not days else now - (days + grace) * DAY

        return {
            "payloads": now - kept.compress_days * DAY if kept.compress_days else 0,
            "calls": cut(limits.call_days, kept.grace_days),
            "turns": cut(limits.dialogue_days, kept.grace_days),
            "facts": cut(kept.fact_days, 0),
        }

    def _followed(self, report: Report, pace: Pace) -> None:
        report.outlived = len(followed(self._memory))

    def _logs(self, report: Report, pace: Pace) -> None:
        """Old results are compressed, outlived calls and turns go; above the limit calls go before their time."""
        memory, kept, cuts = self._memory, self._memory.settings.retention, self._cuts()
        logs = memory.archive.logs
        if not logs.path.exists():
            return
        compact.clear(logs)
        pins = self._pins(report)
        excess = size_of(memory.folder) - report.limit
        if excess > 0 and kept.policy != "keep":
            rows = int(logs.rows("SELECT count(*) AS n FROM logs")[0]["n"])
            each = max(1, logs.size() // max(rows, 1))
            spared = _now() - max(kept.grace_days, 1) * DAY
            cuts["calls"] = max(cuts["calls"], purge.reach(logs, excess * 11 // 10 // each + 1, spared, pins))
        found = purge.count(logs, memory.archive.facts, cuts, pins)
        worth = [found[name] for name in ("calls", "turns", "payloads")]
        if self._rewrite(logs, worth):
            edit = purge.Edit(cuts["calls"], cuts["turns"], 0, cuts["payloads"], pins, self._gone)
            compact.compact(logs, pace, edit)
            report.calls, report.turns = edit.done["calls"], edit.done["turns"]
            report.compressed = edit.done["payloads"]
        memory.archive.flush()
        if excess > 0 and kept.policy != "keep" and size_of(memory.folder) > report.limit:
            report.left.append(
                f"memory/ is still above {kept.max_gb:g} GB (retention.max_gb): what is left is cited, of the last "
                f"{max(kept.grace_days, 1)} days, or no logged call."
            )

    def _facts(self, report: Report, pace: Pace) -> None:
        """Facts replaced or outlived long ago go."""
        cuts, facts = self._cuts(), self._memory.archive.facts
        if not facts.path.exists():
            return
        compact.clear(facts)
        pins = self._pins(report)
        if self._rewrite(facts, [purge.count(self._memory.archive.logs, facts, cuts, pins)["facts"]]):
            edit = purge.Edit(facts=cuts["facts"], pinned=pins, gone=self._gone)
            compact.compact(facts, pace, edit)
            report.facts = edit.done["facts"]
            self._memory.archive.flush()

    def _rewrite(self, ledger: Ledger, worth: Sequence[tuple[int, int]]) -> bool:
        """Whether a ledger is written anew: for enough rows that go, for any after a week, for a file half empty."""
        if any(n and (n >= WORTH * whole or self._late()) for n, whole in worth):
            return True
        return ledger.size() > _SMALL and compact.dead_share(ledger) > FRESH

    def _late(self) -> bool:
        return _now() - int(self.state().get("rewritten") or 0) > WEEK

    def _small(self, report: Report, pace: Pace) -> None:
        """Old counters, audits of what is forgotten, the trash, snapshots of sessions long over."""
        memory = self._memory
        if memory.archive.logs.path.exists():
            purge.audits(memory.archive.logs, pace, days=EVENT_DAYS)
        memory.notes.trash.purge()
        memory.snapshots.prune()

    def _files(self, report: Report, pace: Pace) -> None:
        """Files nothing refers to any more, and vectors of rows that are gone."""
        bytes_gone.orphans(self._memory, self._cuts()["calls"])
        bytes_gone.vectors(self._memory, report, for_good=False)

    def _pins(self, report: Report) -> set[str]:
        if self._pinned is None:
            self._pinned = pinned(self._memory, _now())
        report.pinned = len(self._pinned)
        return self._pinned

    def _gone(self, ids: Sequence[str]) -> None:
        """The index lets go of rows before their ledger does."""
        for start in range(0, len(ids), 2_000):
            self._memory.journal.append("gone", {"ids": list(ids[start : start + 2_000])})

    def _write(self, step: str, report: Report) -> None:
        state: dict[str, Any] = {"step": step, "report": asdict(report)}
        known = self.state()
        state["done"] = _now() if not step else int(known.get("done") or 0)
        whole = not step and report.calls + report.turns + report.facts + report.compressed > 0
        state["rewritten"] = _now() if whole else int(known.get("rewritten") or 0)
        atomic_write(self._memory.folder, _STATE, json.dumps(state, ensure_ascii=False, indent=1))


def status(memory: Parts) -> dict[str, Any]:
    """When the upkeep last ran, how full the memory is, how far the calendar knows, who paused; `notices` are sentences."""
    kept = memory.settings.retention
    limit, used = int(kept.max_gb * (1 << 30)), size_of(memory.folder)
    state = Upkeep(memory).state()
    known = calendar.known_until(calendar.added(memory.folder))
    notices = []
    if used >= NEAR * limit:
        todo = (
            "raise it, or forget what is not needed"
            if kept.policy == "keep"
            else "old calls nothing cites go first"
        )
        notices.append(
            f"memory/ holds {used / (1 << 30):.2f} GB, {used / limit:.0%} of retention.max_gb ({kept.max_gb:g}): {todo}."
        )
    if datetime.now(calendar.SHANGHAI).date() > known - timedelta(days=_WARN_DAYS):
        notices.append(
            f"The trading calendar knows closures until {known.isoformat()}; after that only weekends count. "
            f"Newer versions know more, and memory/{calendar.FILE} takes dates of your own, one a line."
        )
    for key, since in sorted(memory.pauses.all().items()):
        day = f" since {datetime.fromtimestamp(since / 1e6, UTC):%Y-%m-%d %H:%M} UTC" if since else ""
        notices.append(
            f"PAUSED for {key}{day}: nothing is stored until `hermes-memory resume --owner {key}`."
        )
    return {
        "last": int(state.get("done") or 0),
        "unfinished": str(state.get("step") or ""),
        "bytes": used,
        "limit": limit,
        "policy": kept.policy,
        "calendar_until": known.isoformat(),
        "paused": dict(memory.pauses.all()),
        "notices": notices,
    }


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - many files
    return total


def _now() -> int:
    return time.time_ns() // 1000
