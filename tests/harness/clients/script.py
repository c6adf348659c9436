"""The script of a finding: one cluster, and short words for what it asks of clients."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from harness.clients import CLIENTS
from harness.plan.worlds import ClientName
from harness.worlds.kafka.releases import DEFAULT_VERSION
from tests.harness.worlds.processes.conftest import Cluster
from workloads import values
from workloads.client import Clients, Membership, Offsets, PollOutcome, Producer, SendOutcome, Transactions
from workloads.operations import EventType
from workloads.settings import IsolationLevel

#: Every wait. A machine may be busy.
LIMIT_US: Final = 120_000_000
POLLS: Final = 8
#: Polls without a record after which a reader is at the end.
EMPTY_POLLS: Final = 3
_ASK_AGAIN_US: Final = 200_000
#: Releases before it differ from the reference broker's rule 7.
_STRICT_SINCE: Final = (3, 7)

Answer = TypeVar("Answer")


def rules_of(version: str) -> dict[str, bool]:
    """The settings that say how this release differs from the reference broker."""
    old = tuple(int(part) for part in version.split(".")[:2]) < _STRICT_SINCE
    return {"strict.min.isr": False} if old else {}


def script_options(
    about: str | None, *, version: str = DEFAULT_VERSION, client: ClientName | None = None
) -> argparse.ArgumentParser:
    """The options that scripts have in common: the release of Kafka, and, where one is named, the client."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=version, help="an installed release of Apache Kafka")
    if client is not None:
        parser.add_argument("--client", default=client, choices=sorted(CLIENTS))
    return parser


class ReadRecord(NamedTuple):
    """One record that a reader of committed records got."""

    partition: str
    key: bytes
    value: int


class Script:
    """A cluster, and what is asked of it with one library."""

    def __init__(self, cluster: Cluster, clients: Clients) -> None:
        self.cluster = cluster
        self.clients = clients

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition()``, or fail."""
        assert self.cluster.until(condition, LIMIT_US)

    def let_pass(self, time_us: int) -> None:
        """Let time pass."""
        self.cluster.until(lambda: False, time_us)

    def ask(self, call: Callable[[Callable[[Answer], None]], None]) -> Answer:
        """The answer to a call."""
        answers: list[Answer] = []
        call(answers.append)
        self.until(lambda: bool(answers))
        return answers[0]

    def done(self, call: Callable[[Callable[[SendOutcome], None]], None]) -> None:
        """Make a call that must succeed."""
        outcome = self.ask(call)
        assert outcome.type is EventType.OK, outcome

    # --- producers ---------------------------------------------------------------------------------------------------

    def transactional(self, transactional_id: str) -> tuple[Producer, Transactions]:
        """A producer that is in charge of this transactional id."""
        producer = self.clients.producer(self.cluster.next_process(), transactional_id)
        assert producer.transactions is not None
        self.done(producer.transactions.init)
        return producer, producer.transactions

    def send(self, producer: Producer, places: Sequence[tuple[str, bytes]]) -> list[int]:
        """The values of records that were sent, one to each partition with a key; all were acknowledged."""
        process, outcomes = self.cluster.next_process(), list[SendOutcome]()
        numbers = [values.join(process, number) for number in range(len(places))]
        for (partition, key), number in zip(places, numbers, strict=True):
            producer.send(partition, key, values.encode(partition, key, number), outcomes.append)
        self.until(lambda: len(outcomes) == len(numbers))
        assert all(outcome.type is EventType.OK for outcome in outcomes), outcomes
        return numbers

    # --- readers -----------------------------------------------------------------------------------------------------

    def end(self, partition: str, isolation: IsolationLevel) -> int:
        """The high watermark; with read_committed the last stable offset."""
        consumer = self.clients.consumer(self.cluster.next_process(), isolation=isolation)
        while True:
            answer: Offsets = self.ask(lambda done: consumer.end_offsets([partition], done))
            if partition in answer.offsets:
                consumer.close()
                return answer.offsets[partition]
            self.let_pass(_ASK_AGAIN_US)

    def read(self, partitions: Collection[str]) -> list[ReadRecord]:
        """The records that a reader of committed ones gets from the start."""
        consumer = self.clients.consumer(self.cluster.next_process(), isolation="read_committed")
        consumer.assign(list(partitions), from_start=True)
        read: list[ReadRecord] = []
        polls = empty = 0
        while polls < POLLS or empty < EMPTY_POLLS:
            outcome: PollOutcome = self.ask(lambda done: consumer.poll(500, done))
            polls, empty = polls + 1, 0 if outcome.records else empty + 1
            for record in outcome.records:
                value = values.decode(record.payload, record.partition, record.key)[0]
                read.append(ReadRecord(record.partition, record.key, value))
        consumer.close()
        return read

    # --- groups ------------------------------------------------------------------------------------------------------

    def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """Commit offsets of a group, by a client that is no member, until the group has taken all of them."""
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(group))
        assert consumer.commits is not None
        commit = consumer.commits.commit
        while True:
            answer: Offsets = self.ask(lambda done: commit(offsets, done))
            if answer.offsets == offsets:
                consumer.close()
                return
            self.let_pass(_ASK_AGAIN_US)

    def committed(
        self, group: str, partitions: Sequence[str], isolation: IsolationLevel = "read_uncommitted"
    ) -> dict[str, int]:
        """The group's own word on its commits of these partitions, once its coordinator answers.

        With read_committed it answers once no transaction with its offsets is open.
        """
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(group), isolation)
        assert consumer.commits is not None
        ask_committed = consumer.commits.ask_committed
        while True:
            answer: Offsets = self.ask(lambda done: ask_committed(partitions, done))
            if answer.error is None:
                consumer.close()
                return answer.offsets
            self.let_pass(_ASK_AGAIN_US)
