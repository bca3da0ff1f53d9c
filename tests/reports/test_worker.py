"""Worker processes: no file hangs or kills the caller, and what becomes of bad ones is said."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_hookspecs import ReportDocument, hookimpl
from hermes_memory_plugin.errors import ReportUnreadable
from hermes_memory_plugin.extensions import Hooks
from hermes_memory_plugin.reports.limits import MB, Limits
from hermes_memory_plugin.reports.pool import Progress, read_many
from hermes_memory_plugin.reports.reader import read
from hermes_memory_plugin.reports.worker import Worker, read_report
from tests.reports.shelf import LINJIANG, LOCKED, PASSWORD, QINGHE, SHELF, bomb, pdf, words


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as one:
        yield one


def test_a_file_is_read_in_another_process(worker: Worker) -> None:
    read = worker.read(SHELF / QINGHE)
    assert read.status == "text"
    assert read.metadata.broker == "青禾证券"
    assert read.seconds > 0
    assert read.checked(SHELF / QINGHE) is read


@pytest.mark.parametrize(
    ("name", "data", "status", "reason"),
    [
        ("empty.pdf", b"", "broken", "empty (0 bytes)"),
        ("noise.pdf", bytes(range(256)) * 20, "broken", "no PDF"),
        ("head only.pdf", b"%PDF-1.7\n", "broken", "no PDF"),
        ("Zip 改名.pdf.txt", b"PK\x03\x04" + bytes(500), "broken", "archive"),
        ("old.doc.txt", b"\xd0\xcf\x11\xe0" + bytes(500), "broken", "Office"),
        ("binary.txt", bytes([1, 2, 3, 5, 200, 255]) * 300, "broken", "not text"),
        ("many pages.pdf", pdf(words(1), pages=10_000), "too_big", "10,000 pages; the limit is 2,000"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_a_bad_file_is_refused_with_its_reason(
    tmp_path: Path, worker: Worker, name: str, data: bytes, status: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    read = worker.read(path)
    assert (read.status, reason in read.reason) == (status, True), read.reason
    assert not read.pages
    with pytest.raises(ReportUnreadable, match=re.escape(name)):
        read.checked(path)


def test_paths_that_are_no_file_are_refused(tmp_path: Path, worker: Worker) -> None:
    loop = tmp_path / "环.pdf"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe.pdf"
    os.mkfifo(pipe)
    for path, reason in (
        (loop, "symbolic link"),
        (pipe, "not a file"),
        (tmp_path, "is a directory"),
        (tmp_path / "gone.pdf", "no such file"),
    ):
        read = worker.read(path)
        assert (read.status, reason in read.reason) == ("broken", True), (path, read.reason)


def test_a_report_deleted_while_it_is_read_is_read_to_its_end(tmp_path: Path, worker: Worker) -> None:
    path = tmp_path / "名 字.pdf"
    path.write_bytes((SHELF / LINJIANG).read_bytes())
    read = worker.read(path, on_page=lambda at, of: path.unlink(missing_ok=True))
    assert not path.exists()
    assert read.status == "text"
    assert len(read.pages) == 3


def test_a_password_is_asked_for_and_used(worker: Worker) -> None:
    locked = worker.read(SHELF / LOCKED)
    assert locked.status == "encrypted"
    assert "--password" in locked.reason
    assert "does not open it" in worker.read(SHELF / LOCKED, password="wrong").reason
    opened = worker.read(SHELF / LOCKED, password=PASSWORD)
    assert "only those with the password" in opened.pages[0].text
    assert worker.read(SHELF / LOCKED).status == "encrypted", "a password is for one call"


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "slow.pdf"
    path.write_bytes(pdf(words(3_000), pages=60))
    with Worker(Limits(seconds=1.0)) as worker:
        read = worker.read(path)
        assert (read.status, "longer than the limit of 1 s" in read.reason) == ("broken", True), read.reason
    with Worker() as worker:
        assert worker.read(SHELF / LINJIANG).status == "text"


def test_when_time_runs_short_the_text_still_comes_and_what_was_left_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "grids.pdf"
    lines = [b"%d 40 m %d 800 l S" % (x, x) for x in range(10, 590, 20)]
    lines += [b"10 %d m 580 %d l S" % (y, y) for y in range(40, 800, 20)]
    path.write_bytes(pdf(b"\n".join(lines) + words(20), pages=3))
    late = read(path, limits=Limits(seconds=0.0))
    assert late.status == "text"
    assert [number for number, problem in late.problems if "ruled tables" in problem] == [1, 2, 3]


@pytest.mark.slow
def test_a_bomb_meets_the_memory_limit_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pdf"
    path.write_bytes(bomb(400))
    assert path.stat().st_size < 100_000
    with Worker(Limits(memory_bytes=200 * MB)) as worker:
        read = worker.read(path)
        assert read.status in ("broken", "too_big"), read.reason
        assert not read.pages
        assert worker.read(SHELF / LINJIANG).status == "text"


def test_when_the_process_dies_the_other_reader_takes_the_file(tmp_path: Path) -> None:
    with Worker() as worker:
        killed: list[int] = []

        def kill_once(at: int, of: int) -> None:
            process = worker._process
            if not killed and process is not None:
                os.kill(process.pid, signal.SIGSEGV)
                killed.append(process.pid)

        read = worker.read(SHELF / LINJIANG, on_page=kill_once)
        assert killed
        assert read.status == "text"
        assert read.metadata.target_price == 1820.0


def test_a_file_over_the_limit_of_size_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.pdf"
    with path.open("wb") as file:
        file.truncate(3 * MB)
    read = read_report(path, limits=Limits(file_bytes=2 * MB))
    assert (read.status, read.reason) == ("too_big", "it has 3 MB; the limit is 2 MB")


def test_a_plugin_is_asked_before_us() -> None:
    class Caj:
        @hookimpl
        def read_report(self, path: Path) -> ReportDocument | None:
            return (
                ReportDocument(id="", title="调研", pages=("# 一\n\n甲", "乙"))
                if path.suffix == ".caj"
                else None
            )

    hooks = Hooks()
    hooks.register(Caj(), "caj")
    with Worker() as worker:
        read = worker.read(Path("/nowhere/a.caj"), hooks=hooks)
        assert (read.status, read.metadata.title, [page.text for page in read.pages]) == (
            "text",
            "调研",
            ["一\n\n甲", "乙"],
        )
        assert worker.read(SHELF / LINJIANG, hooks=hooks).metadata.broker == "临江证券"


@pytest.mark.slow
def test_many_files_come_as_they_are_done_each_once(tmp_path: Path) -> None:
    paths = [
        *sorted(path for path in SHELF.iterdir() if path.suffix in (".pdf", ".md", ".txt")),
        tmp_path / "missing.pdf",
    ]
    seen: list[Progress] = []
    done = dict(read_many(paths, workers=2, progress=seen.append))
    assert set(done) == set(paths)
    assert done[tmp_path / "missing.pdf"].status == "broken"
    last = seen[-1]
    assert (last.files, last.of, last.remaining) == (len(paths), len(paths), 0.0)
    assert last.pages == sum(len(read.pages) for read in done.values())
    assert last.pages_per_second > 0


def test_leaving_early_ends_the_processes() -> None:
    paths = [SHELF / QINGHE, SHELF / LINJIANG] * 20
    results = read_many(paths, workers=2)
    next(results)
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 30
