"""A running cluster for the tests of this folder, and short words for what they wait for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.lab.findings import PARTITIONS, OpenCluster
from harness.plan import Processes, RunSpec
from harness.worlds.processes import processes_world
from nemesis.plan import FaultPlan
from workloads import values
from workloads.client import Offsets, PollOutcome, Producer, SendOutcome
from workloads.operations import EventType
from workloads.plan import WorkloadPlan

#: Every wait of these tests. Seconds, but a client that has joined a group on a busy machine took longer than 20.
LIMIT_US = 240_000_000


def spec(settings: dict[str, Any] | None = None, **others: Any) -> RunSpec:
    # Writes to brokers that answer must not end by a limit, on a busy machine either; some tests wait for this long.
    quick = {"request.timeout.ms": 2_000, "delivery.timeout.ms": 6_000}
    plan = {"settings": quick | (settings or {}), "workload": WorkloadPlan(), "faults": FaultPlan(), "seed": 1}
    return RunSpec(cell="cell/kill", family="kill", **({"world": Processes()} | plan | others))


class Cluster(OpenCluster):
    """A world that is open, and what tests do with it."""

    def until(self, condition: Callable[[], bool], limit_us: int = LIMIT_US) -> bool:
        return super().until(condition, limit_us)

    def write(
        self, count: int, process: int, producer: Producer | None = None, partition: str = PARTITIONS[0]
    ) -> list[SendOutcome]:
        """The ends of ``count`` writes to the partition, by a new producer or by one that is connected."""
        outcomes: list[SendOutcome] = []
        writer = producer or self.world.clients.producer(process)
        for number in range(count):
            payload = values.encode(partition, b"key", values.join(process, number))
            writer.send(partition, b"key", payload, outcomes.append)
        assert self.until(lambda: len(outcomes) == count)
        if producer is None:
            writer.close()
        return outcomes

    def connected_producer(self, process: int) -> Producer:
        """A producer that has written to the first partition's leader."""
        producer = self.world.clients.producer(process)
        assert self.write(1, process, producer)[0].type is EventType.OK
        return producer

    def end_offset(self, partition: str = PARTITIONS[0]) -> int:
        ends: list[Offsets] = []
        consumer = self.world.clients.consumer(self.next_process())

        def done(answer: Offsets) -> None:
            ends.append(answer)
            if partition not in answer.offsets:  # a broker that was just started does not listen yet
                consumer.end_offsets([partition], done)

        consumer.end_offsets([partition], done)
        assert self.until(lambda: bool(ends) and partition in ends[-1].offsets)
        consumer.close()
        return ends[-1].offsets[partition]

    def read(self, until_offset: int, partition: str = PARTITIONS[0]) -> list[int]:
        """The values of a partition from its start up to ``until_offset``, each at its offset."""
        polls: list[PollOutcome] = []
        consumer = self.world.clients.consumer(self.next_process())
        consumer.assign([partition], from_start=True)

        def done(outcome: PollOutcome) -> None:
            polls.append(outcome)
            if len(records()) < until_offset:
                consumer.poll(100, done)

        def records() -> list[Any]:
            return [record for poll in polls for record in poll.records]

        consumer.poll(100, done)
        assert self.until(lambda: len(records()) >= until_offset)
        consumer.close()
        assert [record.offset for record in records()] == list(range(until_offset))
        return [values.decode(record.payload, partition, record.key)[0] for record in records()]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("run")
    world = processes_world(spec({"acks": "all", "min.insync.replicas": 2}), directory)
    world.open()
    yield Cluster(world, directory)
    world.close()


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """The module's cluster, once it is well again after the test before."""
    assert running.until(running.is_well)
    return running


@pytest.fixture
def make_spec() -> Callable[..., RunSpec]:
    return spec
