"""What a mapper says, and how its YAML is read: every problem names file and line, and costs only the mapper it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from hermes_memory_plugin.recall import metrics
from hermes_memory_plugin.upkeep.mappers import cells

VENDORS: Mapping[str, tuple[str, ...]] = {
    "tushare": ("tushare_{}", "mcp_tushare_{}", "tushare_pro_{}", "{}"),
    "akshare": ("akshare_{}", "mcp_akshare_{}", "ak_{}", "{}"),
}
"""What the tool of a vendor's function may be called."""
MARKETS = ("A", "HK", "US", "index", "OF")
_KEYS = {
    "name", "tools", "vendor", "api", "public", "subject", "market", "title", "as_of", "closes", "period", "cumulative",
    "currency", "basis", "unless", "prefer", "split", "requires", "args", "pairs", "turn", "fields",
}  # fmt: skip
_FIELD_KEYS = {"metric", "basis", "unit", "factor", "label", "text", "point", "also", "currency"}
_METRIC = re.compile(r"[a-z][a-z0-9_]{1,39}")


class Bad(ValueError):
    """What is wrong, and in which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Field:
    """One column and the figure it is."""

    columns: tuple[str, ...]
    metric: str
    label: str
    unit: cells.Unit = cells.NO_UNIT
    basis: str = ""
    currency: str = ""
    text: bool = False
    """A word instead of a number: an industry, a rating."""
    point: bool = False
    """A figure of a day even where the table tells of periods."""


@dataclass(frozen=True, slots=True)
class Basis:
    """A column or argument (``arg:adjust``) that says on what basis the rows are; rows of other values are left out."""

    source: str
    values: Mapping[str, str]
    only: frozenset[str] = frozenset()
    """Metrics it is of; all when empty."""


@dataclass(frozen=True, slots=True)
class Mapper:
    """How one tool's tables become facts. Columns are compared without case; ``arg:NAME`` is an argument of the call."""

    name: str
    tools: tuple[re.Pattern[str], ...]
    fields: tuple[Field, ...]
    subject: tuple[str, ...]
    place: str = ""
    """FILE:LINE."""
    own: bool = False
    """Written by the user."""
    api: tuple[str, ...] = ()
    public: bool = False
    """Data that everybody sees, no client's: it may be shared between owners."""
    market: str = "A"
    title: tuple[str, ...] = ()
    as_of: tuple[str, ...] = ("call",)
    closes: bool = False
    """A day's figure is that of its close, so that it comes after what was quoted during the day."""
    period: tuple[str, ...] = ()
    cumulative: bool = False
    currency: tuple[str, ...] = ("=CNY",)
    basis: Basis | None = None
    unless: Mapping[str, tuple[str, ...]] | None = None
    prefer: str = ""
    split: str = ""
    requires: tuple[str, ...] = ()
    args: str = ""
    pairs: tuple[str, str] | None = None
    turn: str = ""

    def fits_tool(self, tool: str) -> bool:
        """Whether a tool of that (canonical) name is one of its tools."""
        return any(pattern.fullmatch(tool) for pattern in self.tools)


def canonical_tool(name: str) -> str:
    """A tool's name as patterns see it: lower case, one underscore for every dot, dash or run of them."""
    return re.sub(r"[^0-9a-z\u3400-\u9fff]+", "_", name.casefold()).strip("_")


