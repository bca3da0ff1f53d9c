"""Tables of vectors: LanceDB and our own matrix keep the same promises."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.store import vectors_lance
from hermes_memory_plugin.store.vectors import (
    LANCE,
    MATRIX,
    NEVER,
    Entry,
    Ref,
    Table,
    Tables,
    Vectors,
    VectorsDamaged,
    Wanted,
)

SIZE = 8
ROOT = Path(__file__).parent.parent.parent


def unit(seed: int, size: int = SIZE) -> np.ndarray:
    vector = np.random.default_rng(seed).normal(size=size).astype(np.float32)
    return vector / np.linalg.norm(vector)


def entry(
    key: int,
    vector: np.ndarray | None = None,
    *,
    owner: str = "local",
    layer: str = "L1",
    live: bool = True,
    expires: int = NEVER,
    said: int = 1,
) -> Entry:
    vector = unit(key) if vector is None else vector
    return Entry(key, f"id-{key}", owner, layer, live, expires, said, 7, vector)


def ref_of(store: str, model: str = "model-a", dimension: int = SIZE) -> Ref:
    return Ref(store, model, dimension)


# Where LanceDB has no wheel the matrix is all there is.
@pytest.fixture(params=[LANCE, MATRIX] if find_spec("lancedb") else [MATRIX])
def ref(request: pytest.FixtureRequest) -> Ref:
    return ref_of(request.param)


@pytest.fixture
def open_table(tmp_path: Path, ref: Ref) -> Callable[[], Table]:
    def opened() -> Table:
        table = Vectors(tmp_path).open(ref, create=True)
        assert table is not None
        return table

    return opened


@pytest.fixture
def table(open_table: Callable[[], Table]) -> Table:
    return open_table()


def found(table: Table, vector: np.ndarray, k: int = 10, **wanted: object) -> list[int]:
    return table.search(vector, k, Wanted(**wanted)).key.tolist()  # type: ignore[arg-type]


def test_the_nearest_row_comes_first_with_its_cosine(table: Table) -> None:
    table.upsert([entry(key) for key in range(20)])
    hits = table.search(unit(7), 5, Wanted())
    assert hits.key[0] == 7
    assert hits.cosine[0] == pytest.approx(1.0, abs=1e-5)
    assert list(hits.cosine) == sorted(hits.cosine, reverse=True)
    assert len(hits.key) == 5


def test_what_was_written_is_there_for_the_next_process(open_table: Callable[[], Table], ref: Ref) -> None:
    table = open_table()
    table.upsert([entry(1, said=5), entry((1 << 64) - 1, said=-6, live=False)])
    table.close()
    held = open_table().held()
    assert held.key.tolist() == [1, (1 << 64) - 1]
    assert (held.said.tolist(), held.stamp.tolist(), held.live.tolist()) == ([5, -6], [7, 7], [True, False])


def test_an_open_table_follows_what_others_write(open_table: Callable[[], Table]) -> None:
    reader, writer = open_table(), open_table()
    assert found(reader, unit(1)) == []
    before = reader.version
    writer.upsert([entry(1)])
    assert found(reader, unit(1)) == [1]
    assert reader.version != before
    writer.remove([1])
    assert found(reader, unit(1)) == []


def test_the_same_rows_again_change_nothing(table: Table) -> None:
    table.upsert([entry(1), entry(2)])
    table.upsert([entry(1), entry(2), entry(2)])
    assert table.held().key.tolist() == [1, 2]
    assert found(table, unit(2)) == [2, 1]


def test_a_row_written_again_has_its_new_vector(table: Table) -> None:
    table.upsert([entry(1), entry(2)])
    table.upsert([entry(1, unit(99), said=2)])
    assert table.cosines(unit(99), [1])[1] == pytest.approx(1.0, abs=1e-5)
    assert dict(zip(table.held().key.tolist(), table.held().said.tolist(), strict=True)) == {1: 2, 2: 1}


def test_dead_rows_not_candidates(table: Table) -> None:
    """Rows that must not be shown take no place of those that may: filtered before the nearest are chosen."""
    near = unit(0)
    far = -near
    hidden = [
        *(entry(key, near, live=False) for key in range(100, 160)),
        *(entry(key, near, expires=50) for key in range(200, 260)),
        *(entry(key, near, owner="telegram:7") for key in range(300, 360)),
        *(entry(key, near, layer="L0") for key in range(400, 460)),
    ]
    table.upsert([*hidden, entry(1, far)])
    assert found(table, near, 3, owners=["local"], layers=["L1"], now=100) == [1]
    every = found(table, near, 300, live=False)
    assert len(every) == 241
    assert found(table, near, 300, owners=["telegram:7"]) == found(
        table, near, 300, owners=("telegram:7", "x")
    )
    assert found(table, near, owners=[]) == found(table, near, layers=[]) == []


@pytest.mark.parametrize("owner", ["o'brien", "a\" OR '1'='1", "') OR true --", "微信:张三", "%", "\\"])
def test_an_owner_is_a_name_whatever_is_in_it(table: Table, owner: str) -> None:
    table.upsert([entry(1, owner=owner), entry(2, owner="other")])
    assert found(table, unit(1), owners=[owner]) == [1]


def test_marked_rows_come_and_go(table: Table) -> None:
    table.upsert([entry(1), entry(2), entry((1 << 63) + 5)])
    table.mark([1, (1 << 63) + 5], live=False)
    assert found(table, unit(1)) == [2]
    table.mark([(1 << 63) + 5], live=True)
    assert set(found(table, unit(1))) == {2, (1 << 63) + 5}
    assert set(found(table, unit(1), live=False)) == {1, 2, (1 << 63) + 5}


def test_removed_rows_are_gone(table: Table) -> None:
    table.upsert([entry(key) for key in range(5)])
    table.remove([0, 3, 77])
    assert set(found(table, unit(3))) == {1, 2, 4}
    assert table.cosines(unit(3), [0, 1]).keys() == {1}
    table.tidy(now=True)
    assert table.held().key.tolist() == [1, 2, 4]
    assert found(table, unit(4))[0] == 4


def test_a_sample_is_of_rows_that_are_there(table: Table) -> None:
    assert table.sample(5).shape == (0, SIZE)
    table.upsert([entry(key) for key in range(20)])
    sample = table.sample(5)
    assert sample.shape == (5, SIZE)
    assert np.linalg.norm(sample, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


def test_nothing_is_made_by_looking(tmp_path: Path, ref: Ref) -> None:
    assert Vectors(tmp_path).open(ref) is None
    assert list(tmp_path.iterdir()) == []


def test_vectors_of_another_encoder_are_refused(tmp_path: Path, ref: Ref) -> None:
    vectors = Vectors(tmp_path)
    table = vectors.open(ref, create=True)
    assert table is not None
    other = ref_of(ref.store, "model-b", 16)
    assert other.name != ref.name
    stolen = table.path.with_name(table.path.name.replace(ref.name, other.name))
    table.upsert([entry(1)])
    table.path.rename(stolen)
    with pytest.raises(VectorsDamaged, match="model-a"):
        vectors.open(other)


def damage(path: Path) -> None:
    for file in path.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\x00garbage" * 3)


def test_a_corrupt_table_is_named_and_can_be_set_aside(tmp_path: Path, ref: Ref) -> None:
    vectors = Vectors(tmp_path)
    table = vectors.open(ref, create=True)
    assert table is not None
    table.upsert([entry(1)])
    damage(table.path)
    with pytest.raises(VectorsDamaged) as raised:
        opened = vectors.open(ref)
        assert opened is not None
        opened.held()
    assert str(table.path) in str(raised.value)
    assert vectors.set_aside(raised.value) is not None
    assert vectors.open(ref) is None
    anew = vectors.open(ref, create=True)
    assert anew is not None
    anew.upsert([entry(2)])
    assert found(anew, unit(2)) == [2]


def test_only_the_owner_may_read_the_files(table: Table) -> None:
    table.upsert([entry(1)])
    table.tidy(now=True)
    modes = {path.stat().st_mode & 0o077 for path in [table.path, *table.path.rglob("*")]}
    assert modes == {0}


@pytest.mark.filterwarnings("ignore:optimize")
def test_disk_growth(monkeypatch: pytest.MonkeyPatch, open_table: Callable[[], Table]) -> None:
    """Many small writes: files are folded as one goes, and old versions go once nobody can be on them any more."""
    assert timedelta(hours=1) <= vectors_lance.KEEP
    monkeypatch.setattr(vectors_lance, "KEEP", timedelta(0))
    table = open_table()
    for number in range(2 * vectors_lance.FOLD_AFTER):
        table.upsert([entry(number % 10, said=number)])
        table.tidy()
    table.tidy(now=True)
    files = [path for path in table.path.rglob("*") if path.is_file()]
    assert len(files) < vectors_lance.FOLD_AFTER
    assert sum(path.stat().st_size for path in files) < 100_000
    assert table.held().key.tolist() == list(range(10))


def test_a_large_table_is_indexed_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch, open_table: Callable[[], Table]
) -> None:
    monkeypatch.setattr(vectors_lance, "INDEX_FROM", 400)
    table = open_table()
    table.upsert([entry(key, owner="local" if key % 2 else "other") for key in range(500)])
    plain = [found(table, unit(key), 3, owners=["local"]) for key in range(900, 910)]
    table.tidy(now=True)
    table.upsert([entry(1_001)])
    table.remove([plain[0][0]])
    assert found(table, unit(1_001), 3)[0] == 1_001
    assert plain[0][0] not in found(table, unit(900), 3, owners=["local"])
    same = sum(found(table, unit(key), 3, owners=["local"]) == plain[key - 900] for key in range(901, 910))
    assert same >= 8  # an index may miss a little
    assert table.cosines(unit(7), [7, 8]).keys() == {7, 8}
    indexed = getattr(getattr(table, "_table", None), "list_indices", lambda: [1, 2])()
    assert len(indexed) == 2


WRITER = """
import sys
from pathlib import Path
from contextlib import nullcontext
from tests.store.test_vectors import entry, ref_of
from hermes_memory_plugin.store.locks import LockFile
from hermes_memory_plugin.store.vectors import LANCE, Vectors
folder, store, first, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
table = Vectors(folder).open(ref_of(store), create=True)
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + rounds):
    # LanceDB stands several writers; the matrix wants the lock the worker always holds.
    with nullcontext() if store == LANCE else LockFile(folder / "embed.lock").acquire(timeout=30):
        table.upsert([entry(key, said=number) for key in (number, 1_000, 2 * number + 10_000)])
        table.tidy()
    print(number, flush=True)
