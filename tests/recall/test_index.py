"""What the read index promises to recall."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hermes_memory_plugin.recall.index import Add, Index, JournalTail, Row
from hermes_memory_plugin.recall.index_writer import IndexWriter
from hermes_memory_plugin.store.ids import handle_letters

from .index_kit import NOW, Home, found, ids, open_index

LOCAL = frozenset({"local"})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_row_is_found_as_soon_as_it_is_written(home: Home) -> None:
    home.fact("f1", "茅台 pe 28")
    assert list(found(home.index, "茅台")) == ["f1"]


def test_a_rare_word_counts_more_and_a_heavier_one_too(home: Home) -> None:
    for number in range(5):
        home.fact(f"f{number}", "pe bank")
    home.fact("rare", "dividend bank")
    home.fact("heavy", {"dividend": 3.0, "bank": 1.0})
    assert next(iter(found(home.index, "dividend"))) == "heavy"
    scores = found(home.index, "pe", "dividend")
    assert scores["rare"] > scores["f0"]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_rows_of_another_owner_change_neither_scores_nor_frequencies(home: Home, where: str) -> None:
    home.fact("f1", "茅台 pe 28")
    home.fact("f2", "茅台 revenue")
    before = found(home.index, "pe", "茅台")
    for number in range(50):
        home.fact(f"x{number}", "pe pe pe " + "filler " * 30, owner="telegram:1", fact_key="k", as_of=number)
    if where == "disk":
        IndexWriter(home.index).commit()
    view = home.index.view(LOCAL, now_us=NOW)
    assert found(home.index, "pe", "茅台") == before
    assert (view.n, view.df("pe"), view.df("filler")) == (2, 1, 0)
    assert view.avgdl == pytest.approx(2.5)


def test_one_owner_never_supersedes_another(home: Home) -> None:
    home.fact("mine", "pe", fact_key="k", as_of=1, trust=5)
    home.fact("theirs", "pe", owner="telegram:1", fact_key="k", as_of=2, trust=5)
    assert ids(home.index) == {"mine", "theirs"}


def test_a_row_of_another_owner_is_neither_found_by_id_nor_by_handle(home: Home) -> None:
    home.fact("f1", "pe", owner="telegram:1")
    handle = home.index.handle("f1")
    assert home.index.find("f1", LOCAL) is None
    assert home.index.find(handle, LOCAL) is None
    assert home.index.find(handle, frozenset({"telegram:1"})) is not None
    assert home.index.find(handle, None) is not None


def test_expired_rows_are_hidden_from_their_hour_on(home: Home) -> None:
    home.fact("f1", "pe", expires=NOW)
    assert home.index.view(LOCAL, now_us=NOW - 1).n == 1
    assert home.index.view(LOCAL, now_us=NOW).n == 0
    shown = home.index.view(LOCAL, now_us=NOW, states=("live", "expired"))
    assert [shown.state(number) for number in shown.numbers()] == ["expired"]


def test_a_newer_row_of_the_same_key_supersedes_at_once(home: Home) -> None:
    home.fact("old", "pe 28", fact_key="k", as_of=1, trust=5, value=28.0)
    home.fact("new", "pe 26", fact_key="k", as_of=2, trust=5, value=26.0)
    assert list(found(home.index, "pe")) == ["new"]
    successor = home.index.superseded_by("old", LOCAL)
    assert successor is not None and successor.id == "new"
    assert [row.id for row in home.index.same_key("k", "local")] == ["new", "old"]


def test_forgetting_the_newer_row_brings_the_older_one_back(home: Home) -> None:
    home.fact("old", "pe 28", fact_key="k", as_of=1, trust=5)
    home.fact("new", "pe 26", fact_key="k", as_of=2, trust=5)
    IndexWriter(home.index).commit()
    home.forget("new")
    assert list(found(home.index, "pe")) == ["old"]
    IndexWriter(home.index).commit()
    assert ids(open_index(home.path)) == {"old"}


def test_a_row_that_changes_its_key_frees_what_it_had_superseded(home: Home) -> None:
    home.fact("old", "pe 28", fact_key="k", as_of=1, trust=5)
    home.fact("new", "pe 26", fact_key="k", as_of=2, trust=5)
    assert ids(home.index) == {"new"}
    home.fact("new", "pe 26", fact_key="other", as_of=2, trust=5)
    assert ids(home.index) == {"new", "old"}


def test_the_same_id_again_replaces_the_row(home: Home) -> None:
    home.fact("f1", "pe 28")
    IndexWriter(home.index).commit()
    home.fact("f1", "revenue")
    assert found(home.index, "pe") == {}
    assert list(found(home.index, "revenue")) == ["f1"]
    assert len(home.index) == 1


def test_a_forgotten_id_never_comes_back(home: Home) -> None:
    said = home.fact("f1", "pe")
    home.forget("f1", "unseen")
    writer = IndexWriter(home.index)
    for _ in range(3):
        home.index.apply(said)
        home.fact("f1", "pe again")
        home.fact("unseen", "pe")
        assert ids(home.index) == set()
        writer.commit()
        writer.purge()
    late = open_index(home.path)
    late.change([Add(Row(id="f1", layer="L1", text="imported", weights={"pe": 1.0}))])
    assert ids(late) == set()


def test_a_dropped_file_may_come_back(home: Home) -> None:
    home.fact("note", "taboo", layer="L2")
    home.forget("note", kind="drop")
    assert ids(home.index) == set()
    home.fact("note", "taboo", layer="L2")
    IndexWriter(home.index).commit()
    assert ids(open_index(home.path)) == {"note"}


def test_purge_leaves_no_forgotten_bytes(home: Home) -> None:
    home.fact("f1", "secretword", text="the secretword of the client")
    home.fact("f2", "pe")
    writer = IndexWriter(home.index)
    writer.commit()
    home.forget("f1")
    writer.purge()
    left = b"".join(path.read_bytes() for path in (home.path / "index").iterdir())
    assert b"secretword" not in left
    assert ids(open_index(home.path)) == {"f2"}


def test_layers_and_projects_are_filtered_before_ranking(home: Home) -> None:
    home.fact("f1", "pe")
    home.fact("t1", "pe pe2", layer="L0")
    home.fact("p1", "pe", project="a")
    assert {row.id for row in home.index.scan(LOCAL, now_us=NOW, layers={"L0"})} == {"t1"}
    view = home.index.view(LOCAL, now_us=NOW, projects={"", "b"}, layers={"L1"})
    assert (view.n, view.df("pe")) == (1, 1)


def test_a_row_comes_back_as_it_went_in(home: Home) -> None:
    row = Row(
        id="f1", layer="report", kind="conclusion", owner="telegram:1", text="毛利率 91.5%\ud800", source="年报 p.3",
        as_of=-5, created=7, expires=NOW, session="s1", project="p", scope="user", origin="report", trust=3,
        fact_key="k", value=-1.5, approximate=True, extra={"page": 3, "subject": "600519.SH"}, weights={"a": 1.0},
    )  # fmt: skip
    home.index.change([Add(row)])
    IndexWriter(home.index).commit()
    back = open_index(home.path).find("f1", None)
    assert back is not None
    names = [name for name in Row.__slots__ if name != "weights"]
    assert {name: getattr(back, name) for name in names} == {name: getattr(row, name) for name in names}


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), 1e9])
def test_odd_weights_do_no_harm(home: Home, weight: float) -> None:
    home.index.change([Add(Row(id="odd", layer="L1", text="", weights={"pe": weight, "bank": 1.0}))])
    scores = found(home.index, "pe", "bank")
    assert np.isfinite(scores["odd"])


def test_vectors_are_compared_by_cosine_and_only_where_visible(home: Home) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.integers(-127, 128, (40, 256)).astype(np.int8)
    scales = np.array([np.float16(1 / np.linalg.norm(v.astype(float))) for v in vectors])
    home.index.change(
        Add(
            Row(
                id=f"f{n}", layer="L1", text="", owner="local" if n % 4 else "other",
                vector=vectors[n] if n != 7 else None, vector_scale=float(scales[n]),
            )
        )
        for n in range(40)
    )  # fmt: skip
    home.fact("plain", "pe")
    IndexWriter(home.index).commit()
    home.fact("later", "pe")
    query = vectors[5].astype(np.float32) * float(scales[5])
    view = home.index.view(LOCAL, now_us=NOW)
    cosine = view.cosine(query)
    got = {row.id: float(cosine[n]) for n, row in zip(view.numbers(), view.rows(view.numbers()), strict=True)}
    for n in range(40):
        if n % 4:
            expected = 0.0 if n == 7 else float(vectors[n].astype(float) @ query) * float(scales[n])
            assert got[f"f{n}"] == pytest.approx(expected, abs=1e-4)
    assert got["f5"] == pytest.approx(1.0, abs=1e-3)
    assert got["plain"] == got["later"] == 0.0
    assert not cosine[~view.mask].any()
    few = view.numbers()[:3]
    assert view.cosine(query, few)[few] == pytest.approx(cosine[few], abs=1e-6)


def test_scan_and_session_follow_time(home: Home) -> None:
    for number in range(4):
        home.fact(f"f{number}", "pe", created=100 + number, session="s1" if number % 2 else "s2", kind="fact")
    home.fact("c", "pe", created=1, session="s1", kind="conclusion")
    index = home.index
    assert [row.id for row in index.scan(LOCAL, now_us=NOW, limit=2)] == ["f3", "f2"]
    assert [row.id for row in index.scan(LOCAL, now_us=NOW, since=101, until=103)] == ["f2", "f1"]
    assert [row.id for row in index.scan(LOCAL, now_us=NOW, kinds={"conclusion"})] == ["c"]
    assert [row.id for row in index.by_session("s1", LOCAL)] == ["c", "f1", "f3"]
    assert index.by_session("s1", frozenset({"other"})) == []
    assert index.owners() == {"local": 5}


def test_an_empty_index_answers(home: Home) -> None:
    view = home.index.view(None, now_us=NOW)
    assert (view.n, view.size, view.df("pe"), view.top(view.bm25(["pe"]), 5)) == (0, 0, 0, [])
    assert view.cosine(np.ones(256)).shape == (0,)
    assert home.index.scan(None, now_us=NOW) == []
    assert home.index.by_session("s", None) == []
    assert home.index.find("f-7k2p", None) is None


def test_a_view_is_a_snapshot(home: Home) -> None:
    home.fact("f1", "pe")
    view = home.index.view(LOCAL, now_us=NOW)
    home.fact("f2", "pe")
    home.forget("f1")
    IndexWriter(home.index).commit()
    assert (view.n, view.df("pe"), view.rows(view.numbers())[0].id) == (1, 1, "f1")


def test_a_record_that_cannot_become_rows_is_counted_and_passed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.journal.append("fact", {"nonsense": 1})
    home.fact("f1", "pe")
    fresh = open_index(tmp_path)
    fresh.refresh()
    assert (ids(fresh), fresh.failures) == ({"f1"}, 1)


# -- handles -----------------------------------------------------------------------------------------------------------


def colliding(count: int) -> list[str]:
    """Ids whose handles begin with the same four letters."""
    groups: dict[str, list[str]] = {}
    number = 0
    from hermes_memory_plugin.store.ids import handle_hash

    while True:
        group = groups.setdefault(handle_letters(handle_hash(f"id{number}"), 4), [])
        group.append(f"id{number}")
        if len(group) == count:
            return group
        number += 1


def test_handles_are_short_and_the_older_row_keeps_its_own(home: Home) -> None:
    one, two = colliding(2)
    home.fact(one, "pe")
    first = home.index.handle(one)
    assert len(first) == len("f-7k2p")
    home.fact(two, "pe")
    second = home.index.handle(two)
    assert home.index.handle(one) == first
    assert len(second) > len(first) and second.startswith(first)
    IndexWriter(home.index).commit()
    home.fact(one, "pe again")
    for index in (home.index, open_index(home.path)):
        index.refresh()
        assert (index.handle(one), index.handle(two)) == (first, second)
        assert [row.id for row in (index.find(first, None), index.find(second, None)) if row] == [one, two]
    assert home.index.find(f"[{first.upper()}]", None) is not None


def test_a_row_written_again_at_once_is_not_younger_for_it(home: Home) -> None:
    one, two = colliding(2)
    home.fact(one, "pe")
    home.fact(two, "pe")
    home.fact(one, "pe again")
    assert len(home.index.handle(one)) < len(home.index.handle(two))


def test_the_handle_of_a_forgotten_row_never_names_another(home: Home) -> None:
    one, two = colliding(2)
    home.fact(one, "pe")
    first = home.index.handle(one)
    home.fact(two, "pe")
    second = home.index.handle(two)
    home.forget(one)
    IndexWriter(home.index).purge()
    for index in (home.index, open_index(home.path)):
        assert index.find(first, None) is None
        assert index.handle(two) == second
        row = index.find(second, None)
        assert row is not None and row.id == two


@pytest.mark.parametrize("text", ["", "f-", "f-7k2p", "no such id", "f-" + "7" * 13, "\ud800", "f-il0o"])
def test_unknown_names_find_nothing(home: Home, text: str) -> None:
    home.fact("f1", "pe")
    assert home.index.find(text, None) is None


@pytest.mark.parametrize(
    ("layer", "kind", "letter"),
    [("L0", "turn", "d"), ("L0", "trace", "t"), ("L1", "fact", "f"), ("L2", "scene", "s"), ("L2", "note", "n"),
     ("report", "chunk", "r"), ("L3", "persona", "p")],
)  # fmt: skip
def test_a_handle_says_what_it_names(home: Home, layer: str, kind: str, letter: str) -> None:
    home.fact("id", "pe", layer=layer, kind=kind)
    row = home.index.find("id", None)
    assert row is not None
    assert home.index.handle(row)[0] == home.index.handle("id")[0] == letter


def test_bulk_import_stays_in_few_parts(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index", tail=JournalTail(tmp_path / "journal", lambda record: []))
    index.change(
        Add(Row(id=f"f{n}", layer="L1", text="", weights={"pe": 1.0, f"w{n % 97}": 1.0}))
        for n in range(20_000)
    )
    view = index.view(None, now_us=NOW)
    assert (view.n, view.df("pe"), view.df("w0")) == (20_000, 20_000, len(range(0, 20_000, 97)))
    assert len(index.corpus.parts) < 12
