"""Who a text speaks of, by every name and spelling, and the numbers and words that are nobody."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Entity
from hermes_memory_plugin.recall import catalogue, metrics, pairs, synonyms, tickers
from hermes_memory_plugin.recall.lexicon import Lexicon
from hermes_memory_plugin.recall.normalise import normalise

MOUTAI = "600519.SH"


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """Only for tests that teach it nothing."""
    return Lexicon()


def ids(lexicon: Lexicon, text: str) -> list[str]:
    return [mention.entity_id for mention in lexicon.link(text)]


@pytest.mark.parametrize(
    "spelling",
    [
        "600519", "600519.SH", "600519.SS", "600519.XSHG", "SH600519", "sh600519", "sh.600519", "SH:600519", "６００５１９",
        "（600519）", "茅台", "贵州茅台", "貴州茅臺", "Moutai", "Kweichow Moutai", "maotai", "guizhoumaotai", "gui zhou mao tai",
        "gzmt", "GZMT", "贵洲茅台", "贵州芧台股价", "茅台/PE", "股王的估值", "maotia",
    ],
)  # fmt: skip
def test_one_company_by_every_spelling(lexicon: Lexicon, spelling: str) -> None:
    assert ids(lexicon, spelling) == [MOUTAI]


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("宁王还能拿吗", "300750.SZ"),
        ("宁得时代", "300750.SZ"),
        ("招行分红", "600036.SH"),
        ("五粮叶", "000858.SZ"),
        ("比迪亚", "002594.SZ"),
        ("byd", "002594.SZ"),
        ("隆基股份", "601012.SH"),
        ("中国国旅", "601888.SH"),
        ("韦尔股份", "603501.SH"),
        ("国泰君安", "601211.SH"),
        ("TCL集团", "000100.SZ"),
        ("万科", "000002.SZ"),
        ("zsyh", "600036.SH"),
        ("688981", "688981.SH"),
        ("300750", "300750.SZ"),
        ("920002.BJ", "920002.BJ"),
        ("830799", "830799.BJ"),
        ("510300", "510300.SH"),
        ("159915", "159915.SZ"),
        ("113050", "113050.SH"),
        ("127045", "127045.SZ"),
        ("00700.HK", "00700.HK"),
        ("0700.HK", "00700.HK"),
        ("700.hk", "00700.HK"),
        ("港股 0700 的市盈率", "00700.HK"),
        ("HK00700", "00700.HK"),
        ("腾讯", "00700.HK"),
        ("AAPL", "AAPL"),
        ("$AAPL", "AAPL"),
        ("NASDAQ:AAPL", "AAPL"),
        ("aapl.us", "AAPL"),
        ("Tesla shares", "TSLA"),
        ("NVDA earnings", "NVDA"),
        ("苹果市值", "AAPL"),
        ("港股招商银行", "03968.HK"),
        ("招商银行H股", "03968.HK"),
        ("美股的阿里", "BABA"),
        ("平安银行000001", "000001.SZ"),
        ("000001", "000001.SZ"),
        ("上证指数000001", "000001.SH"),
        ("000001上证点位", "000001.SH"),
        ("000300", "000300.SH"),
        ("沪深300", "000300.SH"),
        ("创业板指", "399006.SZ"),
        ("恒生指数", "HSI"),
        ("太阳能的股价", "000591.SZ"),
        ("机器人这只股票", "300024.SZ"),
        ("stock code 000858", "000858.SZ"),
        ("600519股价", MOUTAI),
        ("美的分红", "000333.SZ"),
        ("不碰银行股", "sector:银行"),
        ("白酒有哪些公司", "sector:白酒"),
        ("EV stocks", "sector:新能源车"),
    ],
)
def test_cjk_entities(lexicon: Lexicon, text: str, entity: str) -> None:
    assert entity in ids(lexicon, text)


@pytest.mark.parametrize(
    "text",
    [
        "600519是订单号", "600519是我的快递单号", "600519 is my order number", "600036 is the zip code", "订单号600519", "订单号是 600519", "单号：600519", "快递单号600519", "验证码600519", "工号600519已离职", "邮编 600519", "密码是600519",
        "600519元", "600519 元", "花了600519", "¥600519", "$600519", "持有600519股", "600519万", "13860051912", "1600519", "6005190", "010-600519",
        "call_600519", "v600519", "600519.5", "202604", "20260430", "order number 600519", "the code is 000858", "phone 600519", "door code: 600036",
        "预算 600000", "工资 300000", "ticket #600519", "issue 600519", "600519 users", "/data/600519/x",
        "太阳能热水器", "机器人吸尘器", "吃苹果", "小米粥", "老百姓的生活", "平安夜", "长城很长", "长安街", "移动硬盘", "最美的风景", "太平洋", "广东财政收入",
        "中国银行业", "商业银行法", "中国人民", "我的集团年会", "去农业银行取钱", "美团外卖", "银行卡在哪", "apple pie", "main.o", "IT ALL ON", "A GO AT IT",
        "What should I change", "it is on us", "visa application",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_company(lexicon: Lexicon, text: str) -> None:
    assert ids(lexicon, text) == []


def test_several_companies_in_the_order_of_the_text(lexicon: Lexicon) -> None:
    assert ids(lexicon, "比较五粮液、600519.SH 和泸州老窖") == ["000858.SZ", MOUTAI, "000568.SZ"]


def test_context_says_that_a_word_means_a_stock(lexicon: Lexicon) -> None:
    assert not lexicon.link("小米怎么样")
    assert [m.entity_id for m in lexicon.link("小米怎么样", context="港股研报")] == ["01810.HK"]


def test_a_code_is_surer_than_a_name_than_a_guess(lexicon: Lexicon) -> None:
    def sure(text: str) -> float:
        return lexicon.link(text)[0].confidence

    assert (
        sure("600519.SH")
        > sure("贵州茅台")
        > sure("茅台")
        > sure("guizhoumaotai")
        > sure("gzmt")
        > sure("贵州茅抬的") * 0.7
    )


def test_sectors_have_members_and_members_sectors(lexicon: Lexicon) -> None:
    assert {MOUTAI, "000858.SZ"} <= set(lexicon.members("白酒"))
    assert lexicon.members("sector:白酒") == lexicon.members("白酒")
    assert "白酒" in lexicon.sectors_of(MOUTAI)
    assert lexicon.listings("600036.SH") == ("03968.HK",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("神农种业（300189.SZ）", [("300189.SZ", "神农种业")]),
        ("中科江南(301153)", [("301153.SZ", "中科江南")]),
        ("今天关注神农种业（300189.SZ）", [("300189.SZ", "神农种业")]),
        ('{"ts_code": "002789.SZ", "name": "建艺集团"}', [("002789.SZ", "建艺集团")]),
        ('[{"name": "建艺集团", "close": 9.1, "symbol": "sz002789"}]', [("002789.SZ", "建艺集团")]),
        ("{'证券代码': '002789', '证券简称': '建艺集团'}", [("002789.SZ", "建艺集团")]),
        ("我昨天在北京买了一套房子（600519）", []),
        ("收入（600519）", [("600519.SH", "收入")]),
        ('{"code": "404", "name": "没有找到"}', []),
    ],
)
def test_pairs_that_text_states(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs.find(text) == found


def test_what_was_learned_is_linked() -> None:
    lexicon = Lexicon()
    assert not lexicon.link("建艺集团怎么样")
    (entity,) = lexicon.learn('{"ts_code": "002789.SZ", "name": "建艺集团"}')
    assert entity == Entity("002789.SZ", "建艺集团", "stock")
    assert ids(lexicon, "建艺集团怎么样") == ["002789.SZ"]
    assert lexicon.learn("建艺集团（002789.SZ）") == []
    lexicon.learn_pinyin()
    assert ids(lexicon, "jianyijituan") == ["002789.SZ"]


@pytest.mark.parametrize("text", ["贵州茅台（000001.SZ）", "收入（600519）", "五粮液（600519.SH）"])
def test_no_text_renames_a_company(text: str) -> None:
    lexicon = Lexicon()
    lexicon.learn(text)
    assert ids(lexicon, "贵州茅台") == [MOUTAI]
    assert ids(lexicon, "五粮液") == ["000858.SZ"]
    assert ids(lexicon, "收入") == []


def test_the_user_names_things_his_way(tmp_path: Path) -> None:
    path = tmp_path / "entities.yaml"
    path.write_text(
        "- id: 600519.SH\n  name: 贵州茅台\n  aliases: [我的酒]\n"
        "- id: 834567.BJ\n  name: 小作坊科技\n  sectors: [我的组合]\n"
        "- name: 没有代码\n"
        "- id: 600000.SH\n  name: 浦发银行\n  alias: x\n"
        "- just text\n",
        encoding="utf-8",
    )
    lexicon = Lexicon()
    problems = lexicon.load_entities(path)
    assert [problem.split(": ")[0] for problem in problems] == [f"{path}:{line}" for line in (7, 8, 11)]
    assert ids(lexicon, "我的酒多少钱") == [MOUTAI]
    assert ids(lexicon, "小作坊科技") == ["834567.BJ"]
    assert lexicon.members("我的组合") == ("834567.BJ",)
    assert "茅台" in lexicon.names(MOUTAI)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- id: 600519.SH\n  name: [", ":2: not YAML"),
        ("id: 600519.SH", ":1: write a list"),
        ("", ""),
        ("# none\n", ""),
    ],
)
def test_a_broken_entities_file_says_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "entities.yaml"
    path.write_text(text, encoding="utf-8")
    found = Lexicon().load_entities(path)
    assert (problem in found[0]) if problem else found == []


def test_no_entities_file_is_no_problem(tmp_path: Path) -> None:
    assert Lexicon().load_entities(tmp_path / "none.yaml") == []


def test_a_plugin_adds_an_entity() -> None:
    lexicon = Lexicon()
    lexicon.add(Entity("XAU", "现货黄金价", "index", ("伦敦金",)))
    assert ids(lexicon, "伦敦金走势") == ["XAU"]


def test_built_in_codes_and_names_are_well_formed_and_unique() -> None:
    lines = (
        files("hermes_memory_plugin.recall.data")
        .joinpath("entities.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    codes = [line.split(" ", 1)[0] for line in lines if line and line[0] not in "#["]
    assert len(codes) == len(set(codes))
    items = catalogue.load()
    names: dict[str, str] = {}
    stocks = 0
    for item in items.values():
        if item.kind == "sector":
            assert item.id == f"sector:{item.name}"
            continue
        assert re.fullmatch(r"\d{6}\.(SH|SZ|BJ|CSI)|\d{5}\.HK|\d{4}\.TW|[A-Z]{1,6}(\.B)?|N225", item.id), (
            item.id
        )
        digits, _, market = item.id.partition(".")
        if market in ("SH", "SZ", "BJ") and item.kind == "stock":
            stocks += 1
            assert tickers.market_of(digits) == market, item.id
        assert item.name == item.name.strip() and len(item.name) >= 2
        for sector in item.sectors:
            assert catalogue.sector_id(sector) in items, (item.id, sector)
        for twin in item.twins:
            assert twin in items
        if not item.second_listing:
            for name in item.names:
                assert normalise(name.text) == name.text.lower(), name
                assert names.setdefault(name.text, item.id) == item.id, (name.text, item.id, names[name.text])
    assert stocks >= 300


def test_the_pinyin_file_is_that_of_the_names() -> None:
    from hermes_memory_plugin.recall.data.make_pinyin import lines

    written = files("hermes_memory_plugin.recall.data").joinpath("pinyin.txt").read_text(encoding="utf-8")
    assert written.splitlines() == lines(), "run python -m hermes_memory_plugin.recall.data.make_pinyin"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PE", ["pe"]), ("市盈率", ["pe"]), ("估值怎么样", ["pe"]), ("valuation", ["pe"]), ("PB和ROE", ["pb", "roe"]), ("股息率", ["dividend_yield"]),
        ("分红", ["dividend"]), ("归母净利润", ["net_profit"]), ("营收", ["revenue"]), ("毛利率", ["gross_margin"]), ("收盘价", ["price"]), ("target price", ["target_price"]),
        ("每股收益", ["eps"]), ("总市值", ["market_cap"]), ("涨跌幅", ["change_pct"]), ("people", []), ("open", []), ("speed", []),
    ],
)  # fmt: skip
def test_metrics_by_every_name(text: str, found: list[str]) -> None:
    assert metrics.find(normalise(text)) == found


@pytest.mark.parametrize(
    ("name", "id_"),
    [("PE_TTM", "pe"), ("市盈率", "pe"), ("net_profit", "net_profit"), ("Foo Bar", "foo bar")],
)
def test_a_metric_has_one_id(name: str, id_: str) -> None:
    assert metrics.canonical(name) == id_


def test_no_metric_name_means_two_figures() -> None:
    seen: dict[str, str] = {}
    for metric in metrics.metrics().values():
        for name in metric.names:
            assert seen.setdefault(name, metric.id) == metric.id, name


def test_synonyms_go_both_ways_and_are_normal() -> None:
    assert "cheap" in {other for group in synonyms.find("便宜") for other in group.others}
    assert "低估" in {other for group in synonyms.find("cheap stocks") for other in group.others}
    for group in synonyms.groups():
        assert len(group) >= 1
        for term in group:
            assert normalise(term) == term
            assert len(term) >= 2 or term in {"贵", "涨", "跌", "药"}


_SCRAPS = st.lists(
    st.sampled_from(
        [
            "贵州",
            "茅台",
            "600519",
            ".sh",
            "股",
            "（",
            "）",
            "hk",
            " ",
            "平安",
            "银行",
            "$",
            "AAPL",
            "的",
            "指数",
            "gzmt",
            "{",
            '"name":',
        ]
    )
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=80), _SCRAPS.map("".join)))
def test_linking_and_learning_never_raise(lexicon: Lexicon, text: str) -> None:
    for mention in lexicon.link(text):
        assert 0.5 <= mention.confidence <= 1
        assert mention.start < mention.end
    pairs.find(text)


def test_threads_share_a_lexicon() -> None:
    lexicon = Lexicon()

    def work(n: int) -> list[str]:
        lexicon.learn(f'{{"ts_code": "{300900 + n % 50}.SZ", "name": "测试公司{n % 50}号"}}')
        return ids(lexicon, "贵州茅台和五粮液")

    with ThreadPoolExecutor(8) as pool:
        assert all(found == [MOUTAI, "000858.SZ"] for found in pool.map(work, range(200)))


def test_a_learned_name_is_found_misspelt_and_beside_others_whenever_it_was_learned() -> None:
    early, late = Lexicon(), Lexicon()
    told = "嘉禾瑞泽（688901.SH）与星海物贸（831999.BJ）"
    early.learn(told)
    late.link("贵洲茅台、平安和招行的息差")  # what is looked up for near misses was made before
    late.learn(told)
    for text in ("嘉禾瑞择怎么样", "星海务贸的营收", "嘉禾的毛利率"):
        assert ids(late, text) == ids(early, text)
    assert ids(late, "嘉禾瑞择怎么样") == ["688901.SH"]


def test_learning_a_name_makes_nothing_anew_for_the_others() -> None:
    lexicon = Lexicon()
    lexicon.link("贵洲茅台")
    near, bearers = lexicon._typos, lexicon._shared
    lexicon.learn("嘉禾瑞泽（688901.SH）")
    lexicon.link("嘉禾瑞泽")
    assert (lexicon._typos, lexicon._shared) == (near, bearers)
