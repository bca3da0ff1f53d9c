"""The built-in word table."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.embedding import EmbedderUnavailable
from hermes_memory_plugin.embedding.static import DATA, LONGEST_TEXT, StaticTable, quantise
from hermes_memory_plugin.recall.normalise import normalise
from tests.embedding.conftest import threads_after

UNRELATED = ["天气", "唱歌", "dragon", "kitchen", "星期三", "bicycle", "电影", "garden"]


def near(table: StaticTable, one: str, other: str) -> float:
    return float(table.query(one) @ table.query(other))


@pytest.mark.parametrize(
    ("chinese", "english"),
    [
        ("便宜", "cheap"),
        ("估值", "valuation"),
        ("估值低", "undervalued"),
        ("分红", "dividend"),
        ("白酒", "liquor"),
        ("回购", "buyback"),
        ("诉讼", "lawsuit"),
        ("预亏", "profit warning"),
        ("现金流", "cash flow"),
        ("止损", "stop loss"),
        ("减仓", "trim"),
        ("亏损", "losses"),
    ],
)
def test_words_of_the_same_meaning_are_neighbours_across_languages(
    table: StaticTable, chinese: str, english: str
) -> None:
    others = max(near(table, chinese, word) for word in UNRELATED)
    assert near(table, chinese, english) > others + 0.2


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("便宜的白酒股有哪些", "贵州茅台估值处于历史低位", "明天下午三点开会"),
        ("which companies bought back shares", "公司公告拟回购股份不超过3亿元", "他养了一只橘猫"),
        ("股息率高的公司", "The board proposed a dividend payout of 60%", "We had dinner at the harbour"),
        ("my sister's job", "姐姐在医院工作", "毛利率同比下降两个百分点"),
    ],
)
def test_a_question_is_nearer_to_its_memory_than_to_another(
    table: StaticTable, question: str, right: str, wrong: str
) -> None:
    assert near(table, question, right) > near(table, question, wrong) + 0.1


@pytest.mark.parametrize("same", ["估值便宜", "估值便宜 ", "「估值便宜」", "估值便宜!"])
def test_punctuation_around_a_text_does_not_move_it(table: StaticTable, same: str) -> None:
    assert np.array_equal(table.query("估值便宜"), table.query(same))


def test_traditional_and_full_width_script_give_the_same_vector(table: StaticTable) -> None:
    assert np.array_equal(table.query("貴州茅台的估值很便宜"), table.query("贵州茅台的估值很便宜"))
    assert np.array_equal(table.query("ＣＨＥＡＰ shares"), table.query("cheap shares"))


def test_a_word_the_table_lacks_is_found_by_its_stem(table: StaticTable) -> None:
    assert "liquorings" not in (DATA / "words.txt").read_text(encoding="utf-8").split("\n")
    assert table.ids("liquorings") == table.ids("liquor") != []


def test_chinese_is_cut_by_longest_match(table: StaticTable) -> None:
    assert len(table.ids("市盈率")) == 1
    assert len(table.ids("市盈率净利润")) == 2


def test_a_phrase_counts_beside_its_words(table: StaticTable) -> None:
    assert len(table.ids("profit warning")) == 3
    assert len(table.ids("profit 的 warning")) == 3  # 的 is a word of its own, and parts the phrase
    assert set(table.ids("profit 的 warning")) != set(table.ids("profit warning"))


@pytest.mark.parametrize(
    "text", ["", " ", "。，！", "the of and", "qqxxzzqq", "🙂", "\0", "\ud800", "12345678"]
)
def test_a_text_without_a_known_word_has_the_zero_vector(table: StaticTable, text: str) -> None:
    assert not table.query(text).any()
    rows, factors = table.rows([text])
    assert not rows.any()
    assert not factors.any()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="估值便宜股息率 cheap dividend 的,", max_size=200))
def test_any_text_gives_one_finite_vector_of_unit_length_or_zero(text: str) -> None:
    table = shared()
    vector = table.query(text)
    assert vector.shape == (256,)
    assert vector.dtype == np.float32
    length = float(np.linalg.norm(vector))
    assert length == 0 or length == pytest.approx(1, abs=1e-5)
    assert np.array_equal(vector, table.query(text))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.text(alphabet="估值便宜股息率高 cheap dividend stock 公司的", min_size=1, max_size=40),
        min_size=1,
        max_size=6,
    )
)
def test_index_rows_keep_the_cosine(texts: list[str]) -> None:
    table = shared()
    rows, factors = table.rows(texts)
    assert (rows.shape, rows.dtype.name, factors.dtype.name) == ((len(texts), 256), "int8", "float16")
    query = table.query("便宜的股票 high dividend")
    kept = (rows.astype(np.float32) @ query) * factors.astype(np.float32)
    assert np.abs(kept - table.passages(texts) @ query).max() < 0.01


def test_a_row_of_neighbours_is_the_weighted_sum(table: StaticTable) -> None:
    turn, before = table.pooled("估值便宜"), table.pooled("白酒")
    rows, factors = quantise(np.stack([3 * turn + 2 * before]))
    whole = table.query("估值便宜 估值便宜 估值便宜 白酒 白酒")
    assert float(factors[0]) * float(rows[0].astype(np.float32) @ whole) == pytest.approx(1, abs=0.01)


def test_only_the_beginning_of_a_huge_text_counts(table: StaticTable) -> None:
    text = "估值便宜 cheap valuations " * 10_000
    assert np.array_equal(table.query(text), table.query(text[:LONGEST_TEXT]))
    assert not table.query("x" * 200_000).any()


def test_another_process_gives_the_same_bytes(table: StaticTable) -> None:
    code = (
        "from hermes_memory_plugin.embedding.static import StaticTable\n"
        "from hermes_memory_plugin.recall.normalise import normalise\n"
        "import sys, hashlib\n"
        "rows, factors = StaticTable.load(normalise).rows(['便宜的白酒股', 'cheap stocks'])\n"
        "sys.stdout.write(hashlib.sha256(rows.tobytes() + factors.tobytes()).hexdigest())\n"
    )
    rows, factors = table.rows(["便宜的白酒股", "cheap stocks"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == hashlib.sha256(rows.tobytes() + factors.tobytes()).hexdigest()


def test_it_wakes_no_pool_of_threads() -> None:
    code = (
        "from hermes_memory_plugin.embedding.static import StaticTable\n"
        "from hermes_memory_plugin.recall.normalise import normalise\n"
        "StaticTable.load(normalise).rows(['便宜的白酒股 cheap valuations' * 50] * 50)\n"
    )
    assert threads_after(code) == 1


@pytest.mark.parametrize("name", ["vectors.npy", "scale.npy", "order.npy", "words.txt"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut"])
def test_a_damaged_table_says_so(tmp_path: Path, name: str, damage: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for file in DATA.iterdir():
        if file.name != name:
            (folder / file.name).symlink_to(file)
    if damage == "empty":
        (folder / name).touch()
    elif damage == "cut":
        shutil.copy(DATA / name, folder / name)
        with (folder / name).open("r+b") as copy:
            copy.truncate((DATA / name).stat().st_size // 2)
    with pytest.raises(EmbedderUnavailable, match="static") as caught:
        StaticTable.load(normalise, folder=folder)
    assert "Install the package anew" in caught.value.advice


def test_other_data_has_another_name(tmp_path: Path, table: StaticTable) -> None:
    for file in DATA.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "scale.npy").unlink()
    np.save(tmp_path / "scale.npy", np.load(DATA / "scale.npy") * np.float16(0.5))
    assert StaticTable.load(normalise, folder=tmp_path).name != table.name
    assert StaticTable.load(normalise).name == table.name


def test_the_words_are_sorted_and_each_has_one_row() -> None:
    words = (DATA / "words.txt").read_text(encoding="utf-8").split("\n")
    order = np.load(DATA / "order.npy")
    assert words == sorted(set(words))
    assert sorted(order.tolist()) == list(range(len(words)))


_shared: list[StaticTable] = []


def shared() -> StaticTable:
    """Hypothesis takes no fixtures of function scope; loading once is enough."""
    if not _shared:
        _shared.append(StaticTable.load(normalise))
    return _shared[0]
