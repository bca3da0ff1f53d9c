"""Real compactions on the real Hermes: the state is in the very next request, and stays byte for byte what it was."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin import Memory
from hermes_memory_plugin.hermes import compaction
from tests.hermes import story
from tests.hermes_env import CURRENT, HermesHost, hosts
from tests.lab.hermes_lab import SUMMARY_REQUEST, Lab, common_prefix
from tests.lab.mock_llm import text_of

pytestmark = [pytest.mark.hermes, pytest.mark.slow]

HEAD = "Current agent state:"
FIRST, SECOND, THIRD, FOURTH, RESUMED = (
    "第一轮：比较三十个价格", "第二轮：继续", "第三轮：再比较五个", "第四轮：先这样", "第五轮：接着说"
)  # fmt: skip
FILES = 36
FIRST_COMPACTED = 3
"""The request after the one that read the last of thirty files."""
FULL = 70_000
"""What the model says a request took: over every host's threshold."""
PLAN = [
    {"id": "1", "content": "读三十个价格", "status": "in_progress"},
    {"id": "2", "content": "写结论", "status": "pending"},
]


@dataclass(frozen=True)
class Way:
    """One way to compact."""

    host: HermesHost
    in_place: bool

    def __str__(self) -> str:
        return f"{self.host}-{'in-place' if self.in_place else 'renaming'}"


def ways() -> list[Way]:
    """The current host both ways, an older one the only way it has."""
    old = [Way(host, False) for host in hosts() if host is not CURRENT]
    return [Way(CURRENT, True), Way(CURRENT, False), *old]


@dataclass
class Run:
    """A session with two compactions inside turns, resumed by another process."""

    way: Way
    lab: Lab
    out: dict[str, Any]
    figures: dict[str, str]
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> set[str]:
        """Reads that failed in Hermes: it reads with shell commands, eight at a time, and a busy machine can lose one."""
        return {row["tool_call_id"] for row in story.calls(self.lab.home) if row["status"] == "error"}

    def summaries(self) -> list[tuple[int, str]]:
        """(number of the request, text of its last message with a summary)."""
        return [(number, text) for number, body in enumerate(self.requests) if (text := compacted(body))]


def compacted(body: dict[str, Any]) -> str:
    """The message of a request that holds the host's last summary; "" when there is none."""
    found = compaction.find(body)
    return text_of(body["messages"][found.message]["content"]) if found else ""


def state_of(text: str) -> str:
    """Our part of it."""
    return HEAD + text.split(HEAD)[1].split("--- END OF CONTEXT SUMMARY")[0] if HEAD in text else ""


def _read(folder: Path, first: int, behind: int, **more: Any) -> dict[str, Any]:
    return {
        "tool_calls": [
            {"id": f"call_{n}", "name": "read_file", "arguments": {"path": str(folder / f"price{n}.txt")}}
            for n in range(first, behind)
        ],
        **more,
    }


def _files(folder: Path) -> dict[str, str]:
    figures = {}
    for number in range(FILES):
        figures[f"call_{number}"] = f"price {number} is " + " ".join(
            f"{number}.{one:03}元" for one in range(200)
        )
        (folder / f"price{number}.txt").write_text(figures[f"call_{number}"], encoding="utf-8")
    return figures


@pytest.fixture(scope="module", params=ways(), ids=str)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    way: Way = request.param
    config = {"compression": {"in_place": way.in_place, "protect_first_n": 1, "protect_last_n": 2}}
    # Renaming, the second summary fails: what Hermes puts in its place carries the state as well.
    second = {"content": "Summary two."} if way.in_place else {"status": 400, "error": "no summary today"}
    rules = [
        {"match": SUMMARY_REQUEST, "where": "last", "times": 1, "reply": {"content": "Summary one."}},
        {"match": SUMMARY_REQUEST, "where": "last", "reply": second},
    ]
    with Lab(way.host.python, script={"rules": rules, "default": "好"}, config=config) as lab:
        figures = _files(lab.work)
        plan = {"tool_calls": [{"id": "call_plan", "name": "todo", "arguments": {"todos": PLAN}}]}
        lab.server.script.add(
            plan,
            _read(lab.work, 0, 15),
            _read(lab.work, 15, 30, prompt_tokens=FULL),
            _read(lab.work, 30, 31),
            "三十个价格都读了",
            "好",
            _read(lab.work, 31, 33),
            _read(lab.work, 33, 36, prompt_tokens=FULL),
            "比较好了",
        )
        out = lab.agent([FIRST, SECOND, THIRD, FOURTH])
        lab.chat(RESUMED, "--resume", out["turns"][-1]["session_id"])
        yield Run(way, lab, out, figures, lab.main_requests())


