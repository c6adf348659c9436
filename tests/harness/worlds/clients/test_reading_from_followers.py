"""Consumers that are in the rack of a follower read from it, as the leader tells them to (KIP-392)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka.consumer.subscription_state import TopicPartitionState

from harness.ground.choices import Choices
from harness.plan import Kafka, Processes
from harness.plan.worlds import ClientName
from harness.worlds.clients import CLIENTS
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


@pytest.mark.system
@pytest.mark.parametrize("near", [True, False])
def test_librdkafka_fetches_from_the_follower_beside_it_where_the_plan_says_so(near: bool, tmp_path: Path) -> None:
    settings = {"request.timeout.ms": 5_000, "delivery.timeout.ms": 10_000, "follower.fetching": near}
    planned = spec(settings, world=Processes(client="confluent-kafka"))
    real = world_for(planned, tmp_path, Choices(1))
    assert isinstance(real, RealWorld)
    real.open()
    try:
        cluster = Cluster(real, tmp_path)
        leader = cluster.leads()
        assert all(outcome.type == "ok" for outcome in cluster.write(WRITES, 0))
        beside = (leader + 1) % 3
        library = CLIENTS["confluent-kafka"].with_racks(planned.racks_of_brokers)
        bootstrap = cluster.world.clients.bootstrap
        configured = library.consumer_configuration(planned.chosen(), bootstrap, beside, None, "read_uncommitted")
        assert _fetched_from(cluster, configured, beside if near else leader)
    finally:
        real.close()


def _fetched_from(cluster: Cluster, configured: Mapping[str, object], broker: int) -> bool:
    """True once librdkafka says that it has everything, and fetches from this broker."""
    seen: list[tuple[int, int]] = []

    def note(text: str) -> None:
        topics = json.loads(text)["topics"]
        seen.extend((own["partitions"]["0"]["broker"], own["partitions"]["0"]["rxmsgs"]) for own in topics.values())

    consumer = Consumer({**configured, "statistics.interval.ms": 100, "stats_cb": note})
    consumer.assign([TopicPartition(PARTITIONS[0].rpartition("-")[0], 0, OFFSET_BEGINNING)])

    def fetched() -> bool:
        consumer.poll(0.1)  # calls back
        return any(fetching == broker and records >= WRITES for fetching, records in seen)

    try:
        return cluster.until(fetched)
    finally:
        consumer.close()
