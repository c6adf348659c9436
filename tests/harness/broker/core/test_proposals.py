"""Rules 10, 11 and 20: ISR changes that are proposed, lost, repeated, refused, and followers that leave in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.core.messages import (
    AlterPartition,
    AlterPartitionResponse,
    Fetch,
    FetchResponse,
    HeartbeatResponse,
    Message,
    MetadataUpdate,
)
from harness.broker.core.types import CONTROLLER, BrokerConfig, ErrorCode, NodeId, TopicConfig
from tests.harness.worlds.simulated.driven import AT

SAFE = TopicConfig(min_insync_replicas=2)
#: Nobody else leaves the ISR meanwhile, and what waits for a follower waits for long.
PATIENT = BrokerConfig(replica_lag_time_max_ms=20_000)

Loses = Callable[[NodeId, NodeId, Message], bool]


def fetches_of(follower: NodeId) -> Loses:
    return lambda source, target, message: source == follower and isinstance(message, Fetch)


def either(*loses: Loses) -> Loses:
    return lambda source, target, message: any(lose(source, target, message) for lose in loses)


def proposals(cluster: Any) -> list[AlterPartition]:
    return [message for _, _, message in cluster.sent if isinstance(message, AlterPartition)]


def proposed_and_lost(lab: Any, broker: BrokerConfig = PATIENT, topic: TopicConfig = SAFE) -> Any:
    """2 was out of the ISR, has caught up, and the proposal to take it back does not arrive."""
    cluster = lab(broker, topic)
    cluster.kill(2)
    cluster.fence(2)
    cluster.lose = lambda s, t, m: isinstance(m, AlterPartition)
    cluster.sent.clear()
    cluster.start(2)
    cluster.wait(lambda: proposals(cluster))
    assert cluster.state().isr == (0, 1)
    assert cluster.brokers[0].replicas[AT].maximal_isr == (0, 1, 2)
    return cluster


# --- a proposal that is repeated ---


def test_a_repeated_proposal_is_the_one_that_was_lost(lab: Any) -> None:
    cluster = proposed_and_lost(lab)
    cluster.wait(lambda: len(proposals(cluster)) == 3)
    first, second, third = proposals(cluster)
    assert first.isr == second.isr == third.isr
    assert len({first.correlation, second.correlation, third.correlation}) == 3


def test_it_is_repeated_only_when_the_answer_is_overdue(lab: Any) -> None:
    cluster = proposed_and_lost(lab)
    cluster.run(PATIENT.replica_socket_timeout_ms - 10)
    assert len(proposals(cluster)) == 1


def test_a_proposal_that_was_lost_with_the_controllers_connection_is_repeated_when_it_is_back(lab: Any) -> None:
    """As Kafka: the request is sent again over the next connection, long before its answer would be overdue."""
    cluster = proposed_and_lost(lab)
    cluster.kill(CONTROLLER)
    cluster.run(50)
    cluster.start(CONTROLLER)
    cluster.lose = lambda s, t, m: False
    cluster.wait(lambda: cluster.state().isr == (0, 1, 2), limit_ms=PATIENT.replica_socket_timeout_ms // 10)
    first, second = proposals(cluster)
    assert (first.isr, first.partition_epoch) == (second.isr, second.partition_epoch)


def test_who_is_only_proposed_does_not_count_for_min_insync_replicas(lab: Any) -> None:
    cluster = proposed_and_lost(lab, topic=TopicConfig(min_insync_replicas=3))
    refused = cluster.write(0, "refused")
    cluster.write_ok(0, "x", acks=1)
    cluster.wait(lambda: cluster.records(2) == ["base", "x"])
    cluster.run(100)
    assert cluster.outcome(refused) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.committed() == ["base"]
    cluster.heal()
    cluster.wait(lambda: cluster.committed() == ["base", "x"])


def test_a_repeated_proposal_does_not_take_an_emptied_follower_into_the_isr(lab: Any) -> None:
    """Defect A: 2 qualified, died, lost its disk and is back under a new broker epoch when the repeat arrives."""
    cluster = proposed_and_lost(lab)
    cluster.kill(2)
    cluster.wipe(2)
    cluster.fence(2)
    cluster.start(2)
    cluster.lose = either(
        lambda s, t, m: isinstance(m, AlterPartition), lambda s, t, m: t == 2 and isinstance(m, FetchResponse)
    )
    empty = cluster.brokers[0].replicas[AT].followers[2]
    cluster.wait(lambda: empty.end_offset == 0 and not cluster.image.brokers[2].fenced)
    cluster.lose = lambda s, t, m: t == 2 and isinstance(m, FetchResponse)
    cluster.run(PATIENT.replica_socket_timeout_ms + 500)
    assert cluster.state().isr == (0, 1)
    cluster.kill(0, 1)
    cluster.fence(0, 1)
    assert cluster.state().leader != 2
    cluster.heal()
    cluster.start(0)
    cluster.start(1)
    cluster.settle()
    assert cluster.committed() == ["base"]


def test_a_copy_of_a_refused_proposal_takes_nobody_into_the_isr(lab: Any) -> None:
    """Defect B: a copy that was under way for long arrives when the ineligible follower is eligible again."""
    cluster = proposed_and_lost(lab, BrokerConfig())
    [late] = proposals(cluster)
    cluster.cut((2, CONTROLLER), (2, 0))
    cluster.fence(2)
    cluster.lose = lambda s, t, m: False
    replica = cluster.brokers[0].replicas[AT]
    cluster.wait(lambda: replica.maximal_isr == (0, 1))
    cluster.heal()
    cluster.lose = fetches_of(2)
    cluster.wait(lambda: not cluster.image.brokers[2].fenced)
    assert cluster.image.brokers[2].broker_epoch == late.isr[2].broker_epoch
    answers = (MetadataUpdate, HeartbeatResponse, AlterPartitionResponse)
    cluster.lose = either(fetches_of(2), lambda s, t, m: t == 0 and isinstance(m, answers))
    cluster.deliver(0, CONTROLLER, late)
    cluster.run(50)
    assert set(cluster.state().isr) <= set(replica.maximal_isr)
    cluster.write_ok(0, "x")
    cluster.kill(0, 1)
    cluster.fence(0, 1)
    assert cluster.state().leader != 2


def test_a_late_refusal_of_the_first_copy_does_not_end_what_the_second_has_achieved(lab: Any) -> None:
    cluster = proposed_and_lost(lab)
    [first] = proposals(cluster)
    cluster.lose = lambda s, t, m: t == 0 and isinstance(m, (MetadataUpdate, HeartbeatResponse, AlterPartitionResponse))
    cluster.wait(lambda: cluster.state().isr == (0, 1, 2))
    cluster.lose = lambda s, t, m: t == 0 and isinstance(m, (MetadataUpdate, HeartbeatResponse))
    refusal = AlterPartitionResponse(first.correlation, AT, ErrorCode.INELIGIBLE_REPLICA)
    cluster.deliver(CONTROLLER, 0, refusal)
    cluster.run(20)
    assert cluster.brokers[0].replicas[AT].maximal_isr == (0, 1, 2)


def test_a_follower_that_was_refused_is_proposed_anew_once_it_is_eligible(lab: Any) -> None:
    cluster = proposed_and_lost(lab)
    cluster.cut((2, CONTROLLER))
    cluster.fence(2)
    cluster.heal()
    cluster.settle()


# --- a follower that leaves in order ---


@pytest.mark.parametrize("follower", [1, 2])
def test_acks_all_goes_on_at_once_after_a_clean_stop_of_a_follower(lab: Any, follower: int) -> None:
    """Defect D: a leader that did not know of it waited until the follower was no longer called caught up."""
    cluster = lab(topic=SAFE)
    cluster.cluster.target.processes.stop(follower)
    cluster.wait(lambda: follower not in cluster.brokers)
    stopped_us = cluster.now_us
    cluster.write_ok(0, "x")
    assert cluster.now_us - stopped_us <= 10_000
    assert not cluster.image.brokers[follower].fenced


def test_a_write_that_waits_for_a_leaving_follower_is_answered_when_the_leader_learns_of_it(lab: Any) -> None:
    cluster = lab(topic=SAFE)
    cluster.lose = fetches_of(2)
    waiting = cluster.write(0, "x")
    cluster.run(50)
    assert cluster.outcome(waiting) is None
    cluster.cluster.process(2).do(cluster.brokers[2].leave)
    cluster.wait(lambda: cluster.outcome(waiting) == ErrorCode.NONE, limit_ms=10)


def test_a_follower_that_left_in_order_joins_again_as_its_next_incarnation(lab: Any) -> None:
    cluster = lab(topic=SAFE)
    cluster.cluster.target.processes.stop(2)
    cluster.wait(lambda: 2 not in cluster.brokers)
    assert cluster.image.brokers[2].leaving
    cluster.start(2)
    cluster.settle()
    assert not cluster.image.brokers[2].leaving
