"""Each assertion of the core, broken on purpose: what no message, fault or order of events can bring about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.broker.core.controller import settle
from harness.broker.core.effects import Context
from harness.broker.core.messages import AlterPartitionResponse, RecordBatch
from harness.broker.core.request_handler import Deadlines, ParkedProduce
from harness.broker.core.types import BrokerConfig, ErrorCode, PartitionState, TopicConfig, TopicPartition

AT = TopicPartition("t", 0)
STATE = PartitionState((0, 1, 2), (0, 1), 0, 3, 5)


def follows(state: PartitionState, **changes: Any) -> PartitionState:
    return replace(state, partition_epoch=state.partition_epoch + 1, **changes)


def accept_in_another_epoch(leader: Any, state: PartitionState) -> None:
    leader._propose((0, 1))
    accepted = follows(state, isr=(0, 1), leader_epoch=state.leader_epoch + 1)
    answer = AlterPartitionResponse(leader.proposal.correlation, AT, ErrorCode.NONE, accepted)
    leader.on_proposal_answered(answer)


def commit_as_follower(leader: Any) -> None:
    leader.leading = False
    leader.log.append(RecordBatch(1, 10, "x", leader.log.end_offset, leader.leader_epoch))
    leader.followers = {}
    leader.advance_high_watermark()


def propose_as_follower(leader: Any) -> None:
    leader.leading = False
    leader._propose((0,))


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda leader, state: leader.apply(follows(state, leader_epoch=-1), TopicConfig()), "an older leader epoch"),
        (
            lambda leader, state: leader.apply(follows(state, leader_epoch=9, isr=(1, 2)), TopicConfig()),
            "elected without being in the ISR",
        ),
        (lambda leader, _: commit_as_follower(leader), "only a leader commits"),
        (lambda leader, _: propose_as_follower(leader), "only a leader proposes"),
        (lambda leader, _: leader._propose((1, 2)), "stays in its own ISR"),
        (lambda leader, _: leader._propose((0, 7)), "the ISR is of the replicas"),
        (accept_in_another_epoch, "accepted in another leader epoch"),
        (lambda leader, _: leader.truncate_to(0), "a leader's log only grows"),
        (lambda leader, _: leader.restart_at(9), "a leader's log only grows"),
        (lambda leader, _: leader.replicate((), 0), "takes records from producers only"),
    ],
)
def test_a_leader_that_breaks_a_rule_is_stopped(
    lab: Any, act: Callable[[Any, PartitionState], None], words: str
) -> None:
    cluster = lab()
    with pytest.raises(AssertionError, match=words):
        act(cluster.brokers[0].replicas[AT], cluster.state())


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (replace(STATE, leader=2), "a leader is in the ISR"),
        (replace(STATE, isr=(0, 7)), "the ISR and the ELR are of the replicas"),
        (replace(STATE, elr=(1,)), "not on the second list"),
    ],
)
def test_the_controller_makes_no_impossible_state(after: PartitionState, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        settle(STATE, after)


def test_a_parked_request_is_answered_once() -> None:
    context = Context(0, BrokerConfig(), observing=False)
    deadlines, parked = Deadlines(context), ParkedProduce(1000, 1, AT, -1, 0, 1)
    deadlines.add(10, parked)
    deadlines.finish(parked)
    with pytest.raises(AssertionError, match="answered once"):
        deadlines.finish(parked)
