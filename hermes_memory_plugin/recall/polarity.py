"""What a question leaves out (除了海康, other than X), and whether a text says no."""

from __future__ import annotations

import re

from hermes_memory_plugin.recall import intent

_LEFT_OUT = re.compile(
    r"除(?:了|去|开)?(?P<a>[^，,。？?！!]{1,30}?)(?:之外|以外|外|(?=[，,]|还|都|其[他余它]|别的|剩))"
    r"|(?:不包括|不包含|不含|不算|排除|剔除|撇开|抛开)(?P<b>[^，,。？?！!]{1,20}?)(?=[，,。？?！!]|的|之外|以外|外|还|$)"
    r"|(?:而不是|而非|不是)(?P<c>[^，,。？?！!的]{1,20})"
    r"|\b(?:except(?: for)?|other than|besides|apart from|aside from|excluding|rather than|instead of)\s(?P<d>[^,.?!;]{1,40}?)(?=[,.?!;]|\s(?:who|what|which|do|did|is|are|have|has)\b|$)"
)
_SAYS_NO = re.compile(
    r"未(?!来|必|央)|勿|拒|禁|忌|戒|停止|取消|放弃|落选|避免|回避|规避|剔除|排除|反对|否(?!则)|缺(?!口)"
    r"|\bcannot\b|\bcan't\b|\bnobody\b|\bnone\b|\bneither\b|\bnor\b|\bban(?:ned)?\b|\bagainst\b|\brefus\w+|\breject\w*|\bforbid\w*|\bdeprecat\w+|\ballerg\w+|\bstop(?:ped)?\b|n't\b|\bno longer\b|\bdropped\b"
)
_CHANGED = re.compile(
    r"更正|纠正|修正|改[成为到名用口]|改了|调整[为到成]|[上下]调[至到为]|升至|降[至到]|换成|变成|转为|不再|现在是|最新|作废|原先|之前记|此前"
    r"|\bcorrection\b|\bupdate[ds]?:?|\bchanged?\b|\bmoved\b|\bswitched\b|\bno longer\b|\bany ?more\b|\binstead\b|\bnow\b|\breplaced?\b|\bmigrated\b|\brenamed\b"
)


def left_out(normal: str) -> list[tuple[int, int]]:
    """The stretches of a normalised question that name what it does not want."""
    return [match.span(match.lastgroup or 0) for match in _LEFT_OUT.finditer(normal)]


def says_no(normal: str) -> bool:
    """Whether a normalised text denies, forbids or lacks something."""
    return bool(_SAYS_NO.search(normal)) or intent.negates(normal)


def corrects(normal: str) -> bool:
    """Whether a normalised text says that something is no longer as it was."""
    return bool(_CHANGED.search(normal))
