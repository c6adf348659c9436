"""A cluster's start, end, and the ways in which both go wrong."""

import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from ipaddress import ip_address
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.ground.errors import PortError, StartError
from harness.plan import Namespaces, Processes, RunSpec
from harness.records.journal import FILE_NAME, PendingUndo, not_undone
from harness.runs.run.healing import heal
from harness.worlds.hosts import PORT_CHOICES, LoopbackHost
from harness.worlds.hosts.processes import Identity
from harness.worlds.processes import ReferenceDistribution, processes_world
from harness.worlds.real import RealWorld, StartedCluster
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from tests.harness.needs import needs_root
from tests.harness.worlds.processes.conftest import LIMIT_US
from workloads.client import SendOutcome
from workloads.operations import EventType

pytestmark = pytest.mark.system

MakeSpec = Callable[..., RunSpec]


class CrowdedHost(LoopbackHost):
    """A host where strangers listen at the port of node 1 before it does: as often as ``strangers`` has room."""

    strangers: deque[socket.socket]

    def open(self, nodes: Collection[int]) -> None:
        super().open(nodes)
        if len(self.strangers) < (self.strangers.maxlen or 0):
            self.strangers.append(socket.create_server(self.address(1)))


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], type[CrowdedHost]]]:
    """The host of so many strangers."""

    def host(strangers: int) -> type[CrowdedHost]:
        monkeypatch.setattr(CrowdedHost, "strangers", deque[socket.socket](maxlen=strangers), raising=False)
        return CrowdedHost

    yield host
    for stranger in CrowdedHost.strangers:
        stranger.close()


def nodes_of(actions: list[PendingUndo]) -> list[Identity]:
    facts = [action.facts for action in actions if action.kind == "process"]
    return [Identity(fact["pid"], fact["start_ticks"], fact["boot_id"]) for fact in facts]


def test_a_closed_world_leaves_files_and_nothing_else(tmp_path: Path, make_spec: MakeSpec) -> None:
    threads = set(threading.enumerate())
    world = processes_world(make_spec(), tmp_path)
    world.open()
    actions = not_undone(tmp_path / FILE_NAME)
    assert len(nodes_of(actions)) == 4
    world.clients.producer(0)
    world.clients.consumer(1)
    world.close()
    world.close()
    assert not any(node.is_alive() for node in nodes_of(actions))
    assert not any(Path(action.facts["path"]).exists() for action in actions if action.kind == "directory")
    assert not_undone(tmp_path / FILE_NAME) == []
    assert set(threading.enumerate()) <= threads
    assert {path.name for path in (tmp_path / "logs").glob("node-*.log")} == {f"node-{n}.log" for n in (0, 1, 2, 100)}
    assert world.observations()


@pytest.mark.parametrize("acks", ["0", "1"])
def test_weaker_acknowledgements_are_acknowledged_too(tmp_path: Path, make_spec: MakeSpec, acks: str) -> None:
    world = processes_world(make_spec({"acks": acks}), tmp_path)
    outcomes: list[SendOutcome] = []
    try:
        world.open()
        world.clients.producer(0).send("ackproof-1", b"key", b"payload", outcomes.append)
        assert world.drive(lambda: bool(outcomes), world.clock.now_us() + LIMIT_US)
    finally:
        world.close()
    assert [(outcome.type, outcome.offset) for outcome in outcomes] == [(EventType.OK, None if acks == "0" else 0)]


def test_the_effective_configuration_says_what_the_client_really_does(tmp_path: Path, make_spec: MakeSpec) -> None:
    world = processes_world(make_spec({"acks": "1", "linger.ms": 7}), tmp_path)
    try:
        world.open()
        effective = world.effective_configuration()
    finally:
        world.close()
    assert effective["producer"]["acks"] == 1
    assert effective["producer"]["enable_idempotence"] is False
    assert effective["producer"]["linger_ms"] == 7
    assert effective["producer"]["batch_size"] == 16_384
    assert effective["consumer"]["isolation_level"] == "read_uncommitted"
    assert effective["broker"]["broker_session_timeout_ms"] == 1_500


def test_outstanding_sends_of_a_closed_producer_end_as_unknown(tmp_path: Path, make_spec: MakeSpec) -> None:
    world = processes_world(make_spec({"acks": "all", "min.insync.replicas": 3}), tmp_path)
    outcomes: list[SendOutcome] = []
    try:
        world.open()
        world.target.processes.pause(world.target.view().partitions["ackproof-0"].leader or 0)
        producer = world.clients.producer(0)
        producer.send("ackproof-0", b"key", b"payload", outcomes.append)
        producer.close()
        assert outcomes == [], "never before the call has returned"
        assert world.drive(lambda: bool(outcomes), world.clock.now_us() + LIMIT_US)
        producer.send("ackproof-0", b"key", b"payload", outcomes.append)
        assert world.drive(lambda: len(outcomes) == 2, world.clock.now_us() + LIMIT_US)
    finally:
        world.close()
    assert [outcome.type for outcome in outcomes] == [EventType.INFO, EventType.FAIL]


def test_a_cluster_that_finds_a_stranger_at_a_port_comes_up_at_others(
    tmp_path: Path, make_spec: MakeSpec, crowded: Callable[[int], type[CrowdedHost]]
) -> None:
    world = world_on(crowded(1), make_spec(), tmp_path)
    try:
        world.open()
        (stranger,) = CrowdedHost.strangers
        assert world.target.processes.nodes.host.address(1) != stranger.getsockname()
    finally:
        world.close()


