"""Nobody reads another's row, whichever way he asks: each read path, for each pair of clients, with canaries.

Each path is also walked by the row's own owner and must bring the canary there: a path that shows nothing to anybody
would prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

from hermes_memory_plugin import Memory
from hermes_memory_plugin.cli import main
from hermes_memory_plugin.cli.app import app
from hermes_memory_plugin.errors import NotFound
from hermes_memory_plugin.tools import OUR_TOOLS, Caller
from hermes_memory_plugin.upkeep import handover
from tests.upkeep.embed_lab import Concepts, configure, hooks_with

from .people import ASKED, GROUP, JIA, PAIRS, YI, Client, Names, plant, town

CLIENTS = (JIA, YI, GROUP)
_IDS = [f"{mine.name}-asks-of-{other.name}" for mine, other in PAIRS]

VERBS: dict[str, tuple[str, ...]] = {
    "recall": (ASKED,),
    "trace": (),
    "why": ("-n", "50"),
    "verify": ("贵州茅台渠道库存 1511 箱",),
    "sources": (),
    "history": ("{fact}",),
    "scenes list": (),
    "scenes show": ("{scene}",),
    "notes list": (),
    "trash list": (),
    "trash log": (),
    "persona show": (),
    "reports list": (),
    "reports show": ("{report}", "--page", "1"),
    "reports search": ("贵州茅台渠道库存",),
    "mappers suggest": ("{call}",),
    "forget": ("贵州茅台渠道库存", "--dry-run"),
}
"""Every verb that shows rows to one owner, and what it is asked; {…} is an id of the client whose rows are looked for."""

QUIET = {
    "verify": "it says a verdict and ids; the text of a row is checked by the JSON walk",
    "trash log": "ids without their text; see test_the_log_of_what_was_forgotten_is_each_owner_s",
    "mappers suggest": "it drafts from columns; a sentence has none",
}
"""Verbs that do not show the canary to its owner either."""

QUICK = {"recall", "trace", "why", "notes list", "scenes show", "reports search"}
"""Walked in every run of the tests; the others, which read the same rows, among the slow ones."""

NAMELESS: dict[str, str] = {
    "demo": "a home of its own",
    "status": "counts",
    "doctor": "checks and counts; its probe has an owner of its own",
    "remember": "writes",
    "competences list": "shared by what they are",
    "competences import": "shared by what they are",
    "competences diff": "shared by what they are",
    "competences conflicts": "shared by what they are",
    "competences resolve": "shared by what they are",
    "scenes confirm": "finds as `scenes show` does, writes",
    "scenes forget": "finds as `scenes show` does, writes",
    "scenes draft": "writes each scene to the owner of its conversation",
    "trash restore": "see test_nobody_restores_what_another_forgot",
    "trash empty": "removes what `trash list` shows",
    "persona slim": "Hermes' own files, which belong to the home",
    "persona restore": "Hermes' own files",
    "persona adopt": "finds as `notes` does",
    "import vibe-trading": "writes",
    "reindex": "counts",
    "mappers list": "tools, no rows",
    "mappers check": "a file",
    "mappers backfill": "counts",
    "reports add": "writes",
    "reports edit": "finds as `reports show` does",
    "reports remove": "finds as `reports show` does",
    "reports prune": "files that are gone",
    "reports relocate": "paths",
    "owners list": "owner keys and counts, for whoever runs the machine",
    "owners link": "a code",
    "owners unlink": "keys",
    "owners export": "for whoever runs the machine; see test_leaving.py",
    "owners erase": "counts",
    "upkeep": "counts",
    "pause": "writes",
    "resume": "writes",
    "web": "a page of its own, with tests of its own",
    "enable": "Hermes' config.yaml",
    "disable": "Hermes' config.yaml",
}
"""Verbs that show no row, and why."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("walls") / "hermes"
    home.mkdir()
    return home


@pytest.fixture(scope="module")
def names(home: Path) -> dict[str, Names]:
    return town(home)


@pytest.fixture(scope="module")
def memory(home: Path, names: dict[str, Names]) -> Iterator[Memory]:
    with Memory.open(home) as memory:
        yield memory


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, verb in command.commands.items():
            yield from leaves(verb, (*path, name))
    else:
        yield " ".join(path)


def test_every_verb_of_the_command_line_is_walked_or_says_why_not() -> None:
    main(["--help"])  # registers them
    unknown = set(leaves(app)) - set(VERBS) - set(NAMELESS)
    assert not unknown, f"{unknown}: walk a new verb here, or say why it shows no row"
    assert not set(VERBS) - set(leaves(app)), "a verb that is gone"


