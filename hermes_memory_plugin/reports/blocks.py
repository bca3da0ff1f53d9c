"""Makes headings, paragraphs and tables of the lines of a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from hermes_memory_plugin.reports.document import Block
from hermes_memory_plugin.reports.garbled import bullets, without_lost
from hermes_memory_plugin.reports.joining import WIDE_END, join, tidy
from hermes_memory_plugin.reports.layout import Line
from hermes_memory_plugin.reports.tables import Table, with_tables
from hermes_memory_plugin.reports.titles import CAPTION, SOURCE

_LARGER = 1.15
_LONGEST_HEADING = 60
_BULLET = re.compile(
    r"\s*(?:[•●■◆▪▶►➢➤✓◼□◇※★○·]|[-–—]\s|[(（]\s?(?:\d{1,2}|[一二三四五六七八九十]+)\s?[)）]|\d{1,2}[)）、]|\d{1,2}[.．]\s?(?=[^\d\s])|[①-⑳])"
)
_NUMBERED = re.compile(
    r"(?:第[一二三四五六七八九十\d]+[章节部分篇]|[一二三四五六七八九十]{1,3}、|[（(][一二三四五六七八九十]{1,3}[)）]|\d{1,2}(?:\.\d{1,2}){0,3}[.、\s]\s?(?=[^\d\s%.]))"
)
_KNOWN = re.compile(
    r"(?:投资要点|核心观点|投资逻辑|投资摘要|报告要点|事件(?:概述|点评|描述)?|点评|盈利预测(?:与|和|及)?(?:投资建议|估值|投资评级)?|投资建议|投资评级|估值(?:与|和|及)?(?:评级|投资建议)?|风险(?:提示|因素|分析)"
    r"|财务(?:预测|摘要|报表)?.{0,8}|相关(?:研究|报告)|分析师(?:声明|承诺|简介)|免责(?:声明|条款)|法律声明|(?:投资)?评级(?:说明|标准|体系)|重要(?:声明|提示)|目录"
    r"|key (?:takeaways?|points?|messages?|risks?)|investment (?:thesis|summary|view|case)|valuation.{0,20}|risks?(?: to our view)?|disclaimers?|analyst certification|important disclosures?|what'?s new|our view|summary|conclusion)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")
_ENDS = ("。", "；", "，", "、", "！", ".", ",", ";", "!")
_SENTENCE_END = re.compile(r"[。！？!?；;.:：”\"）)]$")
_MARKER = re.compile(r"\[Table_\w+\]\s*")
"""Names that broker's templates leave in the text layer."""
_KEYED = re.compile(r"(?:[^\s：:。，；]{2,16}[：:]|[A-Z][\w ()/%-]{2,24}:)\s?\S")
"""A label and its value, as the facts of a first page stand one below the other."""
_AXIS = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?[%％]?")
_TICK = re.compile(r"[-+]?[\d,.]+[%％]?|(?:19|20)\d\d[-/年.]?\d{0,2}(?:[-/月.]\d{0,2})?[日月]?")


def body_size(lines: Iterable[Line]) -> float:
    """The height of most text that runs on, points; 0.0 without any."""
    sizes: Counter[float] = Counter()
    for line in lines:
        if not line.rows:
            runs_on = len(line.runs) == 1 and line.x1 - line.x0 > 0.7 * (line.right - line.left)
            sizes[round(2 * line.size) / 2] += len(line.text) * (10 if runs_on else 1)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def blocks(columns: Sequence[Sequence[Line]], body: float) -> tuple[Block, ...]:
    """The blocks of a page in reading order; body: the height of ordinary text, points."""
    return tuple(block for column in columns for block in _of_column(_clean(column), body))


def _clean(column: Sequence[Line]) -> list[Line]:
    kept = []
    for line in column:
        for run in line.runs:
            run.text = without_lost(_MARKER.sub("", run.text)) if not run.rows else ""
        line.runs = [run for run in line.runs if run.text.strip() or run.rows]
        if line.runs:
            kept.append(line)
    return kept


def _of_column(column: list[Line], body: float) -> Iterator[Block]:
    held: list[Line] = []
    for item in with_tables(_without_ticks(column, body)):
        if isinstance(item, Table):
            yield from _of_text(held, body)
            held = []
            yield item.block()
        else:
            held.append(item)
    yield from _of_text(held, body)


