"""Consumers that are in the rack of a follower read from it, as the leader tells them to (KIP-392)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from harness.choices import Choices
from harness.clients import CLIENTS
from harness.plan import Kafka, Processes
from harness.plan.worlds import ClientName
from harness.worlds.factory import world_for
from harness.worlds.real import RealWorld
from harness.worlds.real.clock import RealClock
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec
from workloads import LogPartition
from workloads.client import PollOutcome
from workloads.settings import Settings

NOBODY = ("127.1.2.3:1",)
RACKS = ("a", "b", "c")
WRITES = 20


@pytest.mark.parametrize(("library", "name"), [("kafka-python", "client_rack"), ("confluent-kafka", "client.rack")])
def test_consumers_are_in_the_racks_of_brokers_in_turn(library: ClientName, name: str) -> None:
    given: list[Any] = []
    client = replace(CLIENTS[library], consumer=lambda _clock, configured, _membership: given.append(configured))
    for process in (0, 1, 5):
        client.clients(RealClock(), Settings(), NOBODY, racks=RACKS).consumer(process)
    client.clients(RealClock(), Settings(), NOBODY).consumer(0)
    assert [configured.get(name, "") for configured in given] == ["a", "b", "c", ""]


@pytest.mark.system
@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("world", ["processes", "kafka"])
def test_a_consumer_beside_a_follower_reads_from_it_where_the_plan_says_so(
    world: str, near: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The library itself says from whom it reads."""
    if world == "kafka":
        request.getfixturevalue("real_kafka")
    settings = {"request.timeout.ms": 5_000, "delivery.timeout.ms": 10_000, "follower.fetching": near}
    planned = spec(settings, world=Kafka() if world == "kafka" else Processes())
    real = world_for(planned, tmp_path, Choices(1))
    assert isinstance(real, RealWorld)
    real.open()
    try:
        assert _preferred(Cluster(real, tmp_path)) == ([1, 2] if near else [None, None])
    finally:
        real.close()


def _preferred(cluster: Cluster) -> list[int | None]:
    """The followers from which consumers beside them read, in the order 1, 2 behind the leader; None for the leader."""
    leader = cluster.leads()
    written = cluster.write(WRITES, 0)
    assert all(outcome.type == "ok" for outcome in written)
    return [
        None if follower is None else (follower - leader) % 3
        for follower in (_read_beside(cluster, (leader + behind) % 3) for behind in (1, 2))
    ]


def _read_beside(cluster: Cluster, broker: int) -> int | None:
    """Read everything by a consumer in the rack of ``broker``: the broker that it prefers by then."""
    process = 3 * cluster.next_process() + broker
    consumer = cluster.world.clients.consumer(process)
    consumer.assign(PARTITIONS[:1], from_start=True)
    records: list[Any] = []
    preferred: list[int | None] = []

    def read(outcome: PollOutcome) -> None:
        records.extend(outcome.records)
        consumer.owner.submit(partial(_note, preferred.append))
        if len(records) < WRITES:
            consumer.poll(100, read)

    consumer.poll(100, read)
    assert cluster.until(lambda: len(records) >= WRITES and bool(preferred))
    consumer.close()
    return preferred[-1]


def _note(note: Callable[[int | None], None], library: Any) -> None:
    topic, number = LogPartition.named(PARTITIONS[0])
    note(library._subscription.assignment[TopicPartition(topic, number)].preferred_read_replica())