def test_compact_preserves_state(run: Run) -> None:
    """Mid-turn, in the very next request: what was asked, what is planned, what was done."""
    number, text = run.summaries()[0]
    assert number == FIRST_COMPACTED
    state = state_of(text)
    assert re.match(rf"{HEAD}\nas of \d{{4}}-\S+Z, last call t-\w+; later messages are newer\n", state)
    assert f"not answered yet): {FIRST}" in state
    assert "doing: 读三十个价格" in state
    assert "open: 写结论" in state
    failed = len(run.failed & {f"call_{number}" for number in range(30)})
    counted = f"read_file 30 ({failed} failed)" if failed else "read_file 30"
    assert f"Calls so far: 31: {counted}, todo 1" in state
    assert f"Working directory: {run.lab.work}" in state
    assert "flowchart TD" in state


def test_two_compactions_each_with_a_state_of_its_own(run: Run) -> None:
    states = list(dict.fromkeys(state_of(text) for _, text in run.summaries()))
    assert len(states) == 2
    assert "" not in states
    assert len({hash(text) for _, text in run.summaries()}) == 2
    assert "Calls so far: 37" in states[1]
    assert f"not answered yet): {THIRD}" in states[1]


def test_compact_without_llm(run: Run) -> None:
    """Also where the summary itself failed."""
    last = run.summaries()[-1][1]
    assert ("Summary two." in last) is run.way.in_place
    assert HEAD in last


def test_no_task_regression(run: Run) -> None:
    """What is answered is called answered, so that nobody begins it again."""
    assert f"answered: {FIRST} → 三十个价格都读了" in state_of(run.summaries()[-1][1])


def test_the_prefix_is_cut_by_compactions_alone(run: Run) -> None:
    """Between two compactions every request begins with the whole one before it, as far as the host keeps its own."""
    numbers = [number for number, _ in run.summaries()]
    resumed = len(run.requests) - 1
    second = next(number for number, text in run.summaries() if "Calls so far: 37" in text)
    for earlier, later in pairwise(numbers):
        if later not in (second, resumed) and run.way.host.keeps_injections:
            before = run.requests[earlier]
            assert common_prefix(before, run.requests[later]) == len(before["messages"])


def test_another_process_sends_the_same_bytes(run: Run) -> None:
    number, text = run.summaries()[-1]
    assert number == len(run.requests) - 1
    assert RESUMED in text_of(run.requests[-1]["messages"][-1]["content"])
    assert state_of(text) == state_of(run.summaries()[-2][1])
    if run.way.host.keeps_injections:
        assert text == run.summaries()[-2][1]


def test_every_request_after_a_compaction_carries_the_state(run: Run) -> None:
    for number in range(FIRST_COMPACTED, len(run.requests)):
        assert HEAD in compacted(run.requests[number]), number
    for number in range(FIRST_COMPACTED):
        assert HEAD not in json.dumps(run.requests[number])


def test_the_state_is_in_no_summary_request_and_not_stored_by_the_host(run: Run) -> None:
    summaries = [body for body in run.lab.requests() if not body.get("tools")]
    assert summaries
    assert all(HEAD not in json.dumps(body) for body in summaries)
    assert all(HEAD not in json.dumps(one, default=str) for one in run.out["messages"])


def test_a_task_of_thirty_calls_expands_to_the_original_bytes(run: Run) -> None:
    canvas = state_of(run.summaries()[0][1])
    nodes = re.findall(r"^(t_\w+)\[", canvas, re.MULTILINE)
    sent: dict[str, str] = {}
    for body in run.requests:
        for one in body["messages"]:
            if one.get("role") == "tool":  # later the host itself puts a note in the place of an old result
                sent.setdefault(one["tool_call_id"], text_of(one["content"]))
    told: dict[str, str] = {}
    with Memory.open(run.lab.home) as memory:
        for node in nodes:
            told |= {trace.tool_call_id: trace.result for trace in memory.expand(node)}
    assert set(told) == {"call_plan", *(f"call_{number}" for number in range(30))}
    whole = {f"call_{number}" for number in range(30)} - run.failed
    assert len(whole) >= 25
    for call in whole:
        assert run.figures[call] in json.loads(told[call])["content"]
    both = set(sent) & set(told)
    assert {call: told[call] for call in both} == {call: sent[call] for call in both}
    assert len(both) >= 15


