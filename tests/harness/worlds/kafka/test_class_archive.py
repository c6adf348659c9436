"""The archive of class data: made by one process while others wait, at ports that nobody else has."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ground.errors import HarnessError, PortError
from harness.worlds.hosts import PORT_CHOICES, Address, Ports
from harness.worlds.kafka import class_archive
from harness.worlds.kafka.class_archive import make_archive
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import archive_path
from harness.worlds.kafka.releases import Version
from tests.waiting import wait_until

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[4]
RELEASE = Version(4, 3, 1)
#: Makes the archive once a line comes in.
MAKER = """
import sys
from pathlib import Path
from harness.worlds.kafka.class_archive import make_archive
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.releases import Version
print("ready", flush=True)
sys.stdin.readline()
make_archive(Installation(Version(4, 3, 1), Path(sys.argv[1])))
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of Java with a program that takes its place."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\n{Path(__file__).with_name('stand_in_java.py').read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(program.parents[1]))
    return program.parents[1]


@pytest.fixture
def release(tmp_path: Path, java: Path) -> Installation:
    """A release without jars, whose directories were formatted before."""
    installation = Installation(RELEASE, tmp_path / "release")
    first = installation.made / "first-eligible-0-transaction-2"
    first.mkdir(parents=True)
    (first / "bootstrap.checkpoint").touch()
    return installation


def starts(java: Path) -> list[str]:
    return (java / "starts").read_text().splitlines() if (java / "starts").exists() else []


def test_two_makers_at_once_start_one_node_and_both_have_the_archive(java: Path, release: Installation) -> None:
    command = [sys.executable, "-c", MAKER, str(release.home)]
    makers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)
    ]
    try:
        for maker in makers:
            assert maker.stdout is not None
            assert maker.stdout.readline() == "ready\n"
        for maker in makers:
            assert maker.stdin is not None
            maker.stdin.write("go\n")
            maker.stdin.flush()
        wait_until(lambda: bool(starts(java)), "a node is started")
        (java / "go").touch()
        assert [maker.wait(60) for maker in makers] == [0, 0]
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()
    assert len(starts(java)) == 1
    assert archive_path(release).read_text() == "2 ports"


def test_each_java_has_an_archive_of_its_own(
    java: Path, release: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = archive_path(release)
    other = tmp_path / "other" / "bin" / "java"
    other.parent.mkdir(parents=True)
    other.write_bytes((java / "bin" / "java").read_bytes())
    other.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(other.parents[1]))
    assert archive_path(release) != here


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of the next ports at which a stranger listens before the node does."""
    expected, listening = [0], list[socket.socket]()

    class Crowded(Ports):
        def take(self, host: str) -> Address:
            address = super().take(host)
            if expected[0]:
                expected[0] -= 1
                listening.append(socket.create_server(address))
            return address

    monkeypatch.setattr(class_archive, "Ports", Crowded)
    yield expected
    for stranger in listening:
        stranger.close()


def test_a_stranger_at_a_port_of_the_node_makes_it_start_at_others(
    java: Path, release: Installation, strangers: list[int]
) -> None:
    (java / "go").touch()
    strangers[0] = 1
    make_archive(release)
    assert archive_path(release).is_file()
    first, second = starts(java)
    assert first != second


def test_strangers_at_all_ports_end_it_with_what_the_node_complained_of(
    java: Path, release: Installation, strangers: list[int]
) -> None:
    strangers[0] = 2 * PORT_CHOICES
    with pytest.raises(PortError, match=r"4\.3\.1 does not start .*: java\.net\.BindException: Address already in use"):
        make_archive(release)
    assert len(starts(java)) == PORT_CHOICES


def test_who_waits_for_a_maker_without_end_is_told_where(
    java: Path, release: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "_TURN_LIMIT_S", 0.0)
    with class_archive._turn_of(release.made), pytest.raises(HarnessError, match=f"fuser {release.made} names it"):
        make_archive(release)
    assert starts(java) == []
