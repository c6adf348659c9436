"""Transactions, tombstones and memberships of every client library, on one cluster of Apache Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.plan import Kafka
from harness.worlds.clients import CLIENTS, RealClients
from harness.worlds.kafka import client_library
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import (
    Assignment,
    ClientCapability,
    ErrorClass,
    Fetched,
    Membership,
    MemberToken,
    Offsets,
    ProducerEpoch,
    SendOutcome,
)
from workloads.operations import EventType

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("plain-kafka")]

FIRST, SECOND, THIRD = PARTITIONS
CLOSE_LIMIT_S = 60.0


@pytest.fixture(scope="module")
def cluster(plain_kafka: Cluster) -> Cluster:
    return plain_kafka


@pytest.fixture(scope="module", params=sorted(CLIENTS))
def clients(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[RealClients]:
    with ExitStack() as ending:
        library = client_library(Kafka(client=request.param), cluster.directory, ending)
        made = cluster.clients(library)
        yield made
        assert made.close(CLOSE_LIMIT_S) == []


class Asking:
    """Short words for calls that end with one answer."""

    def __init__(self, cluster: Cluster, clients: RealClients) -> None:
        self._cluster = cluster
        self._clients = clients

    def of(self, call: Callable[..., None], *arguments: Any) -> Any:
        answers: list[Any] = []
        call(*arguments, answers.append)
        assert self._cluster.until(lambda: bool(answers))
        return answers[0]

    def ok(self, call: Callable[..., None], *arguments: Any) -> SendOutcome:
        outcome = self.of(call, *arguments)
        assert outcome.type is EventType.OK, outcome
        return outcome  # type: ignore[no-any-return]

    def transactional(self, name: str) -> Any:
        """A producer that has fenced those before it."""
        producer = self._clients.producer(self._cluster.next_process(), name)
        assert producer.transactions is not None
        for _ in range(3):  # on a busy machine a coordinator may still load its log
            outcome = self.of(producer.transactions.init)
            if outcome.error_class is not ErrorClass.RETRIABLE:
                break
        assert outcome.type is EventType.OK, outcome
        return producer

    def member(self, membership: Membership) -> tuple[Any, list[Assignment]]:
        """A member, and its assignments. It waits for offsets of transactions that end, as it reads committed."""
        consumer = self._clients.consumer(self._cluster.next_process(), membership, "read_committed")
        assigned = list[Assignment]()
        assert consumer.subscription is not None
        consumer.subscription.subscribe(["ackproof"], assigned.append)
        return consumer, assigned

    def polled(self, consumer: Any, enough: Callable[[list[Fetched]], bool]) -> list[Fetched]:
        """Poll until ``enough`` of the records."""
        records: list[Fetched] = []

        def done(outcome: Any) -> None:
            records.extend(outcome.records)
            if not enough(records):
                consumer.poll(100, done)

        consumer.poll(100, done)
        assert self._cluster.until(lambda: enough(records))
        return records


@pytest.fixture
def ask(cluster: Cluster, clients: RealClients) -> Asking:
    return Asking(cluster, clients)


def test_what_was_aborted_is_read_uncommitted_only(ask: Asking, clients: RealClients, cluster: Cluster) -> None:
    producer = ask.transactional(f"aborts {clients.name}")
    begin = None
    for payload, end in ((b"aborted", producer.transactions.abort), (b"committed", producer.transactions.commit)):
        ask.ok(producer.transactions.begin)
        sent = ask.ok(producer.send, FIRST, b"key", payload)
        begin = sent.offset if begin is None else begin
        ask.ok(end)
    assert begin is not None
    for isolation, expected in (
        ("read_uncommitted", [(begin, b"aborted"), (begin + 2, b"committed")]),
        ("read_committed", [(begin + 2, b"committed")]),
    ):
        consumer = clients.consumer(cluster.next_process(), None, isolation)  # type: ignore[arg-type]
        consumer.assign([FIRST], from_start=True)
        records = ask.polled(consumer, lambda read: bool(read) and read[-1].payload == b"committed")
        assert [(record.offset, record.payload) for record in records if record.offset >= begin] == expected
        consumer.close()
    producer.close()


def test_an_open_transaction_holds_the_end_for_those_who_read_committed(
    ask: Asking, clients: RealClients, cluster: Cluster
) -> None:
    producer = ask.transactional(f"holds {clients.name}")
    ask.ok(producer.transactions.begin)
    sent = ask.ok(producer.send, THIRD, b"key", b"open")
    assert sent.offset is not None
    for isolation, end in (("read_uncommitted", sent.offset + 1), ("read_committed", sent.offset)):
        consumer = clients.consumer(cluster.next_process(), None, isolation)  # type: ignore[arg-type]
        assert ask.of(consumer.end_offsets, [THIRD]) == Offsets({THIRD: end}), isolation
        consumer.close()
    ask.ok(producer.transactions.abort)
    producer.close()


def test_a_successor_fences_the_producer_before_it(ask: Asking, clients: RealClients) -> None:
    name = f"zombie {clients.name}"
    zombie = ask.transactional(name)
    ask.ok(zombie.transactions.begin)
    ask.ok(zombie.send, FIRST, b"key", b"of a zombie")
    successor = ask.transactional(name)
    ended = ask.of(zombie.transactions.commit)
    assert (ended.type, ended.error_class) == (EventType.INFO, ErrorClass.FATAL), ended
    assert "Fenced" in str(ended.error) or "FENCED" in str(ended.error) or "Epoch" in str(ended.error), ended
    ask.ok(successor.transactions.begin)
    ask.ok(successor.send, FIRST, b"key", b"of its successor")
    ask.ok(successor.transactions.commit)
    zombie.close()
    successor.close()


def test_a_successor_has_the_next_epoch_where_the_library_tells_it(
    ask: Asking, clients: RealClients, cluster: Cluster
) -> None:
    told = []
    for _ in range(2):
        producer = ask.transactional(f"epochs {clients.name}")
        if (epochs := producer.epochs) is None:
            assert clients.lacks[ClientCapability.EPOCHS]
            return
        assert cluster.until(lambda epochs=epochs: epochs.told_epoch() is not None)  # type: ignore[misc]
        told.append(epochs.told_epoch())
        producer.close()
    first, second = told
    assert second == ProducerEpoch(first.producer_id, first.producer_epoch + 1)


def test_offsets_count_with_the_transaction(ask: Asking, clients: RealClients) -> None:
    group = f"pipeline {clients.name}"
    producer = ask.transactional(group)
    consumer, assigned = ask.member(Membership(group))
    ask.polled(consumer, lambda _: bool(assigned) and len(assigned[-1].partitions) == len(PARTITIONS))
    member = ask.of(consumer.commits.ask_member)
    assert isinstance(member, MemberToken)
    assert member.error is None
    for offset, end in ((2, producer.transactions.abort), (1, producer.transactions.commit)):
        ask.ok(producer.transactions.begin)
        ask.ok(producer.send, SECOND, b"key", b"made of another")
        ask.ok(producer.transactions.send_offsets, {SECOND: offset}, member)
        ask.ok(end)
    assert ask.of(consumer.commits.ask_committed, [SECOND]) == Offsets({SECOND: 1})
    assert ask.of(consumer.commits.ask_committed, [THIRD]) == Offsets({}), "none yet"
    assert ask.of(consumer.commits.commit, {THIRD: 0}) == Offsets({THIRD: 0})
    assert ask.of(consumer.commits.ask_committed, [THIRD]) == Offsets({THIRD: 0})
    consumer.close()
    assert ask._cluster.until(lambda: consumer.owner.join(0) is None)
    ask.ok(producer.transactions.begin)
    ask.ok(producer.send, SECOND, b"key", b"of a member that left")
    handed = ask.of(producer.transactions.send_offsets, {SECOND: 3}, member)
    assert (handed.type, handed.error_class) == (EventType.FAIL, ErrorClass.ABORTABLE), handed
    assert ask.of(producer.transactions.commit).error_class is ErrorClass.ABORTABLE
    ask.ok(producer.transactions.abort)
    producer.close()


def test_a_tombstone_has_no_value_and_its_payload_in_a_header(
    ask: Asking, clients: RealClients, cluster: Cluster
) -> None:
    producer, consumer = clients.producer(cluster.next_process()), clients.consumer(cluster.next_process())
    assert producer.tombstones is not None
    sent = ask.ok(producer.tombstones.send_tombstone, SECOND, b"gone", b"payload of a tombstone")
    assert sent.offset is not None
    consumer.assign([SECOND], from_start=True)
    records = ask.polled(consumer, lambda read: any(record.offset == sent.offset for record in read))
    (tombstone,) = (record for record in records if record.offset == sent.offset)
    assert tombstone == Fetched(SECOND, sent.offset, b"gone", b"payload of a tombstone", tombstone=True)
    producer.close()
    consumer.close()


def test_a_static_member_is_fenced_by_one_with_its_name(ask: Asking, clients: RealClients) -> None:
    membership = Membership(f"static {clients.name}", instance_id="one")
    first, assigned = ask.member(membership)
    ask.polled(first, lambda _: bool(assigned) and len(assigned[-1].partitions) == len(PARTITIONS))
    second, again = ask.member(membership)
    ask.polled(second, lambda _: bool(again) and len(again[-1].partitions) == len(PARTITIONS))
    taken = ask.of(second.commits.commit, {FIRST: 0})
    assert taken == Offsets({FIRST: 0})
    first.close()
    second.close()


def test_a_static_member_that_returns_in_time_has_what_it_had_and_no_other_member_is_asked(
    ask: Asking, clients: RealClients
) -> None:
    """KIP-345. Here nothing else changes the group, so a new generation would be because of the return."""
    members = [Membership(f"returns {clients.name}", instance_id=name, session_timeout_ms=45_000) for name in "12"]
    (first, of_first), (second, of_second) = map(ask.member, members)
    polled, polls = [first, second], Counter[tuple[int, int, bool]]()

    def go_on(consumer: Any) -> None:
        polls[len(of_first), len(of_second), consumer is first] += 1
        consumer.poll(100, lambda _: go_on(consumer) if consumer in polled else None)

    def settled() -> bool:
        """Both share the log partitions, and ten polls of each have changed nothing: no request to join is left."""
        both = [seen[-1].partitions if seen else () for seen in (of_first, of_second)]
        shared = all(both) and sorted(both[0] + both[1]) == list(PARTITIONS)
        return shared and all(polls[len(of_first), len(of_second), own] >= 10 for own in (True, False))

    for consumer in tuple(polled):
        go_on(consumer)
    assert ask._cluster.until(settled)
    before, rebalances = of_first[-1], len(of_second)
    polled.remove(first)
    first.close()
    assert ask._cluster.until(lambda: first.owner.join(0) is None)
    again, of_again = ask.member(members[0])
    polled.append(again)
    go_on(again)
    assert ask._cluster.until(lambda: bool(of_again) and bool(of_again[-1].partitions))
    assert of_again[-1] == before, "the same log partitions, in the same generation where the library tells it"
    assert len(of_second) == rebalances
    polled.clear()
    again.close()
    second.close()


def test_two_members_share_the_partitions_with_every_protocol(ask: Asking, clients: RealClients) -> None:
    for protocol in clients.protocols:
        membership = Membership(f"shared {clients.name} {protocol}", protocol=protocol)
        first, of_first = ask.member(membership)
        ask.polled(first, lambda _, seen=of_first: bool(seen) and seen[-1].partitions == PARTITIONS)  # type: ignore[misc]
        second, of_second = ask.member(membership)
        polls = [first, second]

        def go_on(consumer: Any, both: list[Any] = polls) -> None:
            consumer.poll(100, lambda _: go_on(consumer) if both else None)

        for consumer in tuple(polls):
            go_on(consumer)
        assert ask._cluster.until(
            lambda mine=of_first, theirs=of_second: (
                bool(theirs)  # type: ignore[misc]
                and sorted(mine[-1].partitions + theirs[-1].partitions) == list(PARTITIONS)
                and bool(mine[-1].partitions and theirs[-1].partitions)
            )
        ), protocol
        before, *_, now = [each.generation for each in of_first if each.partitions]
        assert of_second[-1].generation == now
        if protocol == "classic" and not clients.name.startswith("confluent"):
            assert before is not None
            assert now is not None
            assert before < now
        else:
            assert now is None
        polls.clear()
        first.close()
        second.close()
