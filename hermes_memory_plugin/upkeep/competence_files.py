"""Competence files: YAML, CSV, or a Python registry that is read as syntax and never run.

- id: moutai-batch-price
  statement: 飞天批价跌破 2,000 元时渠道库存通常超过两个月
  source: 2024 年渠道调研
  tickers: [600519.SH]
  topics: [白酒, 渠道]

An entry that cannot be used costs the whole file: what is wrong is said with its line, and nothing is stored.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.layers.facts import BadFact, as_moment

LARGEST = 8 << 20
MOST = 50_000
LONGEST = 4_000
"""Characters of one statement."""
_NAMES = {
    "id": "id", "key": "id", "编号": "id", "statement": "statement", "text": "statement", "claim": "statement", "内容": "statement", "陈述": "statement",
    "source": "source", "来源": "source", "tickers": "tickers", "ticker": "tickers", "subject": "tickers", "code": "tickers", "codes": "tickers", "代码": "tickers",
    "topics": "topics", "topic": "topics", "tags": "topics", "tag": "topics", "sector": "topics", "sectors": "topics", "主题": "topics", "标签": "topics", "行业": "topics",
    "as_of": "as_of", "date": "as_of", "日期": "as_of",
}  # fmt: skip
_ORDER = ("id", "statement", "source")
"""What the first arguments of a `Competence(…)` without names are."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One competence as its file says it."""

    id: str
    statement: str
    source: str = ""
    tickers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    as_of: datetime | None = None
    line: int = 0

    @property
    def digest(self) -> str:
        """Equal when two entries say the same; the line does not count."""
        said = [self.statement, self.source, self.tickers, self.topics, str(self.as_of or "")]
        return hashlib.blake2b(json.dumps(said).encode("utf-8", "replace"), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Read:
    """A file that can be used."""

    path: Path
    entries: tuple[Entry, ...]
    ignored: tuple[str, ...] = ()
    """Names of fields that are none of a competence's; what they say is not stored."""


class CompetencesUnreadable(HermesMemoryError, ValueError):
    """The file cannot be used; nothing of it was stored. `problems`: file:line and what is wrong, the first ones."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        super().__init__(f"{'; '.join(problems[:5])}{more}. Nothing was stored.")
        self.path = path
        self.problems = tuple(problems)


def read(path: Path) -> Read:
    """The entries of a file, by its ending: .yaml, .yml, .csv, .tsv or .py. Raises CompetencesUnreadable."""
    kinds: Mapping[str, Callable[[Path, str], Iterator[tuple[int, Any]]]] = {
        ".yaml": _yaml, ".yml": _yaml, ".json": _yaml, ".csv": _csv, ".tsv": _csv, ".py": _python,
    }  # fmt: skip
    how = kinds.get(path.suffix.lower())
    if how is None:
        raise CompetencesUnreadable(path, [f"{path}: give a .yaml, .csv or .py file"])
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    ignored: dict[str, None] = {}
    for line, value in how(path, _text(path)):
        if isinstance(value, Exception):
            problems.append(f"{path}:{line}: {value}")
            continue
        try:
            entry = _entry(value, line, ignored)
        except ValueError as error:
            problems.append(f"{path}:{line}: {error}")
            continue
        if entry.id in entries:
            problems.append(f"{path}:{line}: the id {entry.id!r} stands in line {entries[entry.id].line} too")
        entries[entry.id] = entry
        if len(entries) > MOST:
            raise CompetencesUnreadable(path, [f"{path}: more than {MOST:,} entries"])
    if not problems and not entries:
        problems.append(f"{path}: holds no competence")
    if problems:
        raise CompetencesUnreadable(path, problems)
    return Read(path, tuple(entries.values()), tuple(ignored))


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CompetencesUnreadable(path, [f"{path}: {error.strerror or error}"]) from None
    if len(raw) > LARGEST:
        raise CompetencesUnreadable(path, [f"{path}: larger than {LARGEST >> 20} MB"])
    for encoding in ("utf-8-sig", "gb18030"):  # what Excel writes in China
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise CompetencesUnreadable(path, [f"{path}: neither UTF-8 nor GB 18030"])


def _entry(value: object, line: int, ignored: dict[str, None]) -> Entry:
    if not isinstance(value, Mapping):
        raise ValueError("an entry has id and statement")
    fields: dict[str, Any] = {}
    for name, one in value.items():
        known = _NAMES.get(str(name).strip().lower())
        if known is None:
            ignored[str(name)] = None
        elif one not in (None, "") and known in fields and known in ("tickers", "topics"):
            fields[known] = [*_list(fields[known]), *_list(one)]
        elif one not in (None, ""):
            fields[known] = one
    for name in ("id", "statement"):
        if isinstance(fields.get(name), int | float) and not isinstance(fields[name], bool):
            fields[name] = str(fields[name])
        if not isinstance(fields.get(name), str) or not fields[name].strip():
            raise ValueError(f"{name} must be text, not {fields.get(name)!r}"[:200])
    if len(fields["statement"]) > LONGEST:
        raise ValueError(
            f"the statement has {len(fields['statement']):,} characters, {LONGEST:,} is the most"
        )
    given = fields.get("as_of")
    try:
        as_of = as_moment(given if isinstance(given, date | datetime) else str(given or ""))
    except BadFact:
        raise ValueError(f"as_of must be a date such as 2026-04-30, not {given!r}"[:200]) from None
    return Entry(
        id=fields["id"].strip(),
        statement=" ".join(fields["statement"].split()),
        source=str(fields.get("source") or "").strip(),
        tickers=tuple(_list(fields.get("tickers"))),
        topics=tuple(_list(fields.get("topics"))),
        as_of=as_of,
        line=line,
    )


def _list(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        for mark in ";；、|":
            value = value.replace(mark, ",")
        value = value.replace("，", ",").split(",")
    if not isinstance(value, list | tuple | set | frozenset):
        value = [value]
    return [str(one).strip() for one in value if str(one).strip()]


# -- the three forms ---------------------------------------------------------------------------------------------------


def _yaml(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        yield (
            (mark.line + 1 if mark else 1),
            ValueError(f"not YAML: {getattr(error, 'problem', None) or error}"),
        )
        return
    except RecursionError:
        yield 1, ValueError("nested too deep")
        return
    if isinstance(root, yaml.MappingNode):
        inner = [node for key, node in root.value if getattr(key, "value", "") == "competences"]
        if inner:
            root = inner[0]
    pairs: list[tuple[Any, Any]] = []
    if isinstance(root, yaml.SequenceNode):
        pairs = [(None, node) for node in root.value]
    elif isinstance(root, yaml.MappingNode):
        pairs = root.value
    elif root is not None:
        yield root.start_mark.line + 1, ValueError("write a list of entries, each with id and statement")
    for key, node in pairs:
        line = (key or node).start_mark.line + 1
        try:
            value = yaml.SafeLoader("").construct_document(node)
            if key is not None:  # id: statement, or id: {statement: …}
                value = {"id": key.value, **(value if isinstance(value, dict) else {"statement": value})}
            yield line, value
        except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
            yield line, ValueError(str(getattr(error, "problem", None) or error))


def _csv(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    head = text.partition("\n")[0]
    mark = max("\t;,", key=head.count) if path.suffix.lower() != ".tsv" else "\t"
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    try:
        names = {_NAMES.get(str(name).strip().lower()) for name in rows.fieldnames or ()}
        if not {"id", "statement"} <= names:
            yield 1, ValueError("the first line names the columns, id and statement among them")
            return
        for row in rows:
            if None in row:
                yield rows.line_num, ValueError("more cells than columns")
            elif any(row.values()):
                yield rows.line_num, row
    except csv.Error as error:
        yield rows.line_num, ValueError(f"not CSV: {error}")


def _python(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    try:
        tree = ast.parse(text, filename=str(path))
    except SyntaxError as error:
        yield error.lineno or 1, ValueError(f"not Python: {error.msg}")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        yield 1, ValueError(f"not Python: {error or type(error).__name__}")
        return
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in _calls(tree):
        try:
            fields = {
                _ORDER[place]: _literal(argument, constants)
                for place, argument in enumerate(call.args[: len(_ORDER)])
            }
            for keyword in call.keywords:
                if keyword.arg is None:
                    raise ValueError("its fields are computed (**…); write them out")
                fields[keyword.arg] = _literal(keyword.value, constants)
            yield call.lineno, fields
        except (ValueError, RecursionError) as error:
            yield call.lineno, ValueError(str(error) or "nested too deep")


def _calls(tree: ast.Module) -> list[ast.Call]:
    """Every `Competence(…)` and every `register(id=…)`, in the order of the text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            direct = name == "register" and any(keyword.arg == "id" for keyword in node.keywords)
            if name == "Competence" or direct:
                found.append(node)
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _literal(node: ast.expr, constants: Mapping[str, ast.expr]) -> Any:
    """The value a field is written as; a name stands for the constant the module gives it."""
    if isinstance(node, ast.Name) and node.id in constants:
        node = constants[node.id]
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
        "date",
        "datetime",
    ):
        try:
            return date(*(ast.literal_eval(argument) for argument in node.args[:3]))
        except (ValueError, TypeError) as error:
            raise ValueError(f"no date: {error}") from None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        raise ValueError(
            f"line {node.lineno}: a value is computed ({ast.unparse(node)[:60]}); write it out"
        ) from None
