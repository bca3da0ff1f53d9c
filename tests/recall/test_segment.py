"""One tokenizer for what is stored and what is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.recall import segment
from hermes_memory_plugin.recall.normalise import normalise
from hermes_memory_plugin.recall.segment import tokens


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("600519.SH", {"600519", "600519.sh"}),
        ("SH600519", {"600519", "600519.sh"}),
        ("sh.600519", {"600519", "600519.sh"}),
        ("600519.SS", {"600519", "600519.sh"}),
        ("700.HK", {"00700", "00700.hk"}),
        ("HK00700", {"00700", "00700.hk"}),
        ("茅台600519的PE", {"600519", "茅台", "pe"}),
        ("src/app/main.py", {"src/app/main.py", "src", "app", "main", "py"}),
        ("~/.hermes/config.yaml", {"~/.hermes/config.yaml", "config", "yaml"}),
        ("getUserInfo", {"getuserinfo", "get", "user", "info"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("user_login_count", {"user_login_count", "user", "login", "count"}),
        ("v1.2.3", {"v1.2.3", "1.2.3"}),
        ("--no-cache", {"--no-cache", "cach"}),
        ("ERR_CONN_RESET", {"err_conn_reset", "err", "conn", "reset"}),
        ("0x80070005", {"0x80070005"}),
        ("call_ab12", {"call_ab12", "ab12"}),
        ("C++", {"c++"}),
        ("PE28.5", {"pe", "28.5"}),
        ("1,476.94亿元", {"1476.94"}),
        ("28x", {"28x", "28"}),
        ("PE/PB", {"pe", "pb"}),
        ("running companies", {"run", "compani"}),
        ("café naïve", {"cafe", "naiv"}),
        ("2019年报", {"~y2019", "年报"}),
        ("2024Q1", {"~2024q1", "~y2024"}),
        ("2024-04-30", {"~d20240430", "~m202404"}),
        ("2024年4月30日", {"~d20240430", "~m202404"}),
        ("茅", {"茅"}),
    ],
)
def test_tokens_hold(text: str, wanted: set[str]) -> None:
    assert wanted <= set(tokens(text))


def test_a_full_date_is_not_its_year() -> None:
    found = tokens("披露日期2020-03-31")
    assert "~y2020" not in found
    assert "2020" not in found


def test_stop_words_are_out() -> None:
    assert tokens("what is the PE of it") == ["pe"]


def test_mixed_script_boundary() -> None:
    assert "youer" in tokens("修改youer服务端")
    assert {"修改", "服务"} <= set(tokens("修改youer服务端"))


def test_cjk_two_char_or() -> None:
    stored = set(tokens("本周讨论了白酒、光伏和军工的配置"))
    for word in ("白酒", "光伏", "军工"):
        assert set(tokens(word)) & stored, word


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("สวัสดีชาวโลก", "ชาวโลก"),
        ("مرحبا بالعالم", "بالعالم"),
        ("Отчёт о прибыли", "прибыли"),
        ("한국어 테스트입니다", "테스트"),
        ("トヨタ自動車の決算", "トヨタ"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("snake_case_title", "case"),
        ("Überraschung", "uberraschung"),
    ],
)
def test_unicode_titles(stored: str, asked: str) -> None:
    assert set(tokens(asked)) & set(tokens(stored))


_ANY = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="贵州茅台PE600519.SH-/_~ 年月2024Qq'\"()*:^+", max_size=60),
)


@settings(max_examples=200)
@given(_ANY)
def test_query_fuzz_no_crash(text: str) -> None:
    for token in tokens(text):
        assert token
        assert token == token.strip()
        token.encode("utf-8")


@settings(max_examples=100)
@given(_ANY)
def test_index_and_question_cut_alike(text: str) -> None:
    """Width, script variant and invisible characters make no difference, nor does text that is already normal."""
    assert set(tokens(normalise(text))) <= set(tokens(text))
    assert tokens(f"\u200b{text}") == tokens(text)


def test_every_two_characters_of_a_text_find_it() -> None:
    text = "公司预计全年营业收入保持稳健增长并维持分红比例"
    stored = set(tokens(text))
    for at in range(len(text) - 1):
        assert text[at : at + 2] in stored


def test_threads_cut_alike() -> None:
    words = [f"running{n} considerations{n % 7}ly happily walked 茅台{n}" for n in range(200)]
    alone = [tokens(text) for text in words]
    segment._stems.clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokens, words)) == alone


_WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
from pathlib import Path
from hermes_memory_plugin.recall import segment
segment.warm(Path({folder!r}))
stored, asked = segment.tokens("贵州茅台的批价企稳回升"), segment.tokens("批价")
assert set(asked) <= set(stored), (asked, stored)
assert segment.tokens("茅") == ["茅"]
print(segment.TOKENIZER)
"""


@pytest.mark.parametrize(
    ("missing", "name"), [((), "rjieba-"), (("rjieba",), "jieba-"), (("rjieba", "jieba"), "pairs")]
)
def test_zh_without_jieba(missing: tuple[str, ...], name: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = os.environ | {"TMPDIR": str(tmp_path / "shared")}
    (tmp_path / "shared").mkdir()
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(missing=missing, folder=str(cache))],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.strip().split("/", 1)[1].startswith(name)
    assert not list((tmp_path / "shared").iterdir()), "jieba's cache belongs into our folder"


_OPEN = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall import segment
with Memory.open({home!r}) as memory:
    if {say!r}:
        memory.remember({say!r})
    if {reindex!r}:
        memory.flush()
        assert memory.reader.rebuild()
    memory.flush()
    found = [item.text for item in memory.recall("批价企稳", mode="explicit").items]
    status = memory.status()
    print(status["index"]["tokenizer"].split("/")[1].split("-")[0].split("+")[0], segment.TOKENIZER.split("/")[1].split("-")[0])
    print(status["events"].get("index_rebuilt", 0), len(found), any("reindex" in text for text in status["problems"]))
"""


@pytest.mark.slow
def test_two_segmenters_share_one_index(tmp_path: Path) -> None:
    """The first one is recorded; who has it uses it, who has not reads the index as it is, and nobody makes it anew."""

    def process(*missing: str, say: str = "", reindex: bool = False) -> list[str]:
        code = _OPEN.format(missing=missing, home=str(tmp_path), say=say, reindex=reindex)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()

    assert process("rjieba", say="贵州茅台的批价企稳回升") == ["jieba jieba", "0 1 False"]
    assert process(say="五粮液的批价也企稳了") == ["jieba jieba", "0 2 False"]
    assert process("jieba", say="泸州老窖批价企稳") == ["jieba rjieba", "0 3 True"]
    assert process("rjieba") == ["jieba jieba", "0 3 False"]
    assert process(reindex=True) == ["rjieba rjieba", "0 3 False"]
    assert process("rjieba", "jieba") == ["rjieba pairs", "0 3 True"]
