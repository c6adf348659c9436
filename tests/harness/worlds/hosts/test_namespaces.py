"""Nodes in network namespaces: real addresses, real drops, nothing left."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.ground.errors import HostError
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.runs.run.healing import heal
from harness.worlds.hosts import namespaces
from harness.worlds.hosts.contract import Launch
from harness.worlds.hosts.namespaces import NamespaceHost
from nemesis.cluster import CLIENTS, Link
from tests.harness.needs import needs_root
from tests.waiting import LIMIT_S, wait_until

on_namespaces = needs_root("ip", "nft")
NOBODY_S = 0.5

#: Echoes on its address; told by the first line of its log that it listens.
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"""
#: Run inside a namespace: prints what a TCP connection to an address meets.
KNOCK = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).recv(5).decode())
except OSError as error:
    print(type(error).__name__)
"""


def start_echo(host: NamespaceHost, directory: Path, node: int) -> None:
    address, log = host.address(node), directory / f"{node}.log"
    command = (sys.executable, "-c", ECHO, address.host, str(address.port))
    host.start(Launch(node=node, command=command, environment={}, directory=directory, log=log))
    wait_until(lambda: log.exists() and b"listening" in log.read_bytes(), "the node listens")


def knock(host: NamespaceHost, to_node: int, from_node: int | None = None, patience_s: float = LIMIT_S) -> str:
    """The end of a connection to a node, from another node's namespace or from the harness's own.

    Over a link that is cut no answer ever comes, so ``NOBODY_S`` is enough.
    """
    address = host.address(to_node)
    prefix = [] if from_node is None else list(host._prefix(from_node))
    command = [*prefix, sys.executable, "-c", KNOCK, address.host, str(address.port), str(patience_s)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=2 * LIMIT_S).stdout.strip()


def names_left(host: NamespaceHost) -> list[str]:
    paths = [*Path("/run/netns").glob("*"), *Path("/sys/class/net").glob("*")]
    return [path.name for path in paths if path.name.startswith(host._namespace(""))]


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_a_cut_link_drops_packets_and_a_healed_one_delivers(host: NamespaceHost, tmp_path: Path) -> None:
    start_echo(host, tmp_path, 1)
    assert knock(host, to_node=1, from_node=0) == "hello"
    assert host.links.cut([Link(0, 1)], alive=[0, 1]) == {"dropped": {"0>1": 0}}
    assert knock(host, to_node=1, from_node=0, patience_s=NOBODY_S) == "TimeoutError"
    assert knock(host, to_node=1) == "hello"
    evidence = host.links.heal([Link(0, 1)], alive=[0, 1])
    assert evidence["dropped"]["0>1"] > 0  # type: ignore[index]
    assert knock(host, to_node=1, from_node=0) == "hello"
    assert host.links.cut([Link(0, 1)], alive=[0, 1]) == {"dropped": {"0>1": 0}}, "a new cut counts anew"


@on_namespaces
@pytest.mark.root
@pytest.mark.system
@pytest.mark.parametrize("link", [Link(CLIENTS, 1), Link(1, CLIENTS)])
def test_client_links_are_cut_in_either_direction(host: NamespaceHost, tmp_path: Path, link: Link) -> None:
    start_echo(host, tmp_path, 1)
    host.links.cut([link], alive=[0, 1])
    assert knock(host, to_node=1, patience_s=NOBODY_S) == "TimeoutError"
    assert knock(host, to_node=1, from_node=0) == "hello"
    host.links.heal([link], alive=[0, 1])
    assert knock(host, to_node=1) == "hello"


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_closing_leaves_no_namespace_link_or_process(journal: Journal, tmp_path: Path) -> None:
    host = NamespaceHost(journal)
    host.open([0, 1])
    start_echo(host, tmp_path, 0)
    assert len(names_left(host)) == 4  # two nodes, the hub, the harness's own interface
    host.close()
    assert names_left(host) == []
    assert not_undone(journal.path) == []


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_namespaces_of_a_dead_harness_are_healed(journal: Journal, tmp_path: Path) -> None:
    host = NamespaceHost(journal)
    host.open([0])
    start_echo(host, tmp_path, 0)
    undone = heal(tmp_path)  # as another process would, without the host's own close
    assert [line.split()[0] for line in undone] == ["process", "namespace", "link", "namespace", "directory"]
    assert names_left(host) == []
    assert heal(tmp_path) == []
    host.close()


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_two_runs_side_by_side_have_networks_of_their_own(host: NamespaceHost, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = NamespaceHost(Journal(tmp_path / "other" / FILE_NAME))
    try:
        other.open([0, 1])
        assert other.address(0) != host.address(0)
    finally:
        other.close()


def test_without_root_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.worlds.hosts.namespaces.os.geteuid", lambda: 1000)
    with pytest.raises(HostError, match="needs root"):
        namespaces.probe()


def test_without_nftables_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.worlds.hosts.namespaces.os.geteuid", lambda: 0)
    monkeypatch.setattr("harness.worlds.hosts.namespaces.shutil.which", lambda tool: None if tool == "nft" else tool)
    with pytest.raises(HostError, match="install the package nftables"):
        namespaces.probe()
