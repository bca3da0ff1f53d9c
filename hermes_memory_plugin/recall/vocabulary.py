"""Words that only one trade uses: they tell which of several companies a short name means."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TALK = {
    "银行": "净?息差|不良|拨备|存款|贷款|对公|信贷|零售客户|私行|同业|资本充足|npl|nim|deposits?|loans?|net interest",
    "保险": "寿险|财险|车险|保费|新业务价值|内含价值|营运利润|代理人|健康险|综合成本率|投保|理赔率|nbv|premiums?|embedded value",
    "证券": "经纪业务|投行业务|自营|两融|承销|佣金率|brokerage",
    "汽车": "销量|卖.{0,4}车|交付|辆|车型|皮卡|新车|智驾|suv|乘用车|deliver\\w+|vehicles?|cars? sold",
    "白酒": "批价|动销|基酒|酱酒|酒(?!店)|liquor|baijiu",
    "医药": "临床|集采|管线|创新药|适应症|新药|获批上市|clinical|pipeline",
    "电力": "发电量|上网电价|来水|装机|机组|度电",
    "煤炭": "吨煤|煤价|产煤|长协煤|coal",
    "地产": "拿地|销售面积|合约销售|交楼|土储",
    "半导体": "晶圆|制程|流片|芯片|chips?|wafers?",
    "光伏": "硅料|硅片|组件|电池片|solar",
    "航空": "客座率|航线|机队",
    "家电": "空调|冰箱|洗衣机",
    "军工": "军品|弹药|战机|导弹",
    "软件": "信创|云服务|saas",
    "电池": "装车|电芯|动力电池|gwh",
    "黄金": "矿产金|金矿",
    "石油石化": "炼化|油气|原油",
}
_PATTERNS = {sector: re.compile(pattern) for sector, pattern in _TALK.items()}


def spoken_of(text: str, sectors: Iterable[str]) -> bool:
    """Whether a normalised text uses the words of one of the sectors."""
    return any(sector in _PATTERNS and _PATTERNS[sector].search(text) for sector in sectors)
