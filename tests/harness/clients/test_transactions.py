"""Transactions of each library on Apache Kafka: what readers see of them, and what a fenced producer may do."""

from collections.abc import Callable, Iterator

import pytest

from harness.clients import CLIENTS, RealClients
from tests.harness.clients.conftest import SETTINGS
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import values
from workloads.client import Membership, MemberToken, Offsets, Producer, SendOutcome, Transactions
from workloads.operations import EventType
from workloads.settings import IsolationLevel

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka-clients")]
CLOSE_LIMIT_S = 10


class Client:
    """A library's clients on the cluster, and short words for what is asked of them."""

    def __init__(self, cluster: Cluster, library: str) -> None:
        self.cluster = cluster
        self.library = library
        bootstrap = tuple(cluster.world.clients.bootstrap)
        self.clients: RealClients = CLIENTS[library].clients(cluster.world.clock, SETTINGS, bootstrap)

    def producer(self, name: str) -> Producer:
        """A producer with a transactional id of this library's; it has fenced those before it."""
        producer = self.clients.producer(self.cluster.next_process(), f"{self.library}-{name}")
        assert self.answer(transactions(producer).init).type is EventType.OK
        return producer

    def answer(self, call: Callable[[Callable[[SendOutcome], None]], None]) -> SendOutcome:
        answers: list[SendOutcome] = []
        call(answers.append)
        assert self.cluster.until(lambda: bool(answers))
        return answers[0]

    def ask(self, question: Callable[..., None], *arguments: object) -> Offsets:
        answers: list[Offsets] = []
        question(*arguments, answers.append)
        assert self.cluster.until(lambda: bool(answers))
        return answers[0]

    def send(
        self, producer: Producer, count: int, partition: str = PARTITIONS[0]
    ) -> tuple[list[int], list[SendOutcome]]:
        """Send records of a process of their own: their values, and the list of answers that will come."""
        process, outcomes = self.cluster.next_process(), list[SendOutcome]()
        numbers = [values.join(process, number) for number in range(count)]
        for number in numbers:
            producer.send(partition, b"key", values.encode(partition, b"key", number), outcomes.append)
        return numbers, outcomes

    def sent(self, producer: Producer, count: int, partition: str = PARTITIONS[0]) -> list[int]:
        """Send records and wait until they are acknowledged."""
        numbers, outcomes = self.send(producer, count, partition)
        assert self.cluster.until(lambda: len(outcomes) == count)
        assert {outcome.type for outcome in outcomes} == {EventType.OK}
        return numbers

    def end(self, isolation: IsolationLevel) -> int:
        consumer = self.clients.consumer(self.cluster.next_process(), isolation=isolation)
        answer = self.ask(consumer.end_offsets, PARTITIONS[:1])
        consumer.close()
        return answer.offsets[PARTITIONS[0]]

    def read(self, isolation: IsolationLevel, until: int, partition: str = PARTITIONS[0]) -> list[int]:
        """All values of a partition, in order, up to the one given."""
        consumer, found = self.clients.consumer(self.cluster.next_process(), isolation=isolation), list[int]()
        consumer.assign([partition], from_start=True)

        def polled(outcome):
            found.extend(values.decode(one.payload, one.partition, one.key)[0] for one in outcome.records)
            if until not in found:
                consumer.poll(100, polled)

        consumer.poll(100, polled)
        assert self.cluster.until(lambda: until in found)
        consumer.close()
        return found


def transactions(producer: Producer) -> Transactions:
    assert producer.transactions is not None
    return producer.transactions


@pytest.fixture(scope="module", params=["confluent-kafka", "kafka-python"])
def client(request: pytest.FixtureRequest, kafka_cluster: Cluster) -> Iterator[Client]:
    client = Client(kafka_cluster, request.param)
    yield client
    assert client.clients.close(CLOSE_LIMIT_S) == []


def test_committed_records_are_read_and_aborted_ones_only_by_who_reads_uncommitted(client: Client) -> None:
    producer = client.producer("reader")
    calls = transactions(producer)
    assert client.answer(calls.begin).type is EventType.OK
    committed = client.sent(producer, 3)
    assert client.answer(calls.commit).type is EventType.OK
    assert client.answer(calls.begin).type is EventType.OK
    aborted = client.sent(producer, 2)
    assert client.answer(calls.abort).type is EventType.OK
    assert client.answer(calls.begin).type is EventType.OK
    last = client.sent(producer, 1)
    assert client.answer(calls.commit).type is EventType.OK
    assert client.read("read_committed", last[0])[-4:] == committed + last
    assert client.read("read_uncommitted", last[0])[-6:] == committed + aborted + last


def test_an_open_transaction_holds_the_last_stable_offset_back(client: Client) -> None:
    producer = client.producer("stable")
    assert client.answer(transactions(producer).begin).type is EventType.OK
    client.sent(producer, 2)
    assert client.end("read_uncommitted") - client.end("read_committed") == 2
    assert client.answer(transactions(producer).abort).type is EventType.OK
    assert client.cluster.until(lambda: client.end("read_uncommitted") == client.end("read_committed"))


def test_a_producer_whose_successor_has_come_cannot_send_or_commit(client: Client) -> None:
    old = client.producer("zombie")
    assert client.answer(transactions(old).begin).type is EventType.OK
    half = client.sent(old, 2)
    new = client.producer("zombie")
    late, answers = client.send(old, 2)
    assert client.answer(transactions(old).commit).type is not EventType.OK
    assert client.answer(transactions(new).begin).type is EventType.OK
    after = client.sent(new, 1)
    assert client.answer(transactions(new).commit).type is EventType.OK
    old.close()
    assert client.cluster.until(lambda: len(answers) == len(late))
    assert all(answer.type is not EventType.OK for answer in answers)
    assert not {*half, *late} & {*client.read("read_committed", after[0])}
    assert not {*late} & {*client.read("read_uncommitted", after[0])}


def test_offsets_are_committed_with_the_transaction_and_not_without_it(client: Client) -> None:
    producer = client.producer("offsets")
    calls = transactions(producer)
    assert client.answer(calls.begin).type is EventType.OK
    client.sent(producer, 1)
    assert client.answer(calls.commit).type is EventType.OK
    member = client.clients.consumer(client.cluster.next_process(), Membership(f"group-{client.library}"))
    assert member.subscription is not None
    assert member.commits is not None
    dealt, tokens = list[tuple[str, ...]](), list[MemberToken]()
    member.subscription.subscribe(["ackproof"], dealt.append)

    def polled(_):
        if not any(dealt):
            member.poll(100, polled)

    member.poll(100, polled)
    assert client.cluster.until(lambda: any(dealt))
    member.commits.ask_member(tokens.append)
    assert client.cluster.until(lambda: bool(tokens))
    asked = member.commits.ask_committed
    for offset, end in ((5, calls.abort), (1, calls.commit)):
        assert client.answer(calls.begin).type is EventType.OK
        assert (
            client.answer(lambda done, at=offset: calls.send_offsets({PARTITIONS[0]: at}, tokens[0], done)).type  # type: ignore[misc]
            is EventType.OK
        )
        assert client.answer(end).type is EventType.OK
    expected = Offsets({PARTITIONS[0]: 1})
    assert client.cluster.until(lambda: client.ask(asked, PARTITIONS[:1]) == expected)
    member.close()