def asked(verb: str, names: Names) -> list[str]:
    fields = {name: getattr(names, name) for name in Names.__dataclass_fields__}
    return [*verb.split(), *(word.format(**fields) for word in VERBS[verb])]


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=() if verb in QUICK else pytest.mark.slow) for verb in VERBS]
)
def test_no_verb_shows_another_s_row(
    verb: str, home: Path, names: dict[str, Names], capsys: pytest.CaptureFixture[str]
) -> None:
    said = {}
    # Without an id one answer tells of everybody; a page is made of what the JSON holds.
    by_id = [(YI, JIA), (GROUP, JIA), (JIA, GROUP)]
    for mine, other in by_id if "{" in "".join(VERBS[verb]) else [(JIA, JIA), (GROUP, GROUP)]:
        for shape in ((), ("--json",)) if mine is JIA else (("--json",),):
            main(["--home", str(home), "--owner", mine.key, *shape, *asked(verb, names[other.name])])
            said[mine.name, other.name, shape] = capsys.readouterr().out
    for (asker, _, shape), page in said.items():
        for other in CLIENTS:
            if other.name != asker:
                assert other.canary not in page, f"{verb} {shape}: {other.name}'s row before {asker}"
    if verb not in QUIET:
        main(["--home", str(home), "--owner", JIA.key, "--json", *asked(verb, names[JIA.name])])
        assert JIA.canary in capsys.readouterr().out, f"{verb} shows {JIA.name} nothing of his own"


@pytest.mark.parametrize(("mine", "other"), PAIRS, ids=_IDS)
@pytest.mark.parametrize("mode", ["automatic", "explicit"])
def test_recall_gives_own_rows_only(memory: Memory, mode: str, mine: Client, other: Client) -> None:
    # A session of its own each time: the first message also brings the standing preferences.
    session = replace(mine.session, id=f"walk-{mode}-{mine.name}-{other.name}")
    for question in (ASKED, f"{ASKED} {other.canary}", other.canary, "600519 channel_stock"):
        found = memory.recall(question, mode=mode, owner=mine.owner, session=session, limit=50)
        shown = json.dumps([item.text + item.source for item in found.items], ensure_ascii=False)
        assert other.canary not in found.block + shown
        if question == ASKED:
            assert mine.canary in found.block


def test_rows_of_others_change_neither_what_is_found_nor_its_order(tmp_path: Path, memory: Memory) -> None:
    with Memory.open(tmp_path) as alone:
        plant(alone, JIA)
        found = {}
        for name, one in (("alone", alone), ("among others", memory)):
            items = one.recall(ASKED, mode="explicit", owner=JIA.owner, limit=50, recorded=False).items
            found[name] = [(item.layer, item.text, item.state) for item in items]
    assert found["alone"] == found["among others"]


TOOL_CALLS = [
    ("remember", {"action": "recall", "query": ASKED}, True),
    ("remember", {"action": "recall"}, True),
    ("remember", {"action": "forget", "title": "渠道调研 {canary}"}, False),
    ("memory_trace", {"tool": "channel_survey"}, True),
    ("memory_trace", {"action": "lookup", "id": "{call}"}, False),
    ("memory_trace", {"action": "expand", "id": "{call}"}, False),
    ("memory_trace", {"action": "verify", "text": "贵州茅台渠道库存 1722 箱"}, False),
    ("search_reports", {"query": "贵州茅台渠道库存"}, True),
    ("search_reports", {"query": "{canary}"}, False),
]


def test_every_tool_is_walked() -> None:
    assert {name for name, _, _ in TOOL_CALLS} == set(OUR_TOOLS)


@pytest.mark.parametrize(("name", "arguments", "own"), TOOL_CALLS, ids=range(len(TOOL_CALLS)))
def test_no_tool_shows_another_s_row(
    memory: Memory, names: dict[str, Names], name: str, arguments: dict[str, str], own: bool
) -> None:
    tool = OUR_TOOLS[name]
    for mine, other in PAIRS:
        given = {
            key: value.format(canary=other.canary, call=names[other.name].call)
            for key, value in arguments.items()
        }
        answer = tool.call(Caller(mine.session, lambda: memory), given)
        known = "".join(given.values())  # a refusal may repeat what it was asked
        assert other.canary not in answer.replace(known, "") or other.canary in known, (name, given)
        for third in CLIENTS:
            if third is not mine and third.canary not in known:
                assert third.canary not in answer
        if own:
            assert mine.canary in answer
    assert memory.reader.named(names[YI.name].note, memory.keys(YI.owner)), "another's forget took it"


