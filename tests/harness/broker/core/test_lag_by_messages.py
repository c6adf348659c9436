"""Rule 12: the ISR of 0.8.2, which a follower also leaves by how many records it is behind."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.messages import Produce, RecordBatch
from harness.broker.core.types import ACKS_ALL, NONE, BrokerConfig, ErrorCode, TopicConfig
from harness.ground.observations import IsrChanged
from tests.harness.worlds.simulated.driven import AT

BY_MESSAGES = BrokerConfig(replica_lag_max_messages=4)
BY_TIME = BrokerConfig()
MINUTE_MS = 60_000


def burst(cluster: Any, records: int) -> int:
    """A batch of so many records, to acks=all; the answer is its correlation."""
    correlation = cluster.correlation()
    cluster.send(0, Produce(correlation, AT, ACKS_ALL, 20_000, RecordBatch(records, 100 * records, "burst")))
    return int(correlation)


def isr_changes_per_minute(lab: Any, broker: BrokerConfig) -> int:
    """One minute of bursts: for a tenth of each second a batch of ten records every two milliseconds.

    Their rhythm is none of the ISR check, so that they meet it now and then."""
    cluster = lab(broker)
    cluster.observed.clear()
    for _ in range(MINUTE_MS // 1_000):
        for _ in range(50):
            burst(cluster, 10)
            cluster.run(2)
        cluster.run(917)
    cluster.settle()
    return len(cluster.seen(IsrChanged))


def test_bursts_drive_followers_out_of_the_isr_and_back_only_where_records_are_counted(lab: Any) -> None:
    """All followers are alive and a millisecond away. With 0.8.2's rule the ISR changes again and again."""
    assert isr_changes_per_minute(lab, BY_TIME) == 0
    assert isr_changes_per_minute(lab, BY_MESSAGES) >= 10


@pytest.mark.parametrize(("behind", "members"), [(4, {0, 1, 2}), (5, {0})])
def test_a_follower_leaves_when_it_is_more_records_behind_than_it_may(lab: Any, behind: int, members: set[int]) -> None:
    cluster = lab(BrokerConfig(replica_lag_max_messages=4, replica_lag_time_max_ms=2_000))
    cluster.cut((0, 1), (0, 2))
    burst(cluster, behind)
    cluster.run(1_100)
    assert set(cluster.state().isr) == members


def test_a_follower_of_which_nothing_is_known_is_not_behind(lab: Any) -> None:
    cluster = lab(BrokerConfig(replica_lag_max_messages=1, replica_lag_time_max_ms=20_000))
    burst(cluster, 5)
    cluster.settle()
    cluster.cut((1, 2))
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    assert cluster.brokers[1].replicas[AT].followers[2].end_offset == NONE
    cluster.run(11_000)
    assert 2 in cluster.state().isr


def burst_and_host_lost(lab: Any, broker: BrokerConfig, topic: TopicConfig) -> tuple[bool, bool]:
    """S30: a burst, then the leader's host is lost for good. Was the burst acknowledged, and is it lost?"""
    cluster = lab(broker, topic)
    cluster.cut((0, 1), (0, 2))
    waiting = burst(cluster, 5)
    cluster.run(1_000)
    acknowledged = cluster.outcome(waiting) == ErrorCode.NONE
    cluster.kill(0)
    cluster.fence(0)
    cluster.heal()
    cluster.run(3_000)
    readable = cluster.state().leader != NONE and "burst" in cluster.committed()
    return acknowledged, acknowledged and not readable


def test_a_burst_that_the_leader_alone_acknowledged_is_lost_with_its_host(lab: Any) -> None:
    """Followers were out of the ISR for a second's silence; by time they would have stayed in it."""
    unclean = TopicConfig(unclean_leader_election_enable=True)
    assert burst_and_host_lost(lab, BY_MESSAGES, unclean) == (True, True)
    assert burst_and_host_lost(lab, BY_TIME, unclean) == (False, False)


def test_min_insync_replicas_refuses_to_acknowledge_it(lab: Any) -> None:
    both = TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=True)
    assert burst_and_host_lost(lab, BY_MESSAGES, both) == (False, False)
