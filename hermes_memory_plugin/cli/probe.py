"""A trace and a fact of an owner of their own, sent through the real path and taken away again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hermes_memory_hookspecs.types import ToolTrace
from hermes_memory_plugin.cli.checks import Check
from hermes_memory_plugin.cli.views import PROBE
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.store.ids import new_ulid

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory


def run(memory: Memory, *, ledger: bool = True) -> Iterator[Check]:
    """journal → index → recall → ledger → forget, one check for each; the first that fails ends it.

    `ledger` false leaves that step out, for a ledger that is known to be out of reach.
    """
    mark = f"probe{new_ulid().lower()}"
    call = f"doctor-{mark}"
    fact = ""

    def write() -> str:
        nonlocal fact
        memory.log(ToolTrace(tool_call_id=call, tool_name="hermes_memory_probe", result=mark, owner=PROBE))
        fact = memory.remember(f"{mark} 600519.SH", owner=PROBE, source="hermes-memory doctor")
        return "a trace and a fact were journalled"

    def find() -> str:
        found = memory.recall(mark, mode="explicit", owner=PROBE)
        if fact not in {item.id for item in found.items}:
            raise _Lost("the fact was journalled, but recall does not find it")
        return "recall finds the fact"

    def apart() -> str:
        found = memory.recall(mark, mode="explicit")
        if fact in {item.id for item in found.items}:
            raise _Lost("another owner's recall finds the fact")
        return "another owner's recall does not"

    def keep() -> str:
        memory.flush()
        back = memory.trace(call, owner=PROBE)
        if back is None or back.result != mark:
            raise _Lost("the trace was journalled, but the ledger does not have it")
        return "the ledger has the trace as it was"

    def remove() -> str:
        clean(memory, mark)
        if memory.recall(mark, mode="explicit", owner=PROBE).items:
            raise _Lost("the probe was forgotten, but recall still finds it")
        return "forgotten again"

    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("write", write), ("recall", find), ("owners", apart), ("ledger", keep), ("forget", remove),
    )  # fmt: skip
    for name, step in steps:
        if name == "ledger" and not ledger:
            continue
        began = time.perf_counter()
        try:
            said = step()
        except (HermesMemoryError, _Lost, OSError) as error:
            yield Check(f"probe {name}", "fail", str(error))
            with contextlib.suppress(HermesMemoryError, OSError):
                clean(memory, mark)
            return
        yield Check(f"probe {name}", "ok", f"{said} ({(time.perf_counter() - began) * 1000:.0f} ms)")


def clean(memory: Memory, mark: str) -> None:
    """Forget what the probe of that mark stored."""
    for row in memory.candidates(mark, owner=PROBE):
        memory.forget(row, owner=PROBE, why="hermes-memory doctor")


class _Lost(Exception):
    """The probe did not come back."""
