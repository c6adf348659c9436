"""Files from a machine: only what was asked for, and silence is no answer."""

import io
import tarfile
from pathlib import Path

import pytest

from harness.ground.errors import HostError
from harness.plan import Machine
from harness.worlds.hosts.ssh.connection import Connection
from harness.worlds.hosts.ssh.files import unpack


def archive(*names: str) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w|gz") as file:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            file.addfile(member, io.BytesIO(b"abc"))
    packed.seek(0)
    return packed


def test_an_archive_writes_only_what_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("ours")
    unpack(archive("data/0/log", "journal.jsonl", "../outside", "logs/node-0.log"), ("data", "logs"), tmp_path)
    assert (tmp_path / "journal.jsonl").read_text() == "ours"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["journal.jsonl", "log", "node-0.log"]
    assert not (tmp_path.parent / "outside").exists()


class Silent:
    """A machine that is connected and answers nothing within the limit."""

    def __init__(self, error: OSError) -> None:
        self.error = error

    def open(self, path: str, mode: str) -> None:
        raise self.error


def connection(error: OSError) -> Connection:
    made = Connection(Machine(node=0, address="10.0.0.1", user="kafka"))
    made._sftp = Silent(error)
    made._is_up = lambda: True
    return made


def test_a_machine_that_is_silent_does_not_say_that_a_process_is_dead() -> None:
    with pytest.raises(HostError, match="reading /proc/7/stat did not work over SSH"):
        connection(TimeoutError("timed out")).read("/proc/7/stat")


def test_a_file_that_is_not_there_yet_is_none() -> None:
    assert connection(FileNotFoundError("No such file")).read("/srv/run/0.ended") is None


def test_a_file_that_cannot_be_read_is_no_file_that_is_not_there() -> None:
    with pytest.raises(HostError, match=r"reading /srv/run/0\.ended did not work over SSH"):
        connection(PermissionError("Permission denied")).read("/srv/run/0.ended")


def test_a_process_that_ends_while_it_is_looked_at_is_gone() -> None:
    assert connection(OSError("Failure")).read("/proc/7/stat") is None
