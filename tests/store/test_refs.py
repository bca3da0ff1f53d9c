"""Long texts: stored once by content, and what comes back is what went in."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.store.refs import HEAD, TAIL, RefDamaged, Refs, excerpt


@pytest.fixture
def refs(tmp_path: Path) -> Refs:
    return Refs(tmp_path / "refs")


def test_a_text_comes_back_identical(refs: Refs) -> None:
    text = "营收 1,741 亿元\r\n\0𝄞" * 50_000
    ref = refs.put(text)
    assert refs.read(ref) == text
    assert refs.size() < len(text) // 50


def test_equal_texts_share_one_file(refs: Refs) -> None:
    assert refs.put("same") == refs.put("same")
    refs.put("other")
    assert len(list(refs.stored())) == 2
    assert sorted(path.relative_to(refs.folder).parts[0] for path in refs.folder.glob("*/*.*")) == sorted(
        ref[:2] for ref in refs.stored()
    )


def test_a_removed_text_is_gone_and_removing_it_again_is_harmless(refs: Refs) -> None:
    ref = refs.put("text")
    refs.remove([ref])
    refs.remove([ref])
    with pytest.raises(NotFound, match=ref):
        refs.read(ref)
    assert list(refs.stored()) == []


@pytest.mark.parametrize("ref", ["", "../../etc/passwd", "a" * 63, "A" * 64, "g" * 64, "a" * 64 + "\n"])
def test_what_is_no_reference_reads_no_file(refs: Refs, ref: str) -> None:
    with pytest.raises(NotFound):
        refs.read(ref)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-5],
        lambda data: b"junk" + data,
        lambda data: data[:40] + bytes([data[40] ^ 0x55]) + data[41:],
        lambda data: gzip.compress(b"another text"),
    ],
    ids=["empty", "cut", "no gzip", "flipped bit", "other content"],
)
def test_damage_is_noticed(refs: Refs, damage) -> None:  # type: ignore[no-untyped-def]
    ref = refs.put("".join(str(number) for number in range(10_000)))
    (path,) = refs.folder.glob("*/*.*")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RefDamaged, match="damaged"):
        refs.read(ref)


def test_a_text_packed_where_there_is_no_zstd_is_read_everywhere(refs: Refs) -> None:
    ref = refs.put("贵州茅台" * 1_000)
    (path,) = refs.folder.glob("*/*.*")
    path.unlink()
    path.with_suffix(".gz").write_bytes(gzip.compress(("贵州茅台" * 1_000).encode()))
    assert refs.read(ref) == "贵州茅台" * 1_000 and list(refs.stored()) == [ref]
    assert refs.put("贵州茅台" * 1_000) == ref and len(list(refs.folder.glob("*/*.*"))) == 1
    refs.remove([ref])
    assert list(refs.stored()) == []


def test_a_half_surrogate_does_not_keep_a_text_from_being_stored(refs: Refs) -> None:
    assert refs.read(refs.put("half \ud800 pair")) == "half \ufffd pair"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 3 * (HEAD + TAIL)), st.sampled_from("a中𝄞"))
def test_an_excerpt_is_head_and_tail(length: int, letter: str) -> None:
    text = "<" + letter * length + ">"
    short = excerpt(text)
    if len(text) <= HEAD + TAIL:
        assert short == text
    else:
        assert short.startswith(text[:HEAD])
        assert short.endswith(text[-TAIL:])
        assert f"{len(text) - HEAD - TAIL:,} characters left out" in short
