"""The canvas: the task as a Mermaid flowchart, drawn from its record alone.

A node is a group of calls: tool, outcome, time, what came out, and the handles to look it up by. Its id names its
first and last call (`t_7k2p`, `t_7k2p__t_9abc`), so that whoever reads it, later and in another process, can
have it expanded to the results themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from hermes_memory_plugin.layers.calls import Call, Group, dead_ends, grouped
from hermes_memory_plugin.layers.workspace import WorkspaceMemory
from hermes_memory_plugin.recall import block

LIMIT = 2_000
"""Characters of a canvas."""

_START = "task"
_MOST = 48
_CLASSES = {
    "dead": "classDef dead stroke-dasharray: 4 4",
    "open": "classDef open stroke-width: 3px",
}
_NODE = re.compile(r"([a-z][_-][2-9a-hjkmnp-z]{4,13})(?:__([a-z][_-][2-9a-hjkmnp-z]{4,13}))?")
_NAMED = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "'", "\\": "/"}


def draw(workspace: WorkspaceMemory, limit: int = LIMIT) -> str:
    """The flowchart; "" when no call is on record. What does not fit is folded into one node of older calls."""
    groups = grouped(workspace.calls)
    open_ = [Group((call,)) for call in workspace.unfinished[-4:]]
    if not groups and not open_:
        return ""
    dead = dead_ends(groups)
    title = block.cut(block.harmless(workspace.requests[-1].text[:200]), 60) if workspace.requests else "task"
    head = ["flowchart TD", f'{_START}["{escape(title)}"]']
    room = limit - sum(len(line) + 1 for line in (*head, *_CLASSES.values()))
    early = max(0, len(groups) - _MOST)  # more than that never fit
    for wide in (60, 24, 0):
        nodes = [
            _node(groups[place], wide, "dead" if place in dead else "") for place in range(early, len(groups))
        ]
        nodes += [_node(group, wide, "open") for group in open_]
        if not early and _size(nodes) <= room:
            break
    text = "" if early else _text(head, "", nodes)
    for left_out in range(max(early, 1), len(groups) + 1):
        if text and len(text) <= limit:
            break
        text = _text(head, _folded(groups[:left_out]), nodes[left_out - early :])
    return text


def _text(head: Sequence[str], older: str, nodes: Sequence[str]) -> str:
    lines, hold = [*head], _START
    for node in (*([older] if older else []), *nodes):
        name = node.partition("[")[0]
        if node.endswith(":::dead"):
            lines += [node, f"{hold} -.-x {name}"]  # a branch that leads nowhere
        else:
            lines += [node, f"{hold} --> {name}"]
            hold = name
    return "\n".join([*lines, *_CLASSES.values()])


def calls_of(node: str) -> tuple[str, str] | None:
    """The handles of the first and the last call of a node; None for what is no node."""
    match = _NODE.fullmatch(node.strip().strip("[]\"'` ").lower())
    if match is None:
        return None
    first = match[1].replace("_", "-")
    return first, (match[2] or match[1]).replace("_", "-")


def escape(text: str) -> str:
    """Text that can stand in the quotes of a Mermaid label and mean nothing but itself."""
    plain = "".join(_NAMED.get(one, one) for one in text if one.isprintable())
    return plain.replace("%%", "% %").strip() or " "


def _node(group: Group, wide: int, mark: str) -> str:
    last = group.last
    parts = [
        f"{block.cut(block.harmless(last.tool), 40)}{_times(len(group.calls))}",
        "dead end" if mark == "dead" else last.status,
        _time(group),
    ]
    said = last.conclusion(wide) if wide else ""
    if mark == "open" and wide:
        said = last.asked(wide)
    parts += [said] if said else []
    parts.append(_handles(group.calls))
    return f'{_name(group.calls)}["{escape(" | ".join(parts))}"]' + (f":::{mark}" if mark else "")


def _folded(groups: Sequence[Group]) -> str:
    calls = [call for group in groups for call in group.calls]
    counted = Counter(call.tool for call in calls).most_common(2)
    tools = ", ".join(f"{block.cut(block.harmless(tool), 16)} {n}" for tool, n in counted)
    return f'{_name(calls)}["{escape(f"{len(calls)} earlier calls | {tools}")}"]'


def _name(calls: Sequence[Call]) -> str:
    first, last = calls[0].handle.replace("-", "_"), calls[-1].handle.replace("-", "_")
    return first if len(calls) == 1 else f"{first}__{last}"


def _handles(calls: Sequence[Call]) -> str:
    names = [call.handle for call in calls]
    return " ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}"


def _times(n: int) -> str:
    return f" x{n}" if n > 1 else ""


def _time(group: Group) -> str:
    start, end = (
        datetime.fromtimestamp(call.at // 1_000_000, UTC).strftime("%H:%MZ")
        for call in (group.first, group.last)
    )
    return start if start == end else f"{start}-{end}"


def _size(nodes: Sequence[str]) -> int:
    """Characters of the nodes with an edge each, at least."""
    return sum(len(node) + 24 for node in nodes)