@pytest.mark.parametrize(("mine", "other"), PAIRS, ids=_IDS)
def test_ids_of_another_open_nothing(
    memory: Memory, names: dict[str, Names], mine: Client, other: Client
) -> None:
    theirs = names[other.name]
    assert memory.trace(theirs.call, owner=mine.owner) is None
    assert memory.trace(theirs.call, owner=other.owner) is not None
    for id in (theirs.fact, theirs.note, theirs.scene):
        with pytest.raises(NotFound):
            memory.history(id, owner=mine.owner)
        with pytest.raises(NotFound):
            memory.forget(id, owner=mine.owner)
        assert memory.history(id, owner=other.owner)
    with pytest.raises(NotFound):
        memory.sources(theirs.turn, owner=mine.owner)
    with pytest.raises(NotFound):
        memory.expand(theirs.call, owner=mine.owner)
    assert memory.candidates(other.canary, owner=mine.owner) == [] or not {
        theirs.fact, theirs.note, theirs.scene
    } & set(memory.candidates(other.canary, owner=mine.owner))  # fmt: skip


def test_a_client_cannot_forget_what_is_everybody_s(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        house = memory.remember("渠道库存口径：以经销商回款为准", kind="competence")
        for client in (JIA, GROUP):
            answer = OUR_TOOLS["remember"].call(
                Caller(client.session, lambda: memory), {"action": "forget", "title": house}
            )
            assert json.loads(answer)["status"] == "not_found"
            assert memory.recall("渠道库存口径", mode="explicit", owner=client.owner).items
        assert memory.forget(house) == [house]


def test_nobody_restores_what_another_forgot(memory: Memory, names: dict[str, Names]) -> None:
    for mine, other in PAIRS:
        with pytest.raises(NotFound):
            memory.restore(names[other.name].gone, owner=mine.owner)


def test_the_log_of_what_was_forgotten_is_each_owner_s(
    home: Path, names: dict[str, Names], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = {}
    for client in (JIA, YI):
        assert main(["--home", str(home), "--owner", client.key, "--json", "trash", "log"]) == 0
        rows = json.loads(capsys.readouterr().out)["forgotten"]
        assert {(row["owner"], row["forgotten_by"]) for row in rows} == {(client.key, client.key)}
        seen[client.name] = {row["id"] for row in rows}
    assert not seen["jia"] & seen["yi"]


def test_the_audit_of_a_recall_is_its_owner_s(memory: Memory) -> None:
    for mine in CLIENTS:
        told = json.dumps(memory.why(100, owner=mine.owner), ensure_ascii=False, default=str)
        assert mine.canary in told
        # The walks above asked for the others' canaries; what must not be here is a row of theirs.
        shown = json.dumps([audit.get("items") for audit in memory.why(100, owner=mine.owner)], default=str)
        for other in CLIENTS:
            if other is not mine:
                assert other.canary not in shown


@pytest.mark.parametrize(("mine", "other"), PAIRS, ids=_IDS)
def test_the_text_behind_a_compaction_and_its_canvas_know_one_owner(
    memory: Memory, mine: Client, other: Client
) -> None:
    own = handover.workspace(memory, mine.session)
    assert mine.canary in repr(own)
    # Even where a host names the other's session for this owner.
    crossed = handover.workspace(memory, replace(other.session, owner=mine.owner))
    assert other.canary not in repr(crossed)


@pytest.mark.parametrize(("mine", "other"), PAIRS, ids=_IDS)
def test_vectors_of_others_are_never_hits(memory: Memory, mine: Client, other: Client) -> None:
    """The built-in word table's vectors: a question that means the other's row word for word."""
    found = memory.recall(f"渠道库存 {other.price} 箱 {other.canary} 说的", mode="explicit", owner=mine.owner)
    assert other.canary not in found.block


@pytest.mark.slow
def test_vectors_of_an_encoder_are_filtered_by_owner(tmp_path: Path) -> None:
    """Whole rows of the others as questions, to an encoder whose vectors are in a table of their own."""
    encoder = Concepts()
    configure(tmp_path, backend=encoder.name)
    with Memory.open(tmp_path, hooks=hooks_with(encoder)) as memory:
        for client in CLIENTS:
            plant(memory, client)
            memory.remember(f"{client.canary} 认为估值处在五年低位", owner=client.owner)
        memory.flush()
        for mine, other in PAIRS:
            for mode in ("automatic", "explicit"):
                found = memory.recall("茅台便宜吗 cheap", mode=mode, owner=mine.owner, limit=50)
                assert other.canary not in found.block
                if mode == "explicit":
                    assert mine.canary in found.block
