"""What the tools share: who calls, how an answer looks, and what happens when the memory is down."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hermes_memory_hookspecs import Session

if TYPE_CHECKING:
    from hermes_memory_plugin.memory import Memory

_log = logging.getLogger(__name__)


class Refused(Exception):
    """The arguments cannot be used; the message tells the model how to put it right."""


class Counted(Protocol):
    """Counts the recall calls of one turn."""

    recalls: int


@dataclass(frozen=True, slots=True)
class Caller:
    """The conversation that calls a tool."""

    session: Session
    memory: Callable[[], Memory]
    """Opens the memory; may raise anything."""
    turn: Counted | None = None
    project: str = ""
    recorded: bool = True
    """Whether anything of the running turn may be kept."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the model is told of it, and what it does."""

    name: str
    schema: dict[str, Any]
    run: Callable[[Caller, Mapping[str, Any]], dict[str, Any]]

    def call(self, caller: Caller | None, arguments: object) -> str:
        """The answer as JSON; never raises."""
        from hermes_memory_plugin.errors import HermesMemoryError, NotFound

        if caller is None:
            return _json(down("this conversation is not known to the memory"))
        try:
            given = arguments if isinstance(arguments, Mapping) else {}
            return _json(self.run(caller, given))
        except Refused as error:
            return _json({"status": "refused", "error": str(error)})
        except NotFound as error:
            return _json({"status": "not_found", "error": str(error), "retry": False})
        except ValueError as error:  # what the facade says about a value it cannot take
            if isinstance(error, HermesMemoryError):
                return _json({"status": "refused", "error": str(error)})
            return _json(self._failed(error))
        except Exception as error:  # whatever is wrong with the memory, the conversation goes on
            return _json(self._failed(error))

    def for_the_record(self, result: str) -> str:
        """The result as the log keeps it: which rows were shown, not their text over and over."""
        with suppress(ValueError):
            answer = json.loads(result)
            if isinstance(answer, dict):
                for name in ("items", "calls", "parts"):
                    if isinstance(answer.get(name), list):
                        answer[name] = [one.get("id", "") for one in answer[name] if isinstance(one, dict)]
                for name in ("result", "said"):
                    answer.pop(name, None)
                return _json(answer)
        return result

    def _failed(self, error: Exception) -> dict[str, Any]:
        _log.warning("hermes-memory: tool %s failed: %s: %s", self.name, type(error).__name__, error)
        return down(f"{type(error).__name__}: {error}")


def down(reason: str) -> dict[str, Any]:
    """The final answer of a memory that cannot be reached."""
    return {
        "status": "unavailable",
        "retry": False,
        "error": f"The memory cannot be used now ({reason}). Trying again in this conversation will not help: "
        "go on without it, and tell the user once that nothing is being remembered.",
    }


def text(arguments: Mapping[str, Any], *names: str) -> str:
    """The first of these arguments that holds text; "" when none does."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def plain(value: str, most: int) -> str:
    """Stored text as data: nothing in it acts as markup, and it ends where it was cut."""
    from hermes_memory_plugin.recall import block

    lines = (block.harmless(line) for line in value[: most * 2].split("\n"))
    return block.cut("\n".join(lines), most)


def _json(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, default=str)
