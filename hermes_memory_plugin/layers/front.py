"""Markdown files with YAML front matter: how they are read, whatever people did to them, and how they are written."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from hermes_memory_hookspecs import Owner

TYPES = ("user", "feedback", "project", "reference")
"""Types of notes; a note's file name begins with its own."""
SLUG_LENGTH = 60
UNREADABLE = Owner(platform="unreadable", user_id="front-matter")
"""Owner of a file that names one we cannot read: only who asks for every owner sees it."""

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Front:
    """A file's text taken apart. `broken` says why the front matter cannot be read; the body is the whole text then."""

    body: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    owner: Owner = Owner()
    broken: str = ""
    present: bool = False
    """Whether there is any front matter."""


def split(text: str) -> Front:
    """Take a file apart; never raises."""
    import yaml

    match = _FRONT.match(text)
    if not match:
        return Front(text.strip())
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        fields = yaml.load(match[1], loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # 2026-02-30 is a ValueError
        return _broken(text, match[1], (str(error).splitlines() or [type(error).__name__])[0])
    if not isinstance(fields, Mapping):
        return _broken(text, match[1], "the front matter is not a mapping")
    owner, problem = owner_of(fields.get("owner"))
    return Front(text[match.end() :].strip(), {str(k): v for k, v in fields.items()}, owner, problem, True)


def without(text: str) -> str:
    """The text behind the front matter, readable or not; the text itself where nothing is behind it."""
    match = _FRONT.match(text)
    return (text[match.end() :].strip() if match else "") or text


def join(fields: Mapping[str, Any], body: str) -> str:
    """The text of a file: keys in the order given, one line per list item."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    head = yaml.dump(
        dict(fields),
        Dumper=dumper,
        allow_unicode=True,
        sort_keys=False,
        width=10_000,
        default_flow_style=False,
    )
    return f"---\n{head}---\n\n{body}\n"


def owner_of(value: object) -> tuple[Owner, str]:
    """(owner, what is wrong with it) of a front matter's owner; none named is the local one."""
    if value in (None, ""):
        return Owner(), ""
    try:
        return Owner.parse(str(value)), ""
    except ValueError as error:
        return UNREADABLE, str(error)


def texts(value: object) -> tuple[str, ...]:
    """A list of short texts however a person wrote it: a YAML list, or one line with commas."""
    if value in (None, ""):
        return ()
    many = value if isinstance(value, list | tuple) else re.split(r"[,，、;；]", str(value))
    return tuple(
        dict.fromkeys(one_line(str(one)) for one in many if one not in (None, "") and str(one).strip())
    )


def moment(value: object) -> datetime | None:
    """The aware time of a YAML time, date or ISO text; None for anything else."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        parsed = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def slug(title: str) -> str:
    """A file name of the title: letters and digits of any script, `_` and `-`; at most 60 characters.

    A title without any of them (emoji, punctuation) becomes a hash, so that two of them never meet.
    """
    folded = fold(title)
    # Marks are part of a letter in Thai, Hindi and others, though \w leaves them out.
    kept = "".join(
        character if character in "_-" or unicodedata.category(character)[0] in "LNM" else "_"
        for character in folded
    ).strip("_-")
    kept = re.sub(r"_{2,}", "_", kept)
    if not kept:
        return hashlib.sha256(folded.encode("utf-8", "replace")).hexdigest()[:6]
    while len(kept.encode("utf-8")) > 180 or len(kept) > SLUG_LENGTH:
        kept = kept[:-1]
    return kept.rstrip("_-") or hashlib.sha256(folded.encode()).hexdigest()[:6]


def title_of_file(name: str) -> str:
    """The title of a file that names none: its name without the type of a note."""
    stem = name.removesuffix(".md")
    head, _, rest = stem.partition("_")
    return (rest if head in TYPES and rest else stem).replace("_", " ").strip() or stem


def file_id(path: Path) -> str:
    """The id of a file that names none."""
    return "note-" + hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def fold(title: str) -> str:
    """What two spellings of one title share."""
    return " ".join(unicodedata.normalize("NFKC", title).casefold().split())


def clean(text: str) -> str:
    """Without control characters and lone surrogates; line breaks and tabs stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
    )


def one_line(text: str) -> str:
    """The text with single spaces for every kind of white space."""
    return " ".join(text.split())


def _broken(text: str, head: str, why: str) -> Front:
    """Whose file it is, its owner line still says; without one it is the local owner's."""
    line = re.search(r"^\s*[\"']?owner[\"']?\s*[:=](.*)$", head, re.MULTILINE | re.IGNORECASE)
    owner = owner_of(line[1].strip(" \t\"'"))[0] if line else Owner()
    return Front(text.strip(), {}, owner, why, True)
