"""The confluent-kafka adapter: its configuration, and its records with a cluster."""

import threading
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from harness.plan import Processes, RunSpec
from harness.worlds.clients import CONFLUENT, confluent
from harness.worlds.clients.confluent import NAMES, PolledProducer, consumer_configuration, producer_configuration
from harness.worlds.processes import processes_world
from harness.worlds.real.clock import RealClock
from nemesis.plan import FaultPlan
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import values
from workloads.errors import ERRORS, classify
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

NOBODY = ("127.1.2.3:1",)


@pytest.mark.parametrize("settings", [Settings(acks=0), Settings(acks=1), Settings(enable_idempotence=True)])
def test_the_library_takes_every_property_and_no_setting_is_left_to_it(settings: Settings) -> None:
    configuration = producer_configuration(settings, NOBODY, 3)
    assert (configuration["acks"], configuration["client.id"]) == (settings.acks, "ackproof-client-3")
    assert configuration["delivery.timeout.ms"] == settings.delivery_timeout_ms
    Producer(configuration).purge()
    Consumer(consumer_configuration(settings, NOBODY, 3)).close()


class FatalProducer:
    """A library's producer whose poll raises its fatal error once, as confluent-kafka's does, and then calls back."""

    def __init__(self, *_: object, **__: object) -> None:
        self.polls = 0
        self.called_back = threading.Event()

    def poll(self, _: float) -> None:
        self.polls += 1
        if self.polls == 1:
            raise KafkaException(KafkaError(KafkaError._FATAL))
        self.called_back.set()

    def purge(self) -> None: ...

    def flush(self, _: float) -> None: ...

    def close(self) -> None: ...


def test_sends_end_after_a_fatal_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent, "Producer", FatalProducer)
    producer = PolledProducer({"client.id": "fatal"})
    assert producer.producer.called_back.wait(60.0)
    producer.close()


def test_what_plans_take_for_the_librarys_default_is_its_default() -> None:
    """With idempotence librdkafka refuses more than five requests in flight, so what it takes has none."""
    beyond = {"bootstrap.servers": NOBODY[0], "max.in.flight.requests.per.connection": 6}
    with pytest.raises(KafkaException, match="idempotence"):
        Producer(beyond | {"enable.idempotence": True})
    Producer(beyond).purge()
    assert Processes(client="confluent-kafka").idempotent_by_default is False


def test_the_effective_configuration_names_the_library_and_can_be_written_and_read() -> None:
    effective = CONFLUENT.clients(RealClock(), Settings(), NOBODY).effective_configuration()
    assert msgspec.json.decode(msgspec.json.encode(effective)) == effective
    assert effective["producer"]["library"].startswith("confluent-kafka 2.")


@pytest.mark.system
def test_records_are_written_read_and_lost_sight_of_through_a_real_cluster(tmp_path: Path) -> None:
    quick = {"request.timeout.ms": 600, "delivery.timeout.ms": 1_200, "acks": "all", "min.insync.replicas": 2}
    plans = {"settings": quick, "workload": WorkloadPlan(), "faults": FaultPlan(), "seed": 1}
    world = processes_world(
        RunSpec(world=Processes(client="confluent-kafka"), cell="c", family="kill", **plans), tmp_path
    )
    try:
        world.open()
        cluster = Cluster(world, tmp_path)
        assert world.effective_configuration()["producer"]["library"].startswith("confluent-kafka")
        outcomes = cluster.write(20, process=0)
        assert [(outcome.type, outcome.offset) for outcome in outcomes] == [
            (EventType.OK, offset) for offset in range(20)
        ]
        assert cluster.end_offset() == 20
        assert cluster.read(20) == [
            values.decode(values.encode(PARTITIONS[0], b"key", number), PARTITIONS[0], b"key")[0]
            for number in range(20)
        ]
        for broker in (0, 1, 2):
            cluster.target.processes.kill(broker)
        assert [outcome.type for outcome in cluster.write(2, process=9)] == [EventType.INFO] * 2
    finally:
        world.close()


def test_what_librdkafkas_names_prove_stands_in_the_table_of_outcomes() -> None:
    assert {classify(name) for name in NAMES.values()} == {EventType.FAIL}
    assert set(NAMES.values()) <= ERRORS.keys()
    assert all(hasattr(KafkaError, name) for name in NAMES)