def test_strangers_at_every_port_that_is_tried_end_the_run_and_the_last_is_named(
    tmp_path: Path, make_spec: MakeSpec, crowded: Callable[[int], type[CrowdedHost]]
) -> None:
    with pytest.raises(PortError) as refused:
        world_on(crowded(PORT_CHOICES), make_spec(), tmp_path).open()
    host, port = CrowdedHost.strangers[-1].getsockname()
    assert str(refused.value) == f"{host}:{port}, the address of node 1, is in use; stop the program that uses it"
    assert not_undone(tmp_path / FILE_NAME) == []


def test_a_node_that_dies_at_its_start_is_explained(tmp_path: Path, make_spec: MakeSpec) -> None:
    (tmp_path / "logs" / "trace-1.jsonl").mkdir(parents=True)  # where the node wants to write
    with pytest.raises(StartError, match=r"node 1 ended with status \d+ .*node-1\.log: .*trace-1\.jsonl"):
        processes_world(make_spec(), tmp_path).open()
    assert not_undone(tmp_path / FILE_NAME) == []


def test_a_topic_that_the_cluster_refuses_is_explained(tmp_path: Path, make_spec: MakeSpec) -> None:
    with pytest.raises(StartError, match="did not create topic"):
        processes_world(make_spec({"replication.factor": 5}), tmp_path).open()
    assert not_undone(tmp_path / FILE_NAME) == []


def test_an_interrupted_drive_closes_the_world(tmp_path: Path, make_spec: MakeSpec) -> None:
    world = processes_world(make_spec(), tmp_path)
    world.open()
    nodes = nodes_of(not_undone(tmp_path / FILE_NAME))

    def interrupt() -> None:
        raise KeyboardInterrupt

    world.clock.call_at(0, interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.drive(lambda: False, world.clock.now_us() + 10_000_000)
    assert not any(node.is_alive() for node in nodes)


def world_on(host: type[LoopbackHost], spec: RunSpec, directory: Path) -> RealWorld:
    return RealWorld(spec, directory, StartedCluster(spec, directory, ReferenceDistribution(spec), host))


#: Opens a world, breaks something, and waits to be killed.
HARNESS = """
import sys
from pathlib import Path
import msgspec
from harness.plan import RunSpec
from harness.worlds.processes import processes_world
from nemesis.cluster import Link
world = processes_world(msgspec.json.decode(sys.argv[1], type=RunSpec), Path(sys.argv[2]))
world.open()
world.target.processes.pause(0)
world.target.links.cut([Link(1, 2)])
print("in mid-run", flush=True)
world.drive(lambda: False, 120_000_000)
"""


def test_heal_ends_whatever_a_killed_harness_left_of_a_cluster(tmp_path: Path, make_spec: MakeSpec) -> None:
    command = [sys.executable, "-c", HARNESS, msgspec.json.encode(make_spec()).decode(), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"in mid-run\n"
        harness.send_signal(signal.SIGKILL)
    left = nodes_of(not_undone(tmp_path / FILE_NAME))
    assert [node.is_alive() for node in left] == [True] * 4
    assert len([line for line in heal(tmp_path) if line.startswith("process")]) == 4
    assert [node.is_alive() for node in left] == [False] * 4
    assert heal(tmp_path) == []


@pytest.mark.root
@needs_root("ip", "nft")
def test_a_cluster_in_namespaces_loses_its_leader_to_a_real_partition(tmp_path: Path, make_spec: MakeSpec) -> None:
    world = processes_world(make_spec({"acks": "all"}, world=Processes(host=Namespaces())), tmp_path)
    outcomes: list[SendOutcome] = []
    try:
        world.open()
        assert len({world.target.processes.nodes.host.address(node).host for node in (0, 1, 2, 100)}) == 4
        leader = world.target.view().partitions["ackproof-0"].leader
        assert leader is not None
        links = [Link(leader, other) for other in (0, 1, 2, CONTROLLER, CLIENTS) if other != leader]
        links += [Link(link.target, link.source) for link in links]
        world.target.links.cut(links)
        assert world.target.processes.kill(leader)["connect"] == "silence"
        world.target.processes.restart(leader)
        moved = lambda: world.target.view().partitions["ackproof-0"].leader not in (leader, None)  # noqa: E731
        assert world.drive(moved, world.clock.now_us() + LIMIT_US)
        dropped = world.target.links.heal(links)["dropped"]
        assert sum(dropped.values()) > 0
        world.clients.producer(0).send("ackproof-0", b"key", b"payload", outcomes.append)
        assert world.drive(lambda: bool(outcomes), world.clock.now_us() + LIMIT_US)
    finally:
        world.close()
    assert outcomes[0].type is EventType.OK
    assert not_undone(tmp_path / FILE_NAME) == []


def test_nothing_listens_beyond_loopback(tmp_path: Path, make_spec: MakeSpec) -> None:
    world = processes_world(make_spec(), tmp_path)
    world.open()
    try:
        nodes = [psutil.Process(node.pid) for node in nodes_of(not_undone(tmp_path / FILE_NAME))]
        sockets = [
            connection for process in (*nodes, psutil.Process()) for connection in process.net_connections("inet")
        ]
        listening = [connection.laddr.ip for connection in sockets if connection.status == psutil.CONN_LISTEN]
        assert len(listening) >= len(nodes)
        assert [address for address in listening if not ip_address(address).is_loopback] == []
    finally:
        world.close()
