"""Rule 30: a leader that missed a whole leader epoch, in which another led, and leads again."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.types import CONTROLLER, BrokerConfig, ErrorCode, TopicConfig
from harness.worlds.simulated.invariants import InvariantBrokenError
from tests.harness.worlds.simulated.driven import AT

#: Nobody leaves the ISR while links are cut for a second or two, as with Kafka's own 30 s.
PATIENT: dict[str, Any] = {"replica_lag_time_max_ms": 20_000}
SAFE = TopicConfig(min_insync_replicas=2)


def missing_an_epoch(lab: Any, missed_epoch: Any, *, watched: bool = False) -> tuple[Any, int]:
    """The cluster after 0, which led, missed that 1 led in between, and the write that 2 had and dropped then."""
    cluster = lab(BrokerConfig(missed_epoch=missed_epoch, **PATIENT), SAFE)
    cluster.invariants.keeps_committed &= watched
    cluster.cut((0, 1))
    b = cluster.write(0, "b", timeout_ms=20_000)
    cluster.wait(lambda: cluster.brokers[0].replicas[AT].followers[2].end_offset == 2)
    assert cluster.outcome(b) is None
    cluster.cut((0, CONTROLLER), (0, 2))
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.records(2) == ["base"])
    cluster.move_leader(0)
    cluster.run(20)
    assert cluster.state().isr == (0, 1, 2)
    assert cluster.brokers[0].replicas[AT].leader_epoch == 0
    cluster.heal()
    cluster.cut((0, 2))
    cluster.wait(lambda: cluster.brokers[0].replicas[AT].leader_epoch == 2)
    cluster.wait(lambda: cluster.records(1) == ["base", "b"])
    cluster.run(50)
    return cluster, b


def lost_with_both(cluster: Any) -> list[str]:
    """The records that can be read after 0 and 1 were killed and all are back."""
    cluster.kill(0, 1)
    cluster.fence(0, 1)
    cluster.heal()
    cluster.wait(lambda: cluster.leads(2))
    cluster.start(0)
    cluster.start(1)
    cluster.settle()
    return list(cluster.committed())


def test_a_leader_that_missed_an_epoch_waits_for_what_a_follower_dropped_in_it(lab: Any) -> None:
    cluster, b = missing_an_epoch(lab, "forget", watched=True)
    assert cluster.outcome(b) is None
    assert lost_with_both(cluster) == ["base"]
    assert cluster.outcome(b) != ErrorCode.NONE


def test_it_acknowledges_as_soon_as_that_follower_has_fetched_anew(lab: Any) -> None:
    cluster, b = missing_an_epoch(lab, "forget", watched=True)
    cluster.heal()
    cluster.wait(lambda: cluster.outcome(b) == ErrorCode.NONE)
    assert cluster.records(2) == ["base", "b"]


def test_as_kafka_does_it_a_missed_epoch_loses_an_acknowledged_write(lab: Any) -> None:
    cluster, b = missing_an_epoch(lab, "kafka")
    assert cluster.outcome(b) == ErrorCode.NONE
    assert cluster.records(2) == ["base"]
    assert lost_with_both(cluster) == ["base"]


def test_the_commit_is_seen_to_be_wrong_before_anything_is_lost(lab: Any) -> None:
    with pytest.raises(InvariantBrokenError, match="candidates-are-complete"):
        missing_an_epoch(lab, "kafka", watched=True)


def test_a_leader_that_was_told_of_the_epoch_between_forgets_either_way(lab: Any) -> None:
    """The control: with each epoch applied, as Kafka also does it right, the two forms do not differ."""
    cluster = lab(BrokerConfig(missed_epoch="kafka", **PATIENT), SAFE)
    cluster.cut((0, 1))
    b = cluster.write(0, "b", timeout_ms=20_000)
    cluster.wait(lambda: cluster.brokers[0].replicas[AT].followers[2].end_offset == 2)
    cluster.cut((0, 2))
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.records(2) == ["base"])
    cluster.move_leader(0)
    cluster.wait(lambda: cluster.leads(0))
    assert {follower.end_offset for follower in cluster.brokers[0].replicas[AT].followers.values()} == {-1}
    assert cluster.outcome(b) == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("told", [True, False])
def test_in_its_second_reign_a_leader_does_not_wait_for_who_is_still_out_of_sync(lab: Any, *, told: bool) -> None:
    """It may join as far as the controller knows, but has shown nothing in this leader epoch."""
    cluster = lab(BrokerConfig(missed_epoch="kafka"), SAFE)
    cluster.shrink(2)
    cluster.wait(lambda: cluster.log_end(1) == cluster.high_watermark(1) == cluster.log_end(0))
    if not told:
        cluster.cut((0, CONTROLLER))
    cluster.move_leader(1)
    cluster.run(50)
    assert cluster.leads(0) is not told
    cluster.move_leader(0)
    if not told:
        cluster.network.heal(cluster.links)
    cluster.wait(lambda: cluster.brokers[0].replicas[AT].leader_epoch == 2)
    assert cluster.state().isr == (0, 1)
    x = cluster.write(0, "x")
    cluster.run(200)
    assert cluster.outcome(x) == ErrorCode.NONE
