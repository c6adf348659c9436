"""Defects of the client libraries that docs/guides/clients.md describes, in the releases that are installed here.

Where one of these fails with a newer release, the library has changed: the documentation has to follow.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import AsyncMock, Mock

import confluent_kafka
import kafka
import pytest
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import (
    InvalidRecordError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RequestTimedOutError,
    RetriableError,
    UnknownError,
)
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager, TransactionState

from harness.worlds.clients.confluent import unfit
from harness.worlds.clients.kafka_python import _close_producer
from harness.worlds.processes import processes_world
from tests.harness.worlds.processes.conftest import Cluster, spec

LIMIT_S = 60.0
#: After this long, a record that a producer took should have ended: its delivery.timeout.ms, and a second more.
DELIVERY_MS = 6_000
OVERDUE_S = 7.0


def test_kafka_python_asks_for_no_producer_id_after_it_has_dropped_its_own() -> None:
    manager = TransactionManager(api_version=(4, 0))
    manager.init_producer_id()
    manager.next_request_handler(has_incomplete_batches=False)
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(7, 0))
    manager._transition_to(TransactionState.READY)
    manager.reset_producer_id()  # what the sender does when a batch expires that it had sent before
    manager.init_producer_id()  # what the sender does each time before it sends
    assert manager.next_request_handler(has_incomplete_batches=True) is None
    assert not manager.has_producer_id()
    assert not manager.has_error()


@pytest.mark.parametrize("error", [MessageSizeTooLargeError, InvalidRecordError, UnknownError])
def test_kafka_python_takes_the_refusal_of_one_batch_for_fatal_to_the_producer(error: type[Exception]) -> None:
    manager = TransactionManager(api_version=(4, 0))
    assert manager.classify_batch_error(error(), batch=None) == TransactionManager.ERROR_CLASS_FATAL


def test_kafka_python_is_fatal_when_its_request_for_a_producer_id_is_answered_too_late() -> None:
    manager = TransactionManager(api_version=(4, 0))
    manager.init_producer_id()
    request = manager.next_request_handler(has_incomplete_batches=False)
    request.on_complete(manager.next_in_flight_request_correlation_id(), RequestTimedOutError())
    assert manager.has_fatal_error()
    assert isinstance(RequestTimedOutError(), RetriableError), "Kafka's own client asks again"


def test_kafka_python_ends_what_it_is_given_after_a_fatal_error_with_that_error_and_sends_nothing() -> None:
    manager = TransactionManager(api_version=(4, 0))
    fatal = UnknownError()
    manager.transition_to_fatal_error(fatal)
    accumulator, network = RecordAccumulator(transaction_manager=manager), Mock()
    sender = Sender(network, Mock(), accumulator, transaction_manager=manager)
    for _ in range(2):
        future, *_rest = accumulator.append(kafka.TopicPartition("t", 0), 0, b"key", b"value", [])
        sender.run_once()
        assert future.exception is fatal
    network.send.assert_not_called()


def kafka_python(bootstrap: str) -> tuple[Callable[[], Callable[[float], str]], Callable[[], None]]:
    """The way to send (the answer waits for the end and names it), and the way to close."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        delivery_timeout_ms=DELIVERY_MS,
        request_timeout_ms=DELIVERY_MS // 2,
    )

    def send() -> Callable[[float], str]:
        future = producer.send("ackproof", b"value", partition=0)

        def ended(limit_s: float) -> str:
            try:
                future.get(limit_s)
            except KafkaTimeoutError as error:
                return "timed out" if future.is_done else f"never: {error}"
            return "acknowledged"

        return ended

    return send, lambda: _close_producer(producer)  # its own close() raises, with its thread running


