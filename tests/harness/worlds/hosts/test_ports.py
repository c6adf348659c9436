"""The allocator of ports: what it gave, no other process is given, until its holder ends."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from harness.ground.errors import PortError
from harness.worlds.hosts import Ports
from harness.worlds.hosts import ports as allocator
from harness.worlds.hosts.local import loopback_address

ROOT = Path(__file__).parents[4]
CLUSTERS, NODES = 20, 4
#: An address that other tests do not have at the same time.
HOST = loopback_address(os.getpid(), 3)
HOLDER = """
import sys
from harness.worlds.hosts import Ports
with Ports() as ports:
    print(ports.take(sys.argv[1]).port, flush=True)
    input()
"""
#: A call that binds or listens at a port that its line names, and options that do.
OWN_CHOICE = re.compile(r"""(bind|create_server)\(\([^()]*,\s*[\d_]+\)\)|\bport=0\b|port["'],\s*["']\d+["']""")
#: Tests whose nodes have a network namespace of their own.
IN_NAMESPACES = {"test_ssh_servers.py", "test_slow_links_and_clocks.py"}


@contextmanager
def program(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that ends with its input."""
    command = [sys.executable, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process


def lines_of(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return list(islice(process.stdout, count))


@pytest.mark.system
def test_twenty_clusters_that_start_at_once_at_one_address_have_ports_of_their_own(tmp_path: Path) -> None:
    module = "tests.harness.worlds.hosts.clusters_at_once"
    with program("-m", module, HOST, str(tmp_path), str(CLUSTERS), str(NODES)) as clusters:
        said = [json.loads(line) for line in lines_of(clusters, CLUSTERS)]
    assert [complaint for complaint in said if isinstance(complaint, str)] == []
    assert len({tuple(address) for addresses in said for address in addresses}) == CLUSTERS * NODES


@pytest.mark.system
def test_the_port_of_a_process_that_was_killed_can_be_had_again(ports: Ports) -> None:
    with program("-c", HOLDER, HOST) as holder:
        held = int(lines_of(holder, 1)[0])
        assert ports.take(HOST).port != held
        holder.kill()
        holder.wait(60)
        assert ports.take(HOST).port == held


def test_a_server_can_listen_at_its_port_and_again_and_while_it_is_dead_nobody_is_given_the_port(ports: Ports) -> None:
    own = ports.take(HOST)
    for _ in range(2):
        with Ports() as others:
            assert others.take(HOST) != own
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(own)
        with socket.create_server(own) as server, socket.create_connection(own):
            server.accept()[0].close()


def test_a_port_at_which_a_stranger_listens_is_passed_over(ports: Ports) -> None:
    with Ports() as earlier:
        taken = earlier.take(HOST)
        stranger = socket.create_server(taken)
    with stranger:
        assert ports.take(HOST) != taken
    assert ports.take(HOST) == taken


@pytest.mark.parametrize(
    ("ephemeral", "first", "count"), [("32768\t60999\n", 19_092, 36_280), ("10000\t65535\n", 1_024, 8_976)]
)
def test_no_port_is_inside_the_ephemeral_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ephemeral: str, first: int, count: int
) -> None:
    tried = candidates_for(ephemeral, tmp_path, monkeypatch)
    low, high = map(int, ephemeral.split())
    assert (tried[0], len(set(tried))) == (first, count)
    assert not any(low <= port <= high for port in tried)


def test_where_every_port_is_ephemeral_every_port_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(candidates_for("1024 65535", tmp_path, monkeypatch)) == 65_536 - 1_024


def candidates_for(ephemeral: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    (directory / "range").write_text(ephemeral)
    monkeypatch.setattr(allocator, "_EPHEMERAL", directory / "range")
    return list(allocator.candidates())


def test_an_address_of_another_machine_has_no_port(ports: Ports) -> None:
    with pytest.raises(PortError, match=r"no port of 192\.0\.2\.1 is free \(Cannot assign requested address\)"):
        ports.take("192.0.2.1")


def test_every_port_that_a_source_listens_at_comes_from_the_allocator() -> None:
    sources = [
        path
        for room in ("checkers", "harness", "nemesis", "scripts", "tests", "workloads")
        for path in (ROOT / room).rglob("*.py")
        if path.name not in {*IN_NAMESPACES, Path(__file__).name}
    ]
    assert len(sources) > 500
    lines = [(path.name, line.strip()) for path in sources for line in path.read_text().splitlines()]
    assert [(name, line) for name, line in lines if OWN_CHOICE.search(line)] == []