def test_inflight_trace(run: Run) -> None:
    """Every call of the run ended, and each is one row that says how."""
    rows = story.calls(run.lab.home)
    assert len(rows) == FILES + 1
    assert {row["status"] for row in rows if row["tool_call_id"] not in run.failed} == {"ok"}
    for row in rows:
        if row["tool_call_id"] in run.failed:
            assert row["error"], "the host's own words are kept"


def test_both_compactions_are_on_record(run: Run) -> None:
    rows = story.stored(run.lab.home, "SELECT record FROM other WHERE kind = 'compaction' ORDER BY id")
    kept = [json.loads(row["record"]) for row in rows]
    assert [HEAD in one["text"] for one in kept] == [True, True]
    assert "Summary one." in kept[0]["summary"]
    assert len({one["session"] for one in kept}) == 1


# -- killed in the middle, and long results outside ----------------------------------------------------------------------


@dataclass
class Cut:
    """A session whose process was killed inside a call, resumed and compacted."""

    lab: Lab
    shown: str
    resumed: list[dict[str, Any]]


@pytest.fixture(scope="module")
def cut() -> Iterator[Cut]:
    settings = {"offload": {"enabled": True}}
    config = {
        "compression": {"protect_first_n": 1, "protect_last_n": 2},
        "plugins": {"entries": {"hermes-memory": {"settings": settings}}},
    }
    rules = [{"match": SUMMARY_REQUEST, "where": "last", "reply": {"content": "Summary."}}]
    with Lab(CURRENT.python, script={"rules": rules, "default": "好"}, config=config) as lab:
        _files(lab.work)
        (lab.work / "long.txt").write_text(
            "\n".join(f"第{line}行 价格 {line * 7}" for line in range(900)), encoding="utf-8"
        )
        read = {"name": "read_file", "arguments": {"path": str(lab.work / "long.txt"), "limit": 900}}
        sleep = {"id": "call_cut", "name": "terminal", "arguments": {"command": "sleep 300"}}
        lab.server.script.add({"tool_calls": [{"id": "call_long", **read}]}, {"tool_calls": [sleep]})
        process = lab.start(lab.hermes("chat", "-q", "读长文件，然后等着", "--quiet"))
        with Memory.open(lab.home) as memory:
            deadline = time.monotonic() + 90
            while not memory.traces(status="started", owner=Owner.ANY) or len(lab.main_requests()) < 2:
                assert time.monotonic() < deadline, process.poll()
                time.sleep(0.1)
            session = memory.traces(status="started")[0].session_id
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        shown = story.tool_results(lab.main_requests()[1])[0]
        before = len(lab.main_requests())
        lab.server.script.add(_read(lab.work, 0, 8), _read(lab.work, 8, 12, prompt_tokens=FULL), "好了")
        lab.chat("接着读价格", "--resume", session)
        yield Cut(lab, shown, lab.main_requests()[before:])


def test_a_call_cut_off_by_a_kill_is_listed_as_unfinished(cut: Cut) -> None:
    states = [state_of(text) for body in cut.resumed if (text := compacted(body))]
    assert states
    section = states[0].split("Unfinished calls", 1)[1].splitlines()
    assert re.fullmatch(r"\* t-\w+ terminal .*sleep 300.*", section[1])


def test_a_long_result_stays_outside_and_is_read_on_by_pages(cut: Cut) -> None:
    assert len(cut.shown) < 6_000
    found = re.search(r"ref-[0-9a-f]{16}", cut.shown)
    assert found
    with Memory.open(cut.lab.home) as memory:
        trace = memory.trace("call_long")
        saved = memory.status()["offload"]
    assert trace is not None
    assert "第500行" in trace.result
    assert "第500行" not in cut.shown
    kept = (cut.lab.home / "memory" / "refs" / f"{found[0]}.md").read_text(encoding="utf-8")
    assert kept.endswith(trace.result)
    assert saved["results"] == 1
    assert saved["tokens_saved"] > 2_000
