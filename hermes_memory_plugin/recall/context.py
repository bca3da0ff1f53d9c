"""What the words around a name say of it: market talk or an errand, a listing abroad, a part of another word."""

from __future__ import annotations

import re

from hermes_memory_plugin.recall import segment

MARKET_TALK = re.compile(
    r"股(?!东大会纪要)|板块|行业|赛道|龙头|概念|估值|市值|市盈|市净|财报|年报|季报|中报|研报|业绩|营收|净利|毛利|分红|股息|评级|目标价|代码|证券|基金|etf|转债|指数|大盘|行情|走势"
    r"|增速|出货|销量|产能|回购|财测|涨|跌|买入|卖出|加仓|减仓|建仓|持仓|仓位|止损|止盈|看多|看空|抄底|选股|标的|配置|投资|上市|收盘|开盘|成交|券商|(?<![a-z])(?:pe|pb|ps|roe|eps|ttm|ipo|adr)(?![a-z])"
    r"|\b(?:stocks?|shares?|ticker|equity|equities|valuation|earnings|revenue|dividend|market cap|price target|portfolio|position|holdings?|invest\w*|bullish|bearish|buy|sell|long|short|rating|sector|nasdaq|nyse|index|trading|traded|analysts?|quarter|guidance|margins?)\b"
)
ERRAND = re.compile(
    r"信用卡|储蓄卡|银行卡|开户|开卡|取钱|存钱|转账|账号|账户|网点|柜台|\batm\b|还款|房贷|车贷|排队|话费|套餐|宽带|流量|手机号|营业厅|充值|快递|包裹|寄|机票|航班|值机|外卖|下单|购物|优惠券|会员|理赔|办卡|办了|办理|存款(?!总|余|规|增|利)|取款|汇款|分行|支行|客服|信号|号码|wifi|理财经理|贷了|电话"
    r"|credit card|debit card|my account|flight|parcel|delivery|pie|juice"
)
ERRAND_SECTORS = frozenset({"银行", "运营商", "交运", "航空", "保险", "互联网", "美股", "零售", "证券"})
NOT_A_COMPANY = re.compile(r"行业|产业|市场|学院|大学|学会|协会|研究院|业(?![绩务])|人民(?!币)")
# 申通地铁 is not 申通, 华谊集团 is 华谊's parent: what follows a short name makes it another company's.
OTHER_COMPANY = re.compile(
    "科技|技术|股份|控股|地产|置业|电气|电工|物流|软件|工业|新材|材料|水利|在线|证券|传媒|文化|生物|医药|药业|医疗|环境|环保|能源|电力|蒙电|电子|信息|通信|化学|化工|机械"
    "|重工|装备|食品|乳业|汽车|航空|地铁|高速|嘉宝|音乐|影业|资源|矿业|建材|家居|智能|光电|微电|基电|转债|转[0-9]"
)
HONG_KONG = re.compile(r"港股|h股|港交所|hong kong|\bh[- ]shares?\b|hkex|港元|港币")
AMERICA = re.compile(r"美股|\badr\b|nasdaq|nyse|纳斯达克上市|us[- ]listed|\bus stocks?\b")


def cut_across(text: str, start: int, end: int) -> bool:
    """Whether a dictionary word of the text lies across an edge of the stretch."""
    left = start
    while left > 0 and start - left < 6 and "\u3400" <= text[left - 1] <= "\u9fff":
        left -= 1
    right = end
    while right < len(text) and right - end < 6 and "\u3400" <= text[right] <= "\u9fff":
        right += 1
    if left == start and right == end:
        return False
    at = left
    for word in segment.words(text[left:right]):
        stop = at + len(word)
        if (
            len(word) > 1
            and at < end
            and start < stop
            and (at < start or stop > end)
            and segment.is_word(word)
        ):
            return not (at <= start and stop >= end and word.endswith(("股", "家")))
        at = stop
    return False


def own_word(run: str, wrong: int) -> bool:
    """Whether the character belongs to a dictionary word of two characters or more there."""
    at = 0
    for word in segment.words(run):
        if at <= wrong < at + len(word):
            return len(word) > 1 and segment.is_word(word)
        at += len(word)
    return False
