"""Consumers that are in the rack of a follower read from it, as the leader tells them to (KIP-392)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka.consumer.subscription_state import TopicPartitionState

from harness.choices import Choices
from harness.clients import CLIENTS
from harness.plan import Kafka, Processes
from harness.plan.worlds import ClientName
from harness.worlds.factory import world_for
from harness.worlds.real import RealWorld
from harness.worlds.real.clock import RealClock
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec
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


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The words to kafka-python's consumers in this test: whom to read from, None or -1 for the leader."""
    told: list[int | None] = []
    update = TopicPartitionState.update_preferred_read_replica

    def noted(state: TopicPartitionState, node: int | None, until: float) -> bool:
        told.append(node)
        return bool(update(state, node, until))

    monkeypatch.setattr(TopicPartitionState, "update_preferred_read_replica", noted)
    return told


@pytest.mark.system
@pytest.mark.parametrize(("world", "near"), [("processes", True), ("processes", False), ("kafka", True)])
def test_a_consumer_beside_a_follower_reads_from_it_where_the_plan_says_so(
    world: str, near: bool, tmp_path: Path, request: pytest.FixtureRequest, told: list[int | None]
) -> None:
    if world == "kafka":
        request.getfixturevalue("real_kafka")
    settings = {"request.timeout.ms": 5_000, "delivery.timeout.ms": 10_000, "follower.fetching": near}
    planned = spec(settings, world=Kafka() if world == "kafka" else Processes())
    real = world_for(planned, tmp_path, Choices(1))
    assert isinstance(real, RealWorld)
    real.open()
    try:
        assert _preferred(Cluster(real, tmp_path), told) == ([1, 2] if near else [None, None])
    finally:
        real.close()


@pytest.mark.system
@pytest.mark.xdist_group("plain-kafka")
def test_without_a_word_of_the_plan_kafka_has_consumers_read_from_leaders(
    plain_kafka: Cluster, told: list[int | None]
) -> None:
    assert _preferred(plain_kafka, told) == [None, None]


def _preferred(cluster: Cluster, told: list[int | None]) -> list[int | None]:
    """The followers from which consumers beside them read, in the order 1, 2 behind the leader; None for the leader."""
    leader = cluster.leads()
    written = cluster.write(WRITES, 0)
    assert all(outcome.type == "ok" for outcome in written)
    followers: list[int | None] = []
    for behind in (1, 2):
        told.clear()
        _read_beside(cluster, (leader + behind) % 3)
        preferred = {node for node in told if node is not None and node >= 0}
        assert len(preferred) <= 1
        followers += [(node - leader) % 3 for node in preferred] or [None]
    return followers


def _read_beside(cluster: Cluster, broker: int) -> None:
    """Read everything by a consumer in the rack of ``broker``."""
    process = 3 * cluster.next_process() + broker
    consumer = cluster.world.clients.consumer(process)
    consumer.assign(PARTITIONS[:1], from_start=True)
    records: list[Any] = []

    def read(outcome: PollOutcome) -> None:
        records.extend(outcome.records)
        if len(records) < WRITES:
            consumer.poll(100, read)

    consumer.poll(100, read)
    assert cluster.until(lambda: len(records) >= WRITES)
    consumer.close()