def confluent(bootstrap: str) -> tuple[Callable[[], Callable[[float], str]], Callable[[], None]]:
    """The same with librdkafka."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": DELIVERY_MS,
            "request.timeout.ms": DELIVERY_MS // 2,
        }
    )

    def send() -> Callable[[float], str]:
        errors: list[Any] = []
        producer.produce("ackproof", b"value", partition=0, on_delivery=lambda error, _: errors.append(error))

        def ended(limit_s: float) -> str:
            producer.flush(limit_s)
            return "never" if not errors else "acknowledged" if errors[0] is None else "timed out"

        return ended

    return send, producer.purge


def bootstrap_of(directory: Path) -> str:
    nodes = [json.loads(path.read_text()) for path in (directory / "data").glob("*.json")]
    return ",".join(f"{node['host']}:{node['port']}" for node in nodes if node["role"] == "broker")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("run")
    world = processes_world(spec({"acks": "all", "min.insync.replicas": 2}), directory)
    world.open()
    yield Cluster(world, directory)
    world.close()


@pytest.mark.system
@pytest.mark.parametrize(("library", "afterwards"), [(kafka_python, "never"), (confluent, "acknowledged")])
def test_after_a_delivery_timeout_an_idempotent_producer_of_kafka_python_stays_silent(
    library: Callable[..., Any], afterwards: str, cluster: Cluster
) -> None:
    assert cluster.until(cluster.is_well)
    bootstrap = bootstrap_of(cluster.directory)
    send, close = library(bootstrap)
    assert send()(LIMIT_S) == "acknowledged"
    followers = {0, 1, 2} - {cluster.leads()}
    for broker in followers:
        cluster.target.processes.kill(broker)
    assert send()(LIMIT_S) == "timed out"
    for broker in followers:
        cluster.target.processes.restart(broker)
    assert cluster.until(cluster.is_well)
    again = send()
    fresh_send, close_fresh = library(bootstrap)
    assert fresh_send()(LIMIT_S) == "acknowledged"
    assert again(OVERDUE_S).startswith(afterwards)
    close()
    close_fresh()


class SecondJoin(ConsumerCoordinator):  # type: ignore[misc]
    """The leader of a group of kafka-python that has joined, and then hears of the partitions of its topic."""

    _use_group_apis = True
    config: ClassVar = {"group_id": "readers"}
    _lookup_assignor = Mock(**{"return_value.assign.return_value": {}})
    _auto_assign_all_partitions = _disable_heartbeat = Mock(return_value=False)
    ensure_coordinator_ready_async = AsyncMock(return_value=True)
    _on_join_prepare_async = AsyncMock()

    def __init__(self) -> None:
        self._subscription = Mock(subscription={"t"})
        self._cluster, self._generation, self._join_task = Mock(), Mock(), None
        self._joined_subscription, self._assignment_snapshot, self._metadata_snapshot = {"t"}, {}, {"t": {0, 1, 2}}
        self.rejoin_needed = self.rejoining = False
        # No answer comes as long as a poll lasts.
        self._manager = Mock(wait_for=AsyncMock(side_effect=KafkaTimeoutError))
        self._on_join_complete_async = AsyncMock()

    def poll(self) -> bool:
        return bool(asyncio.run(self.join_group_async(timeout_ms=1)))


def test_kafka_python_drops_the_assignment_where_the_answer_to_a_second_join_comes_between_two_polls() -> None:
    """``make races`` sees it on a cluster, where a short poll has to end in time."""
    leader = SecondJoin()
    assert leader.need_rejoin()
    assert not leader.poll()
    leader._perform_assignment("leader", "range", [])  # what it does at the answer
    assert not leader.need_rejoin()
    assert leader.poll(), "it is told that it has joined"
    leader._on_join_complete_async.assert_not_called()
    assert leader.rejoining


#: Longer than joining a group takes, so that its leader deals out partitions before it knows them. On a busy machine
#: the premise may fail: the leader knows them in time, or the second join ends within one poll. Then another try is
#: made; all but the first have twice the time.
METADATA_LATE_MS = 2_000
TRIES = 8


def polled(bootstrap: str, poll_ms: int, metadata_late_ms: int, number: int = 0) -> tuple[int, int]:
    """Partitions that a consumer knows, and those that it is assigned, after polls of this length."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=f"polls-of-{poll_ms}-ms-{number}",
        retry_backoff_ms=metadata_late_ms,
    )
    try:
        consumer.subscribe(["ackproof"])
        end = time.monotonic() + 3 * metadata_late_ms / 1_000
        while time.monotonic() < end and not consumer.assignment():
            consumer.poll(timeout_ms=poll_ms)
        return len(consumer.partitions_for_topic("ackproof") or ()), len(consumer.assignment())
    finally:
        consumer.close(autocommit=False)


@pytest.mark.system
@pytest.mark.race
def test_polls_that_end_before_a_second_join_lose_the_assignment_of_kafka_python_for_good(cluster: Cluster) -> None:
    assert cluster.until(cluster.is_well)
    bootstrap = bootstrap_of(cluster.directory)
    assert polled(bootstrap, 1_000, METADATA_LATE_MS) == (3, 3)
    assert (3, 0) in (polled(bootstrap, 1, METADATA_LATE_MS << (number > 0), number) for number in range(TRIES))


def run_consume_skips(path: Path | None) -> dict[str, Any]:
    program = Path(__file__).with_name("consume_skips.py")
    environment = {"PYTHONPATH": str(path)} if path else {}
    done = subprocess.run(
        [sys.executable, program], capture_output=True, timeout=LIMIT_S, check=True, env=environment, text=True
    )
    reading: dict[str, Any] = json.loads(done.stdout)
    return reading


@pytest.mark.system
def test_consume_skips_a_record_at_the_end_of_a_partition_before_librdkafka_2_13_2(tmp_path: Path) -> None:
    wanted = ["confluent-kafka==2.13.0", "--no-deps", "--only-binary=:all:", "--target", str(tmp_path), "--quiet"]
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "install", *wanted],
        capture_output=True,
        timeout=2 * LIMIT_S,
        check=False,
        text=True,
    )
    if fetched.returncode:
        pytest.skip(f"confluent-kafka 2.13.0 cannot be fetched here: {fetched.stderr.strip().splitlines()[-1]}")
    assert run_consume_skips(tmp_path) == {"librdkafka": "2.13.0", "first": "01234", "position": 6, "then": "67"}


@pytest.mark.system
def test_consume_skips_no_record_in_the_installed_release() -> None:
    reading = run_consume_skips(None)
    assert (reading["first"], reading["position"], reading["then"]) == ("01234", 5, "567")


def test_an_older_librdkafka_is_refused_with_what_to_install() -> None:
    assert not unfit(confluent_kafka.libversion())
    assert not unfit(("2.13.2", 0x020D02FF))
    assert "confluent-kafka>=2.13.2" in unfit(("2.13.0", 0x020D00FF))