def _without_ticks(column: list[Line], body: float) -> list[Line]:
    """Without the axes of charts: lines of small numbers alone, equally far apart."""
    kept: list[Line] = []
    ticks: list[Line] = []
    for line in [*column, None]:
        if (
            line is not None
            and not line.rows
            and line.size < 0.85 * body
            and all(_TICK.fullmatch(part) for run in line.runs for part in _apart(run.text))
        ):
            ticks.append(line)
            continue
        if not _is_axis(ticks):
            kept.extend(ticks)
        ticks = []
        if line is not None:
            kept.append(line)
    return kept


def _is_axis(ticks: Sequence[Line]) -> bool:
    said = [part for line in ticks for run in line.runs for part in _apart(run.text)]
    numbers = sorted({float(re.sub(r"[,%％]", "", part)) for part in said if _AXIS.fullmatch(part)})
    if len(ticks) < 3 or len(numbers) < 4:
        return False
    steps = [after - before for before, after in pairwise(numbers)]
    return max(steps) - min(steps) <= 0.1 * steps[0]


def _apart(text: str) -> list[str]:
    return re.sub(r"(?<=[%％])(?=[-+\d])", " ", text).split()


def _of_text(lines: list[Line], body: float) -> Iterator[Block]:
    if not lines:
        return
    left = min(line.x0 for line in lines)
    # A headline is wider than the text below it.
    ends = sorted(line.x1 for line in lines if line.size < _LARGER * body) or [lines[0].x1]
    right = ends[int(0.9 * (len(ends) - 1))]
    leading = _leading(lines)
    held: list[Line] = []
    kind = ""
    for line in lines:
        heading = "heading" if _is_heading(line, body, left, right) else "paragraph"
        if held and (heading != kind or _begins(line, held, kind, left, right, leading)):
            yield _block(kind, held)
            held = []
        kind = heading
        held.append(line)
    if held:
        yield _block(kind, held)


def _block(kind: str, lines: list[Line]) -> Block:
    text = join(bullets(line.text) for line in lines)
    return Block("heading" if kind == "heading" and len(text) <= 2 * _LONGEST_HEADING else "paragraph", text)


def _leading(lines: Sequence[Line]) -> float:
    steps = [
        after.top - before.top
        for before, after in pairwise(lines)
        if 0 < after.top - before.top < 4 * before.size
    ]
    return median(steps) if steps else 0.0


def _begins(line: Line, held: list[Line], kind: str, left: float, right: float, leading: float) -> bool:
    """Whether a new block begins here, and the line before was the last of its own."""
    before = held[-1]
    step = line.top - before.top
    larger = max(line.size, before.size) > _LARGER * min(line.size, before.size)
    if larger or step <= 0:
        return True
    text = tidy(bullets(line.text))
    width = right - left
    if kind == "heading":
        return step > 2 * line.size or bool(_NUMBERED.match(text)) or before.x1 < left + 0.5 * width
    if step > max(1.4 * leading, 1.1 * line.size):
        return True
    if _BULLET.match(text) or CAPTION.match(text) or SOURCE.match(text) or SOURCE.match(before.text):
        return True
    if before.x0 > left + 0.4 * width or "  " in before.text or before.x1 < left + 0.6 * width:
        return True
    if _KEYED.match(text) and _KEYED.match(tidy(before.text)):
        return True
    missing = right - before.x1
    said = before.text.rstrip()
    if missing > 2.2 * line.size and WIDE_END.search(said):  # Chinese lines are filled
        return True
    if _SENTENCE_END.search(said) and missing > 0.08 * width + line.size:
        return True
    return line.x0 - before.x0 > 1.2 * line.size and len(held) > 1 and before.x0 <= held[-2].x0 + line.size


def heading_like(text: str) -> bool:
    """Whether a line is a heading by its words alone."""
    if not _may_head(text):
        return False
    if _KNOWN.fullmatch(text.rstrip(":：")):
        return True
    return bool(_NUMBERED.match(text)) and len(text) <= 32 and not re.search(r"[。；，,;：:]", text)


def _may_head(text: str) -> bool:
    if not 2 <= len(text) <= _LONGEST_HEADING or not _LETTER.search(text) or text.endswith(_ENDS):
        return False
    return not CAPTION.match(text) and not SOURCE.match(text)


def _is_heading(line: Line, body: float, left: float, right: float) -> bool:
    text = tidy(bullets(line.text))
    if not _may_head(text):
        return False
    if (body and line.size >= _LARGER * body) or _KNOWN.fullmatch(text.rstrip(":：")):
        return True
    short = line.x1 < left + 0.75 * (right - left) or right - left < 20 * line.size
    return short and heading_like(text)
