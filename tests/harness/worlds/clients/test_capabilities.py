"""Client libraries beyond single records and assigned partitions, against the reference broker."""

import gc
from functools import partial
from pathlib import Path

import pytest

from harness.plan import Processes, RunSpec
from harness.worlds.clients import CLIENTS, JAVA
from harness.worlds.processes import processes_world
from harness.worlds.real.clock import RealClock
from harness.worlds.real.topic import create_topic
from nemesis.plan import FaultPlan
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import LogPartition
from workloads.client import Assignment, ClientCapability, Membership, Offsets
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import Settings
from workloads.transaction_errors import ErrorClass

LIMIT_S = 60


SETTINGS = Settings(min_insync_replicas=2, enable_idempotence=True, delivery_timeout_ms=3_000)


@pytest.fixture(scope="module", params=sorted(CLIENTS))
def library(request):
    return request.param


@pytest.fixture(scope="module")
def running(library, request, tmp_path_factory):
    """One cluster for each library."""
    if library == JAVA:
        request.getfixturevalue("real_kafka")
    plans = {"settings": SETTINGS.to_mapping(), "workload": WorkloadPlan(), "faults": FaultPlan(), "seed": 1}
    directory = tmp_path_factory.mktemp("run")
    world = processes_world(RunSpec(world=Processes(client=library), cell="c", family="kill", **plans), directory)
    try:
        world.open()
        yield Cluster(world, directory)
    finally:
        world.close()


@pytest.fixture
def cluster(running):
    """The library's cluster, once it is well again after the test before."""
    assert running.until(running.is_well)
    return running


@pytest.fixture
def partitions(cluster):
    """The log partitions of a topic of the test's own."""
    topic = f"own-{cluster.next_process()}"
    create_topic(cluster.world.clients.bootstrap, topic, 3, SETTINGS)
    return tuple(str(LogPartition(topic, number)) for number in range(3))


def answered(cluster, ask, *arguments):
    answers = []
    ask(*arguments, answers.append)
    assert cluster.until(lambda: bool(answers))
    return answers[0]


def offsets_read(cluster, consumer, count) -> list[tuple[str, int]]:
    offsets = []

    def done(outcome):
        offsets.extend((record.partition, record.offset) for record in outcome.records)
        if len(offsets) < count:
            consumer.poll(100, done)

    consumer.poll(100, done)
    assert cluster.until(lambda: len(offsets) >= count)
    return offsets


def test_whoever_lacks_a_capability_says_why_and_has_none(library):
    clients = CLIENTS[library].clients(RealClock(), Settings(), ("127.1.2.3:1",))
    producer, consumer = clients.producer(0, "transactional"), clients.consumer(1, Membership("group"))
    owners = dict.fromkeys(("transactions", "tombstones", "epochs"), producer)
    try:
        for capability in ClientCapability:
            offered = getattr(owners.get(capability, consumer), capability)
            assert (offered is None) == bool(clients.lacks.get(capability)), capability
        assert clients.producer(4).transactions is None
        assert clients.producer(5).epochs is None
        assert clients.consumer(2).subscription is None
        assert clients.consumer(3).commits is None
    finally:
        clients.close(LIMIT_S)


@pytest.mark.system
def test_a_group_goes_on_where_its_last_member_committed(cluster, partitions):
    written, topic = partitions[0], LogPartition.named(partitions[0]).topic
    cluster.write(20, cluster.next_process(), partition=written)
    first = cluster.world.clients.consumer(cluster.next_process(), Membership("readers"))
    dealt: list[Assignment] = []
    first.subscription.subscribe([topic], dealt.append)
    assert offsets_read(cluster, first, 20) == [(written, offset) for offset in range(20)]
    assert set(partitions) == set(dealt[-1].partitions)
    taken = answered(cluster, first.commits.commit, {written: 20})
    assert (taken.offsets[written], taken.error) == (20, None)
    assert answered(cluster, first.commits.ask_committed, [written]) == Offsets({written: 20})
    first.close()
    cluster.write(5, cluster.next_process(), partition=written)
    second = cluster.world.clients.consumer(cluster.next_process(), Membership("readers"))
    second.subscription.subscribe([topic], dealt.append)
    assert offsets_read(cluster, second, 5) == [(written, offset) for offset in range(20, 25)]
    token = answered(cluster, second.commits.ask_member)
    second.close()
    # The group does not know this member any more, and a producer that hands over its offsets has to abort.
    producer = transactional(cluster, "hands over")
    assert answered(cluster, producer.transactions.begin).type is EventType.OK
    assert answered(cluster, producer.send, written, b"key", b"payload").type is EventType.OK
    assert cluster.until(lambda: second.owner.join(0) is None, LIMIT_S * 1_000_000)
    handed = answered(cluster, producer.transactions.send_offsets, {written: 3}, token)
    assert (handed.type, handed.error_class) == (EventType.FAIL, ErrorClass.ABORTABLE), handed
    assert answered(cluster, producer.transactions.commit).error_class is ErrorClass.ABORTABLE
    assert answered(cluster, producer.transactions.abort).type is EventType.OK
    assert answered(cluster, producer.transactions.begin).type is EventType.OK, "it is of use"
    producer.close()


