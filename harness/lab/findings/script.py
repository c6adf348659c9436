"""The script of a finding: a cluster, short words for what it asks of clients, and an operator who moves leaders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from harness.lab.findings.stage import LIMIT_US, PARTITIONS, NotObservedError, OpenCluster
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import PartitionView
from workloads import (
    Assignment,
    Clients,
    Commits,
    Consumer,
    EventType,
    IsolationLevel,
    LogPartition,
    Membership,
    Offsets,
    PollOutcome,
    Producer,
    SendOutcome,
    Transactions,
    values,
)

_POLL_MS: Final = 500
POLLS: Final = 8
#: Polls without a record after which a reader is at the end.
EMPTY_POLLS: Final = 3
#: The most polls of a reader that does not come to the end.
POLLS_MAX: Final = 240
_ASK_AGAIN_US: Final = 200_000

Answer = TypeVar("Answer")
#: A call that is told its answer.
Asking = Callable[[Callable[[Answer], None]], None]


class ReadRecord(NamedTuple):
    """One record that a reader of committed records got."""

    partition: str
    key: bytes
    value: int


class Script:
    """A cluster, and what is asked of it with one library."""

    def __init__(self, cluster: OpenCluster, clients: Clients) -> None:
        self.cluster = cluster
        self.clients = clients
        self.wait = cluster.wait
        self.let_pass = cluster.let_pass

    def ask(self, call: Asking[Answer]) -> Answer:
        """The answer to a call."""
        answers: list[Answer] = []
        call(answers.append)
        if not self.cluster.until(lambda: bool(answers), LIMIT_US):
            raise NotObservedError(f"a client did not answer within {LIMIT_US // 1_000_000} s")
        return answers[0]

    def ask_until(self, awaited: str, call: Asking[Answer], good: Callable[[Answer], bool]) -> Answer:
        """The first ``good`` answer to a call that is made again and again."""
        answers: list[Answer] = []

        def answered() -> bool:
            answers[:] = [self.ask(call)]
            if not (good_now := good(answers[0])):
                self.let_pass(_ASK_AGAIN_US)
            return good_now

        self.wait(awaited, answered)
        return answers[0]

    def done(self, call: Asking[SendOutcome]) -> None:
        """Make a call that must succeed."""
        outcome = self.ask(call)
        if outcome.type is not EventType.OK:
            raise NotObservedError(f"a call failed that the finding needs: {outcome.error}")

    # --- producers ---------------------------------------------------------------------------------------------------

    def transactional(self, transactional_id: str) -> tuple[Producer, Transactions]:
        """A producer that is in charge of this transactional id."""
        self.cluster.does(f"a producer takes charge of {transactional_id}")
        producer = self.clients.producer(self.cluster.next_process(), transactional_id)
        if producer.transactions is None:
            raise NotObservedError("this library has no transactions")
        self.done(producer.transactions.init)
        return producer, producer.transactions

    def send(self, producer: Producer, places: Sequence[tuple[str, bytes]]) -> list[int]:
        """The values of records that were sent, one to each partition with a key; all were acknowledged."""
        process, outcomes = self.cluster.next_process(), list[SendOutcome]()
        numbers = [values.join(process, number) for number in range(len(places))]
        for (partition, key), number in zip(places, numbers, strict=True):
            producer.send(partition, key, values.encode(partition, key, number), outcomes.append)
        self.wait("records are acknowledged", lambda: len(outcomes) == len(numbers))
        if failed := [outcome.error for outcome in outcomes if outcome.type is not EventType.OK]:
            raise NotObservedError(f"a record was not acknowledged: {failed[0]}")
        return numbers

    # --- readers -----------------------------------------------------------------------------------------------------

    def end(self, partition: str, isolation: IsolationLevel) -> int:
        """The high watermark; with read_committed the last stable offset."""
        consumer = self.clients.consumer(self.cluster.next_process(), isolation=isolation)
        ask_end: Asking[Offsets] = partial(consumer.end_offsets, [partition])
        answer = self.ask_until(
            f"the leader of {partition} tells its end", ask_end, lambda answer: partition in answer.offsets
        )
        consumer.close()
        return answer.offsets[partition]

    def read(self, partitions: Collection[str]) -> list[ReadRecord]:
        """The records that a reader of committed ones gets from the start."""
        consumer = self.clients.consumer(self.cluster.next_process(), isolation="read_committed")
        consumer.assign(list(partitions), from_start=True)
        read: list[ReadRecord] = []
        polls = empty = 0
        while polls < POLLS or empty < EMPTY_POLLS:
            outcome: PollOutcome = self.ask(partial(consumer.poll, _POLL_MS))
            polls, empty = polls + 1, 0 if outcome.records else empty + 1
            if polls > POLLS_MAX:
                raise NotObservedError("a reader did not come to the end of the log")
            for record in outcome.records:
                value = values.decode(record.payload, record.partition, record.key)[0]
                read.append(ReadRecord(record.partition, record.key, value))
        consumer.close()
        return read

    # --- groups ------------------------------------------------------------------------------------------------------

    def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """Commit offsets of a group, by a client that is no member, until the group has taken all of them."""
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(group))
        commit = partial(commits_of(consumer).commit, offsets)
        self.ask_until(f"{group} commits", commit, lambda answer: answer.offsets == dict(offsets))
        consumer.close()

    def committed(
        self, group: str, partitions: Sequence[str], isolation: IsolationLevel = "read_uncommitted"
    ) -> dict[str, int]:
        """The group's own word on its commits of these partitions, once its coordinator answers.

        With read_committed it answers once no transaction with its offsets is open.
        """
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(group), isolation)
        ask_committed: Asking[Offsets] = partial(commits_of(consumer).ask_committed, partitions)
        answer = self.ask_until(
            f"the coordinator of {group} answers", ask_committed, lambda answer: answer.error is None
        )
        consumer.close()
        return answer.offsets


class OperatedScript(Script):
    """A script with an operator, who moves the leaders of internal topics."""

    def __init__(self, cluster: OpenCluster, clients: Clients, operator: Administration) -> None:
        super().__init__(cluster, clients)
        self.operator = operator

    def lead(self, partition: str, broker: int, *, whole: bool = True, then: Sequence[int] = ()) -> None:
        """Let ``broker`` lead, and wait until it does, by the controller's word; ``whole``: all are in sync then.

        After it elections prefer the replicas in the order of ``then``. Kafka draws their first order by chance.
        """
        order = (broker, *then) if then else self.view(partition).replicas
        self.granted(self.operator.move_leader(partition, broker, order))
        self.wait(f"broker {broker} leads {partition}", lambda: self.view(partition).leader == broker)
        if whole:
            self.wait_until_whole(partition)

    def granted(self, refused: str) -> None:
        """Go on where an operator's request was not ``refused``."""
        if refused:
            raise NotObservedError(f"a planned move was refused: {refused}")

    def wait_until_whole(self, partition: str) -> None:
        """Wait until all replicas are in sync."""
        self.wait(f"all replicas of {partition} are in sync", lambda: self._is_whole(partition))

    def view(self, partition: str) -> PartitionView:
        """The partition as brokers describe it."""
        image = self.operator.topic(partition.rpartition("-")[0])
        if image is None:
            raise NotObservedError(f"no broker knows {partition}")
        return image.partitions[partition]

    def _is_whole(self, partition: str) -> bool:
        view = self.view(partition)
        return set(view.isr) == set(view.replicas)


def commits_of(consumer: Consumer) -> Commits:
    """The commits of a consumer that was made for a group."""
    if consumer.commits is None:
        raise NotObservedError("this library commits no offsets")
    return consumer.commits


def subscribe(consumer: Consumer, changed: Callable[[Assignment], None]) -> None:
    """Have a consumer that was made for a group read the cluster's topic as a member."""
    if consumer.subscription is None:
        raise NotObservedError("this library joins no groups")
    topic, _ = LogPartition.named(PARTITIONS[0])
    consumer.subscription.subscribe([topic], changed)
