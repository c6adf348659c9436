"""Direct access for scripted stories, on real processes: writes to chosen brokers, and replicas seen from outside."""

import pytest

from harness.worlds.contract import DirectWrite
from nemesis.cluster import CLIENTS, Link
from workloads import EventType, SendOutcome
from workloads.values import encode, join

pytestmark = pytest.mark.system

AT = "ackproof-0"


class Writer:
    """Writes single records to the first log partition, and keeps what came of each."""

    def __init__(self, cluster) -> None:
        self.cluster = cluster
        self.outcomes: dict[int, SendOutcome] = {}

    def send(self, value: int, broker: int, acks: int = -1, timeout_ms: int = 5_000) -> None:
        payload = encode(AT, b"key", value)
        write = DirectWrite(partition=AT, key=b"key", payload=payload, acks=acks, timeout_ms=timeout_ms)
        self.cluster.world.direct.produce(broker, write, lambda outcome: self.outcomes.update({value: outcome}))

    def answer(self, value: int) -> SendOutcome:
        assert self.cluster.until(lambda: value in self.outcomes)
        return self.outcomes[value]


def values_on(cluster, node: int) -> list[int]:
    return [record.value for record in cluster.world.replicas.state(node, AT).records]


def test_a_leader_takes_a_single_write_and_every_replica_is_seen_to_get_it(cluster) -> None:
    leader, value = cluster.leads(), join(cluster.next_process() + 500, 0)
    writer = Writer(cluster)
    writer.send(value, leader)
    outcome = writer.answer(value)
    assert (outcome.type, outcome.node) == (EventType.OK, leader)
    assert cluster.until(lambda: all(value in values_on(cluster, node) for node in (0, 1, 2)))
    states = {node: cluster.world.replicas.state(node, AT) for node in (0, 1, 2)}
    assert {state.log_end for state in states.values()} == {outcome.offset + 1}
    assert [node for node, state in states.items() if state.leading] == [leader]
    assert set(states[leader].isr) == {0, 1, 2}


def test_a_follower_refuses_a_single_write(cluster) -> None:
    leader, value = cluster.leads(), join(cluster.next_process() + 600, 0)
    writer = Writer(cluster)
    writer.send(value, next(node for node in (0, 1, 2) if node != leader))
    assert writer.answer(value).error == "NotLeaderForPartitionError"


def test_a_write_over_a_cut_link_of_clients_arrives_when_it_is_healed_or_not_at_all(cluster) -> None:
    leader, value = cluster.leads(), join(cluster.next_process() + 700, 0)
    cut = [Link(CLIENTS, leader), Link(leader, CLIENTS)]
    assert cluster.target.links.cut(cut)
    writer = Writer(cluster)
    writer.send(value, leader, timeout_ms=300)
    assert writer.answer(value).type is not EventType.OK
    assert value not in values_on(cluster, leader)
    cluster.target.links.heal(cut)


def test_a_dead_broker_still_shows_its_log_and_is_counted_as_fenced_later(cluster) -> None:
    leader, value = cluster.leads(), join(cluster.next_process() + 800, 0)
    writer = Writer(cluster)
    writer.send(value, leader)
    writer.answer(value)
    cluster.target.processes.kill(leader)
    state = cluster.world.replicas.state(leader, AT)
    assert (state.running, state.leading) == (False, False)
    assert value in [record.value for record in state.records]
    assert cluster.until(lambda: leader in cluster.world.replicas.fenced())
    cluster.target.processes.restart(leader)


def test_what_a_broker_wrote_is_forced_to_its_disk(cluster) -> None:
    leader, value = cluster.leads(), join(cluster.next_process() + 900, 0)
    writer = Writer(cluster)
    writer.send(value, leader)
    writer.answer(value)
    assert cluster.world.replicas.flush(leader)["flushed"] > 0