def transactional(cluster, name):
    """A producer with this transactional id that has fenced those before it."""
    producer = cluster.world.clients.producer(cluster.next_process(), name)
    assert answered(cluster, producer.transactions.init).type is EventType.OK
    return producer


@pytest.mark.system
def test_a_producer_that_was_fenced_is_of_no_more_use_and_a_commit_without_an_answer_is_unknown(
    cluster, library, partitions
):
    zombie = transactional(cluster, "taken over")
    assert answered(cluster, zombie.transactions.begin).type is EventType.OK
    assert answered(cluster, zombie.send, partitions[0], b"key", b"payload").type is EventType.OK
    successor = transactional(cluster, "taken over")
    for call in (zombie.transactions.commit, zombie.transactions.abort, zombie.transactions.begin):
        refused = answered(cluster, call)
        assert (refused.type, refused.error_class) == (EventType.INFO, ErrorClass.FATAL), refused
    zombie.close()
    assert answered(cluster, successor.transactions.begin).type is EventType.OK
    assert answered(cluster, successor.send, partitions[0], b"key", b"payload").type is EventType.OK
    late = cluster.world.clients.producer(cluster.next_process(), "comes late")
    outcomes = {}
    for broker in (0, 1, 2):
        cluster.target.processes.pause(broker)
    successor.transactions.commit(partial(outcomes.__setitem__, "commit"))
    if library != "kafka-python":  # it waits for a first answer without a limit
        late.transactions.init(partial(outcomes.__setitem__, "init"))
    assert cluster.until(lambda: len(outcomes) == (1 if library == "kafka-python" else 2))
    for broker in (0, 1, 2):
        cluster.target.processes.resume(broker)
    # A request without an answer is fatal to kafka-python.
    expected = ErrorClass.FATAL if library == "kafka-python" else ErrorClass.UNKNOWN
    assert (outcomes["commit"].type, outcomes["commit"].error_class) == (EventType.INFO, expected), outcomes
    if "init" in outcomes:
        assert outcomes["init"].error_class is ErrorClass.RETRIABLE, outcomes
        assert cluster.until(cluster.is_well)
        assert answered(cluster, late.transactions.init).type is EventType.OK
    successor.close()
    late.close()


def library_threads():
    """The threads of librdkafka in this process, which Python does not know."""
    return sum(name.read_text().startswith("rdk") for name in Path("/proc/self/task").glob("*/comm"))


@pytest.mark.system
def test_a_crashed_producers_sends_end_unknown_and_its_threads_end(cluster):
    gc.collect()
    before = library_threads()
    for broker in (0, 1, 2):
        cluster.target.processes.pause(broker)
    producer, outcomes = cluster.world.clients.producer(cluster.next_process()), []
    for number in range(3):
        producer.send(PARTITIONS[0], b"key", b"payload-%d" % number, outcomes.append)
    producer.crash()
    assert cluster.until(lambda: len(outcomes) == 3)
    assert {(outcome.type, outcome.error) for outcome in outcomes} == {(EventType.INFO, "ClientCrashed")}
    for broker in (0, 1, 2):
        cluster.target.processes.resume(broker)
    assert producer.owner.join(LIMIT_S) is None
    assert cluster.until(lambda: library_threads() <= before)