"""


def writer(folder: Path, store: str, first: int, rounds: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), store, str(first), str(rounds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.stderr and process.stderr.read()
    return process


@pytest.mark.slow
def test_lance_conflict_retry(tmp_path: Path, ref: Ref) -> None:
    """Two processes write the same table at once: every write is done, nothing is lost."""
    rounds = 15
    writers = [writer(tmp_path, ref.store, first, rounds) for first in (0, 100)]
    for one in writers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in writers:
        out, error = one.communicate(timeout=60)
        assert one.returncode == 0, error
        assert len(out.split()) == rounds
    table = Vectors(tmp_path).open(ref)
    assert table is not None
    numbers = [*range(rounds), *range(100, 100 + rounds)]
    keys = table.held().key.tolist()
    assert set(keys) == {*numbers, 1_000, *(2 * number + 10_000 for number in numbers)}
    # A row both put in for the first time at the same moment may be there twice; whoever embeds next mends that.
    assert len(keys) - len(set(keys)) <= (1 if ref.store == LANCE else 0)


def test_a_killed_writer_leaves_whole_writes(tmp_path: Path, ref: Ref) -> None:
    one = writer(tmp_path, ref.store, 0, 10_000)
    assert one.stdin is not None and one.stdout is not None
    one.stdin.write("go\n")
    one.stdin.flush()
    for _ in range(12):
        last = int(one.stdout.readline())
    one.send_signal(signal.SIGKILL)
    one.communicate()
    table = Vectors(tmp_path).open(ref)
    assert table is not None
    keys = set(table.held().key.tolist())
    assert set(range(last + 1)) <= keys
    assert {key - 10_000 for key in keys if key >= 10_000} == {2 * key for key in keys if key < 1_000}
    table.upsert([entry(5_000)])
    assert found(table, unit(5_000))[0] == 5_000


def test_the_manifest_says_which_table_serves(tmp_path: Path) -> None:
    vectors = Vectors(tmp_path)
    assert vectors.tables() == Tables() and not vectors.exists
    old, new = ref_of(MATRIX), ref_of(MATRIX, "model-b", 4)
    for ref in (old, new):
        table = vectors.open(ref, create=True)
        assert table is not None
        table.upsert([entry(1, unit(1, ref.dimension))])
    before = vectors.signature()
    vectors.say(Tables(old, new))
    assert vectors.signature() != before
    assert Vectors(tmp_path).tables() == Tables(old, new)
    vectors.keep_only(Tables(new))
    assert vectors.open(old) is None
    assert vectors.open(new) is not None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"serving": 5}', '{"serving": {"store": "x"}}', "null"])
def test_a_broken_manifest_counts_as_none(tmp_path: Path, content: str) -> None:
    vectors = Vectors(tmp_path)
    vectors.say(Tables())
    (tmp_path / "vectors" / "tables.json").write_text(content, encoding="utf-8")
    assert vectors.tables() == Tables()


KEYS = st.integers(0, 6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=4)),
        st.tuples(st.just("remove"), st.lists(KEYS, min_size=1, max_size=3)),
        st.tuples(st.just("live"), st.lists(KEYS, min_size=1, max_size=3)),
        st.tuples(st.just("dead"), st.lists(KEYS, min_size=1, max_size=3)),
        st.tuples(st.just("tidy"), st.just([])),
        st.tuples(st.just("reopen"), st.just([])),
    ),
    max_size=8,
)


@given(STEPS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_changes_leaves_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, ref: Ref, steps: list[tuple[str, list]]
) -> None:
    vectors = Vectors(tmp_path_factory.mktemp("table"))
    table = vectors.open(ref, create=True)
    assert table is not None
    model: dict[int, bool] = {}
    for what, keys in steps:
        if what == "upsert":
            table.upsert([entry(key, live=live) for key, live in keys])
            model.update(keys)
        elif what == "remove":
            table.remove(keys)
            model = {key: live for key, live in model.items() if key not in keys}
        elif what in ("live", "dead"):
            table.mark(keys, live=what == "live")
            model.update({key: what == "live" for key in keys if key in model})
        elif what == "tidy":
            table.tidy(now=True)
        else:
            table = vectors.open(ref)
            assert table is not None
    held = table.held()
    assert dict(zip(held.key.tolist(), held.live.tolist(), strict=True)) == model
    assert set(found(table, unit(0))) == {key for key, live in model.items() if live}
    assert table.cosines(unit(3), list(model)).keys() == model.keys()
