"""What Hermes loads: light, idempotent, found by a clean host, and no provider in disguise."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hermes_memory_plugin.hermes import commands, entry
from hermes_memory_plugin.tools import OUR_TOOLS
from tests.hermes_env import HermesHost, hosts
from tests.lab.hermes_lab import Lab

ROOT = Path(__file__).resolve().parents[2]
# Words that make Hermes 0.21 take the module for a provider and not load it as a plugin.
WORDS = ("MemoryProvider", "register_memory_provider", "CronScheduler", "register_cron_scheduler")

LOOK = """
import json, sys
from hermes_cli.plugins import discover_plugins, get_plugin_manager
discover_plugins()
manager = get_plugin_manager()
def count():
    named = {name: [getattr(call, "__name__", "") for call in calls] for name, calls in manager._hooks.items()}
    return {name: calls.count("hermes_memory_" + name) for name, calls in named.items()}
before = count()
heavy = sorted({"duckdb", "numpy", "jieba", "rjieba", "lancedb", "tantivy"} & set(sys.modules))
manager.discover_and_load(force=True)
after = count()
from tools.registry import registry
import hermes_memory_plugin
(ours,) = [one for one in manager.list_plugins() if one["name"] == "hermes-memory"]
print(json.dumps({
    "before": before, "after": after, "heavy": heavy, "ours": ours, "file": hermes_memory_plugin.__file__,
    "tools": sorted(name for name in registry.get_all_tool_names() if name in ("remember", "memory_trace", "search_reports")),
    "commands": sorted(manager._plugin_commands), "cli": sorted(manager._cli_commands),
    "skills": manager.list_plugin_skills("hermes-memory"),
    "slash": manager._plugin_commands["memory-layers"]["handler"]("help"),
}, default=str))
"""


def test_the_entry_module_has_none_of_the_words() -> None:
    source = Path(entry.__file__).read_text(encoding="utf-8")
    assert not [word for word in WORDS if word in source]


def test_schemas_before_init() -> None:
    """The tools are complete before any memory, home or host exists."""
    for name, tool in OUR_TOOLS.items():
        assert tool.schema["name"] == name
        assert tool.schema["parameters"]["type"] == "object"
        assert len(tool.schema["description"]) > 100
        json.dumps(tool.schema)
    for word in ("preference", "insight", "Do not save"):
        assert word in OUR_TOOLS["remember"].schema["description"]


def test_loading_the_entry_needs_the_standard_library_and_pluggy_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import hermes_memory_plugin.hermes.entry, hermes_memory_plugin.tools,"
        " hermes_memory_plugin.hermes.commands; names = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(*sorted(names - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["hermes_memory_hookspecs", "hermes_memory_plugin", "pluggy"]


@pytest.mark.hermes
@pytest.mark.parametrize("host", hosts(), ids=str)
def test_hook_liveness(host: HermesHost) -> None:
    """The real plugin manager has every hook once, also after it loads everything again."""
    with Lab(host.python) as lab:
        done = lab.run([str(host.python), "-c", LOOK])
        seen = json.loads(done.stdout.splitlines()[-1])
    assert {name: seen["before"].get(name) for name in entry.HOOKS} == dict.fromkeys(entry.HOOKS, 1)
    assert seen["after"] == seen["before"]
    assert seen["ours"]["enabled"] is True
    assert seen["tools"] == ["memory_trace", "remember", "search_reports"]
    assert commands.NAME in seen["commands"]
    assert commands.NAME in seen["cli"]
    assert seen["skills"] == [entry.SKILL]
    assert seen["heavy"] == []
    assert "recall" in seen["slash"]


@pytest.fixture(scope="module")
def sources() -> set[str]:
    """Every file of the package, as the wheel should name it."""
    files = (ROOT / "hermes_memory_plugin").rglob("*")
    return {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel(sources: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
@pytest.mark.hermes
def test_wheel_discovery(wheel: Path, sources: set[str], tmp_path: Path) -> None:
    """The built wheel, unpacked where no source is, is found and loaded by the host, with every file it needs."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    with Lab(sys.executable, env={"PYTHONPATH": str(site)}) as lab:
        seen = json.loads(lab.run([sys.executable, "-c", LOOK]).stdout.splitlines()[-1])
        assert Path(seen["file"]).is_relative_to(site)
        assert seen["ours"]["enabled"] is True and seen["skills"] == [entry.SKILL]
        lab.server.script.add("好")
        assert lab.oneshot("贵州茅台的PE是多少？").code == 0
        status = json.loads(lab.memory("status", "--json").stdout)
    assert status["ok"] is True
    assert sources <= set(zipfile.ZipFile(wheel).namelist())
