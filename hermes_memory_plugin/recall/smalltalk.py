"""Messages that ask nothing of a memory: greetings, thanks, 继续, emoji, and questions about weather or recipes."""

from __future__ import annotations

import re

_ZH = """
你好啊 你好 您好 大家好 哈喽 哈啰 嗨 在吗 在么 在不在 早上好 早安 早 上午好 中午好 下午好 晚上好 晚安 好的好的 好的 好滴 好哒 好嘞 好吧 行吧 好 行 可以的 可以
没问题 嗯 哦 噢 喔 啊 哈 呵 嘿 嘻 收到 明白了 明白 了解了 了解 知道了 懂了 谢谢 多谢 感谢 谢啦 谢了 辛苦了 辛苦啦 辛苦 再见 拜拜 回头见 明天见 回见 继续吧 继续说 继续 接着说
接着写 接着来 接着 下一步 然后呢 还有呢 还有吗 对的 对 是的 是 没错 不客气 不用谢 不用了 不必了 算了 太好了 太棒了 太强了 不错 很好 真好 真棒 厉害 牛 赞 棒 点赞 加油
周末愉快 节日快乐 新年快乐 春节快乐 中秋快乐 国庆快乐 生日快乐 圣诞快乐 恭喜发财 恭喜 哥们 兄弟 朋友 亲爱的 亲 老师 小助手 助手 机器人 请 再来一次 再来一遍 再来一个 再说一遍
再说一次 重复一遍 换一个 停一下 停 取消 开始吧 开始 等一下 等等 稍等 等会 没事了 没事 没关系 随便 都行 无所谓 你真棒 你真厉害 你太厉害了 你好厉害 你真聪明 你是谁 你叫什么名字
你叫什么 你会做什么 你会什么 你能做什么 你能干什么 你几岁了 你几岁 最近怎么样 最近还好吗 吃了吗 吃饭了吗 忙吗 么么哒 爱你 想你 确认 同意 就这样 先这样 这样吧 遵命 麻烦你了 麻烦了 麻烦
给力 帮大忙了 太感谢了 非常感谢 十分感谢 今天就到这 到这里 今天先到这里 先到这里 下次聊 下次再聊 下次见 走了 我走了 睡了 我睡了 去吃饭了 我去吃饭了 哈哈 你 您 我 那 就 先 啦 很 非常 真 太 了 的
"""
_EN = """
hello there|hi there|hello|hey|hi|hiya|yo|good morning|good afternoon|good evening|good night|morning|evening|thank you so much|thank you very much|thank you|thanks a lot|thanks so much|many thanks
|thanks|thx|ty|cheers|okay|ok|k|cool|great|nice|awesome|perfect|excellent|wonderful|amazing|brilliant|got it|gotcha|understood|noted|sure thing|sure|of course|absolutely|yes|yep|yeah|yup|no|nope|nah
|goodbye|bye bye|bye|see you later|see you|see ya|later|talk soon|go on|go ahead|continue|carry on|keep going|next|please|proceed|lgtm|sounds good|looks good|never mind|nevermind|no worries|no problem|you're welcome
|you are welcome|welcome|how are you doing|how are you|how's it going|how is it going|what's up|whats up|sup|who are you|what are you|what is your name|what's your name|what can you do|can you repeat that|say that again|repeat that
|could you repeat that|lol|haha|hahaha|hmm|hm|wow|oh|ah|happy birthday|happy new year|merry christmas|good job|well done|nice work|great job|have a nice day|have a good day|have a great day|have a good one|have a nice weekend
|there|everyone|again|so much|a lot|very much|bro|man|buddy|mate|friend|assistant|hermes|and|that's all|that is all|that's it|all good|all right|alright|right|exactly|correct|agreed|i see|i'm back|i am back|one moment
|one sec|just a moment|wait|stop|cancel|start|retry|try again|do it|yes please|no thanks|no thank you|im good|i'm good|for now|that helps|that's great|that is great|that was helpful|very helpful|helpful|ping|test|today|you|then|well
"""
_PHRASES = re.compile("|".join(sorted(_ZH.split(), key=len, reverse=True)))
_ENGLISH = re.compile(
    r"\b(?:"
    + "|".join(
        sorted(
            map(re.escape, " ".join(_EN.split("\n")).replace(" |", "|").strip().split("|")),
            key=len,
            reverse=True,
        )
    )
    + r")\b"
)
_PARTICLES = re.compile(r"[啊呀哦嗯哈呢吧吗嘛啦哟哇么喽咯哒滴噢喔呵嘿嘻唉诶哎\s\d]+")
_NOT_WORDS = re.compile(r"[^\w\s']+|_+", re.UNICODE)
_CHAT = re.compile(
    r"天气|气温|下雨|下雪|带伞|笑话|段子|讲个?故事|(?:写|作|来|背)(?:一)?首?诗|唱(?:首|个|一首)?歌|歌词|菜谱|食谱|怎么做.{0,6}[菜肉鱼汤饭蛋面鸡虾粥饼糕腐饺]|[菜肉鱼汤饭面鸡虾粥饼糕腐饺]的?(?:做法|怎么做)"
    r"|(?:早饭|午饭|晚饭|午餐|晚餐|早餐|夜宵)(?:吃|做)|吃什么|推荐.{0,10}(?:歌曲?$|的歌|电影|书(?!面)|小说|歌|音乐|餐厅|游戏(?!股)|电视剧|剧集|动漫|景点)|看什么电影|星座|运势|翻译(?:成|一下|这|下)|猜谜|谜语|脑筋急转弯|成语接龙"
    r"|世界上最|的首都|历史上的今天|旅游攻略|几点了|现在几点|今天(?:星期|周|礼拜)几|今天几号|一加一|等于几|心情(?:不好|很)|好无聊|陪我聊|聊聊天|人生的意义|世界杯|绕口令|祝福语|写.{0,4}情书|写.{0,6}作文|春联|讲个|冷笑话"
    r"|\bweather\b|\bjokes?\b|\bpoems?\b|\bhaiku\b|bedtime story|tell me a story|\bsing\b|\bsongs?\b|\brecipes?\b|how (?:do|to) i? ?(?:cook|bake|boil)|(?:recommend|suggest) (?:me )?(?:a|some|any) (?:good )?(?:movie|film|book|song|show|restaurant|game|podcast|playlist|series|recipe|holiday)"
    r"|\btranslate\b|what time is it|what day is (?:it|today)|\bhoroscope\b|meaning of life|capital of|\briddle\b|\btrivia\b|fun fact|tell me about yourself|how old are you|world cup|tallest|highest mountain|is it going to rain"
)
_CRY = re.compile(
    r"^(?:哎呀|哎哟|唉|哇+塞?|天哪|天啊|妈呀|我的天|呜呜|嘻嘻|嘿嘿|哈哈+|呵呵|嗷|耶|ugh|wow|omg|yay|ouch|oops|phew|yikes|sorry|haha+|hehe|lol|brb|gtg|ttyl|woohoo|hooray|aww+)(?![a-z\u3400-\u9fff]{0,1}股)\b|^(?:哎呀|哎哟|唉|哇+塞?|天哪|天啊|妈呀|我的天|呜呜|哈哈+|嘻嘻|嘿嘿)"
)
# 今天股市真热闹呀: how it feels, said of no company and asking nothing.
_REMARK = re.compile(
    r"^(?:今天|今日|今儿|这两天|最近|这周)?的?(?:a股|股市|大盘|市场|行情|盘面)(?:今天|今日|最近|这两天)?也?(?:真是?|好|太|可真?|够|挺|有点)(?:的|是)?(?:热闹|精彩|刺激|疯狂|火爆?|红火|吓人|惨烈?|糟糕|无聊|闹心|给力|开心|难受?|折磨人?|魔幻|离谱|绝|夸张|痛苦|让人[\u3400-\u9fff]{2})[了的]?[呀啊呢哦啦哈嘛哟~!。\s]*$"
)
_SHORT_CRY = 30
_SUM = re.compile(
    r"^(?:what(?:'s| is)\s)?[\d\s.+*/x×÷()^-]*\d\s?(?:[+*/x×÷^-]|times|plus|minus|divided by|乘以?|加上?|减去?|除以)\s?\d[\d\s.+*/x×÷()^-]*(?:=|等于.{0,3})?\s?\??$"
)
_PERSONAL = re.compile(
    r"我(?:的|喜欢|爱|家|们|常|说过|讲过|告诉|记|上次|之前|不|对|平时|一般)|上次|之前|以前|记得|记住|提醒|我要的|老样子|照旧"
    r"|\bmy\b|\bmine\b|\bi (?:like|love|prefer|told|said|usually|always|booked|hate|can't|don't|am allergic)|\bremember|\blast time|\busual\b|\bwe\b|\bour\b"
)
_MOST = 160


def is_small_talk(text: str, *, anchored: bool) -> bool:
    """Whether a normalised message wants nothing remembered; `anchored`: it names a company, figure or past work."""
    if len(text) > _MOST:
        return False
    rest = _NOT_WORDS.sub(" ", text)
    if not any(map(str.isalnum, rest)):
        return True
    if _REMARK.match(text):
        return True
    if anchored:
        return False
    if _SUM.match(text) or (
        len(text) <= _SHORT_CRY and "?" not in text and _CRY.match(text) and not _PERSONAL.search(text)
    ):
        return True
    for _ in range(2):
        rest = _ENGLISH.sub(" ", rest)
        rest = _PARTICLES.sub(" ", _PHRASES.sub(" ", rest) if len(rest) <= 40 else rest)
    if not any(map(str.isalpha, rest)):
        return not any(map(str.isdigit, text)) or len(re.sub(r"\D", "", text)) <= 2
    return bool(_CHAT.search(text)) and not _PERSONAL.search(text)
