"""Ask the real memory the hand-written cases and count what came back. The format is in fixtures/CASES.md.

    python bench/cases.py
    python bench/cases.py --cases fixtures/cases-dev.jsonl --bank fixtures/cases-dev-bank.jsonl --show
    python bench/cases.py --setting embedding.backend=none --json results.json

The bank is stored once in a home of its own. Each case gets a copy of that home, stores its own rows, asks its
question in the first message of a new session, and its copy is thrown away: no case sees another one's rows.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.case_file import CHECKS, DECIDING, Case, Item, Result, Shown, day_of, read_bank, read_cases, score
from hermes_memory_hookspecs import Owner, Recalled, ReportDocument, Session, ToolTrace, Turn
from hermes_memory_hookspecs.types import TraceStatus
from hermes_memory_plugin import Memory
from hermes_memory_plugin.recall.budget import tokens

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*(\{.*?\})\s*(?:→|->|=>)\s*(.*)", re.DOTALL)
_TURN = re.compile(r"(?:用户：|User: )(.*?)\s*[｜|]\s*(?:助手：|Assistant: )(.*)", re.DOTALL)


def run(
    cases: Sequence[Case],
    bank: Sequence[Item],
    *,
    settings: Mapping[str, Any] | None = None,
    mode: str = "automatic",
    k: int = 5,
) -> Iterator[Result]:
    """Each case asked in a home of its own; the folders live as long as the iteration."""
    with tempfile.TemporaryDirectory(prefix="cases-") as folder:
        stocked = Path(folder) / "bank"
        stocked.mkdir()
        if settings:
            entry = {"hermes-memory": {"settings": dict(settings)}}
            (stocked / "config.yaml").write_text(
                json.dumps({"plugins": {"entries": entry}}), encoding="utf-8"
            )
        with Memory.open(stocked) as memory:
            known = {tell(memory, item): item.id for item in bank}
            memory.flush()
        for case in cases:
            home = Path(folder) / "case"
            shutil.copytree(stocked, home)
            with Memory.open(home) as memory:
                ids = known | {tell(memory, item): item.id for item in case.setup}
                memory.flush()
                shown = ask(memory, case, ids, mode=mode, k=k)
            shutil.rmtree(home)
            yield Result(case, shown, score(case, shown))


def tell(memory: Memory, item: Item) -> str:
    """Store the row in its layer on its own date; returns the id the memory gave it."""
    owner, day = Owner.parse(item.owner), day_of(item.date)
    if item.layer == "L0":
        at, session = day or datetime.now(UTC), f"past-{item.id}"
        if call := _call(item.text):
            tool, args, result = call
            status: TraceStatus = "error" if result.startswith("error") else "ok"
            return memory.log(
                ToolTrace(
                    tool_call_id=item.id, tool_name=tool, args=args, result=result, status=status, at=at,
                    session_id=session, owner=owner,
                )
            )  # fmt: skip
        user, assistant = _said(item.text)
        return memory.log_turn(Turn(user, assistant, at=at, session_id=session, owner=owner))
    if item.layer == "L2":
        title = item.title or re.split(r"[：:。\n]", item.text, maxsplit=1)[0][:40]
        return memory.add_scene(title, item.text, id=item.id, as_of=day, owner=owner)
    if item.layer == "report" and (add_report := getattr(memory, "add_report", None)):
        tickers = (item.code,) if item.code else ()
        title = item.title or item.text[:40]
        document = ReportDocument(
            id=item.id, title=title, date=day, broker=item.broker, tickers=tickers, pages=(item.text,)
        )
        return str(add_report(document))
    typed = dict(item.typed)
    as_of = typed.pop("as_of", day)
    kind = typed.pop("kind", "preference" if item.layer == "L3" else "fact")
    origin = "report" if item.layer == "report" else item.origin
    source = " ".join(part for part in (item.broker, item.title) if part)
    if day:
        typed.setdefault("created_at", day)
    return memory.remember(
        item.text, id=item.id, kind=kind, as_of=as_of, origin=origin, source=source, owner=owner,
        project=item.project, **typed,
    )  # fmt: skip


def ask(memory: Memory, case: Case, ids: Mapping[str, str], *, mode: str = "automatic", k: int = 5) -> Shown:
    """One recall as the first message of a new session; `ids` turns the memory's ids into those of the file."""
    owner = Owner.parse(case.owner)
    session = Session(id=f"session-{case.id}", owner=owner)
    memory.begin(session)
    start = time.perf_counter()
    recall = memory.recall(
        case.query, mode=mode, history=case.history, owner=owner, session=session, now=case.today,
        project=case.project, limit=k if mode == "explicit" else None,
    )  # fmt: skip
    spent = (time.perf_counter() - start) * 1000
    rules = [recall.handles.get(item.id, "") or item.text for item in recall.standing]
    lines = [line for line in recall.block.splitlines() if any(rule in line for rule in rules)]
    return Shown(
        items=tuple(dict.fromkeys(_named(item, ids) for item in recall.items))[:k],
        standing=tuple(_named(item, ids) for item in recall.standing),
        tokens=recall.tokens,
        standing_tokens=sum(map(tokens, lines)),
        milliseconds=spent,
    )


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Means by kind, and the cost: tokens (standing preferences apart), tokens where nothing belongs, time."""
    kinds: dict[str, list[Result]] = {"ALL": list(results)}
    for one in results:
        kinds.setdefault(one.case.kind, []).append(one)
    spent = [one.shown.tokens - one.shown.standing_tokens for one in results if not one.case.expect_empty]
    times = [one.shown.milliseconds for one in results]
    return {
        "kinds": {
            kind: {"n": len(some)} | {name: _mean(one.checks.get(name) for one in some) for name in CHECKS}
            for kind, some in kinds.items()
        },
        "tokens_mean": _mean(spent),
        "tokens_p95": _p95(spent),
        "tokens_standing_mean": _mean(one.shown.standing_tokens for one in results if one.shown.standing),
        "tokens_on_empty": sum(one.shown.tokens for one in results if one.case.expect_empty),
        "milliseconds_median": statistics.median(times) if times else None,
        "milliseconds_p95": _p95(times),
    }


def table(figures: Mapping[str, Any]) -> str:
    """The summary as text: one line a kind, then the cost."""
    lines = [f"{'kind':<18}{'n':>4}" + "".join(f"{name:>9}" for name in CHECKS)]
    for kind, row in sorted(figures["kinds"].items(), key=lambda pair: (pair[0] != "ALL", pair[0])):
        lines.append(f"{kind:<18}{row['n']:>4}" + "".join(f"{_figure(row[name]):>9}" for name in CHECKS))
    lines.append("")
    lines += [f"{name:<22}{_figure(value)}" for name, value in figures.items() if name != "kinds"]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=Path, default=FIXTURES / "cases.jsonl")
    parser.add_argument("--bank", type=Path, default=FIXTURES / "cases-bank.jsonl")
    parser.add_argument("--kind", action="append", default=[], help="only this kind; may be given again")
    parser.add_argument("--mode", choices=("automatic", "explicit"), default="automatic")
    parser.add_argument("--k", type=int, default=5, help="how many items count (default 5)")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="KEY=VALUE", help="a setting of the plugin"
    )
    parser.add_argument("--show", action="store_true", help="print each case that failed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and every result")
    options = parser.parse_args(argv)
    cases = [case for case in read_cases(options.cases) if not options.kind or case.kind in options.kind]
    settings = {key: _value(text) for key, _, text in (pair.partition("=") for pair in options.setting)}
    results = []
    for one in run(cases, read_bank(options.bank), settings=settings, mode=options.mode, k=options.k):
        results.append(one)
        if options.show and not one.checks["pass"]:
            print(_failure(one), flush=True)
    figures = summary(results)
    print(table(figures))
    if options.json:
        rows = [{"id": one.case.id, "checks": one.checks, **asdict(one.shown)} for one in results]
        text = json.dumps({**figures, "settings": settings, "mode": options.mode, "results": rows}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


def _failure(one: Result) -> str:
    case, texts = one.case, {item.id: item.text for item in one.case.setup}
    failed = ", ".join(name for name in DECIDING if one.checks.get(name, 1) != 1)
    lines = [f"{case.id}: {failed}: {case.query[-60:]}"]
    for mark, wanted in (("must", case.must), ("must not", case.must_not)):
        lines += [f"  {mark:>9}  {id_}" for id_ in wanted]
    for mark, got in (("standing", one.shown.standing), ("got", one.shown.items)):
        lines += [f"  {mark:>9}  {id_}  {texts.get(id_, '(bank)')[:60]}" for id_ in got]
    return "\n".join(lines)


def _call(text: str) -> tuple[str, dict[str, Any], str] | None:
    """(tool, arguments, result) of a text such as `get_pe {"code": "600519.SH"} → 24.1`."""
    if not (found := _CALL.fullmatch(text.strip())):
        return None
    try:
        args = json.loads(found[2])
    except json.JSONDecodeError:
        return None
    return found[1], args, found[3]


def _said(text: str) -> tuple[str, str]:
    found = _TURN.fullmatch(text.strip())
    return (found[1], found[2]) if found else (text, "")


def _named(item: Recalled, ids: Mapping[str, str]) -> str:
    """The id of the file. A chunk counts as its report; the row of a tool call names the call in its source."""
    if item.id in ids:
        return ids[item.id]
    if item.layer == "L0":
        return next((ids[word] for word in item.source.split() if word in ids), item.id)
    reports = [known for known in ids if item.id.startswith(known) and not item.id[len(known)].isalnum()]
    return ids[max(reports, key=len)] if reports else item.id


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _mean(values: Any) -> float | None:
    some = [value for value in values if value is not None]
    return statistics.fmean(some) if some else None


def _p95(values: Sequence[float]) -> float | None:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))] if values else None


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value <= 1 else f"{value:.1f}"


if __name__ == "__main__":
    sys.exit(main())
