"""A ledger file: visited, never held; upgraded forward only; damage is moved aside and said."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from hermes_memory_plugin.errors import LedgerBusy, LedgerCorrupt, LedgerNewer
from hermes_memory_plugin.store.ledger import Ledger, fetch
from hermes_memory_plugin.store.ledger_faults import Fault, LedgerFormatNewer, LedgerUnusable, fault
from hermes_memory_plugin.store.migrations import steps
from tests.store.ledger_lab import Lab, crash_with_wal, hold_file, let_go, line_of, other_process


class Small(Ledger):
    """Two schema versions, so that there is something to migrate."""

    name = "small"
    sql: tuple[str, ...] = (
        "CREATE TABLE rows (id VARCHAR)",
        "ALTER TABLE rows ADD COLUMN n BIGINT DEFAULT 7",
    )

    def _steps(self) -> tuple[str, ...]:
        return self.sql


class Old(Small):
    sql = Small.sql[:1]


class Broken(Small):
    sql = (*Small.sql, "INSERT INTO rows VALUES ('half', 1); CREATE TABLE rows (id VARCHAR)")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "memory")


def test_reading_what_does_not_exist_finds_nothing_and_makes_nothing(lab: Lab) -> None:
    assert lab.facts.by_ids(["f1"]) == [] == lab.logs.traces()
    assert lab.facts.offsets() == {}
    assert lab.logs.status()["rows"]["logs"] == 0
    assert not lab.folder.exists()


def test_files_are_for_their_owner_only(lab: Lab) -> None:
    lab.trace("c1", "x" * 300_000)
    lab.drained()
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in lab.folder.rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_wal_bounded(lab: Lab) -> None:
    for number in range(15):
        lab.fact("same", f"version {number}")
        lab.trace(f"c{number}")
        lab.drained()
        assert not list(lab.folder.glob("*.wal"))
    assert lab.facts.size() < 4 << 20
    assert lab.logs.size() < 4 << 20


def test_nothing_stays_open_after_a_visit(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    assert lab.fact_ids() == ["f1"]
    let_go(hold_file(lab.facts.path))  # a stranger gets the file for himself


def test_the_file_is_one_the_oldest_supported_duckdb_reads(lab: Lab) -> None:
    with lab.facts.visit(write=True) as connection:
        tags = fetch(connection, "SELECT tags FROM duckdb_databases() WHERE NOT internal")[0]["tags"]
        fetched = fetch(connection, "SELECT current_setting('autoinstall_known_extensions') AS automatic")
    assert tags["storage_version"] == "v1.4.0+"
    assert fetched == [{"automatic": False}]


def test_reader_beside_writer(lab: Lab) -> None:
    lab.trace("c0")
    lab.drained()
    writer = other_process(
        "for n in range(1, 12):\n lab.trace(f'c{n}'); lab.drained()\n if n == 1: print('on', flush=True)",
        lab.folder,
    )
    assert line_of(writer) == "on"
    seen = []
    while writer.poll() is None:
        seen.append(len(lab.calls()))  # LedgerBusy would fail the test
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert len(lab.calls()) == 12


def test_lock_then_recover(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    stranger = hold_file(lab.facts.path)
    with pytest.raises(LedgerBusy) as busy, lab.facts.visit(wait=0.1):
        pass
    assert f"PID {stranger.pid}" in busy.value.holder
    let_go(stranger)
    assert lab.fact_ids() == ["f1"]


def test_a_visitor_waits_for_another_and_then_gives_up(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    with lab.facts.visit(write=True), pytest.raises(LedgerBusy), lab.facts.visit(wait=0.05):
        pass
    with lab.facts.visit(), lab.facts.visit() as second:  # readers do not shut each other out
        assert second.execute("SELECT count(*) FROM facts").fetchall() == [(1,)]


def test_an_older_file_is_upgraded_with_its_rows(tmp_path: Path) -> None:
    with Old(tmp_path).visit(write=True) as connection:
        connection.execute("INSERT INTO rows VALUES ('kept')")
    assert Small(tmp_path).rows("SELECT id, n FROM rows") == [{"id": "kept", "n": 7}]  # by a mere reader


def test_a_file_from_before_schemas_were_counted_is_upgraded(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "small.db")) as connection:
        connection.execute("CREATE TABLE something_else AS SELECT 1 AS a")
    assert Small(tmp_path).rows("SELECT * FROM rows") == []
    assert Small(tmp_path).rows("SELECT value FROM meta WHERE name = 'schema'") == [{"value": "2"}]
    assert Small(tmp_path).rows("SELECT a FROM something_else") == [{"a": 1}]


def test_a_failing_upgrade_changes_nothing(tmp_path: Path) -> None:
    with Small(tmp_path).visit(write=True) as connection:
        connection.execute("INSERT INTO rows VALUES ('kept', 1)")
    with pytest.raises(LedgerUnusable), Broken(tmp_path).visit(write=True):
        pass
    assert Small(tmp_path).rows("SELECT id FROM rows") == [{"id": "kept"}]


@pytest.mark.parametrize("ledger", ["facts", "logs"])
def test_migrations_are_numbered_without_a_gap(ledger: str) -> None:
    assert len(steps(ledger)) >= 1


@pytest.mark.parametrize("write", [False, True])
def test_newer_schema_is_refused_and_not_touched(tmp_path: Path, write: bool) -> None:
    with Small(tmp_path).visit(write=True) as connection:
        connection.execute("INSERT INTO rows VALUES ('kept', 1)")
    before = (tmp_path / "small.db").read_bytes()
    with pytest.raises(LedgerNewer) as newer, Old(tmp_path).visit(write=write):
        pass
    assert (newer.value.found, newer.value.known) == (2, 1)
    assert (tmp_path / "small.db").read_bytes() == before


def _replace_all(path: Path) -> None:
    path.write_bytes(os.urandom(100_000))


def _overwrite(path: Path, start: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + len(data)] = data
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "not a database": _replace_all,
    "empty file": lambda path: os.truncate(path, 0),
    "zeros in the main header": lambda path: _overwrite(path, 0, bytes(4096)),
    "zeros in both database headers": lambda path: _overwrite(path, 4096, bytes(8192)),
    "cut within the header": lambda path: os.truncate(path, 100),
    "cut in the middle": lambda path: os.truncate(path, path.stat().st_size // 2),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_moved_aside_and_filled_again_from_the_journals(
    lab: Lab, damage: Callable[[Path], None]
) -> None:
    lab.fact("f1")
    lab.drained()
    damage(lab.facts.path)
    damaged = lab.facts.path.read_bytes()
    lab.fact("f2")
    report = lab.drained()
    assert lab.fact_ids() == ["f1", "f2"]  # the journal of a living process is still there
    (notice,) = report.notices
    assert isinstance(notice, LedgerCorrupt)
    assert notice.moved_to is not None
    assert notice.moved_to.read_bytes() == damaged
    assert lab.facts.set_aside() == [notice.moved_to]


def test_a_reader_that_finds_damage_says_so_and_goes_on(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    _replace_all(lab.facts.path)
    assert lab.fact_ids() == []
    assert len(lab.facts.notices) == 1
    lab.drained()
    assert lab.fact_ids() == ["f1"]


def test_damage_found_in_the_middle_of_a_drain_is_moved_aside_too(lab: Lab) -> None:
    for number in range(2_000):
        lab.fact(f"f{number:05d}", os.urandom(100).hex())
    lab.drained()
    path = lab.facts.path
    for start in range(12_288 + 4_096, path.stat().st_size, 262_144):  # every block, headers spared
        _overwrite(path, start, b"\xaa" * 64)
    lab.fact("last")
    lab.drained()
    assert len(lab.fact_ids()) == 2_001
    assert len(lab.facts.set_aside()) >= 1


def test_of_a_damaged_log_only_the_log_is_moved(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    crash_with_wal(lab.facts.path, "INSERT INTO confirmations VALUES ('f1', now()::TIMESTAMP)")
    wal = lab.facts.path.with_name("facts.db.wal")
    foreign = lab.folder / "foreign.db"
    crash_with_wal(foreign, "CREATE TABLE t AS SELECT 1 AS a")
    wal.write_bytes(foreign.with_name("foreign.db.wal").read_bytes())  # belongs to another file
    lab.fact("f2")
    report = lab.drained()
    assert lab.fact_ids() == ["f1", "f2"]
    assert [notice.moved_to for notice in report.notices] == lab.facts.set_aside()
    assert [path.name.partition(".damaged")[0] for path in lab.facts.set_aside()] == ["facts.db.wal"]


def test_a_crash_between_commit_and_close_loses_nothing(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    crash_with_wal(lab.facts.path, "UPDATE facts SET statement = 'committed'")
    assert lab.facts.by_ids(["f1"])[0]["statement"] == "committed"
    assert not lab.facts.notices


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            'IO Error: Could not set lock on file "x.db": Conflicting lock is held in python (PID 7).',
            Fault.BUSY,
        ),
        (
            "Connection Error: Can't open a connection to same database file with a different configuration than "
            "existing connections",
            Fault.BUSY,
        ),
        (
            "IO Error: Trying to read a database file with version number 999, but we can only read versions between "
            "64 and 68.",
            Fault.NEWER,
        ),
        ("TransactionContext Error: Failed to commit: ... No space left on device", Fault.SURROUNDINGS),
        ("FATAL Error: could not checkpoint: No space left on device", Fault.SURROUNDINGS),
        ('IO Error: Cannot open file "/root/x.db": Permission denied', Fault.SURROUNDINGS),
        (
            'IO Error: Failure while replaying WAL file "x.db.wal": WAL does not match database file.',
            Fault.WAL,
        ),
        ('IO Error: Failure while replaying WAL file "x.db.wal": Corrupt WAL file', Fault.WAL),
        ("Corrupt database file: computed checksum 1 does not match stored checksum 2", Fault.CORRUPT),
        ('IO Error: The file "x.db" exists, but it is not a valid DuckDB database file!', Fault.CORRUPT),
        ("Conversion Error: Could not convert string 'a' to DOUBLE", Fault.STATEMENT),
    ],
)
def test_what_duckdb_says_is_understood(message: str, expected: Fault) -> None:
    assert fault(duckdb.Error(message)) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (duckdb.InterruptException, Fault.PASSING),
        (duckdb.TransactionException, Fault.PASSING),
        (duckdb.ConnectionException, Fault.PASSING),
        (duckdb.IOException, Fault.PASSING),
        (duckdb.OutOfMemoryException, Fault.PASSING),
        (duckdb.InternalException, Fault.ENGINE),
        (duckdb.FatalException, Fault.ENGINE),
        (duckdb.ConversionException, Fault.STATEMENT),
        (duckdb.ConstraintException, Fault.STATEMENT),
        (duckdb.InvalidInputException, Fault.STATEMENT),
    ],
)
def test_only_an_error_of_values_is_blamed_on_a_record(kind: type[duckdb.Error], expected: Fault) -> None:
    assert fault(kind("something nobody has a sign for")) is expected


def test_an_interrupted_visit_moves_nothing(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    with pytest.raises(LedgerUnusable, match="Interrupted"), lab.facts.visit(write=True):
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
    assert lab.facts.set_aside() == []
    assert lab.fact_ids() == ["f1"]


def test_a_failure_of_duckdb_itself_moves_nothing(lab: Lab) -> None:
    lab.fact("f1")
    lab.drained()
    with pytest.raises(LedgerUnusable, match="INTERNAL"), lab.facts.visit(write=True):
        raise duckdb.InternalException("INTERNAL Error: a defect, not a damaged file")
    assert lab.facts.set_aside() == []
    assert lab.fact_ids() == ["f1"]


def test_a_newer_storage_format_asks_for_a_newer_duckdb() -> None:
    error = LedgerFormatNewer(Path("facts.db"), 999, 68)
    assert isinstance(error, LedgerNewer)
    assert "999" in str(error)
    assert "pip install -U duckdb" in str(error)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "small.db").mkdir()  # even root cannot open a folder as a file
    with pytest.raises(LedgerUnusable, match=r"small\.db"), Small(tmp_path).visit(write=True):
        pass
    assert (tmp_path / "small.db").is_dir()
