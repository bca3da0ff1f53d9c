"""The user's ``entities.yaml``: names of their own for what they follow.

- id: 600519.SH
  name: 贵州茅台
  aliases: [我的酒]
  kind: stock
  sectors: [白酒]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from hermes_memory_hookspecs import Entity

_KINDS = ("stock", "index", "fund", "bond", "sector")
_FIELDS = ("id", "name", "aliases", "kind", "sectors")
_MOST = 5_000


def read(path: Path) -> tuple[list[tuple[Entity, tuple[str, ...]]], list[str]]:
    """(entity with its sectors …, what is wrong …). A missing file is empty; a broken entry costs only itself."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return [], []
    except (OSError, UnicodeDecodeError) as error:
        return [], [f"{path}: cannot be read: {error}"]
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return [], [
            f"{path}:{mark.line + 1 if mark else 1}: not YAML: {getattr(error, 'problem', None) or error}"
        ]
    if root is None:
        return [], []
    if not isinstance(root, yaml.SequenceNode):
        return [], [f"{path}:{root.start_mark.line + 1}: write a list of entries, each with id and name"]
    entries, problems = [], []
    for node in root.value[:_MOST]:
        line = node.start_mark.line + 1
        try:
            value = yaml.SafeLoader("").construct_document(node)
            entries.append(_entry(value))
        except (ValueError, yaml.YAMLError) as error:
            problems.append(f"{path}:{line}: {error}")
    if len(root.value) > _MOST:
        problems.append(f"{path}: only the first {_MOST} entries are used")
    return entries, problems


def _entry(value: Any) -> tuple[Entity, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError("an entry has id and name")
    unknown = [str(key) for key in value if key not in _FIELDS]
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}")
    id_, name, kind = value.get("id"), value.get("name"), value.get("kind", "stock")
    if not isinstance(id_, str) or not id_.strip():
        raise ValueError(f"id must be text such as '600519.SH', not {id_!r}")
    if not isinstance(name, str) or len(name.strip()) < 2:
        raise ValueError(f"name must be text of two characters or more, not {name!r}")
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    aliases, sectors = _texts(value, "aliases"), _texts(value, "sectors")
    return Entity(id_.strip(), name.strip(), cast(Any, kind), aliases), sectors


def _texts(value: dict[Any, Any], field: str) -> tuple[str, ...]:
    found = value.get(field) or []
    if isinstance(found, str):
        found = [found]
    if not isinstance(found, list) or not all(
        isinstance(item, str) and len(item.strip()) >= 2 for item in found
    ):
        raise ValueError(f"{field} must be a list of texts of two characters or more")
    return tuple(item.strip() for item in found)
