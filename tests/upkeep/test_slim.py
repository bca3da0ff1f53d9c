"""persona slim, restore, adopt; the mirror of Hermes' memory tool; what finds no room there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_memory_hookspecs import Owner, Session, UserMessage
from hermes_memory_plugin import Memory
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.layers.persona import DELIMITER, PersonaRefused
from hermes_memory_plugin.plugin import TurnContext
from hermes_memory_plugin.upkeep import mirror, slim, slim_rules

RULE, FIGURE = "回答先结论后论据", "贵州茅台 PE(TTM) 28.1 倍（2026-04-30）"
HOWTO = "查日线用 daily 接口，参数 ts_code"
TOPIC = "宁德时代（300750.SZ）是动力电池龙头，海外业务占比逐年上升，主要风险是碳酸锂价格和欧美关税。2026 年重点看储能与钠电的进展，产能利用率在改善，客户集中度也在下降，现金流充裕，分红比例提高。"
ENTRIES = [RULE, FIGURE, HOWTO, TOPIC]
BOB = Owner(platform="telegram", user_id="101")
FULL = json.dumps({"success": False, "error": "Memory at 2,190/2,200 chars. Adding this entry (30 chars) would exceed the limit. Consolidate now …"})  # fmt: skip


def put(memory: Memory, entries: list[str], name: str = "MEMORY.md") -> Path:
    path = memory.persona.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(DELIMITER.join(entries), encoding="utf-8")
    return path


def texts(memory: Memory, question: str, layer: str = "") -> list[str]:
    items = memory.recall(question, mode="explicit", limit=10).items
    return [item.text for item in items if layer in ("", item.layer)]


# -- slim ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "becomes"),
    [
        (RULE, "persona"),
        ("用户不碰银行股，看 PE 时用 TTM", "persona"),
        ("User prefers concise answers", "persona"),
        ("什么都看不出来的一句话", "persona"),
        (FIGURE, "fact"),
        ("AAPL gross margin 46.2% in 2026Q1", "fact"),
        (HOWTO, "competence"),
        ("Run `pytest -q` in the repo; the API endpoint is /v1/daily", "competence"),
        (TOPIC, "scene"),
    ],
)
def test_an_entry_goes_where_it_belongs_and_stays_in_doubt(memory: Memory, entry: str, becomes: str) -> None:
    assert slim_rules.classify(entry, "memory", memory.reader.analyst.read)[0] == becomes


def test_a_plan_changes_nothing(memory: Memory) -> None:
    path = put(memory, ENTRIES)
    found = slim.plan(memory)
    assert [move.becomes for move in found.moves] == ["persona", "fact", "competence", "scene"]
    assert path.read_text(encoding="utf-8") == DELIMITER.join(ENTRIES)
    assert texts(memory, "贵州茅台 PE", "L1") == [] and list(memory.scenes) == []


def test_slim_moves_with_provenance_and_loses_nothing(memory: Memory) -> None:
    path = put(memory, ENTRIES)
    applied = slim.apply(memory)
    assert path.read_text(encoding="utf-8") == RULE
    items = {item.text: item for item in memory.recall("贵州茅台 PE", mode="explicit").items}
    assert items[FIGURE].source == "Hermes MEMORY.md" and str(items[FIGURE].as_of).startswith("2026-04-30")
    assert HOWTO in texts(memory, "日线 daily 接口")
    (scene,) = memory.scenes
    assert "300750.SZ" in scene.tickers and scene.note.body.startswith(TOPIC)
    assert all(move.id and move.made for move in applied.moving)
    backup = memory.folder / "backups" / "persona" / applied.backup / "MEMORY.md"
    assert backup.read_text(encoding="utf-8") == DELIMITER.join(ENTRIES)


def test_an_entry_with_a_secret_stays_where_it_is_whole(memory: Memory) -> None:
    """No other layer keeps a secret: moved, it would be lost."""
    entry = "取行情的步骤：调用 daily_basic 接口，token 是 sk-" + "proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
    put(memory, [entry, "比亚迪 2025年营收 7771 亿元"])
    found = slim.apply(memory)
    assert [move.entry for move in found.moving] == ["比亚迪 2025年营收 7771 亿元"]
    assert memory.persona.read("memory").entries == (entry,)


def test_restore_undoes_it(memory: Memory) -> None:
    path = put(memory, ENTRIES)
    slim.apply(memory)
    assert slim.restore(memory) == [FIGURE, HOWTO, TOPIC]
    assert path.read_text(encoding="utf-8") == DELIMITER.join(ENTRIES)
    assert texts(memory, "贵州茅台 PE", "L1") == [] and list(memory.scenes) == []
    with pytest.raises(NotFound):
        slim.restore(memory)
    assert len(slim.apply(memory).moving) == 3, "and it can be done again"
    assert FIGURE in texts(memory, "贵州茅台 PE", "L1")


def test_restore_keeps_what_was_added_since(memory: Memory) -> None:
    path = put(memory, ENTRIES)
    slim.apply(memory)
    put(memory, [RULE, "刚刚加的一条偏好"])
    slim.restore(memory)
    assert path.read_text(encoding="utf-8") == DELIMITER.join(
        [RULE, "刚刚加的一条偏好", FIGURE, HOWTO, TOPIC]
    )


def test_restore_into_a_full_file_is_refused_and_changes_nothing(memory: Memory) -> None:
    put(memory, ENTRIES)
    slim.apply(memory)
    path = put(memory, [f"用户偏好 {number} " + "字" * 200 for number in range(10)])
    before = path.read_text(encoding="utf-8")
    with pytest.raises(PersonaRefused, match="2,200"):
        slim.restore(memory)
    assert path.read_text(encoding="utf-8") == before and FIGURE in texts(memory, "贵州茅台 PE", "L1")


def test_one_fact_has_one_identity(memory: Memory) -> None:
    """What a layer says already is not said twice; the way back leaves it where it was."""
    row = memory.remember(FIGURE, subject="600519.SH")
    put(memory, ENTRIES)
    applied = slim.apply(memory)
    move = next(move for move in applied.moves if move.entry == FIGURE)
    assert (move.id, move.made) == (row, False)
    slim.restore(memory)
    assert texts(memory, "贵州茅台 PE", "L1") == [FIGURE]


@pytest.mark.parametrize("text", ["x" * 2_300, "a\n§\n" + "y" * 2_300])
def test_a_foreign_file_is_left_alone(memory: Memory, text: str) -> None:
    path = memory.persona.folder / "MEMORY.md"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    applied = slim.apply(memory)
    assert applied.moving == () and applied.files[0].refused
    assert path.read_text(encoding="utf-8") == text


def test_a_file_over_its_limit_gets_below_it(memory: Memory) -> None:
    figures = [
        f"贵州茅台 PE(TTM) {20 + number}.{number} 倍（2026-04-{number + 1:02}）" for number in range(25)
    ]
    put(memory, [*(f"用户偏好第 {number} 条" + "字" * 60 for number in range(20)), *figures])
    assert memory.persona.read("memory").share > 1
    applied = slim.apply(memory)
    assert len(applied.moving) == 25 and memory.persona.read("memory").share < 1


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from([*ENTRIES, "§", "x", "多行\n条目 600519.SH PE 28.1", "🙂"]) | st.text(max_size=20),
        max_size=6,
    )
)
def test_slim_and_restore_lose_nothing_whatever_is_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, entries: list[str]
) -> None:
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home) as memory:
        (home / "memories").mkdir()
        path = home / "memories" / "MEMORY.md"
        path.write_bytes(DELIMITER.join(entries).encode("utf-8", "replace"))
        before = memory.persona.read("memory").entries
        applied = slim.apply(memory)
        kept = memory.persona.read("memory").entries
        assert set(before) == set(kept) | {move.entry for move in applied.moving}
        if applied.backup:
            slim.restore(memory)
        assert memory.persona.read("memory").entries == before


# -- adopt -----------------------------------------------------------------------------------------------------------


def test_adopt_moves_a_standing_preference_to_where_hermes_shows_it(memory: Memory) -> None:
    path = put(memory, [RULE])
    memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    entry = slim.adopt(memory, "不碰银行股")
    assert path.read_text(encoding="utf-8") == f"{RULE}{DELIMITER}{entry}"
    assert texts(memory, "银行股", "L2") == []
    assert [one.title for one in memory.notes.trash] == ["不碰银行股"]


def test_adopt_is_refused_when_several_people_share_the_home(memory: Memory) -> None:
    path = put(memory, [RULE])
    memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    memory.remember("只看银行股", title="偏好", type="user", owner=BOB)
    with pytest.raises(PersonaRefused, match="several people"):
        slim.adopt(memory, "不碰银行股")
    assert path.read_text(encoding="utf-8") == RULE and len(texts(memory, "银行股", "L2")) == 1


def test_only_what_the_user_stated_can_be_adopted(memory: Memory) -> None:
    put(memory, [RULE])
    fact = memory.remember(FIGURE)
    memory.remember("模型觉得用户不碰银行股", title="猜测", type="user", origin="model")
    for name in (fact, "猜测"):
        with pytest.raises(PersonaRefused, match="no standing preference"):
            slim.adopt(memory, name)
    with pytest.raises(NotFound):
        slim.adopt(memory, "没有这一条")


# -- the host's memory tool ------------------------------------------------------------------------------------------


def test_the_entries_of_the_files_are_rows_of_l3_that_follow_them(memory: Memory) -> None:
    put(memory, [RULE, FIGURE])
    assert memory.mirror.follow() == 2 and memory.mirror.follow() == 0
    assert FIGURE in texts(memory, "茅台 PE", "L3")
    put(memory, [RULE])
    assert memory.mirror.follow() == 1
    assert FIGURE not in texts(memory, "茅台 PE", "L3")
    put(memory, [RULE, FIGURE])
    memory.mirror.follow()
    assert FIGURE in texts(memory, "茅台 PE", "L3")


def test_an_explicit_recall_knows_what_is_in_the_files_now(memory: Memory) -> None:
    """Also outside of Hermes, where no hook says that they changed."""
    put(memory, [RULE])
    assert texts(memory, "先结论后论据", "L3") == [RULE]
    put(memory, ["用户在上海"])
    assert texts(memory, RULE, "L3") == texts(memory, "用户在上海", "L3") == ["用户在上海"]


def test_an_entry_that_is_known_as_a_note_gets_no_second_row(memory: Memory) -> None:
    memory.remember(FIGURE)
    put(memory, [FIGURE])
    assert memory.mirror.follow() == 0
    assert texts(memory, "茅台 PE") == [FIGURE]


def test_a_mirrored_entry_survives_a_rebuild_and_is_never_a_rule(memory: Memory) -> None:
    put(memory, ["不碰银行股"])
    memory.mirror.follow()
    memory.flush()
    assert memory.reader.rebuild()
    with Memory.open(memory.home) as other:
        other.mirror.follow()
        assert texts(other, "银行股", "L3") == ["不碰银行股"]
        assert other.recall("推荐几只股票", session="s").standing == ()


def test_hermes_own_entry_is_not_forgotten_here(memory: Memory) -> None:
    put(memory, [FIGURE])
    memory.mirror.follow()
    (item,) = memory.recall("茅台 PE", mode="explicit").items
    with pytest.raises(PersonaRefused, match="memory tool"):
        memory.forget(item.id)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ({"action": "add", "target": "memory", "content": FIGURE}, [FIGURE]),
        ({"action": "replace", "target": "user", "old_text": "x", "content": RULE}, [RULE]),
        ({"target": "memory", "operations": [{"action": "add", "content": FIGURE}, {"action": "remove", "old_text": "x"}, {"action": "add", "content": HOWTO}]}, [FIGURE, HOWTO]),
        ({"action": "remove", "target": "memory", "old_text": "x"}, []),
        ({"action": "add", "content": 7}, []),
    ],
)  # fmt: skip
def test_overflow_to_l1(memory: Memory, arguments: dict[str, Any], kept: list[str]) -> None:
    """A full file loses nothing: what Hermes refused to write is kept as facts, once."""
    for _ in range(2):
        mirror.overflow(memory, arguments, FULL, Session("s"), "call-1", review=False)
    for text in kept:
        (item,) = [item for item in memory.recall(text, mode="explicit").items if item.text == text]
        assert item.layer == "L1" and "full" in item.source
    assert memory.events["persona_overflow"] == 2 * len(kept)


@pytest.mark.parametrize(
    "answer", ['{"success": true}', '{"success": false, "error": "no entry matched"}', "prose", "[]"]
)
def test_other_answers_of_the_tool_keep_nothing(memory: Memory, answer: str) -> None:
    arguments = {"action": "add", "target": "memory", "content": FIGURE}
    assert mirror.overflow(memory, arguments, answer, Session("s"), "c", review=False) == []


@pytest.mark.parametrize(("kind", "review"), [("cron", False), ("user", True)])
def test_cron_overflow_is_kept_and_never_becomes_a_rule(memory: Memory, kind: str, review: bool) -> None:
    arguments = {"action": "add", "target": "user", "content": "用户不碰银行股"}
    session = Session("s", kind=kind)  # type: ignore[arg-type]
    assert len(mirror.overflow(memory, arguments, FULL, session, "c", review=review)) == 1
    assert texts(memory, "银行股") == ["用户不碰银行股"]
    assert memory.recall("推荐几只股票", session="x").standing == ()


@pytest.mark.parametrize(("share", "level"), [(0.5, ""), (0.82, "80"), (0.93, "90"), (1.2, "over")])
def test_capacity_plan_is_proposed_in_time(memory: Memory, share: float, level: str) -> None:
    put(memory, ["字" * 100] * 0 + [f"{number:02}" + "字" * 95 for number in range(int(2_200 * share / 100))])
    notices = [(key, text) for key, text in memory.notices() if key.startswith("persona:")]
    assert [key for key, _ in notices] == ([f"persona:memory:{level}"] if level else [])
    assert all("persona slim" in text and "2,200" in text for _, text in notices)
    assert memory.status()["notices"] == [text for _, text in notices]


def test_a_session_is_told_once(memory: Memory, home: Path) -> None:
    put(memory, [f"{number:02}" + "字" * 95 for number in range(21)])
    memory.remember(FIGURE, subject="600519.SH", metric="PE")
    memory.remember("五粮液 PE(TTM) 17.2 倍", subject="000858.SZ", metric="PE")
    turn = TurnContext(home)
    blocks = [
        memory.recall_for_turn(Session("s"), UserMessage(ask), [], turn).block
        for ask in ("贵州茅台PE多少", "五粮液PE多少")
    ]
    assert "persona slim" in blocks[0] and "persona slim" not in blocks[1] and "17.2" in blocks[1]


# -- what a session sees ---------------------------------------------------------------------------------------------


def beside(memory: Memory, message: str, session: str = "s", **context: Any) -> str:
    owner = context.pop("owner", Owner())
    turn = TurnContext(memory.home, **context)
    return memory.recall_for_turn(Session(session, owner), UserMessage(message), [], turn).block


HIDDEN = frozenset({"memory", "user"})


def test_persona_reaches_the_prompt_where_the_host_does_not_show_it(memory: Memory) -> None:
    put(memory, [RULE])
    put(memory, ["用户叫老王"], "USER.md")
    memory.remember(FIGURE, subject="600519.SH", metric="PE")
    block = beside(memory, "贵州茅台PE多少", hidden=HIDDEN)
    assert RULE in block and "用户叫老王" in block and "28.1" in block
    assert block.count("<recalled-memories>") == 1
    assert RULE not in beside(memory, "贵州茅台PE多少", "other")
    assert beside(memory, "谢谢", "third", hidden=HIDDEN) == ""


def test_the_snapshot_is_frozen_for_the_session_in_every_process(memory: Memory) -> None:
    put(memory, [RULE])
    first = beside(memory, "帮我看看行情", hidden=HIDDEN)
    put(memory, ["改过的偏好"])
    assert beside(memory, "帮我看看行情", hidden=HIDDEN) == first
    with Memory.open(memory.home) as other:
        assert beside(other, "帮我看看行情", hidden=HIDDEN) == first
        assert "改过的偏好" in beside(other, "帮我看看行情", "later", hidden=HIDDEN)


def test_what_is_still_in_the_conversation_is_not_said_again(memory: Memory) -> None:
    from hermes_memory_plugin.recall import block as blocks

    put(memory, [RULE])
    (found,) = blocks.find(beside(memory, "帮我看看行情", hidden=HIDDEN))
    assert beside(memory, "帮我看看行情", hidden=HIDDEN, present=frozenset(found.handles)) == ""


def test_the_persona_is_for_the_person_at_the_machine(memory: Memory) -> None:
    put(memory, [RULE])
    assert beside(memory, "帮我看看行情", hidden=HIDDEN, owner=BOB) == ""


def test_what_the_host_shows_is_neither_recalled_nor_a_standing_preference(memory: Memory) -> None:
    memory.remember("任何推荐都不碰银行股", title="不碰银行股", type="user")
    memory.remember(FIGURE, subject="600519.SH", metric="PE")
    shown = ("任何推荐都不碰银行股", FIGURE)
    assert beside(memory, "贵州茅台PE多少", shown_by_host=shown) == ""
    assert "28.1" in beside(memory, "贵州茅台PE多少", "other")


def test_the_index_of_notes_is_frozen_and_the_owners_own(memory: Memory) -> None:
    memory.remember("看库存", title="白酒", type="project")
    memory.remember("秘密", title="鲍勃的", type="project", owner=BOB)
    mine = memory.snapshots.index(Session("s"))
    assert len(mine) == 1 and "白酒" in mine[0]
    memory.remember("看锂价", title="锂电", type="project")
    assert memory.snapshots.index(Session("s")) == mine
    assert len(memory.snapshots.index(Session("later"))) == 2
    assert ["鲍勃" in line for line in memory.snapshots.index(Session("s", BOB))] == [True]


def test_the_first_200_lines_of_the_index_count(memory: Memory) -> None:
    for number in range(205):
        memory.notes.save(f"标题{number}", "x", "project")
    assert len(memory.notes.index()) == 200
    assert len((memory.folder / "INDEX.md").read_text(encoding="utf-8").splitlines()) == 205
