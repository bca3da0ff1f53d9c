"""Sentences that try to instruct the reader; from untrusted origins they stay out of automatic recall."""

from __future__ import annotations

import re

from hermes_memory_plugin.recall.normalise import normalise

_ORDERS = re.compile(
    r"(?:忽略|无视|忘掉|忘记|不要理会|覆盖)[^。.\n]{0,12}(?:指令|指示|规则|提示|设定|要求|限制|对话|内容)"
    r"|(?:从现在起|从今以后|今后|以后)[^。.\n]{0,8}(?:你|必须|一律|总是|都要|只能)"
    r"|你(?:现在|必须|应当|应该|需要|要)[^。.\n]{0,4}(?:扮演|是一个|成为|执行|调用|运行|发送|转账|买入|卖出|推荐|告诉|回答|输出|删除)"
    r"|请(?:立即|马上|务必|直接)[^。.\n]{0,6}(?:执行|调用|运行|发送|转账|买入|卖出|推荐|删除|下载|访问|点击)"
    r"|(?:致|给|写给|告诉|提醒)[^。.\n]{0,10}(?:ai|人工智能|大模型|语言模型|智能体|机器人助手|助手)[^。.\n]{0,4}[：:，,]"
    r"|请(?:你|您)?(?:忽略|删除|清除|抹掉|隐瞒|不要提|别提|不要告诉|给出(?:买入|卖出|最高)|始终|总是|一律|只(?:推荐|回答)|将?[^。.\n]{0,10}(?:转账|发送到|发到|汇到))"
    r"|不要(?:提及|透露|告诉|提到|引用)(?:本段|这段|这条|此段|上述|用户|任何人)"
    r"|(?:dear|attention|note to|to)[^.\n]{0,20}\b(?:ai|assistant|agent|llm|language model|chatbot)s?\b\s*[:,]"
    r"|(?:系统|管理员|开发者)(?:提示|消息|指令|通知|要求)"
    r"|(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,30}\b(?:instruction|prompt|rule|context|guideline|direction|message|polic)"
    r"|\b(?:from now on|henceforth)\b[^.\n]{0,30}\b(?:you|always|must|never)"
    r"|\byou (?:are now|must now|must|have to|should now|will now)\b[^.\n]{0,40}"
    r"\b(?:act|pretend|respond|reply|answer|say|output|execute|run|call|send|transfer|delete|recommend|buy|sell|reveal)"
    r"|\b(?:act|behave|respond) as (?:if|an?|the)\b|\bpretend (?:to be|you)\b|\bjailbreak|\bdan mode\b|\bdeveloper mode\b"
    r"|\b(?:new|system|admin|important) (?:instruction|prompt|message|directive)s?\b"
    r"|\b(?:reveal|print|repeat|leak|show)\b[^.\n]{0,20}\b(?:system prompt|instructions|secret|password|api key)"
    r"|\bdo not (?:tell|inform|mention|alert)\b[^.\n]{0,20}\buser\b"
)


def is_instruction(text: str) -> bool:
    """Whether the text tells its reader what to do, rather than how things are."""
    return bool(_ORDERS.search(normalise(text[:4_000])))
