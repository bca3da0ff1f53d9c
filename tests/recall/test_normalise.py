"""One written form for text that means the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.recall.normalise import fold, normalise


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("６００５１９．ＳＨ", "600519.sh"),
        ("ＰＥ　多少？", "pe 多少?"),
        ("貴州茅臺營收創新高", "贵州茅台营收创新高"),
        ("寧德時代", "宁德时代"),
        ("市盈\u200b率", "市盈率"),
        ("pay\u00adment", "payment"),
        ("\u202e600519\u202c", "600519"),
        ("a\x00b\x07c", "abc"),
        ("一\r\n二\r三\u2028四", "一\n二\n三\n四"),
        ("tab\there", "tab here"),
        ("half \ud800 surrogate", "half  surrogate"),
        ("Café", "café"),
        ("Cafe\u0301", "café"),
        ("①②", "12"),
        ("⭐\ufe0f", "⭐"),
        ("", ""),
    ],
)
def test_text_that_means_the_same_is_written_the_same(written: str, normal: str) -> None:
    assert normalise(written) == normal


def test_fold_keeps_the_case() -> None:
    assert fold("ＧｅｔＵｓｅｒ 臺") == "GetUser 台"


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_normalise_is_idempotent_and_leaves_nothing_invisible(text: str) -> None:
    normal = normalise(text)
    assert normalise(normal) == normal
    assert not [c for c in normal if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    normal.encode("utf-8")


def test_long_runs_of_marks_are_cut_short() -> None:
    assert len(normalise("a" + "\u0323\u0301" * 100_000)) < 100
