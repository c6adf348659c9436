"""A world around a cluster: opened again while ports are taken, closed in reverse order, read from its files."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.ground.errors import HarnessError, HostError, PortError
from harness.ground.machine.disk_watch import DiskWatch
from harness.ground.machine.processor_watch import ProcessorWatch
from harness.ground.machine.watch import Watch
from harness.ground.observations import BrokerFenced, NodeCrashed, Observation
from harness.plan import Processes, RunSpec
from harness.worlds.contract import NodeCrash
from harness.worlds.hosts import PORT_CHOICES
from harness.worlds.real import Opened, Opening, RealWorld
from nemesis.cluster import ClusterView, Target
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan

CRASH = NodeCrash(time_us=7, node=1, exit="signal 11", words="words")


class Cluster:
    """A cluster of nothing, which fails as often as it is given errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls: list[str] = []
        self.crashed: Sequence[NodeCrash] = ()
        self.processor_s: Callable[[], float] | None = None

    def check(self) -> None:
        self.calls.append("check")

    def open(self, opening: Opening) -> Opened:
        opening.resources.callback(self.calls.append, "last")
        opening.resources.callback(self.calls.append, "first")
        self.calls.append("open")
        if self.errors:
            raise self.errors.pop(0)
        clients = opening.make_clients(["127.0.0.1:1"])  # type: ignore[call-arg]
        target = Target(view=lambda: ClusterView({}, (), ()))
        return Opened(target, clients, lambda: {"broker": {"name": "value"}}, processor_s=self.processor_s)

    def remove_files(self) -> None:
        self.calls.append("remove")

    def observations(self, wall_begin_us: int) -> list[Observation]:
        return [Observation(9, 100, BrokerFenced(broker=1)), Observation(3, 100, BrokerFenced(broker=2))]

    def crashes(self, now_us: int) -> Sequence[NodeCrash]:
        return self.crashed

    def replica_logs(self) -> None:
        return None


def world_around(cluster: Cluster, directory: Path) -> RealWorld:
    spec = RunSpec(
        world=Processes(), cell="c", family="kill", settings={}, workload=WorkloadPlan(), faults=FaultPlan(), seed=1
    )
    return RealWorld(spec, directory, cluster)


def test_a_cluster_that_found_a_port_taken_is_opened_again(tmp_path: Path) -> None:
    cluster = Cluster(PortError("taken"))
    world = world_around(cluster, tmp_path)
    world.open()
    assert cluster.calls == ["check", "open", "first", "last", "remove", "open"], "what the first try left is undone"
    assert world.effective_configuration()["broker"] == {"name": "value"}
    world.close()


@pytest.mark.parametrize(
    ("errors", "kind", "tries"),
    [([HostError("no")], HostError, 1), ([PortError("taken")] * PORT_CHOICES, PortError, PORT_CHOICES)],
)
def test_any_other_failure_and_the_last_taken_port_end_it(tmp_path: Path, errors, kind, tries) -> None:
    cluster = Cluster(*errors)
    world = world_around(cluster, tmp_path)
    with pytest.raises(kind):
        world.open()
    assert (cluster.calls.count("open"), cluster.calls[-1]) == (tries, "last")
    with pytest.raises(HarnessError, match="not been opened"):
        _ = world.clients


def test_observations_are_in_order_of_time_with_the_crashes_found_before_the_end(tmp_path: Path) -> None:
    cluster = Cluster()
    world = world_around(cluster, tmp_path)
    assert list(world.observations()) == [], "nobody knows when the clock of a run began that was never opened"
    world.open()
    cluster.crashed = (CRASH,)
    world.close()
    cluster.crashed = ()
    assert world.crashes() == (CRASH,)
    seen = world.observations()
    assert [(observation.time_us, observation.node) for observation in seen] == [(3, 100), (7, 1), (9, 100)]
    assert seen[1].fact == NodeCrashed(exit="signal 11", words="words")


def test_a_machine_hinders_its_own_nodes_if_its_disk_or_its_processors_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow: set[type[Watch]] = set()
    monkeypatch.setattr(Watch, "serves", property(lambda watch: type(watch) not in slow))
    cluster = Cluster()
    cluster.processor_s = lambda: 0.0
    world = world_around(cluster, tmp_path)
    world.open()
    assert world.hindrance() == ""
    for kind in (ProcessorWatch, DiskWatch):
        slow.add(kind)
        assert world.hindrance() == kind.hindrance
    world.close()


def test_this_machine_hinders_no_nodes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "serves", False)
    world = world_around(Cluster(), tmp_path)
    world.open()
    assert world.hindrance() == ""
    world.close()
