"""Producers of transactions over a log that does as it is told: what they ask of it, and what they write down."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from tests.conftest import EventList, VirtualClock
from workloads.client import SendOutcome
from workloads.generators import kind_of
from workloads.instance import SendCounts, Writers
from workloads.operations import Event, EventType, Function, ProducerEpoch, TransactionEnd
from workloads.plan import WorkloadPlan
from workloads.transaction_errors import ErrorClass
from workloads.transactions import TransactionProducers
from workloads.values import decode

INVOKE, OK, FAIL, INFO = EventType.INVOKE, EventType.OK, EventType.FAIL, EventType.INFO
PARTITIONS = ("t-0", "t-1", "t-2")
SECOND_US = 1_000_000


class Log:
    """Clients of a log with transactions. ``ends`` are answers to commits, in order, and ``begins`` those to ``init``;
    ``fences`` it usually does.

    Clients that it ``tells`` know the epoch of a producer, a later one after each end of a transaction.
    """

    name = "log 1.0"

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.fences = True
        self.tells = False
        self.ends: list[SendOutcome] = []
        self.begins: list[SendOutcome] = []
        self.refused: set[int] = set()
        self.owners: dict[str, Producer] = {}
        self.producers: list[Producer] = []
        self.offsets = dict.fromkeys(PARTITIONS, 0)

    def producer(self, process: int, transactional_id: str) -> Producer:
        self.producers.append(Producer(self, process, transactional_id))
        return self.producers[-1]

    def later(self, done: Callable[[SendOutcome], None], outcome: SendOutcome) -> None:
        self.clock.call_at(self.clock.now_us() + 1_000, partial(done, outcome))


class Producer:
    def __init__(self, log: Log, process: int, transactional_id: str) -> None:
        self.log, self.process, self.transactional_id = log, process, transactional_id
        self.transactions = self
        self.epochs = self if log.tells else None
        self.epoch = 0
        self.closed = False
        self.sent: list[int] = []
        self.calls: list[str] = []

    def told_epoch(self) -> ProducerEpoch:
        return ProducerEpoch(7, self.epoch)

    def _answer(self, call: str, done: Callable[[SendOutcome], None]) -> None:
        self.calls.append(call)
        self.epoch += call in ("commit", "abort")
        fenced = self.log.fences and self.log.owners.get(self.transactional_id) is not self
        outcome = SendOutcome.of_call("commit", "_FENCED") if fenced or self.closed else SendOutcome(OK)
        if call == "commit" and not fenced and self.log.ends:
            outcome = self.log.ends.pop(0)
        if call == "init" and self.log.begins:
            outcome = self.log.begins.pop(0)
        self.log.later(done, outcome)

    def init(self, done: Callable[[SendOutcome], None]) -> None:
        self.log.owners[self.transactional_id] = self
        self._answer("init", done)

    def begin(self, done: Callable[[SendOutcome], None]) -> None:
        self._answer("begin", done)

    def commit(self, done: Callable[[SendOutcome], None]) -> None:
        self._answer("commit", done)

    def abort(self, done: Callable[[SendOutcome], None]) -> None:
        self._answer("abort", done)

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        value, _ = decode(payload, partition, key)
        self.sent.append(value)
        if self.closed or (self.log.fences and self.log.owners[self.transactional_id] is not self):
            self.log.later(done, SendOutcome(INFO, error="_FENCED"))
        elif value in self.log.refused:
            self.log.later(done, SendOutcome(FAIL, error="MSG_SIZE_TOO_LARGE"))
        else:
            self.log.later(done, SendOutcome(OK, self.log.offsets[partition]))
            self.log.offsets[partition] += 1

    def close(self) -> None:
        self.closed = True

    def crash(self) -> None:
        self.closed = True


class Run:
    """Producers of a plan, for some seconds."""

    def __init__(self, *, tells: bool = False, **plan: object) -> None:
        usual = {"name": "transactions", "aborts_percent": 0, "takeover_every_ms": 0, "producers": 1}
        self.plan = msgspec.convert({**usual, "writes_per_second": 8.0, **plan}, WorkloadPlan)
        self.clock = VirtualClock()
        self.log = Log(self.clock)
        self.log.tells = tells
        self.recorded = EventList()
        self.counts = SendCounts()
        writers = Writers(self.log, self.clock, self.recorded, itertools.count().__next__, self.counts)  # type: ignore[arg-type]
        self.producers = TransactionProducers(
            writers, partitions=PARTITIONS, plan=self.plan, writes=kind_of(self.plan).writes(self.plan)
        )

    def write(self, seconds: float) -> None:
        self.producers.start()
        self.clock.call_at(10, lambda: None)
        self.clock.drive(lambda: False, int(seconds * SECOND_US))
        self.producers.stop()
        self.clock.drive(lambda: False, int((seconds + 1) * SECOND_US))

    def ended(self, *kinds: EventType) -> list[tuple[Event, TransactionEnd]]:
        ends = self.recorded.of(Function.TXN, *kinds)
        return [(e, msgspec.json.decode(e.detail, type=TransactionEnd)) for e in ends if e.type is not INVOKE]


def test_a_transaction_is_one_operation_with_the_offsets_of_its_sends() -> None:
    run = Run(sends_per_transaction=4)
    run.write(2.2)
    # The producer is ready a moment after the first one is due.
    begun, (ended, facts) = run.recorded.of(Function.TXN, INVOKE)[0], run.ended(OK)[0]
    assert [send.partition for send in begun.micro] == ["t-1", "t-2", "t-0", "t-1"]
    assert [send.offset for send in begun.micro] == [None] * 4
    assert [send.offset for send in ended.micro] == [0, 0, 0, 1]
    assert [send.value for send in begun.micro] == [send.value for send in ended.micro]
    assert (facts.transactional_id, facts.number, facts.asked, facts.failed) == ("ackproof-0", 0, "commit", {})
    assert facts.producer is None
    assert begun.time_us < facts.ending_us < ended.time_us
    assert run.log.producers[0].calls[:3] == ["init", "begin", "commit"]
    assert run.counts.outstanding == 0
    assert set(run.producers.acknowledged_us) == set(PARTITIONS)


def test_aborts_are_spread_evenly_and_come_when_all_records_are_in_the_log() -> None:
    run = Run(aborts_percent=25, writes_per_second=40.0)
    run.write(2)
    kinds = [event.type for event, _ in run.ended()]
    assert kinds[:8] == [OK, OK, OK, FAIL, OK, OK, OK, FAIL]
    event, facts = run.ended(FAIL)[0]
    assert facts.asked == "abort"
    assert all(send.offset is not None for send in event.micro)


def test_a_producer_that_is_superseded_goes_on_and_is_refused() -> None:
    run = Run(takeover_every_ms=700)
    run.write(1.6)
    (event, facts), *_ = run.ended(FAIL)
    old, new = run.log.producers[:2]
    assert (facts.asked, facts.number) == ("commit", 0)
    assert list(facts.late) == old.sent[-2:] == [send.value for send in event.micro][2:]
    assert facts.superseded_us is not None
    assert facts.superseded_us <= (facts.ending_us or 0)
    assert new.calls[0] == "init"
    assert old.closed
    assert run.ended(OK)[-1][1].number == 1
    assert run.producers.settled


def test_a_commit_of_a_superseded_producer_that_is_answered_is_written_down_as_it_was() -> None:
    run = Run(takeover_every_ms=500)
    run.log.fences = False
    run.write(1.1)
    zombies = [facts for _, facts in run.ended(OK) if facts.superseded_us is not None]
    assert zombies
    assert all(facts.late for facts in zombies)


@pytest.mark.parametrize(
    ("answer", "kind", "calls"),
    [
        (SendOutcome.of_call("commit", "_TIMED_OUT"), INFO, ["begin", "commit"]),
        (SendOutcome.of_call("commit", "PRODUCER_FENCED"), INFO, ["begin", "commit"]),
        (SendOutcome.of_call("commit", "TRANSACTION_ABORTABLE"), FAIL, ["begin", "commit", "abort"]),
    ],
)
def test_a_commit_without_a_certain_end_gives_the_producer_up_and_a_refused_one_is_aborted(
    answer: SendOutcome, kind: EventType, calls: list[str]
) -> None:
    run = Run(writes_per_second=40.0)
    run.log.ends = [answer]
    run.write(2)
    event, facts = run.ended()[0]
    assert (event.type, facts.error_class) == (kind, answer.error_class)
    assert run.log.producers[0].calls[1 : 1 + len(calls)] == calls
    assert run.log.producers[0].closed == (kind is INFO)
    assert run.ended(OK)[-1][1].number == (1 if kind is INFO else 0)


@pytest.mark.parametrize(
    ("error", "times", "tries", "number"),
    [
        ("_TIMED_OUT", 2, 3, 0),  # it is asked again
        ("_TIMED_OUT", 3, 3, 1),  # it was asked often enough
        ("INVALID_TRANSACTION_TIMEOUT", 1, 1, 1),
        ("Unheard", 1, 1, 1),
    ],
)
def test_a_producer_that_cannot_begin_tries_again_where_its_error_lets_it_and_else_another_follows(
    error: str, times: int, tries: int, number: int
) -> None:
    run = Run(writes_per_second=40.0)
    run.log.begins = [SendOutcome.of_call("init", error) for _ in range(times)]
    run.write(3)
    assert run.log.producers[0].calls[: tries + 1].count("init") == tries
    assert run.ended(OK)[0][1].number == number
    assert len(run.log.producers) == number + 1
    assert {facts.error_class for _, facts in run.ended()} == {None}


def test_a_producer_that_was_fenced_says_that_its_error_is_fatal() -> None:
    run = Run(takeover_every_ms=700)
    run.write(1.6)
    assert run.ended(FAIL)[0][1].error_class is ErrorClass.FATAL


def test_a_send_that_fails_is_told_with_its_transaction() -> None:
    run = Run()
    run.log.refused = {1}
    run.write(1.1)
    event, facts = run.ended(OK)[0]
    assert facts.failed == {"1": "MSG_SIZE_TOO_LARGE"}
    assert [send.offset is None for send in event.micro] == [False, True, False, False]


def test_a_producer_that_dies_ends_its_transaction_unknown_and_its_successor_fences_it() -> None:
    run = Run()
    run.producers.start()
    run.clock.drive(lambda: bool(run.recorded.of(Function.TXN, INVOKE)), SECOND_US)
    died = run.producers.crash_producer(0)
    run.clock.drive(lambda: False, 3 * SECOND_US)
    (event, facts), *rest = run.ended()
    assert (event.process, event.type, facts.asked) == (died["instance"], INFO, None)
    assert died["outstanding"] == 4
    assert all(event.process == died["successor"] for event, _ in rest)
    assert rest


@pytest.mark.parametrize("aborts_percent", [0, 50])
def test_a_transaction_has_the_epoch_that_its_producer_had_before_it_asked_for_the_end(aborts_percent: int) -> None:
    run = Run(tells=True, writes_per_second=40.0, aborts_percent=aborts_percent)
    run.write(1)
    producers = [facts.producer for _, facts in run.ended()]
    assert len(producers) > 5
    assert producers == [ProducerEpoch(7, number) for number in range(len(producers))]


def test_a_producer_that_dies_leaves_the_epoch_of_its_open_transaction() -> None:
    run = Run(tells=True)
    run.producers.start()
    run.clock.drive(lambda: bool(run.recorded.of(Function.TXN, INVOKE)), SECOND_US)
    run.producers.crash_producer(0)
    run.clock.drive(lambda: False, SECOND_US)
    assert (run.ended()[0][1].asked, run.ended()[0][1].producer) == (None, ProducerEpoch(7, 0))


def test_a_transaction_that_is_due_while_its_producer_is_busy_is_not_made() -> None:
    run = Run(writes_per_second=8_000.0)
    run.write(0.5)
    assert run.counts.passed_over > 0
    assert run.counts.passed_over % 4 == 0
    assert run.counts.outstanding == 0
