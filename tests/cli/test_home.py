"""The home: found as Hermes finds it, private, and judged before a database goes there."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_plugin.home import (
    SUBFOLDERS,
    HomeUnwritable,
    Mount,
    ProfileUnknown,
    hermes_home,
    memory_folder,
    mounts_of_mount,
    mounts_of_proc,
    shared_place,
    unwritable,
)
from tests.cli.conftest import Command


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose ~/.hermes has the profiles coder and fund."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_HOME", raising=False)
    for name in ("coder", "fund"):
        (tmp_path / ".hermes" / "profiles" / name).mkdir(parents=True)
    return tmp_path


def test_the_home_is_dot_hermes(person: Path) -> None:
    assert hermes_home() == person / ".hermes"


def test_hermes_home_wins_over_dot_hermes(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(person / "data"))
    assert hermes_home() == person / "data"


def test_a_profile_is_a_folder_below_the_root(person: Path) -> None:
    assert hermes_home("coder") == person / ".hermes" / "profiles" / "coder"
    assert hermes_home("Coder") == hermes_home("coder")
    assert hermes_home("default") == person / ".hermes"


def test_a_profile_is_found_from_another_profile_and_from_a_custom_root(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(person / ".hermes" / "profiles" / "coder"))
    assert hermes_home() == person / ".hermes" / "profiles" / "coder"
    assert hermes_home("fund") == person / ".hermes" / "profiles" / "fund"
    assert hermes_home("default") == person / ".hermes"
    (person / "opt" / "profiles" / "desk").mkdir(parents=True)
    monkeypatch.setenv("HERMES_HOME", str(person / "opt"))
    assert hermes_home("desk") == person / "opt" / "profiles" / "desk"


def test_the_sticky_profile_of_hermes_is_followed(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (person / ".hermes" / "active_profile").write_text("fund\n")
    assert hermes_home() == person / ".hermes" / "profiles" / "fund"
    assert hermes_home("default") == person / ".hermes"
    monkeypatch.setenv("HERMES_HOME", str(person / ".hermes" / "profiles" / "coder"))
    assert hermes_home() == person / ".hermes" / "profiles" / "coder"


@pytest.mark.parametrize("name", ["codr", "../fund", "/etc", "a b", "x" * 80])
def test_an_unknown_profile_is_refused_with_those_that_exist(person: Path, name: str) -> None:
    with pytest.raises(ProfileUnknown) as refused:
        hermes_home(name)
    assert refused.value.known == ["default", "coder", "fund"]
    assert "coder" in str(refused.value) or "fund" in str(refused.value)


def test_the_memory_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    folder = memory_folder(tmp_path / "new" / "home")
    assert folder == tmp_path / "new" / "home" / "memory"
    for path in (folder, *(folder / name for name in SUBFOLDERS)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_folder_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = memory_folder(tmp_path)
    folder.chmod(0o755)
    (folder / "journal").chmod(0o775)
    memory_folder(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((folder / "journal").stat().st_mode) == 0o700


def test_a_home_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file")
    with pytest.raises(HomeUnwritable, match="file") as refused:
        memory_folder(tmp_path)
    assert refused.value.path == tmp_path / "memory"
    assert "file" in unwritable(tmp_path)
    assert unwritable("/proc/no/such/home")
    assert (tmp_path / "memory").read_text() == "a file"


def test_the_write_probe_leaves_nothing(tmp_path: Path) -> None:
    assert unwritable(tmp_path) == ""
    assert sorted(p.name for p in (tmp_path / "memory").iterdir()) == sorted(SUBFOLDERS)


@pytest.mark.parametrize(
    "part",
    ["OneDrive", "OneDrive - Great Fund", "Dropbox", "Dropbox (Personal)", "Mobile Documents", "iCloud Drive",
     "CloudStorage", "Google Drive", "GoogleDrive", "Nextcloud", "Nutstore Files", "坚果云", "我的坚果云"[2:]],
)  # fmt: skip
def test_a_synchronised_folder_is_warned_about(tmp_path: Path, part: str) -> None:
    assert part in shared_place(tmp_path / part / "hermes", [])


@pytest.mark.parametrize("part", ["dropboxes", "my-onedrive-notes", "box", "drive", "cloud", "hermes"])
def test_an_ordinary_folder_is_not(tmp_path: Path, part: str) -> None:
    assert shared_place(tmp_path / part, [Mount("/", "ext4")]) == ""


def test_a_folder_name_duckdb_cannot_write_in_is_named_once(cli: Command, tmp_path: Path) -> None:
    home = tmp_path / "what?"
    home.mkdir()
    cli("--home", str(home), "remember", "茅台批价 2300")
    assert "2300" in cli("--home", str(home), "recall", "茅台批价").out
    told = cli("--home", str(home), "--json", "status").json["problems"]
    assert len(told) == len(set(told)) and any("another name" in one for one in told)
    assert "another name" in " ".join(cli("--home", str(home), "doctor").out.split())


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "fuse.rclone"])
def test_a_network_file_system_is_warned_about(tmp_path: Path, kind: str) -> None:
    table = [Mount("/", "ext4"), Mount(str(tmp_path), kind)]
    assert kind in shared_place(tmp_path / "home", table)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "apfs", "tmpfs", "overlay", "zfs", "fuse.portal"])
def test_a_local_file_system_is_not(tmp_path: Path, kind: str) -> None:
    assert shared_place(tmp_path / "home", [Mount("/", "nfs4"), Mount(str(tmp_path), kind)]) == ""


def test_the_last_mount_on_a_point_is_the_one_that_counts(tmp_path: Path) -> None:
    assert shared_place(tmp_path, [Mount(str(tmp_path), "ext4"), Mount(str(tmp_path), "nfs")])
    assert not shared_place(tmp_path, [Mount(str(tmp_path), "nfs"), Mount(str(tmp_path), "ext4")])


def test_a_link_into_a_network_mount_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "mnt")
    assert "nfs4" in shared_place(
        tmp_path / "home", [Mount("/", "ext4"), Mount(str(tmp_path / "mnt"), "nfs4")]
    )


def test_mount_tables_are_read() -> None:
    assert mounts_of_proc("srv:/x /mnt/my\\040share nfs4 rw 0 0\nbroken\n") == [
        Mount("/mnt/my share", "nfs4")
    ]
    assert mounts_of_mount("//u@srv/s on /Volumes/my share (smbfs, nodev)\nnonsense\n") == [
        Mount("/Volumes/my share", "smbfs")
    ]


def test_this_machine_s_own_table_can_be_judged(tmp_path: Path) -> None:
    assert isinstance(shared_place(tmp_path), str)


def test_finding_a_home_imports_nothing_heavy() -> None:
    code = (
        "import sys; import hermes_memory_plugin.home as h; h.hermes_home();"
        "assert not {'pydantic', 'yaml', 'hermes_cli', 'hermes_constants', 'click'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
