"""What of a user's message are his own words, said of himself, now and in earnest.

Code, quotations, forwarded and pasted text, other people's lines, questions, suppositions and jokes are left out. What
is doubtful is left out as well: the turn itself is on record anyway, a rule nobody meant would govern every answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes_memory_plugin.recall.normalise import simplified

LONG = 500
"""Characters from which a message counts as pasted: only its first and last line may be the user's own."""
_LINE = 160
_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<([a-z][\w-]*)(?: [^<>]*)?>.*?</\1>|<[a-z/][^<>]{0,200}>", re.DOTALL | re.IGNORECASE)
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|『[^』]*』|‘[^’]*’|《[^》]*》|(?<![\w\"])\"[^\"\n]*\"")
_SHORT_QUOTE = 6
_SPOKEN = re.compile(r"\s*\"([^\"]+)\"\s*")
"""How Hermes hands over what a voice message said: all of it in straight quotation marks."""
_FOREIGN_LINE = re.compile(
    r"^\s*(?:>|\||#\s|\$\s|%\s|at\s|\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[?\d{1,2}:\d\d|https?://|@|\t|---|===|\+\+\+|[{}\[\]])"
)
_PASTE_BEGINS = re.compile(
    r"(?:原文|全文|内容|新闻|研报|文章|公告|摘录|摘要|邮件|聊天记录|纪要|截图|素材|材料|资料|日志|报错|输出|结果|评论|帖子|如下|以下(?:是|为)?[^:：\n]{0,16}|下面(?:是|这)[^:：\n]{0,16}|转发[^:：\n]{0,8}|翻译[^:：\n]{0,16}|润色[^:：\n]{0,16}|总结[^:：\n]{0,16}|改写[^:：\n]{0,16})[:：]"
    r"|-{3,}\s*(?:forwarded|original)|begin forwarded|(?:below|following|here)(?: is| are|'s)[^:\n]{0,60}:|(?:article|text|e-?mail|message|log|output|transcript|excerpt|quote|translate|summari[sz]e|proofread|rewrite)[^:\n]{0,30}:\s*(?=\n|\S{12})",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\s*(?P<label>[\w\u3400-\u9fff·.\- ]{1,16}?)\s*(?:[(（][^)）]{0,20}[)）])?\s*[:：]\s*\S"
)
_OWN_LABEL = re.compile(
    r"(?:我|我们|本人|最终|最后|投资|操作|个人|几[个点条])?的?(?:新)?(?:结论|决定|决策|成本价?|买入价|持仓|仓位|持股|规则|规矩|偏好|纪律|要求|原则|底线|习惯|记住|更正|纠正|注意|补充|另外|还有|总之|备注|提醒|评级|目标价|止损|止盈|观点|判断|看法|以后|今后)(?:一下|如下|是)?"
    r"|(?:(?:my|our|final|the|new|house)\s)*(?:conclusions?|decisions?|notes?|rules?|preferences?|correction|reminder|cost|cost basis|holdings?|positions?|rating|target|verdict|call|from now on|remember|ps|p\.s\.|fyi|also|important)",
    re.IGNORECASE,
)
_RULES_AHEAD = re.compile(
    r"(?:我|我们|本人|几|以下|下面|这些|投资|交易|操作|个人|的|是|记住|请记住|这几条|这几点|三|两|四|五|条|点|个|[,，\s])*(?:规则|规矩|偏好|纪律|要求|原则|底线|习惯)(?:如下|是|有[几二两三四五六]?[条点个]?)?\s*[:：]\s*$"
    r"|(?:(?:my|our|here are my|these are my|remember my|the|house|investment|trading|new|some)\s)*(?:rules|preferences|principles|requirements)(?:\sare)?\s*:\s*$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•·]|\(?[0-9一二三四五六七八九]{1,2}[.、)）:：])\s*")

