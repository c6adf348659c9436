"""A producer that takes one step at a time: it writes down what the workload's producers would."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
import pytest

from tests.conftest import EventList, VirtualClock
from tests.workloads.test_transactions import FAIL, INFO, INVOKE, OK, PARTITIONS, Log
from workloads.client import SendOutcome
from workloads.driver import DueWrite, SteppedProducer
from workloads.errors import TIME_LIMIT
from workloads.instance import SendCounts, Writers
from workloads.operations import EventType, Function, TransactionEnd
from workloads.values import decode

WRITES = [DueWrite(0, 0, number, b"k", 0) for number in (0, 1)]


class Steps:
    """Producers of one transactional id, over a log that does as it is told."""

    def __init__(self) -> None:
        self.clock, self.recorded = VirtualClock(), EventList()
        self.log = Log(self.clock)
        self.writers = Writers(self.log, self.clock, self.recorded, itertools.count().__next__, SendCounts())  # type: ignore[arg-type]
        self.made: list[SteppedProducer] = []

    def producer(self) -> SteppedProducer:
        made = SteppedProducer(self.writers, PARTITIONS, "id", [*self.made])
        self.made.append(made)
        made.init(lambda _: None)
        self.rest()
        return made

    def rest(self) -> None:
        self.clock.drive(lambda: False, self.clock.time_us + 10_000)

    @property
    def ends(self) -> list[tuple[EventType, tuple[int, ...], TransactionEnd]]:
        return [
            (e.type, tuple(send.value for send in e.micro), msgspec.json.decode(e.detail, type=TransactionEnd))
            for e in self.recorded.of(Function.TXN)
            if e.type is not INVOKE
        ]


def test_what_was_not_sent_when_it_ended_is_no_part_of_a_transaction() -> None:
    steps = Steps()
    producer = steps.producer()
    transaction = producer.open(WRITES, lambda _: None)
    steps.rest()
    sent = producer.send_next(transaction)
    steps.rest()
    producer.ask(transaction, "commit")
    assert transaction.waits
    steps.rest()
    (begun,) = steps.recorded.of(Function.TXN, INVOKE)
    ((kind, values, facts),) = steps.ends
    assert [send.value for send in begun.micro] == transaction.values
    assert (kind, values, facts.asked) == (OK, (sent,), "commit")
    assert transaction.answered == "committed"


@pytest.mark.parametrize("error", [TIME_LIMIT, "KafkaTimeoutError: 30 s"])
def test_a_send_that_our_own_limit_ended_did_not_fail_whatever_becomes_of_its_transaction(
    monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """Only what the library says of a send can contradict its commit."""
    steps = Steps()
    producer = steps.producer()
    client = steps.log.producers[0]

    def send(partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        decode(payload, partition, key)
        steps.log.later(done, SendOutcome(INFO, error=error))

    monkeypatch.setattr(client, "send", send)
    transaction = producer.open(WRITES[:1], lambda _: None)
    steps.rest()
    value = producer.send_next(transaction)
    steps.rest()
    producer.ask(transaction, "commit")
    steps.rest()
    ((kind, _, facts),) = steps.ends
    assert kind is OK
    assert facts.failed == ({} if error == TIME_LIMIT else {str(value): error})


def test_a_commit_that_was_refused_is_asked_for_again_and_is_open_until_then() -> None:
    steps = Steps()
    steps.log.ends = [SendOutcome(FAIL, error="REFUSED")]
    producer = steps.producer()
    transaction = producer.open(WRITES, lambda _: None)
    producer.ask(transaction, "commit")
    steps.rest()
    assert (transaction.answered, steps.ends) == ("refused", [])
    producer.ask(transaction, "abort")
    steps.rest()
    assert [kind for kind, _, _ in steps.ends] == [FAIL]
    assert transaction.answered == "aborted"


@pytest.mark.parametrize(("refusal", "kind"), [(FAIL, FAIL), (INFO, INFO)])
def test_a_transaction_whose_end_is_not_known_is_written_down_when_its_producer_is_closed(
    refusal: EventType, kind: EventType
) -> None:
    steps = Steps()
    steps.log.ends = [SendOutcome(refusal, error="E")]
    producer = steps.producer()
    producer.ask(producer.open(WRITES, lambda _: None), "commit")
    steps.rest()
    producer.close()
    assert [each for each, _, _ in steps.ends] == [kind]
