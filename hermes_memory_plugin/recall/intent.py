"""What a question wants beyond its words: past work, the latest, a comparison, a choice, something left out."""

from __future__ import annotations

import re
from collections.abc import Iterable

PAST_WORK = re.compile(
    r"上(?:一)?[次回](?!涨|跌|分红|派息|加息|降息)|之前|此前|先前|以前|早先|前面|刚才|刚刚|那次|当时|历史记录|(?:聊|说|提|讲|问|查|算|做|跑|用|看|分析|讨论|整理|总结|调)(?:到|起|出来|出)?过|调用|怎么(?:算|得|来|查|做|弄|改|修|解决|处理)(?:出来|到|出)?的|如何(?:算|得)出?来?的"
    r"|哪[里儿]?来的|从哪[里儿]?(?:来|查|得)|来源|出处|依据是|根据什么|还?记得|记不记得|用(?:的|了)(?:什么|哪个)(?:工具|接口|数据)|(?:哪个|什么)工具|我们(?:聊|说|讨论|定|决定|约定|商量)|我(?:说|问|告诉|让你|提)(?:过|的)?|你(?:说|告诉|查|算|给我|推荐)(?:过|的|了)|上周|(?:昨天|前天|昨晚|今早|早上|上午|那天|上个月).{0,8}?(?:说|聊|查|问|讨论|跑|导出|下载|生成|写|存|发|算|做|画|改|测|装|部署)(?:的|了|过)"
    r"|\blast (?:time|session|week we)|\bprevious(?:ly)?\b(?! (?:year|quarter|month|close))|\bearlier\b|\bbefore\b|\bwe (?:discussed|talked|agreed|decided|said|used|did|tried|fixed|set)|\byou (?:said|told|ran|called|suggested|recommended|mentioned|found|computed|calculated|used)"
    r"|\bdid (?:we|you|i)\b|\bhave (?:we|you|i)\b|\bremember(?:ed)?\b|\btool calls?\b|which tool|how (?:did|was|were) .{0,40}(?:get|got|comput|calculat|deriv|obtain|fix)|where did .{0,40}(?:come|get)|\bi (?:told|asked|said|mentioned)\b|\brecall\b"
)
CALLS = re.compile(
    r"调用|接口|工具|参数|(?:算|跑|导出|下载|生成|抓|爬|查|拉|取|写|存|回测|运行|执行|画)(?:出来|到)?(?:的|了|过|出)|失败|报错|出错|返回|结果|输出|文件|路径|命令|脚本|用(?:的|了)?(?:多少|什么|哪)"
    r"|\b(?:ran|run|called?|computed|calculated|fetched|exported|parameters?|arguments?|output|returned|result|failed|error|commands?|script|file|path|tool)\b"
)
LATEST = re.compile(
    r"最新|目前|现在|当前|如今|眼下|此刻|今天|今日|实时|最近(?!的?[一二两三四五六七八九十\d])|\blatest\b|\bcurrent(?:ly)?\b|\bnow(?:adays)?\b|\bmost recent\b|\bup[- ]to[- ]date\b|\btoday\b|\bat the moment\b"
)
_COMPARE = re.compile(
    r"对比|相比|比一比|比比|比较一下|做.{0,4}比较|哪[个家只支一]+.{0,8}(?:更|比较|最|好|强|贵|便宜|高|低|划算|值)|谁(?:更|比较|的.{0,10}(?:更?高|更?低|更?好|更?贵|大|小|强))|孰|差距|区别|差别|异同|\bvs\b\.?|\bversus\b|\bcompar\w+|\bbetter than\b|\bdifference between\b|\bwhich (?:one )?(?:is|has|of)\b|\bhigher than\b|\blower than\b|\bcheaper\b|横向"
)
_COMPARE_TWO = re.compile(r"比较|还是|更|比|哪|谁|高低|\bor\b|\bwhich\b|\bbetter\b|和|与|跟|、")
PICK = re.compile(
    r"选股|荐股|推荐(?!信|.{0,12}(?:电影|书|小说|歌|音乐|餐厅|游戏|电视剧|景点|酒店|菜))|买(?:点)?(?:什么|啥|哪)|选(?:哪|什么|几|一)|挑(?:几|一|些|选|出)|有(?:什么|哪些|啥)(?:好的?|值得.{0,6})?(?:股票|标的|票|机会|公司|基金|etf)|值得(?:买|投|关注|配置|入手|持有)|哪[些只支几个].{0,10}(?:股票?|标的|公司|票|基金|etf)"
    r"|建仓|布局|配置(?:什么|哪|建议|方案|一下|些)|组合建议|投资建议|买入建议|候选|筛选|筛(?:一下|出|几)|潜力股|牛股|(?:能|可以|该|适合|应该)(?:买|投资?|入手?|加仓)|想(?:买|投|配)|帮我(?:选|挑|推荐)|投(?:什么|哪|点什么)|股票池|加点仓"
    r"|\bstock picks?\b|\b(?:recommend\w*|suggest)\b(?! (?:me )?(?:a |an |some |any )?(?:good |nice )?(?:movie|film|book|song|show|restaurant|game|recipe|place|hotel|podcast|playlist|series))|what (?:should|can|to|do) (?:i |we )?(?:buy|invest)|which (?:stocks?|shares?|companies|funds?|etfs?)|\b(?:stock|investment|trade) ideas?\b|\bshould i (?:buy|invest|add|hold|sell)|\bworth (?:buying|investing)|\bscreen(?:ing)? for\b|\bpick (?:a|some|me|\d|one|two|three)|\bshortlist\b"
)
_NOT_NEGATED = re.compile(
    r"(?P<verb>[\u3400-\u9fff])不(?P=verb)|是不是|能不能|会不会|要不要|好不好|对不对|有没有|可不可以|行不行|该不该|值不值|贵不贵|高不高|低不低|多不多|不错|不过|不仅|不但|不断|不同|不少|不止|不光|不如|差不多|不久|不动产|不良|不锈钢|不知道?|不清楚|不好意思|没错|没问题|(?<=[还记])不|别的|特别|分别|级别|类别|区别|个别|性别|识别|差别|非常|非流动|非主营|非控|非现金|非金融|非农|非金属|非标|非经|非公开|非流通|非洲|是非|非银|并非|无锡|无人|无线|无极|[了过没]没有|没有[?？]?$|\bnot only\b|\bwhy not\b|notice|another"
)
_NEGATED = re.compile(
    r"不|别|没|无(?!论)|除了|除去|除开|避免|避开|排除|剔除|非(?=[a-z\u4e00-\u9fff]{2})|\b(?:not|no|without|except|exclud\w+|avoid\w*|never|don't|doesn't|isn't|aren't|won't|other than|apart from|ex-)\b"
)