_JOKE = re.compile(
    r"开(?:个)?玩笑|逗你|骗你的|才怪|说着玩|闹着玩|反话|段子|笑话|just kidding|\bkidding\b|\bjk\b|/s\b|\bjoking\b|\bjoke\b|\blmao\b", re.IGNORECASE
)  # fmt: skip
_LAUGH = re.compile(
    r"哈哈|嘿嘿|嘻嘻|呵呵|233|狗头|\blol\b|\bhaha|\brofl\b|[😂🤣😜😝😏🙃😆😅🤪]", re.IGNORECASE
)
_SUPPOSED = re.compile(
    r"如果|假如|假设|要是|倘若|万一|假使|若是|设想|比方|比如|例如|譬如|好比|一旦|除非|的话(?!题|费|术)|(?<![倘假])若(?!干)|想象|照你|按你的?(?:说法|意思)|\bif\b|\bsuppos(?:e|ing)\b|\bassum(?:e|ing)\b|\bwhat if\b|\blet's say\b"
    r"|\bsay i\b|\bimagine\b|\bhypothetical\w*|\bunless\b|\bfor (?:example|instance)\b|\be\.g\.|\bwould\b|\bwhether\b|\bmight\b|\bmaybe\b|\bperhaps\b|也许|可能(?!性)|说不定|或许",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]|吗[。!！~\s]*$|[呢么]$|是不是|能不能|会不会|要不要|好不好|对不对|有没有|可不可以|行不行|该不该|值不值|是否|能否|可否|为什么|为何|为啥|怎么|怎样|如何|什么|多少|哪[些个家只里种一]|几[只个家次]|谁|啥|咋|来着|\d\S{0,4}还是\S{0,4}\d"
    r"|^\s*(?:(?:and|so|but|then|ok|well),?\s)?(?:do|does|did|should|can|could|would|is|are|was|were|will|what|why|how|which|when|where|who|whose|have|has|am|may|shall)\b",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"^\s*(?:这样|那样|这|你觉得|你看|我)?(?:是不是|会不会|对不对|好不好|行不行|可不可以|可以吗|行吗|好吗|对吗|合适吗|合理吗|怎么样|如何|怎么看|靠谱吗|是吗|真的吗|你说呢|有道理吗|太.{0,6}(?:吗|了吧))|^\s*(?:right|ok|okay|correct|is that|does that|isn't it|am i|what do you think|sound|agree|makes? sense|would that)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[。！？!?；;…])|(?<=[.])\s+(?=[A-Z\"“(\u3400-\u9fff])|\n+")
_CLAUSE = re.compile(r"[，,](?!\d{3}(?!\d))|(?:—|--)+|\s+(?:but|so|and)\s+(?=i\b|my\b|we\b|please\b|never\b|always\b)", re.IGNORECASE)  # fmt: skip
_END = " \t\r\n。.！!？?；;…~～"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the user's own: the clauses that state something, in their order."""

    clauses: tuple[str, ...]
    listed: bool = False
    """It is an item of a list of his rules."""

    @property
    def text(self) -> str:
        """The clauses as one."""
        return ("，" if any("\u3400" <= one <= "\u9fff" for one in self.clauses[0]) else ", ").join(
            self.clauses
        )


def sentences(message: str) -> list[Sentence]:
    """The user's own statements in a message; [] for one that is a joke or somebody else's text. Never raises."""
    spoken = _SPOKEN.fullmatch(message)
    text = _TAGGED.sub("\n", _FENCED.sub("\n", spoken[1] if spoken else message))
    if _JOKE.search(text):
        return []
    begins = _PASTE_BEGINS.search(simplified(text))
    if begins and not _OWN_LABEL.fullmatch(simplified(begins[0]).rstrip(":： ")):
        text = text[: begins.start()]
    found: list[Sentence] = []
    for line, listed in _own_lines(text):
        for part in _SENTENCE.split(_without_quotes(line)):
            clauses = _clauses(part) if part else ()
            if clauses:
                found.append(Sentence(clauses, listed))
    return found


def _own_lines(text: str) -> list[tuple[str, bool]]:
    """(line, whether it is an item of his rules) of the lines that are his."""
    lines = [line for line in text.splitlines() if line.strip()]
    rules_at = next(
        (n for n, line in enumerate(lines) if _RULES_AHEAD.fullmatch(simplified(line).strip())), -1
    )
    labels = [match["label"] for line in lines if (match := _LABEL.match(simplified(line)))]
    strangers = [label for label in labels if not _OWN_LABEL.fullmatch(label.strip())]
    # Long, or a conversation of others.
    pasted = (len(text) > LONG and rules_at < 0) or len(strangers) > 1
    own = []
    for number, line in enumerate(lines):
        listed = 0 <= rules_at < number and bool(_BULLET.match(line)) and len(line) <= 80
        if number == rules_at or _FOREIGN_LINE.match(line):
            continue
        label = _LABEL.match(simplified(line))
        if label and label["label"] in strangers and not listed:
            continue
        if pasted and (number not in (0, len(lines) - 1) or len(line) > _LINE):
            continue
        own.append((_BULLET.sub("", line), listed))
    return own


def _without_quotes(line: str) -> str:
    """Without what stands in quotation marks; a single quoted word ("万得") is a name and stays."""
    return _QUOTED.sub(
        lambda match: (
            match[0] if len(match[0]) <= _SHORT_QUOTE and not re.search("[不别只我买卖]", match[0]) else "□"
        ),
        line,
    )


def _clauses(sentence: str) -> tuple[str, ...]:
    """The clauses that state something."""
    if _LAUGH.search(sentence):
        return ()
    parts = [part for part in _CLAUSE.split(sentence) if part.strip(_END)]
    kept: list[str] = []
    for part in parts:
        if "□" in part:
            continue  # half of it is somebody else's
        plain = simplified(part)
        if _SUPPOSED.search(plain):
            if "的话" in plain:
                kept.clear()
            break
        if _ASKS.search(plain):
            if _TAG.search(plain) and kept:
                kept.pop()  # it asks whether that is so
            if not kept and plain.isascii():
                break  # an English question goes on to its end
            continue
        kept.append(part.strip(_END))
    return tuple(kept)
