"""What a report says of itself: first page, file name, PDF properties. Nothing is guessed: unsure is empty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hermes_memory_plugin.recall import pairs
from hermes_memory_plugin.recall.lexicon import Lexicon
from hermes_memory_plugin.reports import brokers, filename, opinion, people
from hermes_memory_plugin.reports.dates import report_date
from hermes_memory_plugin.reports.document import Metadata, Page

_MOST_SUBJECTS = 3
_SURE = 0.8
_CODED = re.compile(
    r"[（(]\s?(?:[A-Za-z]{2}[.:])?(\d{4,6})(?:\.([A-Za-z]{2}))?\s?(?:[,，/、][^)）]{0,20})?[)）]|(?<!\d)(\d{6})\.(SH|SZ|BJ|SS)|(?<!\d)(\d{4,5})\.?\s?HK\b"
)
_LISTED = re.compile(r"^\s*(?:\d{1,2}[.、)）]|[•·●-])?\s*《")
_INDUSTRY = re.compile(
    r"(?:所属|所在|申万)?(?:一级|二级)?行业(?:分类)?\s?[:：|]\s?(?P<name>[\u4e00-\u9fff、/]{2,12}[ⅠⅡⅢ]?)|^(?:Sector|Industry)\s?[:：]\s?(?P<english>[A-Z][\w &/]{2,40})$"
)
_SPLIT = re.compile(r"\s*[|｜/·•—\-–]\s*|\s{1,}")
_KIND = re.compile(
    r"(?:证券)?(?:研究)?报告|证券研究报告|(?:公司|行业|策略|宏观)(?:研究|点评|深度|报告|动态|简评|评论|快报|首次覆盖|更新|跟踪).{0,6}|(?:equity|company|industry) (?:research|report|update|note)|(?:research|company) (?:note|report|update)|first take|initiation",
    re.IGNORECASE,
)
_TOOL_TITLE = re.compile(
    r"^(?:Microsoft (?:Word|PowerPoint)|untitled|无标题|文档\d*|PowerPoint|幻灯片)|\.(?:docx?|pptx?|pdf|indd)$",
    re.IGNORECASE,
)
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Front:
    """The first page line by line, and what stands on every page."""

    lines: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    """Its headlines, the largest first."""
    repeated: tuple[str, ...] = ()


def metadata(pages: Sequence[Page], front: Front, stem: str, properties: Mapping[str, str]) -> Metadata:
    """The metadata of a report.

    stem         the file's name without its suffix
    properties   the PDF's own: Title, Author, CreationDate …
    """
    named = filename.read(stem)
    first = pages[0].text if pages else ""
    lines = [line for line in front.lines if not _LISTED.match(line)]
    title, given = _title(front, first, named, properties)
    subjects = _subjects(title if given else "", lines, named)
    price, currency = opinion.target_price(first, subjects)
    return Metadata(
        title=title or stem,
        broker=brokers.broker(
            [*lines, *front.repeated], (block.text for page in pages for block in page.blocks), named.broker
        ),
        analysts=people.analysts(lines),
        date=report_date(lines, named.date, properties.get("CreationDate", "")),
        tickers=tuple(subjects),
        names=tuple(subjects.values()),
        industry=_industry([*lines, *front.repeated]),
        rating=opinion.rating(lines, first),
        target_price=price,
        currency=currency,
    )


def _title(
    front: Front, first: str, named: filename.Named, properties: Mapping[str, str]
) -> tuple[str, bool]:
    """The title, and whether the report itself or its file's name gives it."""
    own = properties.get("Title", "").strip()
    if own and (_TOOL_TITLE.search(own) or len(own) < 5):
        own = ""
    plain = re.sub(r"\s", "", first)
    if own and re.sub(r"\s", "", own) in plain:
        return own, True
    company = ""
    for line in front.large:
        if _is_subject(line):
            company = company or line
        elif _is_headline(line):
            return line, True
    rest = [part for part in named.rest if not _is_subject(part)]
    longest = max(rest, key=len, default="")
    if len(longest) >= 6:
        return longest, True
    if company:
        return company, True
    return (own, True) if _HAN.search(own) or own.count(" ") >= 2 else ("", False)


def _is_headline(line: str) -> bool:
    return (
        len(line) >= 6
        and not _KIND.fullmatch(line)
        and not brokers.of_name(line)
        and not opinion.rating([line], "")
        and any(char.isalpha() for char in line)
        and not _INDUSTRY.search(line)
    )


def _is_subject(line: str) -> bool:
    """Whether the line is the name of a company, with or without its code, and nothing more."""
    bare = _CODED.sub("", line).strip(" ：:()（）")
    mentions = _lexicon().link(bare)
    return (
        not bare
        or (len(mentions) == 1 and mentions[0].end - mentions[0].start >= len(bare) - 1)
        or (bool(_CODED.search(line)) and 2 <= len(bare) <= 6 and bool(_HAN.search(bare)))
    )


def _subjects(title: str, lines: Sequence[str], named: filename.Named) -> dict[str, str]:
    """The companies the report is on: {id: name}, by the title and the file's name, then by the heads of the first page."""
    stated: dict[str, str] = {}
    for line in lines:
        for code, name in pairs.find(line):
            stated.setdefault(code, name)
    found: dict[str, str] = {}
    for code in named.codes:
        if identity := pairs.canonical(code):
            found[identity] = ""
    for text in (title, " ".join(named.rest)):
        for identity in _coded(text):
            found.setdefault(identity, "")
        for mention in _lexicon().link(text):
            if mention.kind == "stock" and mention.confidence >= _SURE and mention.via != "code":
                found.setdefault(mention.entity_id, "")
        found.update(
            {
                code: ""
                for code, name in stated.items()
                if len(name) >= 3 and name in text and code not in found
            }
        )
    if not found:
        short = [line for line in lines if len(line) <= 40]
        heads = {identity: "" for line in short for identity in _coded(line)}
        if len(heads) <= _MOST_SUBJECTS:
            found = heads
    if len(found) > _MOST_SUBJECTS:
        return {}
    for identity in found:
        entity = _lexicon().entity(identity)
        found[identity] = entity.name if entity else stated.get(identity, "")
    return found


def _coded(text: str) -> list[str]:
    found = []
    for match in _CODED.finditer(text):
        number, market = (
            (match[1], match[2]) if match[1] else (match[3], match[4]) if match[3] else (match[5], "HK")
        )
        if market or len(number) == 6:
            identity = pairs.canonical(f"{number}.{market}" if market else number)
            if identity:
                found.append(identity)
    return found


def _industry(lines: Sequence[str]) -> str:
    said: set[str] = set()
    for line in lines:
        match = _INDUSTRY.search(line)
        if match:
            name = match["name"] or match["english"]
            if name not in ("投资", "评级"):
                return name
        if len(line) <= 40:
            parts = _SPLIT.split(line)
            if len(parts) > 1 or line.endswith("行业"):
                # Of 食品饮料 | 白酒 the wider one, which stands first.
                names = (part.removesuffix("行业") for part in parts)
                said.update([name for name in names if name in _industries()][:1])
    return said.pop() if len(said) == 1 else ""


@cache
def _industries() -> frozenset[str]:
    text = files("hermes_memory_plugin.reports.data").joinpath("industries.txt").read_text(encoding="utf-8")
    return frozenset(name for line in text.splitlines() if not line.startswith("#") for name in line.split())


@cache
def _lexicon() -> Lexicon:
    """The built-in names: what one report says must not change how another is read."""
    return Lexicon()
