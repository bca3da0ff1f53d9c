"""The analysts a report names, by the labels and certificates beside their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SURNAMES = frozenset(
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章云苏潘葛奚范彭郎鲁韦昌马苗凤花方俞任袁柳酆鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元卜顾孟平黄和穆萧尹姚邵湛汪祁毛禹狄米贝明臧计伏成戴谈宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席季麻强贾路娄危江童颜郭梅盛林刁钟徐邱骆高夏蔡田樊胡凌霍虞万支柯昝管卢莫经房裘缪干解应宗丁宣贲邓郁单杭洪包诸左石崔吉钮龚程嵇邢滑裴陆荣翁荀羊於惠甄曲家封芮羿储靳汲邴糜松井段富巫乌焦巴弓牧隗山谷车侯宓蓬全郗班仰秋仲伊宫宁仇栾暴甘厉戎祖武符刘景詹束龙叶幸司韶郜黎蓟薄印宿白怀蒲邰从鄂索咸籍赖卓蔺屠蒙池乔阴胥能苍双闻莘党翟谭贡劳逄姬申扶堵冉宰郦雍却璩桑桂濮牛寿通边扈燕冀郏浦尚农温别庄晏柴瞿阎充慕连茹习宦艾鱼容向古易慎戈廖庾终暨居衡步都耿满弘匡国文寇广禄阙东欧沃利蔚越夔隆师巩厍聂晁勾敖融冷訾辛阚那简饶空曾毋沙乜养鞠须丰巢关蒯相查后荆红游竺权逯盖益桓公肖闫覃"
)
_NAME = r"[\u4e00-\u9fff](?:\s?[\u4e00-\u9fff]){1,3}"
_CERTIFIED = re.compile(
    r"执业证书|执证编号|资格编号|登记编号|证书编号|SAC|\bS\d{13}\b|\bSFC\b|CE\s?No", re.IGNORECASE
)
_LABEL = re.compile(
    r"^(?:首席|联席|证券|研究|行业|资深|高级)*分析师(?!声明|承诺|简介|介绍|及|与)\s*[:：]?\s*(?P<rest>.*)$"
)
_AGAIN = re.compile(
    r"(?<=\S)\s+(?=(?:首席|联席|证券|研究)*(?:分析师|研究助理|联系人)(?:[:：\s]|[\u4e00-\u9fff]{2,4}(?:\s|$)))"
)
"""Where a further person begins on the same line."""
_HELPER = re.compile(r"研究助理|联系人|联络人|研究员助理|research associate|contact", re.IGNORECASE)
_NOT_A_NAME = re.compile(
    r"分析|研究|证券|行业|公司|邮箱|电话|评级|声明|报告|市场|表现|数据|资料|相关|编号|执业"
)
_STOP = re.compile(
    r"[（(]|执业|SAC|S\d{6}|资格|登记|证书|邮箱|电话|E-?mail|Tel|[\w.\-]+[@＠]|\+?\d{3,}", re.IGNORECASE
)
_ENGLISH = r"[A-Z][a-z'’]+(?:[ -](?:[A-Z]\.|[A-Z][a-z'’]+)){1,3}"
_ENGLISH_LABEL = re.compile(
    rf"^(?:(?:Lead|Senior|Research|Equity) )*Analysts?\s*[:：]\s*(?P<names>{_ENGLISH}(?:, CFA|, PhD)?(?:\s*(?:[,;/&]|and)\s*{_ENGLISH}(?:, CFA)?)*)"
)
_ENGLISH_ALONE = re.compile(rf"^(?P<name>{_ENGLISH})(?:,? (?:CFA|PhD|CPA))*$")
_REACH = re.compile(r"[\w.\-]+[@＠][\w.\-]+|^\(?\+\d|SFC|CE No|\bSAC\b", re.IGNORECASE)


def analysts(lines: Sequence[str]) -> tuple[str, ...]:
    """The names, in the order they stand; assistants are none. Names without a label or certificate are left out."""
    found: dict[str, None] = {}
    role = ""
    before = ""
    lines = [part for line in lines for part in _AGAIN.split(line.strip())]
    for at, line in enumerate(lines):
        if _HELPER.match(line):
            role, before = "helper", ""
            continue
        label = _LABEL.match(line)
        if label:
            role = "analyst"
            names = _chinese(label["rest"])
            found.update(dict.fromkeys(names))
            before = ""
            continue
        english = _ENGLISH_LABEL.match(line)
        if english:
            found.update(
                dict.fromkeys(re.findall(_ENGLISH, re.sub(r"\b(?:CFA|PhD|and)\b", ",", english["names"])))
            )
            continue
        if role == "helper":
            if _CERTIFIED.search(line) and before:
                role = ""
            else:
                before = line
                continue
        if _CERTIFIED.search(line):
            names = _chinese(line) or _chinese(before)
            found.update(dict.fromkeys(names))
        alone = _ENGLISH_ALONE.match(line)
        if alone and any(_REACH.search(one) for one in lines[at + 1 : at + 3]):
            found[alone["name"]] = None
        before = line
    return tuple(found)


def _chinese(text: str) -> list[str]:
    """The names at the head of a line, up to what is no name."""
    head = _STOP.split(text, maxsplit=1)[0]
    names = []
    for part in re.split(
        r"[、，,/;；|]|\s{2,}|(?<=[\u4e00-\u9fff]{3})\s|(?<=[\u4e00-\u9fff]{2})\s(?=[\u4e00-\u9fff]{2})", head
    ):
        name = re.sub(r"\s", "", part)
        name = re.sub(r"^(?:证券|首席|联席)*分析师[:：]?", "", name)
        if (
            2 <= len(name) <= 4
            and re.fullmatch(_NAME, name)
            and name[0] in _SURNAMES
            and not _NOT_A_NAME.search(name)
        ):
            names.append(name)
    return names