def parse(text: str, path: str, *, own: bool) -> tuple[list[Mapper], list[str]]:
    """(mappers, problems) of one YAML file; a problem is ``FILE:LINE: what to change``."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or error
        return [], [f"{path}:{mark.line + 1 if mark else 1}: not YAML: {what}"]
    if root is None:
        return [], [f"{path}:1: the file is empty: write a mapper (name, tools, subject, fields)"]
    nodes = root.value if isinstance(root, yaml.SequenceNode) else [root]
    found, problems = [], []
    stem = re.sub(r".*/|\.ya?ml$", "", path)
    for node in nodes:
        try:
            found.append(_mapper(node, path, stem, own))
        except Bad as error:
            problems.append(f"{path}:{error.line}: {error}")
    return found, problems


def _mapper(node: Any, path: str, stem: str, own: bool) -> Mapper:
    lines, given = _mapping(node, _KEYS, "a mapper")
    line: int = node.start_mark.line + 1

    def at(key: str) -> int:
        return lines.get(key, line)

    def texts(key: str) -> tuple[str, ...]:
        return _texts(given.get(key), key, at(key))

    for needed in ("subject", "fields"):
        if needed not in given:
            raise Bad(line, f"a mapper needs `{needed}`")
    api, vendor = texts("api"), _text(given, "vendor", at("vendor"))
    if vendor and vendor not in VENDORS:
        raise Bad(at("vendor"), f"unknown vendor {vendor!r}; known: {', '.join(VENDORS)}")
    patterns = [_pattern(text, at("tools")) for text in texts("tools")]
    patterns += [
        re.compile(re.escape(form.format(one))) for one in api for form in VENDORS.get(vendor, ("{}",))
    ]
    if not patterns:
        raise Bad(line, "a mapper needs `tools`: names or patterns of the tools it reads")
    market = _text(given, "market", at("market")) or "A"
    if market not in MARKETS:
        raise Bad(at("market"), f"unknown market {market!r}; known: {', '.join(MARKETS)}")
    name = _text(given, "name", at("name")) or (f"{vendor}_{api[0]}" if vendor and api else stem)
    requires = tuple(_fold(one) for one in texts("requires"))
    return Mapper(
        name=name,
        tools=tuple(patterns),
        fields=tuple(_fields(_node(node, "fields"))),
        subject=texts("subject"),
        place=f"{path}:{line}",
        own=own,
        api=api,
        public=_flag(given, "public", at("public")),
        market=market,
        title=texts("title"),
        as_of=texts("as_of") or ("call",),
        closes=_flag(given, "closes", at("closes")),
        period=texts("period"),
        cumulative=_flag(given, "cumulative", at("cumulative")),
        currency=_currency(texts("currency"), at("currency")),
        basis=_basis(given.get("basis"), at("basis")),
        unless=_unless(given.get("unless"), at("unless")),
        prefer=_text(given, "prefer", at("prefer")),
        split=_text(given, "split", at("split")),
        requires=requires,
        args=_text(given, "args", at("args")),
        pairs=_pair(texts("pairs"), at("pairs")),
        turn=_text(given, "turn", at("turn")),
    )


def _fields(node: Any) -> Iterator[Field]:
    for key, value in _items(node, "`fields` is a list of columns, each with what figure it is"):
        line = key.start_mark.line + 1
        column = str(key.value).strip()
        lines, given = _mapping(value, _FIELD_KEYS, f"the field {column!r}")

        def at(name: str, lines: Mapping[str, int] = lines, line: int = line) -> int:
            return lines.get(name, line)

        metric = _text(given, "metric", at("metric"))
        if not metric:
            raise Bad(line, f"the field {column!r} needs `metric`")
        label = _text(given, "label", at("label"))
        metric = metrics.canonical(metric)
        known = metrics.metrics().get(metric)
        if known is None and not label:
            raise Bad(
                at("metric"),
                f"unknown metric {metric!r}: use one of {', '.join(sorted(metrics.metrics()))}, or give it a `label`",
            )
        if not _METRIC.fullmatch(metric):
            raise Bad(at("metric"), f"a metric is named like net_profit, not {metric!r}")
        factor = given.get("factor", 1)
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1e15:
            raise Bad(at("factor"), f"factor must be a number above 0, not {factor!r}")
        unit = cells.unit(_text(given, "unit", at("unit")))
        written = unit.written if factor == 1 else f"× {factor:g}"
        money = _text(given, "currency", at("currency"))
        if money and not cells.currency(money):
            raise Bad(at("currency"), f"unknown currency {money!r}")
        yield Field(
            columns=tuple(_fold(one) for one in (column, *_texts(given.get("also"), "also", at("also")))),
            metric=metric,
            label=label or _label(known.names if known else (metric,)),
            unit=cells.Unit(unit.factor * factor, unit.name, written),
            basis=_text(given, "basis", at("basis")),
            currency=cells.currency(money) if money else "",
            text=_flag(given, "text", at("text")),
            point=_flag(given, "point", at("point")),
        )


def _label(names: tuple[str, ...]) -> str:
    """The Chinese name of a metric, else its first."""
    return next((name for name in names if not name.isascii()), names[0])


def _basis(value: Any, line: int) -> Basis | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not {"column", "values"} <= value.keys() <= {
        "column",
        "values",
        "only",
    }:
        raise Bad(line, "`basis` takes column, values (value: basis) and only (metrics)")
    values = value["values"]
    if not isinstance(values, dict):
        raise Bad(line, "`basis.values` says which value of the column is which basis")
    return Basis(
        str(value["column"]),
        {_fold(key if key is not None else ""): str(name or "") for key, name in values.items()},
        frozenset(_texts(value.get("only"), "basis.only", line)),
    )


def _unless(value: Any, line: int) -> Mapping[str, tuple[str, ...]] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Bad(line, "`unless` takes arguments and the values of theirs that rule this mapper out")
    return {str(key): tuple(map(_fold, _texts(names, "unless", line))) for key, names in value.items()}


def _currency(sources: tuple[str, ...], line: int) -> tuple[str, ...]:
    for one in sources:
        if one.startswith("=") and not cells.currency(one[1:]):
            raise Bad(line, f"unknown currency {one[1:]!r}; a column's name stands without `=`")
    return tuple(f"={cells.currency(one[1:])}" if one.startswith("=") else one for one in sources) or (
        "=CNY",
    )


def _pair(names: tuple[str, ...], line: int) -> tuple[str, str] | None:
    if names and len(names) != 2:
        raise Bad(line, "`pairs` names two columns: the one of the names and the one of the values")
    return (_fold(names[0]), _fold(names[1])) if names else None


def _pattern(text: str, line: int) -> re.Pattern[str]:
    """A name with * and ?, or /a regular expression/; both are held against canonical names."""
    if len(text) > 2 and text[0] == text[-1] == "/":
        try:
            found = re.compile(text[1:-1])
        except re.error as error:
            raise Bad(line, f"bad pattern {text!r}: {error}") from None
    else:
        plain = re.sub(r"[^0-9a-z\u3400-\u9fff*?]+", "_", text.casefold()).strip("_")
        found = re.compile(translate(plain))
    if found.fullmatch("an_unheard_of_tool_0") and found.fullmatch("zx9"):
        raise Bad(line, f"bad pattern {text!r}: it takes every tool; name the tools whose tables these are")
    return found


def _node(node: Any, key: str) -> Any:
    return next(value for name, value in node.value if name.value == key)


def _items(node: Any, what: str) -> list[tuple[Any, Any]]:
    import yaml

    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise Bad(node.start_mark.line + 1, what)
    found: list[tuple[Any, Any]] = node.value
    return found


def _mapping(node: Any, known: set[str], what: str) -> tuple[dict[str, int], dict[str, Any]]:
    """(line of each key, value of each key)."""
    import yaml

    lines: dict[str, int] = {}
    values: dict[str, Any] = {}
    for key, value in _items(node, f"{what} is written as `key: value` lines"):
        name, line = str(key.value), key.start_mark.line + 1
        if name not in known:
            raise Bad(line, f"unknown field {name!r} of {what}; known: {', '.join(sorted(known))}")
        lines[name] = line
        try:
            values[name] = yaml.SafeLoader("").construct_document(value)
        except (yaml.YAMLError, ValueError) as error:
            raise Bad(line, f"`{name}` cannot be read: {error}") from None
    return lines, values


def _texts(value: Any, key: str, line: int) -> tuple[str, ...]:
    listed = [] if value is None else value if isinstance(value, list) else [value]
    if not all(
        isinstance(one, str | int) and not isinstance(one, bool) and str(one).strip() for one in listed
    ):
        raise Bad(line, f"`{key}` takes text or a list of texts")
    return tuple(str(one).strip() for one in listed)


def _text(given: Mapping[str, Any], key: str, line: int) -> str:
    value = given.get(key, "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Bad(line, f"`{key}` takes text")
    return str(value).strip()


def _flag(given: Mapping[str, Any], key: str, line: int) -> bool:
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise Bad(line, f"`{key}` is true or false")
    return value


def _fold(name: object) -> str:
    return str(name).strip().casefold()


fold = _fold
