"""Rule 29: a failed log directory takes its replicas out of the ISRs, and the broker goes on with the others."""

from __future__ import annotations

from typing import Any

from harness.broker.core.messages import AlterPartition, Fetch, FetchPartition
from harness.broker.core.types import CONTROLLER, NONE, BrokerConfig, ErrorCode, TopicConfig
from tests.harness.worlds.simulated.driven import AT


def fail(cluster: Any, node: int) -> None:
    """The directory fails in which a broker has the partition; there are others."""
    cluster.cluster.process(node).on_directory_failure((AT,))


def test_a_leader_whose_directory_fails_is_replaced_at_once_and_stays_a_broker(lab: Any) -> None:
    cluster = lab(topic=TopicConfig(min_insync_replicas=2))
    fail(cluster, 0)
    cluster.wait(lambda: cluster.leads(1), limit_ms=50)
    assert cluster.state().isr == (1, 2)
    assert cluster.state().offline == (0,)
    assert not cluster.image.brokers[0].fenced
    cluster.write_ok(1, "x")
    assert cluster.records(1) == ["base", "x"]


def test_whoever_asks_for_a_partition_in_a_failed_directory_hears_that_the_storage_failed(lab: Any) -> None:
    cluster = lab()
    fail(cluster, 0)
    cluster.run(50)
    asked = (FetchPartition(AT, 0),)
    assert cluster.ask(0, lambda c: Fetch(c, NONE, 0, asked)).partitions[0].error == ErrorCode.KAFKA_STORAGE_ERROR
    refused = cluster.write(0, "x")
    cluster.run(50)
    assert cluster.outcome(refused) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_replica_in_a_failed_directory_may_lead_and_be_in_sync_when_its_broker_was_started_again(lab: Any) -> None:
    cluster = lab()
    fail(cluster, 2)
    cluster.wait(lambda: cluster.state().isr == (0, 1))
    cluster.write_ok(0, "x")
    cluster.run(5_000)
    assert cluster.state().isr == (0, 1)
    cluster.kill(2)
    cluster.fence(2)
    cluster.start(2)
    cluster.settle()
    assert cluster.state().offline == ()


def test_a_proposal_that_comes_late_takes_no_replica_of_a_failed_directory_back(lab: Any) -> None:
    cluster = lab()
    cluster.shrink(2)
    cluster.lose = lambda s, t, m: t == CONTROLLER and isinstance(m, AlterPartition)
    proposals = len([m for _, _, m in cluster.sent if isinstance(m, AlterPartition)])
    cluster.wait(lambda: len([m for _, _, m in cluster.sent if isinstance(m, AlterPartition)]) > proposals)
    fail(cluster, 2)
    cluster.run(50)
    late = [m for _, _, m in cluster.sent if isinstance(m, AlterPartition)][-1]
    assert {member.broker for member in late.isr} == {0, 1, 2}
    cluster.heal()
    cluster.deliver(0, CONTROLLER, late)
    cluster.run(10_000)
    assert cluster.state().isr == (0, 1)


def test_the_last_in_sync_replica_in_a_failed_directory_is_waited_for(lab: Any) -> None:
    """As for a broker that died: nobody else has everything, unless elections may be unclean or there is an ELR."""
    expected = {
        "wait": (lab(), NONE),
        "unclean": (lab(topic=TopicConfig(unclean_leader_election_enable=True)), 1),
        "eligible": (lab(BrokerConfig(eligible_leader_replicas=True), TopicConfig(min_insync_replicas=2)), 1),
    }
    for name, (cluster, leader) in expected.items():
        cluster.cut((0, 1), (0, 2))
        cluster.nudge()
        cluster.wait(lambda cluster=cluster: cluster.state().isr == (0,))
        fail(cluster, 0)
        cluster.run(50)
        assert cluster.state().leader == leader, name
        assert (cluster.state().isr == (0,)) is (leader == NONE)


def test_a_broker_that_starts_with_a_failed_directory_says_so_before_it_may_lead(lab: Any) -> None:
    cluster = lab()
    cluster.cluster.target.log_directories.fail(1, str(AT))
    cluster.fence(1)
    cluster.start(1)
    cluster.run(3_000)
    assert cluster.image.brokers[1].fenced, "its only directory has failed, so it does not start"
    assert cluster.cluster.target.log_directories.replace(1) == {"replaced": {str(AT): 1}}
    cluster.start(1)
    cluster.settle()
