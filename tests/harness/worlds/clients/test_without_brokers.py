"""Every adapter where nobody answers: calls end within their limits, before and after the clients are closed."""

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.plan import Processes
from harness.plan.worlds import ClientName
from harness.worlds.clients import CLIENTS, JAVA
from harness.worlds.kafka import client_library
from harness.worlds.real.clock import RealClock
from workloads.client import Offsets, PollOutcome, SendOutcome
from workloads.errors import CLIENT_CLOSED, NEVER_SENT, TIME_LIMIT
from workloads.operations import EventType
from workloads.settings import Settings

NOBODY = ("127.1.2.3:1",)
LIMIT_US = 120_000_000
#: By library: how a send ends and how its error begins, and what a poll tells (only kafka-python's of missing brokers).
SAID = {
    "java": (EventType.FAIL, "NeverSent: TimeoutException", PollOutcome(EventType.OK)),
    "kafka-python": (EventType.INFO, TIME_LIMIT, PollOutcome(EventType.INFO, error=TIME_LIMIT)),
    "confluent-kafka": (EventType.INFO, "_MSG_TIMED_OUT", PollOutcome(EventType.OK)),
}


@dataclass
class ControllerLog:
    """The outcomes of the calls, in their order."""

    sent: list[SendOutcome] = field(default_factory=list)
    polled: list[PollOutcome] = field(default_factory=list)
    ends: list[Offsets] = field(default_factory=list)

    def counts(self) -> tuple[int, int, int]:
        return len(self.sent), len(self.polled), len(self.ends)


@pytest.mark.system
@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_without_any_broker_every_call_ends_and_no_thread_is_left(
    library: ClientName, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if library == JAVA:
        request.getfixturevalue("real_kafka")
    threads = set(threading.enumerate())
    clock, reported, ending = RealClock(), ControllerLog(), ExitStack()
    made = client_library(Processes(client=library), tmp_path, ending)
    clients = made.clients(clock, Settings(request_timeout_ms=100, delivery_timeout_ms=200), NOBODY)
    producer, consumer = clients.producer(0), clients.consumer(1)
    producer.send("t-0", b"key", b"payload", reported.sent.append)
    consumer.assign(["t-0"], from_start=True)
    consumer.poll(10, reported.polled.append)
    consumer.end_offsets(["t-0"], reported.ends.append)
    assert clock.run(lambda: reported.counts() == (1, 1, 1), LIMIT_US)
    kind, error, polled = SAID[library]
    assert (reported.sent[0].type, reported.sent[0].offset) == (kind, None)
    assert str(reported.sent[0].error).startswith(error)
    assert reported.polled == [polled]
    assert reported.ends[0].offsets == {}
    assert reported.ends[0].error
    producer.close()
    producer.send("t-0", b"key", b"payload", reported.sent.append)
    consumer.close()
    consumer.poll(10, reported.polled.append)
    assert clock.run(lambda: reported.counts() == (2, 2, 1), LIMIT_US)
    assert (reported.sent[1].type, reported.polled[1].error) == (EventType.FAIL, CLIENT_CLOSED)
    assert str(reported.sent[1].error).startswith(NEVER_SENT)
    assert clients.close(limit_s=60) == []
    ending.close()
    assert set(threading.enumerate()) <= threads
