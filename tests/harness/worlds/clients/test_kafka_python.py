"""The kafka-python adapter where there is no cluster: its configuration, its limits, its end."""

from unittest.mock import Mock

import msgspec
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError, MessageSizeTooLargeError, NotEnoughReplicasAfterAppendError
from kafka.future import Future

from harness.plan import Processes
from harness.worlds.clients import KAFKA_PYTHON, kafka_python
from harness.worlds.clients.adapter import Content
from harness.worlds.clients.kafka_python import (
    KafkaPythonProducer,
    consumer_configuration,
    named,
    producer_configuration,
)
from harness.worlds.real.clock import RealClock
from workloads.client import Membership, PollOutcome, SendOutcome
from workloads.errors import CLIENT_CLOSED, refuses_for_good
from workloads.operations import EventType
from workloads.settings import OffsetReset, Settings

BROKERS = ("127.1.2.3:19092", "127.1.2.3:19093")
NOBODY = ("127.1.2.3:1",)
#: Arguments that the library would choose by itself if left out, differently from release to release.
ALWAYS_SPELLED_OUT = {
    "acks",
    "enable_idempotence",
    "retries",
    "delivery_timeout_ms",
    "request_timeout_ms",
    "max_in_flight_requests_per_connection",
    "retry_backoff_ms",
    "client_id",
    "metadata_max_age_ms",
    "reconnect_backoff_max_ms",
}


@pytest.mark.parametrize("settings", [Settings(acks=0), Settings(acks=1), Settings(enable_idempotence=True)])
def test_no_setting_that_matters_is_left_to_the_library(settings: Settings) -> None:
    configuration = producer_configuration(settings, BROKERS, 3)
    assert configuration.keys() >= ALWAYS_SPELLED_OUT
    assert configuration["acks"] == settings.acks
    assert configuration["enable_idempotence"] is settings.enable_idempotence
    assert configuration["client_id"] == "ackproof-client-3"


def test_what_plans_take_for_the_librarys_default_is_its_default() -> None:
    assert KafkaProducer.DEFAULT_CONFIG["enable_idempotence"] is Processes(client="kafka-python").idempotent_by_default


def test_the_library_knows_every_name_that_it_is_given() -> None:
    assert producer_configuration(Settings(), BROKERS, 0).keys() <= KafkaProducer.DEFAULT_CONFIG.keys()
    assert consumer_configuration(Settings(), BROKERS, 0).keys() <= KafkaConsumer.DEFAULT_CONFIG.keys()


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_member_begins_where_its_membership_says_and_another_reader_at_the_start(reset: OffsetReset) -> None:
    assert consumer_configuration(Settings(), BROKERS, 0, Membership("g", reset=reset))["auto_offset_reset"] == reset
    assert consumer_configuration(Settings(), BROKERS, 0)["auto_offset_reset"] == "earliest"


@pytest.mark.parametrize("request_timeout_ms", [2, 400, 30_000])
def test_a_consumers_wait_is_always_shorter_than_its_request(request_timeout_ms: int) -> None:
    settings = Settings(request_timeout_ms=request_timeout_ms, delivery_timeout_ms=30_000)
    configuration = consumer_configuration(settings, BROKERS, 0)
    assert configuration["fetch_max_wait_ms"] < configuration["request_timeout_ms"]


@pytest.mark.parametrize(("idempotent", "outcome"), [(False, EventType.FAIL), (True, EventType.INFO)])
def test_an_idempotent_producers_error_proves_nothing_because_it_is_given_to_every_batch(
    idempotent: bool, outcome: EventType
) -> None:
    clock, answers = RealClock(), list[SendOutcome]()
    producer = KafkaPythonProducer(clock, producer_configuration(Settings(enable_idempotence=idempotent), NOBODY, 0))
    producer._failed(producer._begin(answers.append), None, MessageSizeTooLargeError())
    producer.close()
    assert clock.run(lambda: bool(answers), 5_000_000)
    assert answers == [SendOutcome(outcome, error="MessageSizeTooLargeError")]


def test_what_a_producer_is_given_after_its_fatal_error_was_never_sent_and_counts_against_it() -> None:
    clock, answers = RealClock(), list[SendOutcome]()
    producer = KafkaPythonProducer(clock, producer_configuration(Settings(enable_idempotence=True), NOBODY, 0))
    library = Mock(spec=KafkaProducer)
    fatal = MessageSizeTooLargeError()
    library.send.side_effect = lambda *_, **__: Future().failure(fatal)
    for _ in range(2):
        producer._send(producer._begin(answers.append), "t-0", b"key", Content(b"payload"), library)
    producer.close()
    assert clock.run(lambda: len(answers) == 2, 5_000_000)
    assert answers[0] == SendOutcome(EventType.INFO, error="MessageSizeTooLargeError")
    assert answers[1].type is EventType.FAIL
    assert answers[1].error is not None
    assert refuses_for_good(answers[1].error)


def test_the_effective_configuration_can_be_written_and_read() -> None:
    effective = KAFKA_PYTHON.clients(RealClock(), Settings(), BROKERS).effective_configuration()
    assert msgspec.json.decode(msgspec.json.encode(effective)) == effective
    assert effective["producer"]["retries"] == 2**31 - 1
    assert effective["consumer"]["consumer_timeout_ms"] == "infinite"


def test_errors_are_named_by_class_with_the_brokers_words() -> None:
    assert named(NotEnoughReplicasAfterAppendError("2 of 3")) == "NotEnoughReplicasAfterAppendError: 2 of 3"
    assert named(KafkaTimeoutError()) == "KafkaTimeoutError"


def test_a_member_asks_for_metadata_before_it_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it may join twice, and lose what it is assigned (docs/guides/clients.md)."""
    library = Mock(**{"poll.return_value": {}})
    monkeypatch.setattr(kafka_python, "KafkaConsumer", lambda **_: library)
    clock, polled = RealClock(), list[PollOutcome]()
    clients = KAFKA_PYTHON.clients(clock, Settings(), NOBODY)
    member = clients.consumer(0, Membership("readers"))
    assert member.subscription is not None
    member.subscription.subscribe(["t"], lambda _: None)
    member.poll(10, polled.append)
    assert clock.run(lambda: bool(polled), 60_000_000)
    clients.close(limit_s=60)
    called = [name for name, *_ in library.method_calls]
    assert called[:3] == ["subscribe", "topics", "poll"]


def test_calls_to_a_closed_client_end_too() -> None:
    clock = RealClock()
    clients = KAFKA_PYTHON.clients(clock, Settings(request_timeout_ms=50, delivery_timeout_ms=100), NOBODY)
    producer, consumer = clients.producer(0), clients.consumer(1)
    sent: list[SendOutcome] = []
    polled: list[PollOutcome] = []
    producer.send("t-0", b"key", b"payload", sent.append)
    clients.close(limit_s=60)
    producer.send("t-0", b"key", b"payload", sent.append)
    consumer.poll(10, polled.append)
    assert sent == []
    assert clock.run(lambda: len(sent) == 2 and bool(polled), 60_000_000)
    assert [outcome.type for outcome in sent] == [EventType.INFO, EventType.FAIL]
    assert polled == [PollOutcome(EventType.INFO, error=CLIENT_CLOSED)]
