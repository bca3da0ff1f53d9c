"""The Hermes hosts the end-to-end tests run on: the one of this environment, and an older one where CI made it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HermesHost:
    """An interpreter that has hermes-agent and this package."""

    name: str
    python: Path
    keeps_injections: bool
    """0.19 keeps what was injected in the history; before, it lasts for its turn."""
    serves_profiles: bool
    """Its HTTP API reaches every profile of a multiplexing gateway."""

    def __str__(self) -> str:
        return self.name


CURRENT = HermesHost("0.19", Path(sys.executable), keeps_injections=True, serves_profiles=True)


def hosts() -> list[HermesHost]:
    """Every host there is; HERMES_017_PYTHON names the interpreter of the older one."""
    old = os.environ.get("HERMES_017_PYTHON", "")
    found = [CURRENT]
    if old:
        # Not resolved: in a virtual environment the link is what makes the environment.
        found.append(HermesHost("0.17", Path(old), keeps_injections=False, serves_profiles=False))
    return found
