"""Context offload: a long tool result is kept in a file, and the model sees how it begins, ends and is built.

`memory/refs/<reference>.md` holds the result whole behind a short front matter. The reference is cut from a hash of
owner and content: the same result of the same owner is one file, and nobody can open another owner's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.recall import block, budget
from hermes_memory_plugin.store.files import astray, atomic_write, utf8
from hermes_memory_plugin.store.mask import mask_text

if TYPE_CHECKING:
    from hermes_memory_plugin.parts import Parts

HEAD, TAIL = 1_500, 600
"""Characters of the result the model sees at once."""
CONTENTS = 12
"""Lines of the table of contents."""
INSTRUCTIONS = frozenset({"skill_view", "skills_list", "todo", "memory", "clarify"})
"""Tools whose results the model must see whole: they say what to do."""

_REFERENCE = re.compile(r"ref-[0-9a-f]{16}")
_HEADING = re.compile(
    r"^(?:#{1,4}\s+\S.*|第[一二三四五六七八九十百\d]+[章节部分].*|\d+(?:\.\d+)*[.、]\s*\S.{2,80})$",
    re.MULTILINE,
)
_KEY = re.compile(r'"((?:[^"\\]|\\.){1,60})"\s*:')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_END = "---\n\n"


def keep(memory: Parts, result: str, *, owner: Owner, tool: str, call: str, session: str) -> str | None:
    """Keep a result outside and return what the model sees of it; None when it is better left where it is."""
    if tool in INSTRUCTIONS:
        return None
    stored = mask_text(result)
    if memory.hooks is not None and memory.hooks.has("redact"):
        stored = memory.hooks.pipe("redact", stored)
    reference = reference_of(owner, stored)
    shown = view(result, reference, stored)
    saved = budget.tokens(result) - budget.tokens(shown)
    if saved <= 0:
        return None
    path = _path(memory.folder, reference)
    if not path.exists():
        front = {
            "reference": reference,
            "owner": owner.key,
            "tool": tool,
            "call": call,
            "session": session,
            "characters": len(stored),
            "kept": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in front.items())
        atomic_write(
            memory.folder, path.relative_to(memory.folder), "---\n" + "\n".join(lines) + f"\n{_END}{stored}"
        )
    memory.count("offloaded", f"{tool} {call} {reference}")
    memory.count("offload_tokens_saved", reference, saved)
    return shown


def reference_of(owner: Owner, text: str) -> str:
    """The reference of a text of that owner."""
    digest = hashlib.sha256(owner.key.encode() + b"\0" + utf8(text))
    return f"ref-{digest.hexdigest()[:16]}"


def is_reference(text: str) -> bool:
    """Whether that is how a reference looks."""
    return _REFERENCE.fullmatch(text) is not None


def read(folder: Path, reference: str, owners: frozenset[str] | None) -> str:
    """The whole text of a reference one of these owners has (None: any). Raises NotFound."""
    if not is_reference(reference):
        raise NotFound(reference, "A reference is ref- and sixteen hexadecimal digits.")
    try:
        if astray(folder / "refs"):
            raise NotFound(reference, "memory/refs is a symbolic link that leaves the memory.")
        text = _path(folder, reference).read_bytes().decode("utf-8", "replace")
    except OSError:
        raise NotFound(reference, "The stored result is gone.") from None
    front, _, body = text.partition(f"\n{_END}")
    found = re.search(r"^owner: (.*)$", front, re.MULTILINE)
    owner = ""
    with suppress(ValueError):
        owner = str(json.loads(found[1])) if found else ""
    if owners is not None and owner not in owners:
        raise NotFound(reference, "The stored result is gone.")
    return body


def forget(folder: Path, call: str, owner: str) -> None:
    """Remove what was kept of that call."""
    wanted = {
        f"owner: {json.dumps(owner, ensure_ascii=False)}",
        f"call: {json.dumps(call, ensure_ascii=False)}",
    }
    for path in (folder / "refs").glob("ref-*.md"):
        with suppress(OSError):
            with path.open(encoding="utf-8", errors="replace") as file:
                front = file.read(2_000).partition(f"\n{_END}")[0]
            if wanted <= set(front.splitlines()):
                path.unlink()


def view(result: str, reference: str, stored: str | None = None) -> str:
    """What the model sees of a long result: reference, contents, beginning and end."""
    stored = result if stored is None else stored
    contents = list(table(stored))
    lines = [
        f"[Long result kept outside the conversation: {len(result):,} characters, reference {reference}. "
        f'Read on with memory_trace {{"action": "expand", "id": "{reference}", "offset": N}}.]'
    ]
    if contents:
        lines += ["[Contents]", *(f"offset {offset}: {title}" for offset, title in contents)]
    left_out = len(result) - HEAD - TAIL
    lines += [
        "[Beginning]",
        result[:HEAD],
        f"[… {left_out:,} characters left out …]",
        "[End]",
        result[-TAIL:],
    ]
    return "\n".join(lines)


def table(text: str) -> Iterator[tuple[int, str]]:
    """A small table of contents: (offset, title); headings, the keys of a JSON object, or every so many lines."""
    found = [(match.start(), match[0]) for match in _HEADING.finditer(text)]
    if len(found) < 2 and text.lstrip()[:1] in "{[":
        found = list(_keys(text))
    if len(found) < 2:
        found = list(_samples(text))
    step = -(-len(found) // CONTENTS)
    for offset, title in found[:: max(1, step)]:
        yield offset, block.cut(block.harmless(title[:200]), 80)


def _keys(text: str) -> Iterator[tuple[int, str]]:
    """The keys of the outermost object, found in one pass."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif depth == 1 and (key := _KEY.match(text, token.start())):
            yield token.start(), key[1]


def _samples(text: str) -> Iterator[tuple[int, str]]:
    """The lines that begin each twelfth of the text."""
    for number in range(CONTENTS):
        start = number * len(text) // CONTENTS
        line = text.rfind("\n", 0, start) + 1 if number else 0
        line = line if start - line < 2_000 else start
        yield line, text[line : line + 200].partition("\n")[0]


def _path(folder: Path, reference: str) -> Path:
    return folder / "refs" / f"{reference}.md"
