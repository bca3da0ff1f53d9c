"""Which house wrote a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

_SUFFIX = r"(?:证券|研究所|研究院|金融|资本)"
_COMPANY = re.compile(
    r"(?:^|[^\u4e00-\u9fff]|由|为|是|仅供|归|经|与|和|及)(?P<name>[\u4e00-\u9fff]{2,6}?(?:证券|国际金融))(?:（[^）]{2,8}）)?(?:股份有限公司|有限责任公司|有限公司)"
)
_SOURCE = re.compile(
    r"(?:^|[，,、：:；;\s“（(《])(?P<name>[\u4e00-\u9fff]{2,4}证券)(?:研究所|研究院|研究部|研究发展部|研究中心|整理|预测|$|[，,、；;\s”）)])"
)
_LINE = re.compile(
    r"(?P<name>[\u4e00-\u9fff]{2,4}证券)(?:研究所|研究院|研究|股份有限公司|有限责任公司|有限公司)?"
)
_ENGLISH = re.compile(
    r"(?P<name>[A-Z][\w&.'’-]*(?: [A-Z&][\w&.'’-]*){0,3} (?:Securities|Capital Markets|Capital|Research|Brokerage|Equities|Global Markets))(?: (?:\(?[A-Z][\w ]+\)? )?(?:Co\.?,? )?(?:Limited|Ltd\.?|LLC|Inc\.?|plc))?\.?"
)
_NONE = re.compile(
    r"^(?:中国|全国|本|该|我|各|其他|多家|上市|公司|香港|A股|主要|可比)证券$|交易所|协会|监督|监管|研究报告|^Equity Research|^Company Research|^Investment Research|^Industry Research"
)


@cache
def known() -> dict[str, str]:
    """Every name of the built-in list, in lower case, with the name to show."""
    names = {}
    text = files("hermes_memory_plugin.reports.data").joinpath("brokers.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            shown, _, others = line.partition(" = ")
            for name in (shown, *others.split(", ")):
                if name:
                    names[name.lower()] = shown
    return names


def of_name(part: str) -> str:
    """The broker that a part of a file name is; "" when it is none."""
    part = part.strip()
    for name in (part, part.removesuffix("研究所"), part.removesuffix("研究")):
        if name.lower() in known():
            return known()[name.lower()]
    found = _LINE.fullmatch(part)
    if found and not _NONE.search(found["name"]):
        return found["name"]
    english = _ENGLISH.fullmatch(part)
    return english["name"] if english and not _NONE.search(english["name"]) else ""


def broker(front: Sequence[str], everywhere: Iterable[str], file_name: str) -> str:
    """The house: by the file name, the lines of the first page, then who signs sources and notices; "" when unsure.

    front        lines of the first page and of what repeats on every page
    everywhere   the paragraphs of all pages
    """
    votes: Counter[str] = Counter()
    if file_name:
        votes[file_name] += 3
    for line in front:
        name = of_name(line)
        if name:
            votes[name] += 3
    for text in everywhere:
        for pattern in (_COMPANY, _SOURCE):
            for match in pattern.finditer(text):
                name = known().get(match["name"].lower(), match["name"])
                if not _NONE.search(name):
                    votes[name] += 1
        # English names are everywhere (the Securities Act …): only those that sign a source count.
        for line in text.split("\n"):
            if line.startswith(("Source", "source")):
                names = (match["name"] for match in _ENGLISH.finditer(line))
                votes.update(known().get(name.lower(), name) for name in names if not _NONE.search(name))
    if not votes:
        return ""
    (best, most), *others = votes.most_common(2)
    return best if not others or most > others[0][1] else ""
