"""Two looks at a cluster, and what they say of the time between them."""

import threading
from uuid import UUID

import pytest

from harness.ground.errors import HostError
from harness.ground.observations import BrokerFenced, BrokerRegistered, IsrChanged, LeaderElected
from harness.worlds.existing import MetadataPoller, changes
from harness.worlds.kafka.administration import TopicImage, UnansweredError
from harness.worlds.real.observation_times import trace_path, traced
from nemesis.cluster import ClusterView, PartitionView

LED = PartitionView(leader=0, leader_epoch=1, isr=(0, 1), replicas=(0, 1))
SHRUNK = PartitionView(leader=0, leader_epoch=1, isr=(0,), replicas=(0, 1))
MOVED = PartitionView(leader=1, leader_epoch=2, isr=(0, 1), replicas=(1, 0))
LOST = PartitionView(leader=None, leader_epoch=3, isr=(0,), replicas=(0, 1))


def view(state, running=(0, 1)):
    return ClusterView({"t-0": state}, running, (0, 1))


@pytest.mark.parametrize(
    ("after", "kind", "leader"),
    [(MOVED, LeaderElected, 1), (LOST, LeaderElected, -1), (SHRUNK, IsrChanged, 0)],
    ids=["another leader", "no leader", "smaller ISR"],
)
def test_a_change_is_told_in_the_controllers_words(after, kind, leader):
    (fact,) = changes(view(LED), view(after))
    assert (type(fact), fact.partition, fact.leader, fact.isr) == (kind, "t-0", leader, after.isr)


def test_brokers_that_come_and_go_are_told():
    assert changes(view(LED, (0,)), view(LED, (1,))) == [
        BrokerRegistered(broker=1),
        BrokerFenced(broker=0),
    ]
    assert changes(view(LED), view(LED)) == []


class Cluster:
    def __init__(self):
        self.state, self.brokers, self.closed = LED, (0, 1), False

    def topic(self, name):
        if self.state is None:
            raise UnansweredError("nobody")
        return TopicImage(UUID(int=1), {"t-0": self.state})

    def running(self):
        return self.brokers

    def close(self):
        self.closed = True


def test_a_poller_writes_what_it_sees_where_a_later_reader_finds_it(tmp_path):
    cluster = Cluster()
    (tmp_path / "logs").mkdir()
    poller = MetadataPoller(cluster, ["t"], trace_path(tmp_path, 100))
    poller.look()
    cluster.state, cluster.brokers = MOVED, (1,)
    poller.look()
    assert (poller.view().partitions["t-0"], poller.view().running, poller.view().brokers) == (MOVED, (1,), (0, 1))
    facts = [(type(seen.fact), seen.partition) for seen in traced(tmp_path, 0)]
    assert facts == [
        (BrokerRegistered, None),
        (BrokerRegistered, None),
        (LeaderElected, "t-0"),
        (BrokerFenced, None),
        (LeaderElected, "t-0"),
    ]
    cluster.state = None
    with pytest.raises(HostError):
        poller.look()
    assert poller.view().partitions["t-0"] == MOVED, "the last view holds"
    poller.end()
    assert cluster.closed


def test_a_look_that_fails_in_the_library_is_not_the_last(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("harness.worlds.existing.LOOK_EVERY_S", 0.001)
    cluster, seen = Cluster(), threading.Event()
    poller = MetadataPoller(cluster, ["t"], tmp_path / "trace-100.jsonl")
    failures = [AttributeError("a broker vanished while it was asked")] * 3

    def running():
        if failures:
            raise failures.pop()
        if cluster.state is MOVED:
            seen.set()
        return (0, 1)

    poller.begin()
    cluster.running, cluster.state = running, MOVED
    assert seen.wait(60)
    poller.end()
    assert poller.view().partitions["t-0"] == MOVED
    assert "the last view holds" in caplog.text
