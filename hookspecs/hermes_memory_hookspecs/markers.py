"""The two pluggy markers of this project."""

import pluggy

PROJECT = "hermes_memory"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