# Words that carry a question, not its subject. They count when texts are ranked, not when a question's words are weighed.
_ZH_WORDS = """
我们 你们 他们 咱们 大家 怎么 怎样 怎么样 如何 哪些 哪个 哪家 哪里 哪儿 哪种 哪年 这个 那个 这些 那些 这里 那里 这样 那样 一个 一些 一下 没有 能否 可以 可否 为什么 为何 为啥 多少 几个 是否 是不是 有没有 能不能
请问 请 介绍 分别 什么 啥 的话 以及 或者 还是 而且 但是 不过 因为 所以 如果 就是 还有 关于 对于 根据 按照 帮 帮我 帮忙 给我 告诉 告诉我 说说 讲讲 谈谈 看看 查 查查 查下 查一下 看 说 讲 问 问一下 想 想要 想知道 知道
觉得 认为 应该 需要 进行 情况 方面 时候 现在 目前 当前 最新 大概 大约 左右 到底 究竟 其实 好 好的 谢谢 麻烦 都 也 还 有 对 给 让 能 会 要 为 于 以 之 其 或 等 上 下 中 里 从 到 向 就 地 得 着 过 很 更 最 较 讲个 个 只 家 吗 呢 吧 啊 呀
用 按 用多少 谁 谁家 哪只 哪支 哪份 几只 几次 几家 一共 总共 各 各是 比较 属于 还会 记 记过 写 写过 手上 手里 今年 去年 前年 明年 上个月 这个月 本月 上月 昨天 前天 昨晚 上周 本周 这周 最近 近期 如今 帮忙 一份 那份 那个 那只 那家
上次 之前 以前 上回 刚才 记得 还记得 说过 聊过 问过 查过 提过 当时 来着 呢吗 多大 多高 多久 几 何 有什么 有哪些 是什么
"""
_EN_WORDS = """
note remind mean recent latest yesterday year month week last pleas tell show give know want need like say said ask get look find check much mani one now current latest today what which who how last time previous earlier befor rememb recal we discuss mention let us help could would
"""
_WORDS = frozenset(_ZH_WORDS.split()) | frozenset(_EN_WORDS.split())
_CHARACTERS = frozenset("的了是吗呢吧哪什么怎这那和与在被把我你他她它您请谁啊呀嘛哦啥咱")


def content(tokens: Iterable[str]) -> tuple[str, ...]:
    """The tokens that name the subject of a question, each once; period tokens among them."""
    return tuple(token for token in dict.fromkeys(tokens) if not _empty(token))


def compares(text: str, entities: int) -> bool:
    """Whether the question sets things side by side."""
    return bool(_COMPARE.search(text)) or (entities >= 2 and bool(_COMPARE_TWO.search(text)))


def negates(text: str) -> bool:
    """Whether the question leaves something out."""
    return bool(_NEGATED.search(_NOT_NEGATED.sub(" ", text)))


def _empty(token: str) -> bool:
    if token in _WORDS or token in _CHARACTERS:
        return True
    return len(token) == 2 and "\u3400" <= token[0] <= "\u9fff" and not _CHARACTERS.isdisjoint(token)
