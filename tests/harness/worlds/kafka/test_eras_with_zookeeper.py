"""Earlier eras on real Kafka: 3.5.2 with ZooKeeper, made to speak and to truncate as an older release did."""

import contextlib
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError

from harness.ground.observations import BecameFollower, BecameLeader, IsrChanged, LeaderElected, Truncated
from harness.plan import Kafka, Namespaces, RunSpec
from harness.records.cluster_file import read_observations, write_observations
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import Installation
from nemesis.cluster import Link, PartitionView
from nemesis.plan import FaultPlan
from tests.harness.needs import missing_for_root
from tests.waiting import wait_until
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.root, pytest.mark.xdist_group("kafka-eras")]
RELEASE = "3.5.2"
PARTITION = "ackproof-0"
BROKERS = (0, 1, 2)
LIMIT_S = 60.0
#: Writes follow each other so closely that a follower always has one of which it does not know yet that all have it.
WRITE_EVERY_S = 0.0015
#: A try fails to be one if no write was under way when the links were cut.
TRIES = 3


@pytest.fixture(scope="module", autouse=True)
def release(kafka_release: Callable[[str], Installation]) -> None:
    if why := missing_for_root("ip", "nft", "nsenter"):
        pytest.skip(why)
    kafka_release(RELEASE)


def spec(truncation: str) -> RunSpec:
    settings = {
        "acks": "all",
        "min.insync.replicas": 2,
        "truncation": truncation,
        "broker.epochs": False,
        "strict.min.isr": False,
        "replica.lag.time.max.ms": 20_000,  # nobody leaves the ISR for being cut off
        "broker.session.timeout.ms": 3_000,
        "request.timeout.ms": 30_000,
        "delivery.timeout.ms": 60_000,
    }
    return RunSpec(
        world=Kafka(host=Namespaces(), version=RELEASE, mode="zookeeper"),
        cell="cell/partition",
        family="partition",
        settings=Settings.from_mapping(settings).to_mapping(),
        workload=WorkloadPlan(partitions=1),
        faults=FaultPlan(families=("partition",)),
        seed=1,
    )


class Writer:
    """Writes numbers with acks=all until it is asked to stop; ``acknowledged`` are those that were, with offsets."""

    def __init__(self, bootstrap: list[str]) -> None:
        self.acknowledged: dict[bytes, int] = {}
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=False, retries=0, request_timeout_ms=30_000
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._over.wait(WRITE_EVERY_S):
            value = b"%d" % number
            sent = self._producer.send("ackproof", value, partition=0)
            sent.add_callback(lambda shown, value=value: self.acknowledged.__setitem__(value, shown.offset))
            number += 1

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        with contextlib.suppress(KafkaTimeoutError):  # what nobody will answer
            self._producer.close(1)


def readable(bootstrap: list[str]) -> set[bytes]:
    consumer, partition = KafkaConsumer(bootstrap_servers=bootstrap), TopicPartition("ackproof", 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end, read, limit = consumer.end_offsets([partition])[partition], set[bytes](), time.monotonic() + LIMIT_S
    while consumer.position(partition) < end:
        assert time.monotonic() < limit
        read |= {record.value for records in consumer.poll(500).values() for record in records}
    consumer.close()
    return read


def listeners(directory: Path) -> list[str]:
    """ "host:port" of every broker."""
    written = [(directory / "data" / f"{node}.properties").read_text() for node in BROKERS]
    return [re.findall(r"advertised.listeners=PLAINTEXT://(\S+)", text)[0] for text in written]


def the_controller(directory: Path) -> int:
    """The broker that is controller."""
    words = re.compile(r"state\.change\.logger \[?Controller (?:id=)?(\d+) epoch=? ?(\d+)")
    message = [match for log in directory.glob("logs/node-?.log") for match in words.findall(log.read_text())]
    return int(max(message, key=lambda match: int(match[1]))[0])


def acknowledged_and_gone(truncation: str, directory: Path) -> int:
    """Story 39: a planned move of the leader, and the death of the new one before its follower has fetched."""
    world = kafka_world(spec(truncation), directory)
    try:
        world.open()
        target = world.target

        def state() -> PartitionView:
            return target.view().partitions[PARTITION]

        heir = the_controller(directory)
        if state().leader == heir:
            target.leadership.move_leader(PARTITION, next(node for node in BROKERS if node != heir))
        leader = state().leader
        assert leader is not None
        successor = next(node for node in BROKERS if node not in {heir, leader})
        target.reassignment.reassign(PARTITION, [successor, heir, leader])
        wait_until(lambda: state().replicas == (successor, heir, leader), "replicas are in order", LIMIT_S, 0.005)
        wait_until(lambda: len(state().isr) == 3, "everybody is in sync", pause_s=0.005)
        bootstrap = listeners(directory)
        writer = Writer(bootstrap)
        wait_until(lambda: len(writer.acknowledged) > 100, "some writes are acknowledged", pause_s=0.005)
        links = [Link(leader, heir), Link(leader, successor), Link(successor, heir)]
        for link in links:  # the heir first: what is acknowledged now, it does not know to be
            target.links.cut([link])
        assert target.leadership.move_leader(PARTITION, successor)["leader"] == successor
        target.processes.kill(successor)
        acknowledged = dict(writer.acknowledged)
        wait_until(lambda: state().leader == heir, "the heir leads", pause_s=0.005)
        target.links.heal(links)
        writer.stop()
        target.processes.restart(successor)
        wait_until(lambda: len(state().isr) == 3, "everybody is in sync again", pause_s=0.005)
        gone = acknowledged.keys() - readable(bootstrap)
    finally:
        world.close()
    write_observations(directory, world.observations())
    return len(gone)


@pytest.mark.race
def test_truncating_to_the_high_watermark_loses_what_everybody_had_acknowledged(tmp_path: Path) -> None:
    """S39 before 0.11 (KIP-101): acks=all, two in-sync replicas required, no unclean election, nobody's disk harmed."""
    for number in range(TRIES):
        directory = tmp_path / str(number)
        directory.mkdir()
        if acknowledged_and_gone("high-watermark", directory):
            break
    else:
        pytest.fail(f"nothing was lost in {TRIES} tries")
    truncated = [seen for seen in read_observations(directory) if isinstance(seen.fact, Truncated)]
    assert truncated
    kinds = {type(seen.fact) for seen in read_observations(directory)}
    assert {LeaderElected, BecameLeader, BecameFollower, IsrChanged} <= kinds


def test_truncating_by_epochs_keeps_it(tmp_path: Path) -> None:
    """S39 since 0.11: the same release, the same actions."""
    assert acknowledged_and_gone("kip-101", tmp_path) == 0
